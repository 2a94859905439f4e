"""Shows released rows to people: as a text table, an HTML table, and an SVG bar chart with error bars.

Numbers have the same digits in every form: those that the noise leaves meaningful. The HTML has no scripts and loads
nothing from elsewhere, and takes its colours from the page.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from html import escape

from discreet.answer_rows import Cell, CellColumn, Rows
from discreet.html_tables import make_facts, make_table
from discreet.plan.types import Value

# An end of an interval, or an interval, that is not known.
UNKNOWN = "—"

_BAR = 18
_GAP = 6
_LABEL = 160
_WIDTH = 640


def show(value: Value) -> str:
    """A value as text: NULL by name, whole numbers with separators, reals with six figures."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 1000 else f"{value:.6g}"
    return str(value)


def show_key(value: Value) -> str:
    """A value that names something, so that 2024 may be a year. A whole real is shown as a whole number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    is_short = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10_000
    return str(value) if is_short else show(value)


def format_cell(cell: Cell) -> tuple[str, str, str]:
    """A measured value and the ends of its interval, with the digits that the noise leaves meaningful."""
    digits = count_digits(cell)
    low, high = (UNKNOWN if end is None else _format_number(end, digits) for end in (cell.low, cell.high))
    return _format_number(cell.value, digits), low, high


def format_interval(cell: Cell) -> str:
    """The ends of an interval: ``400 … 424``."""
    _, low, high = format_cell(cell)
    return UNKNOWN if low == high == UNKNOWN else f"{low} … {high}"


def show_cell(cell: Cell, *, measured: bool) -> str:
    """A value with its interval: ``412 [400, 424]``."""
    if not measured:
        return show_key(cell.value)
    value, low, high = format_cell(cell)
    return f"{value} {UNKNOWN}" if low == high == UNKNOWN else f"{value} [{low}, {high}]"


def shorten_midnights(rows: Rows) -> Rows:
    """The same rows, in which timestamps are dates in columns that hold midnights alone."""
    return Rows(rows.names, rows.types, rows.measured, tuple(map(_shorten_column, rows.columns)))


def _shorten_column(column: CellColumn) -> CellColumn:
    if not all(map(_is_midnight, column.values)):
        return column
    return CellColumn(tuple(value.date() if isinstance(value, dt.datetime) else None for value in column.values))


def _is_midnight(value: Value) -> bool:
    return value is None or (isinstance(value, dt.datetime) and value.time() == dt.time())


def count_digits(cell: Cell) -> int | None:
    """Digits after the point that the noise leaves meaningful; None where there is no interval."""
    if not isinstance(cell.low, int | float) or not isinstance(cell.high, int | float) or cell.high <= cell.low:
        return None
    return max(0, min(6, 1 - math.floor(math.log10(cell.high - cell.low))))


def _format_number(value: Value, digits: int | None) -> str:
    return f"{value:,.{digits}f}" if isinstance(value, float) and digits is not None else show(value)


def title_columns(rows: Rows, level: str) -> list[str]:
    """The heads of columns: ``n [noise 95%]`` where the values have intervals."""
    return [f"{name} [noise {level}]" if m else name for name, m in zip(rows.names, rows.measured)]


def format_table(rows: Rows, shown: int, level: str) -> list[str]:
    """The lines of a text table. Columns are as wide as their values, and numbers stand to the right."""
    heads, days = title_columns(rows, level), shorten_midnights(rows)
    cells = [[show_cell(cell, measured=m) for cell, m in zip(row, rows.measured)] for row in days.rows[:shown]]
    widths = [max(len(name), *(len(row[i]) for row in cells), 1) for i, name in enumerate(heads)]
    right = [kind.is_number for kind in rows.types]
    lines = [[name.rjust(w) if r else name.ljust(w) for name, w, r in zip(heads, widths, right)]]
    lines.append(["─" * width for width in widths])
    lines += [[text.rjust(w) if r else text.ljust(w) for text, w, r in zip(row, widths, right)] for row in cells]
    return ["  ".join(line).rstrip() for line in lines]


def answer_to_html(rows: Rows, shown: int, level: str, facts: Sequence[tuple[str, str]]) -> str:
    """The first rows as a table, a chart of the first measured column, and facts about them."""
    days = shorten_midnights(rows)
    heads, right, faint = [], [], []
    for name, kind, measured in zip(rows.names, rows.types, rows.measured):
        heads += [name, f"noise {level}"] if measured else [name]
        right += [kind.is_number, False] if measured else [kind.is_number]
        faint += [False, True] if measured else [False]
    body = [
        [text for cell, m in zip(row, rows.measured) for text in _list_texts(cell, measured=m)]
        for row in days.rows[:shown]
    ]
    more = f"<p>{len(rows.rows) - shown:,} more rows.</p>" if len(rows.rows) > shown else ""
    return f"<div>{make_table(heads, body, right, faint)}{more}{draw_chart(days, shown)}{make_facts(facts)}</div>"


def _list_texts(cell: Cell, *, measured: bool) -> list[str]:
    return [format_cell(cell)[0], format_interval(cell)] if measured else [show_key(cell.value)]


def draw_chart(rows: Rows, shown: int) -> str:
    """Bars with error bars for the first measured column; an empty text where there are fewer than two bars."""
    column = next((i for i, measured in enumerate(rows.measured) if measured), None)
    bars = [] if column is None else [(label_of(row, rows.measured), row[column]) for row in rows.rows[:shown]]
    known = [(label, cell) for label, cell in bars if isinstance(cell.value, int | float)]
    if len(known) < 2 or column is None:
        return ""
    ends = [float(v) for _, c in known for v in (c.value, c.low, c.high) if isinstance(v, int | float)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    scale = (_WIDTH - _LABEL - 20) / ((high - low) or 1.0)
    lines = [line for i, (label, cell) in enumerate(known) for line in _draw_bar(i, label, cell, low, scale)]
    height = len(known) * (_BAR + _GAP) + 24
    name = escape(rows.names[column])
    title = f'<text x="{_LABEL}" y="12" font-size="12" fill="currentColor" opacity=".65">{name}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{name} by group" style="max-width:100%;height:auto;margin-top:.6em" '
        f'font-family="sans-serif">{title}{"".join(lines)}</svg>'
    )


def label_of(row: Sequence[Cell], measured: Sequence[bool]) -> str:
    """The keys of a row, joined to one text."""
    return ", ".join(_shorten(show_key(cell.value)) for cell, m in zip(row, measured) if not m)


def _shorten(text: str) -> str:
    return text if len(text) <= 22 else text[:21] + "…"


def _draw_bar(index: int, label: str, cell: Cell, low: float, scale: float) -> list[str]:
    top = 20 + index * (_BAR + _GAP)
    middle = top + _BAR / 2
    value = float(cell.value) if isinstance(cell.value, int | float) else 0.0
    zero, end = _LABEL + (0 - low) * scale, _LABEL + (value - low) * scale
    parts = [
        f'<text x="{_LABEL - 8}" y="{middle + 4:.1f}" font-size="12" text-anchor="end" fill="currentColor">'
        f"{escape(label)}</text>",
        f'<rect x="{min(zero, end):.1f}" y="{top}" width="{abs(end - zero):.1f}" height="{_BAR}" fill="#4c78a8"/>',
    ]
    if isinstance(cell.low, int | float) and isinstance(cell.high, int | float):
        left, right = (_LABEL + (float(v) - low) * scale for v in (cell.low, cell.high))
        ends = "".join(f"M{x:.1f} {top + 4}V{top + _BAR - 4}" for x in (left, right))
        path = f"M{left:.1f} {middle}H{right:.1f}{ends}"
        parts.append(f'<path d="{path}" stroke="currentColor" stroke-width="1.5" fill="none"/>')
    return parts
