"""What agents are told: short texts, every number with its interval in words, and never more rows than a mind can hold.

All of it is public or released.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def describe_dataset(name: str, catalog: Catalog, budget: str, remaining: str) -> str:
    """The tables, who is protected, and what is left."""
    tables = [format_table_facts(table, catalog.neighbours) for table in catalog.tables.values()]
    head = f"Dataset {name}. Protected: {catalog.unit}. Whole budget: {budget}. Left: {remaining}."
    loop = "Only aggregates can be asked. First preview (free), then ask with at_most."
    return "\n\n".join([head, *tables, loop])


def describe_preview(preview: Preview, share: str) -> str:
    """Cost and error, before anything is spent."""
    level = "" if not preview.columns else f" ({format_level(preview.level)} of the time)"
    errors = [f"- {column.name}: {column.what}; expected error {column.words()}" for column in preview.columns]
    return "\n".join(
        [
            f"Nothing was charged. It would cost: {describe_cost(preview)}{share}.",
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
    return "\n".join([f"{len(entries):,} charges; the latest:", *lines])


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MOST_SIGNS else f"{flat[:_MOST_SIGNS]} …"
