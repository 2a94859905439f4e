"""What the terminal shows: tables, bars and lists; in colour on a terminal, plain in a pipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.answer import Answer
from discreet.codebook.checklist import Line, Mark
from discreet.finish import Cell
from discreet.ledger.ledger import Entry
from discreet.picture import show
from discreet.plan.types import Value
from discreet.preview import Preview, clamped, cost_words
from discreet.privacy import Budget

_BAR = 20
_SHOWN = 50
_STYLES = {Mark.GOOD: "green", Mark.WEAK: "yellow", Mark.WRONG: "bold red"}


def _table(*, header: bool = True) -> Table:
    return Table(box=box.SIMPLE_HEAD if header else None, show_header=header, pad_edge=False, header_style="bold")


def heading(console: Console, text: str) -> None:
    """A title over what follows."""
    console.print(Text(text, style="bold"))


def facts(console: Console, pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values, below each other."""
    table = _table(header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, Text(value))
    console.print(table)


def checks(console: Console, lines: Sequence[Line]) -> None:
    """A checklist: mark, topic, finding, and the fix below it."""
    table = _table(header=False)
    table.add_column(no_wrap=True)
    table.add_column(style="cyan")
    table.add_column(overflow="fold")
    for line in lines:
        finding = Text(line.finding)
        if line.fix:
            finding.append(f"\n{line.fix}", style="italic")
        table.add_row(Text(str(line.mark), style=_STYLES[line.mark]), line.topic, finding)
    console.print(table)


def preview(console: Console, shown: Preview) -> None:
    """Cost and expected errors, before anything is spent."""
    heading(console, "Preview: nothing was charged, no data was read")
    table = _table()
    table.add_column("column", style="cyan")
    table.add_column("measured by")
    table.add_column(f"error ({float(shown.release.level):.0%})")
    for column in shown.columns:
        table.add_row(Text(column.name), column.what, column.words())
    if table.row_count:
        console.print(table)
    cost = shown.cost + ("" if shown.fits else "  (more than is left)")
    pairs = [("groups", shown.keys), *(("clamped", line) for line in clamped(shown.release))]
    pairs += [("protects", f"{shown.release.unit} ({shown.release.neighbours})")]
    pairs += [("cost", cost), ("left", shown.remaining)]
    facts(console, pairs)


def answer(console: Console, given: Answer) -> None:
    """The values with their intervals, bars for the first of them, and what it cost."""
    rows = given.rows
    drawn = _bars(given)
    first = next((i for i, measured in enumerate(rows.measured) if measured), None)
    table = _table()
    for i, (name, kind, measured) in enumerate(zip(rows.names, rows.types, rows.measured)):
        table.add_column(Text(name), justify="right" if kind.is_number else "left", overflow="fold")
        if measured:
            table.add_column(str(given.receipt["level"]), style="dim", no_wrap=True)
        if drawn and i == first:
            table.add_column("", no_wrap=True)
    for number, row in enumerate(rows.rows[:_SHOWN]):
        cells: list[Text | str] = []
        for i, (cell, measured) in enumerate(zip(row, rows.measured)):
            digits = _digits(cell)
            cells.append(Text(_shown(cell.value, digits)))
            if measured:
                cells.append(f"{_shown(cell.low, digits)} … {_shown(cell.high, digits)}")
            if drawn and i == first:
                cells.append(drawn[number])
        table.add_row(*cells)
    console.print(table)
    if len(rows.rows) > _SHOWN:
        console.print(f"... {len(rows.rows) - _SHOWN:,} more rows; --json shows all")
    cost = "nothing: given before" if given.replayed else str(given.receipt["cost"])
    facts(console, [("protects", str(given.receipt["protects"])), ("cost", cost), ("left", given.remaining)])


def _bars(given: Answer) -> list[Text]:
    """A bar for the first measured number of each row: sure up to the low end, shaded up to the high end."""
    first = next((i for i, measured in enumerate(given.rows.measured) if measured), None)
    if first is None or len(given.rows.rows) < 2:
        return []
    cells = [row[first] for row in given.rows.rows[:_SHOWN]]
    top = max((_number(cell.high) for cell in cells), default=0.0)
    if top <= 0:
        return []
    drawn = []
    for cell in cells:
        sure = round(_BAR * max(0.0, _number(cell.low)) / top)
        maybe = round(_BAR * max(0.0, _number(cell.high)) / top)
        drawn.append(Text("█" * sure, style="blue").append("▒" * (maybe - sure), style="blue"))
    return drawn


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _digits(cell: Cell) -> int | None:
    """Digits after the point that the noise leaves meaningful; None where there is no interval."""
    width = _number(cell.high) - _number(cell.low)
    if cell.low is None or cell.high is None or width <= 0:
        return None
    return max(0, min(6, 1 - math.floor(math.log10(width))))


def _shown(value: Value, digits: int | None) -> str:
    if isinstance(value, float) and digits is not None:
        return f"{value:,.{digits}f}"
    return show(value)


def budget(
    console: Console, *, left: float, whole: float, words: str, odds: str, entries: Sequence[Entry], of: Budget
) -> None:
    """A bar of what is left, what the whole means, and every charge."""
    share = 0.0 if whole <= 0 else max(0.0, min(1.0, left / whole))
    full = math.floor(share * 2 * _BAR)
    bar = Text("█" * full, style="green").append("░" * (2 * _BAR - full), style="dim")
    console.print(Text("left  ", style="cyan").append(bar).append(f"  {words}"))
    console.print(Text(odds))
    if not entries:
        console.print("No question has been charged yet.")
        return
    table = _table()
    for name in ("#", "analyst", "question", "cost", ""):
        table.add_column(name, overflow="fold")
    for entry in entries:
        question = "; ".join(entry.charge.question.splitlines())
        mark = "answered" if entry.answered else "failed"
        table.add_row(
            str(entry.number), Text(entry.charge.analyst), Text(question), cost_words(entry.charge.loss, of), mark
        )
    console.print(table)


def error(console: Console, message: str, code: str) -> None:
    """What went wrong, and where to read about it."""
    text = Text("✗ ", style="bold red").append(Text(message, style=""))
    console.print(text)
    console.print(Text(f"  code {code}, see docs/errors.md#{code}", style="dim"))


def plain(value: Any) -> Any:
    """A value that JSON can hold."""
    return value.isoformat() if hasattr(value, "isoformat") else value
