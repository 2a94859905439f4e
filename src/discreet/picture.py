"""Shows released rows to people: as a text table, an HTML table, and an SVG bar chart with error bars.

The HTML has no scripts and loads nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from discreet.finish import Cell, Rows
from discreet.plan.types import Value

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


def show_cell(cell: Cell, *, measured: bool) -> str:
    """A value with its interval: ``412 [400, 424]``."""
    if not measured:
        return show(cell.value)
    low, high = ("?" if end is None else show(end) for end in (cell.low, cell.high))
    return f"{show(cell.value)} [{low}, {high}]"


def title_columns(rows: Rows, level: str) -> list[str]:
    """The heads of columns: ``n [noise 95%]`` where the values have intervals."""
    return [f"{name} [noise {level}]" if m else name for name, m in zip(rows.names, rows.measured)]


def format_table(rows: Rows, shown: int, level: str) -> list[str]:
    """The lines of a text table. Columns are as wide as their values, and numbers stand to the right."""
    heads = title_columns(rows, level)
    cells = [[show_cell(cell, measured=m) for cell, m in zip(row, rows.measured)] for row in rows.rows[:shown]]
    widths = [max(len(name), *(len(row[i]) for row in cells), 1) for i, name in enumerate(heads)]
    right = [kind.is_number for kind in rows.types]
    lines = [[name.rjust(w) if r else name.ljust(w) for name, w, r in zip(heads, widths, right)]]
    lines.append(["─" * width for width in widths])
    lines += [[text.rjust(w) if r else text.ljust(w) for text, w, r in zip(row, widths, right)] for row in cells]
    return ["  ".join(line).rstrip() for line in lines]


def answer_to_html(rows: Rows, shown: int, level: str, limits: Sequence[str], note: str) -> str:
    """The first rows as a table, a chart of the first measured column, what its intervals cover, and the cost."""
    head = "".join(f"<th>{escape(name)}</th>" for name in title_columns(rows, level))
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{"right" if kind.is_number else "left"}">{escape(show_cell(cell, measured=m))}</td>'
            for cell, m, kind in zip(row, rows.measured, rows.types)
        )
        + "</tr>"
        for row in rows.rows[:shown]
    )
    more = f"<p>{len(rows.rows) - shown:,} more rows.</p>" if len(rows.rows) > shown else ""
    notes = "".join(f"<p>{escape(line)}</p>" for line in (*limits, note))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div>{table}{more}{draw_chart(rows, shown)}{notes}</div>"


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
    title = f'<text x="{_LABEL}" y="12" font-size="12" fill="#555">{escape(rows.names[column])}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" role="img" '
        f'aria-label="{escape(rows.names[column])} by group" font-family="sans-serif">{title}{"".join(lines)}</svg>'
    )


def label_of(row: Sequence[Cell], measured: Sequence[bool]) -> str:
    """The keys of a row, joined to one text."""
    return ", ".join(_shorten(cell.value) for cell, m in zip(row, measured) if not m)


def _shorten(value: Value) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= 22 else text[:21] + "…"


def _draw_bar(index: int, label: str, cell: Cell, low: float, scale: float) -> list[str]:
    top = 20 + index * (_BAR + _GAP)
    middle = top + _BAR / 2
    value = float(cell.value) if isinstance(cell.value, int | float) else 0.0
    zero, end = _LABEL + (0 - low) * scale, _LABEL + (value - low) * scale
    parts = [
        f'<text x="{_LABEL - 8}" y="{middle + 4:.1f}" font-size="12" text-anchor="end">{escape(label)}</text>',
        f'<rect x="{min(zero, end):.1f}" y="{top}" width="{abs(end - zero):.1f}" height="{_BAR}" fill="#4c78a8"/>',
    ]
    if isinstance(cell.low, int | float) and isinstance(cell.high, int | float):
        left, right = (_LABEL + (float(v) - low) * scale for v in (cell.low, cell.high))
        ends = "".join(f"M{x:.1f} {top + 4}V{top + _BAR - 4}" for x in (left, right))
        path = f"M{left:.1f} {middle}H{right:.1f}{ends}"
        parts.append(f'<path d="{path}" stroke="#222" stroke-width="1.5" fill="none"/>')
    return parts
