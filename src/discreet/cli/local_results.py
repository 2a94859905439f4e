"""What the local model's commands print: the protocols compared, the reports added up, and what they say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_never

from rich.console import Console
from rich.text import Text

from discreet.cli import printing
from discreet.cli.output import Printout
from discreet.cli.rows import make_rows
from discreet.local.aggregate import Aggregator
from discreet.local.estimation import Distribution, Frequencies, MeanEstimate
from discreet.local.protocol_choice import Choice
from discreet.local.reports import REASONS
from discreet.local.task import Task

_BAR = 24
_SHOWN = 50
_CANDIDATES = {
    "protocol": "text",
    "variance": "real",
    "error": "real",
    "bits": "integer",
    "server_steps": "real",
    "influence": "real",
    "targets": "integer",
    "note": "text",
}
_SHARES = {"value": "text", **dict.fromkeys(("share", "low", "high", "low_all", "high_all", "consistent"), "real")}
_MEAN = dict.fromkeys(("mean", "low", "high", "consistent"), "real")
_BUCKETS = dict.fromkeys(("from", "to", "share"), "real")


def make_choice(
    choice: Choice, task: Task, needed: int | None, *, error: str | None, out: Path | None, protocol: str | None
) -> Printout:
    """The protocols that could do it, the one that is taken, and what its report costs."""

    def document() -> dict[str, Any]:
        rows = [dict(zip(("protocol", *choice.HEADS[1:-1], "note"), row)) for row in choice.table()]
        known = {"task": json.loads(task.json), "id": task.id, "loss": float(task.loss), "candidates": rows}
        return {**known, "because": choice.because, "people_needed": needed}

    lines = [choice.because if protocol is None else f"{protocol}: as you asked."]
    lines.append(f"One report costs its sender at most ε = {float(task.loss):.6g}; task {task.id}.")
    if needed is not None:
        lines.append(f"An error of {error} takes {needed:,} people.")
    lines.append(f"Wrote {out}." if out is not None else "Nothing was written: give --out to keep the task.")

    def draw(console: Console) -> None:
        printing.print_table(console, choice.HEADS, choice.table())
        console.out("\n".join(lines), highlight=False)

    return Printout(rows=lambda: make_rows(_CANDIDATES, _list_candidates(choice)), document=document, draw=draw,
                    note=" ".join(lines[1:]))  # fmt: skip


def _list_candidates(choice: Choice) -> list[dict[str, Any]]:
    names = ("variance", "error", "bits", "server_steps", "influence", "targets")
    return [
        {"protocol": one.name, "note": "chosen" if one is choice.best else one.reason}
        | {name: getattr(one, name) for name in names}
        for one in choice.candidates
    ]


def make_aggregate(total: Aggregator, state: Path, added: Sequence[bool]) -> Printout:
    """How many reports are in, how many files were new, and what was set aside for which reason."""
    set_aside = dict(total.rejected)
    known = {"task": total.task.id, "people": total.people}
    files = {"added": sum(added), "known": len(added) - sum(added)}
    reasons = {f"wrong_{reason}": set_aside.get(reason, 0) for reason in REASONS}
    types = {"task": "text"} | dict.fromkeys(("people", *files, *reasons), "integer")

    def draw(console: Console) -> None:
        console.out(f"{total.people:,} reports in {state}, {sum(added)} of {len(added)} files new.", highlight=False)
        for reason, count in sorted(set_aside.items()):
            console.out(f"Set aside: {count:,} with a wrong {reason}.", highlight=False)

    return Printout(
        rows=lambda: make_rows(types, [{**known, **files, **reasons}]),
        document=lambda: {**known, "set_aside": set_aside, **files},
        draw=draw,
    )


def make_estimate(total: Aggregator, found: Frequencies | MeanEstimate | Distribution) -> Printout:
    """What the reports say: shares of values, a mean, or a distribution."""
    match found:
        case Frequencies():
            return _make_shares(total, found)
        case MeanEstimate():
            return _make_mean(total, found)
        case Distribution():
            return _make_distribution(total, found)
        case _:
            assert_never(found)


def _make_shares(total: Aggregator, found: Frequencies) -> Printout:
    rows = sorted(found.rows(), key=lambda row: -_to_real(row["share"]))
    return Printout(
        rows=lambda: make_rows(_SHARES, [row | {"value": str(row["value"])} for row in rows]),
        document=lambda: {**_describe(total, found), "rows": rows},
        draw=lambda console: _draw_shares(console, total, found, rows),
        note=_describe_reports(total, found, "intervals are"),
    )


def _draw_shares(console: Console, total: Aggregator, found: Frequencies, rows: Sequence[dict[str, object]]) -> None:
    top = max((_to_real(row["high"]) for row in rows), default=1.0)
    cells, bars = [], []
    for row in rows[:_SHOWN]:
        share, low, high, kept = (_to_real(row[key]) for key in ("share", "low", "high", "consistent"))
        cells.append((str(row["value"]), f"{share:.4f}", f"[{low:.4f}, {high:.4f}]", f"{kept:.4f}"))
        bars.append(_draw_bar(share, low, high, top))
    printing.print_table(console, ("value", "share", f"{found.level:.0%} interval", "consistent"), cells, bars)
    if len(rows) > _SHOWN:
        console.out(f"... {len(rows) - _SHOWN:,} more values; --format csv shows all", highlight=False)
    console.out(_describe_reports(total, found, "intervals are"), highlight=False)


def _make_mean(total: Aggregator, found: MeanEstimate) -> Printout:
    shown = {"mean": found.value, "low": found.low, "high": found.high, "consistent": found.consistent}
    words = f"mean {found.value:.6g}  [{found.low:.6g}, {found.high:.6g}] at {found.level:.0%}"
    about = _describe_reports(total, found, "interval is")
    return Printout(
        rows=lambda: make_rows(_MEAN, [shown]),
        document=lambda: {**_describe(total, found), **shown},
        draw=lambda console: console.out(f"{words}\n{about}", highlight=False),
        note=about,
    )


def _make_distribution(total: Aggregator, found: Distribution) -> Printout:
    edges, shares = found.edges.tolist(), found.shares.tolist()
    buckets = [{"from": low, "to": high, "share": share} for low, high, share in zip(edges, edges[1:], shares)]
    known = {"task": total.task.id, "people": found.people, "mean": found.mean}
    words = f"mean {found.mean:.6g}, median {found.quantile(0.5):.6g}; {found.people:,} reports."
    return Printout(
        rows=lambda: make_rows(_BUCKETS, buckets),
        document=lambda: {**known, "edges": edges, "shares": shares},
        draw=lambda console: _draw_distribution(console, found, words),
        note=words,
    )


def _draw_distribution(console: Console, found: Distribution, words: str) -> None:
    step = -(-len(found.shares) // 24)
    parts = [float(found.shares[at : at + step].sum()) for at in range(0, len(found.shares), step)]
    top = max(parts)
    rows = [(f"{found.edges[at * step]:.6g} …", f"{share:.4f}") for at, share in enumerate(parts)]
    printing.print_table(console, ("from", "share"), rows, [_draw_bar(share, share, share, top) for share in parts])
    console.out(words, highlight=False)


def _draw_bar(value: float, low: float, high: float, top: float) -> Text:
    """A bar up to the value, lighter over the interval."""

    def place(x: float) -> int:
        return round(max(0.0, min(1.0, x / top if top > 0 else 0.0)) * _BAR)

    start, at, end = place(low), place(value), place(high)
    solid = "█" * min(start, at) + "▓" * max(0, at - start)
    return Text.assemble((solid, "cyan"), ("░" * max(0, end - at), "dim cyan"))


def _describe(total: Aggregator, found: Frequencies | MeanEstimate) -> dict[str, Any]:
    return {"task": total.task.id, "people": found.people, "level": found.level, "about": found.about}


def _describe_reports(total: Aggregator, found: Frequencies | MeanEstimate, what: str) -> str:
    loss = f"{float(total.task.loss):.6g}"
    return f"{found.people:,} reports. The {what} about {found.about}; one report cost ε = {loss}."


def _to_real(value: object) -> float:
    return value if isinstance(value, float) else float(str(value))
