"""Charts as SVG, drawn on the server: bars with their error bars, and the budget over time.

Colours come from the style sheet by class, so that both colour schemes hold and no style stands in the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.service.pages.markup import Html, element

_WIDTH = 380
_ROW = 24
_LABELS = 115
_MOST_ROWS = 60
_HEIGHT = 160


def find_measured(row: Mapping[str, Any]) -> list[str]:
    """The columns that have an interval.

    >>> find_measured({"ward": "north", "n": 3, "n_low": 1, "n_high": 5})
    ['n']
    """
    return [name for name in row if f"{name}_low" in row and f"{name}_high" in row]


def draw_bars(rows: Sequence[Mapping[str, Any]], column: str) -> Html | None:
    """Bars of one column with their error bars; nothing where no value is a number."""
    hidden = {name + end for name in find_measured(rows[0]) for end in ("", "_low", "_high")} if rows else set()
    drawn = [row for row in rows[:_MOST_ROWS] if _is_number(row[column])]
    if not drawn:
        return None
    ends = [row[name] for row in drawn for name in (column, f"{column}_low", f"{column}_high") if _is_number(row[name])]
    low, high = min(0, *ends), max(0, *ends)
    scale = (_WIDTH - _LABELS - 10) / ((high - low) or 1)
    marks = [_draw_bar(row, column, hidden, place, low=low, scale=scale) for place, row in enumerate(drawn)]
    axis = _LABELS + (0 - low) * scale
    height = _ROW * len(drawn) + 4
    line = element("line", x1=f"{axis:.1f}", x2=f"{axis:.1f}", y1="0", y2=height, class_="axis")
    svg = element(
        "svg", marks, line, viewBox=f"0 0 {_WIDTH} {height}", role="img", class_="bars",
        aria_label=f"{column}: {len(drawn)} bars with error bars; the table has the same numbers",
    )  # fmt: skip
    more = f"; the first {_MOST_ROWS} rows" if len(rows) > _MOST_ROWS else ""
    return element("figure", svg, element("figcaption", f"{column}, with the interval of each value{more}"))


def _draw_bar(row: Mapping[str, Any], column: str, hidden: set[str], place: int, *, low: float, scale: float) -> Html:
    top, zero = place * _ROW + 4, _LABELS + (0 - low) * scale
    end = _LABELS + (row[column] - low) * scale
    label = " · ".join("NULL" if row[name] is None else str(row[name]) for name in row if name not in hidden)
    parts = [
        element("text", _shorten(label), x=_LABELS - 6, y=top + 14, text_anchor="end"),
        element("rect", x=f"{min(zero, end):.1f}", y=top, width=f"{abs(end - zero):.1f}", height=_ROW - 6),
    ]
    ends = (row[f"{column}_low"], row[f"{column}_high"])
    if all(_is_number(each) for each in ends):
        first, last = (_LABELS + (each - low) * scale for each in ends)
        middle, up, down = top + 9, top + 4, top + 14
        path = f"M{first:.1f} {up}V{down}M{first:.1f} {middle}H{last:.1f}M{last:.1f} {up}V{down}"
        parts.append(element("path", d=path, class_="error"))
    return element("g", element("title", f"{label or column}: {row[column]} ({ends[0]} to {ends[1]})"), parts)


def draw_burndown(points: Sequence[Mapping[str, Any]]) -> Html:
    """What was left, entry by entry: a line of steps from the left to the right."""
    whole = max(float(point["whole"]) for point in points) or 1.0
    step = (_WIDTH - 20) / max(1, len(points))
    path = ""
    for place, point in enumerate(points):
        x, y = 10 + place * step, 10 + (_HEIGHT - 20) * (1 - float(point["left"]) / whole)
        path += f"{'V' if path else f'M{x:.1f} '}{y:.1f}H{x + step:.1f}"
    left = points[-1]["left"]
    svg = element(
        "svg",
        element("line", x1="10", x2=_WIDTH - 10, y1=_HEIGHT - 10, y2=_HEIGHT - 10, class_="axis"),
        element("path", d=path, class_="steps"),
        element("text", f"whole {whole:.4g}", x="10", y="9"),
        element("text", f"left {left:.4g}", x=_WIDTH - 10, y=_HEIGHT - 14, text_anchor="end"),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", class_="burndown",
        aria_label=f"The budget went from {points[0]['left']:.4g} to {left:.4g} of {whole:.4g}",
    )  # fmt: skip
    first, last = str(points[0]["time"])[:10], str(points[-1]["time"])[:10]
    return element("figure", svg, element("figcaption", f"What was left, entry by entry, from {first} to {last}"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shorten(text: str, most: int = 17) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
