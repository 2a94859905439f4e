"""Reports of an audit: a table in the terminal, JSON, and one HTML page with a picture and without scripts."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from discreet.audit.findings import Finding, Verdict, all_hold

if TYPE_CHECKING:
    from rich.console import Console

_ROW = 20
_LABEL = 330
_WIDTH = 860
_COLOURS = {True: "#4c78a8", False: "#d62728"}


def as_dict(findings: Sequence[Finding], seconds: float) -> dict[str, Any]:
    """The whole report as plain JSON values."""
    from importlib.metadata import version

    return {
        "discreet": version("discreet"),
        "python": platform.python_version(),
        "holds": all_hold(findings),
        "seconds": round(seconds, 2),
        "false_alarms": sum(finding.alpha for finding in findings),
        "findings": [finding.to_dict() for finding in findings],
    }


def show(console: Console, findings: Sequence[Finding], seconds: float) -> None:
    """Print the findings as a table, and the witnesses of broken claims."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_edge=False)
    for title, justify in (
        ("", "left"),
        ("check", "left"),
        ("how", "left"),
        ("claimed ε", "right"),
        ("measured ε ≥", "right"),
        ("", "left"),
    ):
        table.add_column(title, justify=justify, overflow="fold")  # type: ignore[arg-type]  # plain words
    for f in findings:
        mark = Text("✓", style="green") if f.holds else Text("✗", style="bold red")
        numbers = ["" if v is None else f"{v:.3f}" for v in (f.claimed, f.lower)]
        detail = f.detail if f.holds else f"{f.verdict}: {f.detail}"
        table.add_row(mark, Text(f.name), f.method, *numbers, Text(detail, style="" if f.holds else "red"))
    console.print(table)
    for f in findings:
        if not f.holds:
            console.print()
            console.print(Text(str(f)))
    console.print(Text(summarize(findings, seconds), style="bold green" if all_hold(findings) else "bold red"))


def summarize(findings: Sequence[Finding], seconds: float) -> str:
    """One sentence about all checks."""
    failed = sum(not f.holds for f in findings)
    false = sum(f.alpha for f in findings)
    verdict = "everything holds" if not failed else f"{failed} did not hold"
    chance = f"(chance of any false alarm below {max(false, 1e-12):.1g})"
    return f"{len(findings)} checks in {seconds:.0f} s: {verdict} {chance}"


def render_html(findings: Sequence[Finding], seconds: float) -> str:
    """One page: the sentence, the picture, the table, the witnesses."""
    rows = "".join(_render_row(finding) for finding in findings)
    witnesses = "".join(f"<pre>{escape(str(f))}</pre>" for f in findings if not f.holds)
    colour = _COLOURS[all_hold(findings)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>discreet audit</title><style>'
        "body{font:15px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
        "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25rem .5rem;vertical-align:top;"
        "border-bottom:1px solid #ddd}td.n{text-align:right}pre{background:#f6f6f6;padding:1rem;overflow:auto}"
        "</style></head><body><h1>Audit of this installation</h1>"
        f'<p style="color:{colour}"><b>{escape(summarize(findings, seconds))}</b></p>'
        "<p>Blue bars are lower bounds on the true ε, measured; black marks are the claims. A bar that passes its mark "
        "refutes the claim. A short bar is no fault: not every claim is tight for the pair that was tried.</p>"
        f"{draw_picture(findings)}{witnesses}<table><thead><tr><th></th><th>check</th><th>how</th><th>claim</th>"
        f"<th>measured ε ≥</th><th>runs</th><th>smallest mass</th><th></th></tr></thead><tbody>{rows}</tbody></table>"
        "</body></html>"
    )


def _render_row(f: Finding) -> str:
    lower = "" if f.lower is None else f"{f.lower:.3f}"
    smallest = "" if f.smallest is None else f"{f.smallest:.2g}"
    runs = f"{f.samples:,}" if f.samples else ""
    detail = f.detail if f.holds else f"{f.verdict}: {f.detail}"
    return (
        f"<tr><td>{'✓' if f.holds else '✗'}</td><td>{escape(f.name)}</td><td>{escape(f.method)}</td>"
        f'<td>{escape(f.claim)}</td><td class="n">{lower}</td><td class="n">{runs}</td>'
        f'<td class="n">{smallest}</td><td>{escape(detail)}</td></tr>'
    )


def draw_picture(findings: Sequence[Finding]) -> str:
    """Claimed ε against the measured lower bound, one bar for each black box and exact check that has both."""
    shown = [f for f in findings if f.claimed is not None and f.lower is not None]
    if not shown:
        return ""
    widest = max(max(f.claimed or 0.0, min(f.lower or 0.0, 2 * (f.claimed or 1.0) + 1)) for f in shown) or 1.0
    scale = (_WIDTH - _LABEL - 40) / widest
    bars = "".join(_draw_bar(number, f, scale) for number, f in enumerate(shown))
    height = len(shown) * _ROW + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="100%" role="img" '
        f'aria-label="claimed and measured epsilon" font-family="sans-serif" font-size="11">{bars}</svg>'
    )


def _draw_bar(number: int, f: Finding, scale: float) -> str:
    top = 4 + number * _ROW
    lower = min(f.lower or 0.0, 2 * (f.claimed or 1.0) + 1)
    mark = _LABEL + (f.claimed or 0.0) * scale
    label = f"{f.name} · {f.method}"
    shown = label if len(label) <= 56 else label[:55] + "…"
    return (
        f'<text x="{_LABEL - 6}" y="{top + 11}" text-anchor="end">{escape(shown)}</text>'
        f'<rect x="{_LABEL}" y="{top + 2}" width="{lower * scale:.1f}" height="{_ROW - 8}" '
        f'fill="{_COLOURS[f.verdict is not Verdict.BROKEN]}"/>'
        f'<path d="M{mark:.1f} {top}V{top + _ROW - 4}" stroke="#222" stroke-width="2"/>'
    )
