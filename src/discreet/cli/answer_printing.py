"""Previews and answers in the terminal: a table with intervals and bars, and the facts around it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from discreet.cli.printing import make_table, print_facts, print_heading
from discreet.error_curve import draw_curve, format_error
from discreet.explanation import BEYOND, list_chosen, list_clamped, list_limits
from discreet.picture import count_digits, format_cell, format_interval, shorten_midnights, show, show_key
from discreet.preview import BatchPreview, ColumnPreview, Preview, describe_cost
from discreet.release import format_level

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.answer import Answer
    from discreet.answer_rows import Cell
    from discreet.plan.types import Value

_BAR = 20
_SHOWN = 50
_GAP = 3


def print_preview(console: Console, shown: Preview) -> None:
    """Cost and expected errors, before anything is spent."""
    print_heading(console, "Preview: nothing was charged, no data was read")
    table = make_table()
    table.add_column("column", style="cyan")
    table.add_column("measured by")
    table.add_column(f"noise {format_level(shown.plan.level)}")
    for column in shown.columns:
        words = column.words() if column.error is not None or not column.by_size else _format_by_size(column)
        table.add_row(Text(column.name), column.what, words)
    if table.row_count:
        console.print(table)
    pairs = [("groups", shown.keys), *(("chosen", line) for line in list_chosen(shown.plan))]
    pairs += [("limit", line) for line in list_limits(shown.plan)]
    pairs += [*(("clamped", line) for line in list_clamped(shown.plan)), ("interval", BEYOND)]
    pairs += [("protects", f"{shown.plan.unit} ({shown.plan.neighbours})")]
    pairs += [("cost", describe_cost(shown)), ("left", shown.remaining)]
    pairs += [("instead", words) for words in shown.other_noise]
    print_facts(console, pairs)
    if shown.curve:
        print_heading(console, "Error against cost")
        console.out(draw_curve(shown.curve), highlight=False)


def _format_by_size(column: ColumnPreview) -> str:
    """An error that depends on how many values a group has, one size a line."""
    return "\n".join(f"± {format_error(error)} in a group of {size:,}" for size, error in column.by_size)


def print_answer(console: Console, given: Answer) -> None:
    """The values with their intervals, bars for the first of them, and what it cost."""
    rows = given.rows
    if rows.rows:
        _print_rows(console, given)
    if len(rows.rows) > _SHOWN:
        console.print(f"... {len(rows.rows) - _SHOWN:,} more rows; --format csv shows all")
    if not rows.rows:
        console.print("No group was named: all were too small to be shown safely.")
    print_facts(console, [*given.list_limits(), *list_costs(given), ("left", given.remaining)])


def _print_rows(console: Console, given: Answer) -> None:
    """The first rows in the widest form that has room: a number that is cut or folded would be another one.

    Intervals with bars, intervals alone, the larger half of each interval after ±, and then one line for each value.
    """
    for form in (_format_interval, _format_error):
        table = _lay_out(given, form)
        if table.width <= console.width:
            _print_grid(console, table, _draw_bars(given, console.width - table.width - _GAP))
            return
    _print_stacked(console, given)


class _Head(NamedTuple):
    """The head of a column, and how the texts below it stand."""

    text: str
    right: bool = False
    dim: bool = False


class _Grid(NamedTuple):
    """Texts in columns, with the heads over them."""

    heads: list[_Head]
    body: list[list[str]]

    @property
    def width(self) -> int:
        """What the table needs: three spaces between columns, one at each end."""
        widths = [max(map(cell_len, column)) for column in zip((head.text for head in self.heads), *self.body)]
        return sum(widths) + _GAP * (len(widths) - 1) + 2


def _lay_out(given: Answer, form: Callable[[Cell], list[str]]) -> _Grid:
    rows, heads = shorten_midnights(given.rows), []
    for name, kind, measured in zip(rows.names, rows.types, rows.measured):
        heads.append(_Head(_to_line(name), right=kind.is_number))
        heads += [_Head(f"noise {given.receipt['level']}", dim=True)] if measured else []
    body = [
        [
            _to_line(text)
            for cell, m in zip(row, rows.measured)
            for text in (form(cell) if m else [show_key(cell.value)])
        ]
        for row in rows.rows[:_SHOWN]
    ]
    return _Grid(heads, body)


def _print_grid(console: Console, grid: _Grid, drawn: Sequence[Text]) -> None:
    table = make_table()
    for head in grid.heads:
        justify: Literal["left", "right"] = "right" if head.right else "left"
        table.add_column(Text(head.text), justify=justify, no_wrap=True, style="dim" if head.dim else "")
    if drawn:
        table.add_column("", no_wrap=True)
    for number, row in enumerate(grid.body):
        table.add_row(*map(Text, row), *drawn[number : number + 1])
    console.print(table)


def _print_stacked(console: Console, given: Answer) -> None:
    """A block for each row: its keys, and below them each value with its interval, or with ± where that is too wide."""
    rows = shorten_midnights(given.rows)
    console.print(Text(f"intervals: noise {given.receipt['level']}", style="dim"))
    for row in rows.rows[:_SHOWN]:
        keys = [f"{name} {show_key(cell.value)}" for name, cell, m in zip(rows.names, row, rows.measured) if not m]
        if keys:
            console.print(Text(_to_line(", ".join(keys)), style="cyan"), soft_wrap=True)
        cells = [(_to_line(name), cell) for name, cell, m in zip(rows.names, row, rows.measured) if m]
        blocks = [[(name, *form(cell)) for name, cell in cells] for form in (_format_interval, _format_error)]
        apart = [f"  {'  ' * (place > 0)}{text}" for line in blocks[-1] for place, text in enumerate(line)]
        for line in next((found for block in blocks if _fits(found := _align(block), console.width)), apart):
            console.print(Text(line), soft_wrap=True)


def _align(block: Sequence[tuple[str, ...]]) -> list[str]:
    """Names to the left, values to the right, each below the other."""
    names, values = (max(cell_len(line[place]) for line in block) for place in (0, 1))
    return [f"  {name.ljust(names)}   {value.rjust(values)}   {noise}" for name, value, noise in block]


def _fits(lines: Sequence[str], width: int) -> bool:
    return all(cell_len(line) <= width for line in lines)


def _to_line(text: str) -> str:
    """A text that takes one line, whatever is in it."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def list_costs(given: Answer) -> list[tuple[str, str]]:
    """Who is protected, and what the answer cost now."""
    cost = "nothing: given before" if given.replayed else str(given.receipt["cost"])
    return [("protects", str(given.receipt["protects"])), ("cost", cost)]


