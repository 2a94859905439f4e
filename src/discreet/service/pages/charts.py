"""Charts as SVG, drawn on the server: bars with their error bars, and the budget over time.

Lengths are in per cent of the width, so that words keep their size on a phone and on a wide screen. Colours come from
the style sheet by class, so that both colour schemes hold and no style stands in the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from discreet.service.pages.markup import Html, element, write_figure

_ROW = 26
_LABELS = 30.0
_ROOM = 66.0
_MOST_ROWS = 60
_MOST_TICKS = 5


def find_measured(row: Mapping[str, Any]) -> list[str]:
    """The columns that have an interval.

    >>> find_measured({"ward": "north", "n": 3, "n_low": 1, "n_high": 5})
    ['n']
    """
    return [name for name in row if f"{name}_low" in row and f"{name}_high" in row]


def draw_bars(rows: Sequence[Mapping[str, Any]], column: str) -> Html | None:
    """Bars of one column with their error bars; nothing where no value is a number."""
    hidden = {name + end for name in find_measured(rows[0]) for end in ("", "_low", "_high")} if rows else set()
    drawn = [row for row in rows[:_MOST_ROWS] if is_number(row[column])]
    if not drawn:
        return None
    ends = [row[name] for row in drawn for name in (column, f"{column}_low", f"{column}_high") if is_number(row[name])]
    low, high = min(0, *ends), max(0, *ends)
    scale = _ROOM / ((high - low) or 1)
    height = _ROW * len(drawn) + 4
    ticks = [_draw_tick(tick, low, scale, height) for tick in find_ticks(low, high)]
    marks = [_draw_bar(row, column, hidden, place, low=low, scale=scale) for place, row in enumerate(drawn)]
    svg = element(
        "svg", ticks, marks, width="100%", height=height + 20, role="img", class_="bars",
        aria_label=f"{column}: {len(drawn)} bars with error bars; the table has the same numbers",
    )  # fmt: skip
    more = f"; the first {_MOST_ROWS} rows" if len(rows) > _MOST_ROWS else ""
    said = element("strong", column)
    return element("figure", element("figcaption", said, f", with the interval of each value{more}"), svg)


def find_ticks(low: float, high: float) -> list[float]:
    """Round numbers from end to end, zero among them.

    >>> find_ticks(-3, 19_000)
    [0.0, 5000.0, 10000.0, 15000.0]
    """
    apart = (high - low) / _MOST_TICKS
    if not 0 < apart < math.inf:
        return [0.0]
    step: float = 10.0 ** math.floor(math.log10(apart))
    step *= next((times for times in (1, 2, 5) if step * times >= apart), 10)
    return [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _place(value: float, low: float, scale: float) -> str:
    return f"{_LABELS + (value - low) * scale:.2f}%"


def _draw_tick(tick: float, low: float, scale: float, height: int) -> Html:
    x = _place(tick, low, scale)
    line = element("line", x1=x, x2=x, y1="0", y2=height, class_="axis" if tick == 0 else "grid")
    number = int(tick) if tick == int(tick) else tick
    return element("g", line, element("text", write_figure(number), x=x, y=height + 15, text_anchor="middle"))


def _draw_bar(row: Mapping[str, Any], column: str, hidden: set[str], place: int, *, low: float, scale: float) -> Html:
    top, value = place * _ROW + 4, row[column]
    label = " · ".join("NULL" if row[name] is None else str(row[name]) for name in row if name not in hidden)
    width = f"{abs(value) * scale:.2f}%"
    parts = [
        element("text", _shorten(label), x=f"{_LABELS - 1.5}%", y=top + 13, text_anchor="end"),
        element("rect", x=_place(min(0, value), low, scale), y=top, width=width, height=_ROW - 8),
    ]
    ends = (row[f"{column}_low"], row[f"{column}_high"])
    if all(is_number(each) for each in ends):
        first, last = (_place(each, low, scale) for each in ends)
        lines = ((first, last, 9, 9), (first, first, 4, 14), (last, last, 4, 14))
        drawn = [element("line", x1=x1, x2=x2, y1=top + y1, y2=top + y2) for x1, x2, y1, y2 in lines]
        parts.append(element("g", drawn, class_="error"))
    said = f"{label or column}: {write_figure(value)} ({' to '.join(_tell_end(each) for each in ends)})"
    return element("g", element("title", said), parts)


def _tell_end(value: Any) -> str:
    return write_figure(value) if is_number(value) else "not known"


def draw_burndown(points: Sequence[Mapping[str, Any]]) -> Html:
    """What was left over time: a line of steps, its ends named below."""
    times = [datetime.fromisoformat(str(point["time"])) for point in points]
    span = (times[-1] - times[0]).total_seconds() or 1.0
    path = ""
    for time, point in zip(times, points):
        x, y = 100 * (time - times[0]).total_seconds() / span, 100 * (1 - float(point["share"]))
        path += f"H{x:.2f}V{y:.2f}" if path else f"M0 {y:.2f}"
    first_part, part = (math.floor(100 * float(point["share"])) for point in (points[0], points[-1]))
    words = f"{points[-1]['left']:.4g} of {points[-1]['whole']:.4g} in the budget's own terms"
    svg = element(
        "svg",
        [element("path", d=f"M0 {y}H100", class_="grid") for y in (0, 25, 50, 75)],
        element("path", d="M0 100H100", class_="axis"),
        element("path", d=f"{path}H100", class_="steps"),
        viewBox="0 -2 100 104", preserveAspectRatio="none", role="img", class_="burndown",
        aria_label=f"What is left of the budget went from {first_part} to {part} per cent",
    )  # fmt: skip
    first, last = (f"{time:%Y-%m-%d %H:%M}" for time in (times[0], times[-1]))
    ends = element("div", element("span", first), element("span", last), class_="ends")
    said = element("figcaption", element("strong", f"{part} % is left"), f" ({words})")
    return element("figure", said, svg, ends)


def is_number(value: Any) -> bool:
    """Whether a cell can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shorten(text: str, most: int = 17) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
