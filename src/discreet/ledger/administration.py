"""Administration of a ledger: verifies it, reads its history, and exports it.

An export contains who asked what, what it cost, and hashes of answers. There is no true value in a ledger, and no
export contains the answers themselves.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from discreet.accounting.cost_words import describe_left
from discreet.errors import LedgerError
from discreet.exact import float_down, float_up
from discreet.late_dataclass import dataclass
from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.chain import Head
from discreet.ledger.policy import Policy
from discreet.ledger.state import State

COLUMNS = (
    "number", "time", "kind", "analyst", "project", "request", "version", "question", "price", "loss", "of", "answer",
    "by", "reason", "hash",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a verification that found nothing wrong."""

    head: Head
    entries: int
    charges: int
    unanswered: int
    first: str
    last: str

    def __str__(self) -> str:
        lines = [
            f"whole      {self.entries:,} entries, each with the hash of the one before",
            f"charges    {self.charges:,}, of which {self.unanswered:,} without an answer (spent all the same)",
            f"time       {self.first} to {self.last}",
            f"head       {self.head.to_json()}",
        ]
        return "\n".join(lines)


def verify(ledger: BaseLedger, heads: Iterable[Head] = ()) -> Report:
    """Read the whole ledger and check everything that can be checked; LedgerDamaged says what is wrong.

    ``heads`` were exported earlier; the log must still contain each of them.
    """
    state = ledger.scan()
    for head in heads:
        ledger.check_head(head)
    return Report(
        head=state.head,
        entries=state.number + 1,
        charges=state.charges,
        unanswered=state.charges - state.answers,
        first=show(ledger, 0)["time"],
        last=state.time,
    )


def show(ledger: BaseLedger, number: int) -> dict[str, Any]:
    """One entry of the log, as it was written."""
    found = ledger.read_line(number)
    if found is None:
        raise LedgerError(f"There is no entry of this number. The ledger has entries 0 to {ledger.head.number}.")
    record: dict[str, Any] = json.loads(found)
    return record


def as_json_lines(ledger: BaseLedger) -> str:
    """The log as it is: one line for each entry. ``check_log.py`` verifies it with the standard library alone."""
    return "".join(f"{line}\n" for line in ledger.read_lines())


def as_csv(ledger: BaseLedger) -> str:
    """The log as a table for spreadsheets; texts that a spreadsheet would run as formulas are marked as text."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    records = [json.loads(line) for line in ledger.read_lines()]
    hashes = [record["previous"] for record in records[1:]] + [ledger.head.hash]
    for record, digest in zip(records, hashes):
        table.writerow([_to_cell(record | {"hash": digest}, column) for column in COLUMNS])
    return out.getvalue()


def _to_cell(record: dict[str, Any], column: str) -> str | int:
    value = record.get(column, "")
    if column == "price" and value:
        return " ".join("?" if part is None else part for part in value)
    if column == "loss" and value:
        return "; ".join(f"{kind}: {words}" for kind, words in value.items())
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value if isinstance(value, int) else str(value)


def as_registry(ledger: BaseLedger, *, description: str = "") -> dict[str, Any]:
    """The deployment as an entry for a public register: what is protected, what was promised, what was spent and how.

    Register entries of this kind let people compare the parameters of deployments (Dwork, Kohli & Mulligan 2019).
    """
    state, records = ledger.state, [json.loads(line) for line in ledger.read_lines()]
    charges = [record for record in records if record["kind"] == "reserved"]
    mechanisms = Counter(event["kind"] for record in charges for event in record["events"])
    rules = state.rules
    return {
        "dataset": state.dataset,
        "description": description,
        "model": "central, interactive",
        "unit": str(state.unit),
        "level": state.unit.level,
        "neighbours": str(state.neighbours),
        "budget": _list_amounts(state),
        "spent": float_up(ledger.spent),
        "remaining": float_down(ledger.remaining),
        "remaining_words": describe_left(ledger.budget, ledger.remaining, *ledger.counted),
        "composition": "adaptive, by a filter in the notion of the budget",
        "policy": rules.policy.dump(),
        "mechanisms": dict(sorted(mechanisms.items())),
        "releases": {
            "charged": len(charges),
            "answered": sum(record["kind"] == "answered" for record in records),
            "analysts": len({record["analyst"] for record in charges}),
            "first": charges[0]["time"] if charges else None,
            "last": charges[-1]["time"] if charges else None,
        },
        "declarations": [
            {name: record[name] for name in ("number", "time", "kind", "by", "reason")}
            for record in records
            if record["kind"] in ("amended", "renewed", "restored")
        ],
        "ledger": json.loads(ledger.head.to_json()),
    }


def _list_amounts(state: State) -> dict[str, Any]:
    budget = state.rules.budget
    known: dict[str, Any] = {"notion": budget.notion, budget.kind.word: float_up(budget.amount())}
    return known | {"delta": float_up(budget.slack())} if budget.slack() else known


def export(ledger: BaseLedger, form: str, *, description: str = "") -> str:
    """The ledger as text: ``jsonl``, ``csv`` or ``registry``."""
    match form:
        case "jsonl":
            return as_json_lines(ledger)
        case "csv":
            return as_csv(ledger)
        case "registry":
            return json.dumps(as_registry(ledger, description=description), indent=2, ensure_ascii=False) + "\n"
        case _:
            raise LedgerError("This form is not known. Use jsonl, csv or registry.")


def read_verifier() -> str:
    """The source of the program that checks an exported log, for people who do not trust this package."""
    return Path(__file__).with_name("check_log.py").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What an analyst has spent, in the form of the budget, and the analyst's cap, if there is one."""

    analyst: str
    charges: int
    spent: float
    cap: float | None


def find_shares(ledger: BaseLedger) -> list[Share]:
    """What each analyst has spent on the present data, the largest first.

    Each share is counted on its own, in the form of the budget. With (ε, δ) the shares do not add up to the whole.
    """
    state = ledger.state
    currency, policy = state.rules.currency, state.rules.policy
    sums: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    for entry in _find_current_charges(ledger):
        before = sums.get(entry.charge.analyst, currency.nothing)
        sums[entry.charge.analyst] = currency.add(before, currency.price(entry.charge.loss))
        counts[entry.charge.analyst] += 1
    found = [
        Share(
            analyst=name, charges=counts[name], spent=float_up(currency.amount_of(total)), cap=_find_cap(policy, name)
        )
        for name, total in sums.items()
    ]
    return sorted(found, key=lambda share: (-share.spent, share.analyst))


def _find_current_charges(ledger: BaseLedger) -> Iterator[Any]:
    """The charges since the last renewal."""
    renewed = max(
        (json.loads(line)["number"] for line in ledger.read_lines() if '"kind":"renewed"' in line[:200]), default=0
    )
    return (entry for entry in ledger.history() if entry.number > renewed)


def _find_cap(policy: Policy, analyst: str) -> float | None:
    own = [cap for cap in policy.caps if (cap.over, cap.per) == ("analyst", None) and cap.name in (None, analyst)]
    named = [cap for cap in own if cap.name is not None] or own
    return float_up(named[0].limit) if named else None
