"""What the terminal shows: tables, bars and lists; in colour on a terminal, plain in a pipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.accounting import cost_words
from discreet.answer import Answer
from discreet.codebook.check_lines import CheckLine, Grade
from discreet.curator import Curator
from discreet.error_curve import draw_curve, format_error
from discreet.exact import float_down, float_up
from discreet.explanation import BEYOND, list_chosen, list_clamped, list_limits
from discreet.finish import Cell
from discreet.picture import format_cell, format_interval, shorten_midnights, show_key
from discreet.plan.types import Value
from discreet.preview import BatchPreview, ColumnPreview, Preview, describe_cost
from discreet.release import format_level

_BAR = 20
_SHOWN = 50
_QUESTION = 100
_STYLES = {Grade.GOOD: "green", Grade.WEAK: "yellow", Grade.WRONG: "bold red"}


def _make_table(*, header: bool = True) -> Table:
    return Table(box=box.SIMPLE_HEAD if header else None, show_header=header, pad_edge=False, header_style="bold")


def print_table(
    console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]], bars: Sequence[Text] = ()
) -> None:
    """A table of short texts, and bars beside them if there is room.

    Where the table itself has no room, each row is a sentence: a number that is cut or folded would be another one.
    """
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    room = console.width - sum(widths) - 3 * len(widths) + 1
    if room < 0:
        for name, *cells in rows:
            parts = [f"{head} {cell}".strip() for head, cell in zip(heads[1:], cells) if cell]
            console.print(Text(name, style="cyan").append(f"  {', '.join(parts)}", style="default"))
        return
    drawn = bars if max((len(bar) for bar in bars), default=0) + 3 <= room else ()
    table = _make_table()
    for place, head in enumerate([*heads, ""] if drawn else heads):
        table.add_column(head, style="cyan" if place == 0 else "", no_wrap=True)
    for number, row in enumerate(rows):
        table.add_row(*map(Text, row), *drawn[number : number + 1])
    console.print(table)


def print_heading(console: Console, text: str) -> None:
    """A title over what follows."""
    console.print(Text(text, style="bold"))


def print_facts(console: Console, pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values, below each other."""
    table = _make_table(header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, Text(value))
    console.print(table)


def print_done(console: Console, name: str, value: str) -> None:
    """A step that is behind us."""
    table = _make_table(header=False)
    for style in ("green", "cyan", ""):
        table.add_column(style=style, overflow="fold", min_width=10 if style == "cyan" else None)
    table.add_row("✓", name, Text(value))
    console.print(table)


def print_checks(console: Console, lines: Sequence[CheckLine]) -> None:
    """A checklist: mark, topic, finding, and the fix below it."""
    table = _make_table(header=False)
    table.add_column(no_wrap=True)
    table.add_column(style="cyan")
    table.add_column(overflow="fold")
    for line in lines:
        finding = Text(line.finding)
        if line.fix:
            finding.append(f"\n{line.fix}", style="italic")
        table.add_row(Text(str(line.grade), style=_STYLES[line.grade]), line.topic, finding)
    console.print(table)


def print_preview(console: Console, shown: Preview) -> None:
    """Cost and expected errors, before anything is spent."""
    print_heading(console, "Preview: nothing was charged, no data was read")
    table = _make_table()
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
    rows = shorten_midnights(given.rows)
    body = [[_format_cell(cell, measured=m) for cell, m in zip(row, rows.measured)] for row in rows.rows[:_SHOWN]]
    drawn = _draw_bars(given, console.width - _width_of(given, body))
    table = _make_table()
    for name, kind, measured in zip(rows.names, rows.types, rows.measured):
        table.add_column(Text(name), justify="right" if kind.is_number else "left", overflow="ellipsis", no_wrap=True)
        if measured:
            # Where there is no room an interval goes on in the next line: a number that is cut would be another one.
            table.add_column(f"noise {given.receipt['level']}", style="dim", overflow="fold")
    if drawn:
        table.add_column("", no_wrap=True)
    for number, row in enumerate(body):
        texts = [Text(text) for cell in row for text in cell]
        table.add_row(*texts, *drawn[number : number + 1])
    console.print(table)
    if len(rows.rows) > _SHOWN:
        console.print(f"... {len(rows.rows) - _SHOWN:,} more rows; --json shows all")
    if not rows.rows:
        console.print("No group was named: all were too small to be shown safely.")
    print_facts(console, [*given.list_limits(), *list_costs(given), ("left", given.remaining)])


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


def _format_cell(cell: Cell, *, measured: bool) -> list[str]:
    """A value, and its interval where it has one."""
    return [format_cell(cell)[0], format_interval(cell)] if measured else [show_key(cell.value)]


def _width_of(given: Answer, body: Sequence[Sequence[Sequence[str]]]) -> int:
    """How wide the table is without bars: three spaces between columns, one at each end."""
    columns = [[text for cell in row for text in cell] for row in body]
    heads = [
        text
        for name, m in zip(given.rows.names, given.rows.measured)
        for text in ([name, f"noise {given.receipt['level']}"] if m else [name])
    ]
    widths = [max(map(len, column)) for column in zip(heads, *columns)]
    return sum(widths) + 3 * len(widths) + 2


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


def print_budget(console: Console, curator: Curator, odds: str) -> None:
    """A bar of what is left, what the whole means, and every charge."""
    left, whole = float_down(curator.ledger.remaining), float_up(curator.budget.amount())
    words, entries, of = curator.remaining, curator.history(), curator.budget
    share = 0.0 if whole <= 0 else max(0.0, min(1.0, left / whole))
    size = max(_BAR // 2, min(2 * _BAR, console.width - len(words) - 8))
    full = math.floor(share * size)
    bar = Text("█" * full, style="green").append("░" * (size - full), style="dim")
    console.print(Text("left  ", style="cyan").append(bar).append(f"  {words}"))
    console.print(Text(odds))
    if not entries:
        console.print("No question has been charged yet.")
        return
    table = _make_table()
    for name in ("#", "analyst", "question", "cost", ""):
        table.add_column(name, overflow="fold")
    for entry in entries:
        question = "; ".join(entry.charge.question.splitlines())
        question = question if len(question) <= _QUESTION else question[: _QUESTION - 1] + "…"
        mark = "answered" if entry.answered else "failed"
        cost = cost_words.describe_cost(of, entry.charge.loss)
        table.add_row(str(entry.number), Text(entry.charge.analyst), Text(question), cost, mark)
    console.print(table)


def print_error(console: Console, message: str, code: str) -> None:
    """What went wrong, and where to read about it."""
    text = Text("✗ ", style="bold red").append(Text(message, style=""))
    console.print(text)
    console.print(Text(f"  code {code}, see docs/errors.md#{code}", style="dim"))
