"""What agents are told: short texts, every number with its interval in words, and never more rows than a mind can hold.

All of it is public or released.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from discreet.agents.at_most import describe_share
from discreet.answer import Answer
from discreet.declared_table import format_table_facts
from discreet.ledger.ledger import Entry
from discreet.picture import show, show_key
from discreet.plan.catalog import Catalog
from discreet.preview import Preview, describe_cost
from discreet.release import format_level

MOST_ROWS = 40
MOST_CHARGES = 20
_MOST_SIGNS = 300


def describe_dataset(name: str, catalog: Catalog, remaining: str) -> str:
    """The tables, who is protected, and what is left."""
    tables = [_drop_rules(format_table_facts(table, catalog.neighbours)) for table in catalog.tables.values()]
    head = f"Dataset {name}. Protected: {catalog.unit}. Left: {remaining}."
    loop = "Only aggregates can be asked. First preview (free), then ask with at_most."
    return "\n\n".join([head, *tables, loop])


def _drop_rules(text: str) -> str:
    """A table without its line of dashes and its wide gaps: agents count signs."""
    lines = (line for line in text.splitlines() if not line.startswith("─"))
    return "\n".join(re.sub(r" {3,}", "  ", line) for line in lines)


def describe_price(cost: str, share: Fraction) -> str:
    """A price in the budget's own words, and what part of the budget it is where they do not say it."""
    return cost if "of the budget" in cost else f"{cost}, which is {describe_share(share)}"


def describe_preview(preview: Preview, share: Fraction | None) -> str:
    """Cost and error, before anything is spent."""
    cost = describe_cost(preview)
    level = "" if not preview.columns else f" ({format_level(preview.level)} of the time)"
    errors = [f"- {column.name}: {column.what}; expected error {column.words()}" for column in preview.columns]
    return "\n".join(
        [
            f"Nothing was charged. It would cost: {cost if share is None else describe_price(cost, share)}.",
            f"Left now: {preview.remaining}.",
            f"Columns and their noise{level}:" if errors else "No column is noisy.",
            *errors,
            f"Columns of the answer: {', '.join(preview.schema.names)}.",
        ]
    )


def describe_answer(answer: Answer) -> str:
    """The rows with their intervals in words, what they cost, and what the intervals do not cover."""
    rows, level = answer.rows, str(answer.receipt["level"])
    lines = []
    for row in rows.rows[:MOST_ROWS]:
        cells = zip(rows.names, rows.measured, row)
        lines.append("- " + "; ".join(_describe_cell(name, cell, measured=measured) for name, measured, cell in cells))
    more = len(rows.rows) - MOST_ROWS
    if more > 0:
        lines.append(f"- and {more:,} more rows: use ORDER BY and LIMIT, or fewer groups; the same question is free.")
    if any(rows.measured):
        lines.insert(0, f"Intervals hold the number without noise in {level} of cases:")
    limits = [f"{title}: {line}" for title, line in answer.list_limits()]
    request = str(answer.receipt.get("request", ""))
    return "\n".join([*lines, *limits, f"{answer.describe_cost()}.", *([f"request id {request}"] if request else [])])


def _describe_cell(name: str, cell: object, *, measured: bool) -> str:
    value, low, high = (getattr(cell, part) for part in ("value", "low", "high"))
    shown = show(value) if isinstance(value, int | float) and not isinstance(value, bool) else show_key(value)
    if not measured or low is None or high is None:
        return f"{name} = {shown}"
    return f"{name} = {shown}, between {show(low)} and {show(high)}"


def describe_history(entries: Sequence[Entry], costs: Iterable[str]) -> str:
    """The latest charges, newest first."""
    if not entries:
        return "Nothing was charged yet."
    pairs = list(zip(entries, costs))[-MOST_CHARGES:][::-1]
    lines = [f"- {entry.time} {_shorten(entry.charge.question)}: {cost}" for entry, cost in pairs]
    return "\n".join([f"{len(entries):,} charge{'s' * (len(entries) != 1)}; the latest:", *lines])


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MOST_SIGNS else f"{flat[:_MOST_SIGNS]} …"