def describe_receipt(given: Answer) -> str:
    """What an answer cost and what is left, in one line."""
    cost = "given before, free now" if given.replayed else f"cost {given.receipt['cost']}"
    return f"{cost}; left {given.remaining}"


def describe_price(shown: Preview | BatchPreview) -> str:
    """What an answer would cost and what is left, in one line."""
    return f"cost {describe_cost(shown)}; left {shown.remaining}; nothing was charged, no data was read"


def _format_interval(cell: Cell) -> list[str]:
    """A value and the ends of its interval."""
    return [format_cell(cell)[0], format_interval(cell)]


def _format_error(cell: Cell) -> list[str]:
    """A value and the larger half of its interval, rounded up; both ends where the value is no number."""
    numbers = [end for end in (cell.value, cell.low, cell.high) if isinstance(end, int | float)]
    if len(numbers) < 3 or not all(map(math.isfinite, numbers)):
        return _format_interval(cell)
    value, low, high = numbers
    digits = count_digits(cell)
    half = max(high - value, value - low)
    if isinstance(half, int) or digits is None:
        return [format_cell(cell)[0], f"± {show(half)}"]
    return [format_cell(cell)[0], f"± {math.ceil(half * 10**digits) / 10**digits:,.{digits}f}"]


def _draw_bars(given: Answer, room: int) -> list[Text]:
    """A bar for the first measured number of each row: sure up to the low end, shaded up to the high end."""
    first = next((i for i, measured in enumerate(given.rows.measured) if measured), None)
    size = min(_BAR, room)
    if first is None or len(given.rows.rows) < 2 or size < _BAR // 2:
        return []
    cells = [row[first] for row in given.rows.rows[:_SHOWN]]
    top = max(_to_float(cell.high) for cell in cells)
    if top <= 0:
        return []
    drawn = []
    for cell in cells:
        sure = round(size * max(0.0, _to_float(cell.low)) / top)
        maybe = round(size * max(0.0, _to_float(cell.high)) / top)
        drawn.append(Text("█" * sure, style="blue").append("▒" * (maybe - sure), style="blue"))
    return drawn


def _to_float(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
