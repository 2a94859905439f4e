"""Answers as charts of matplotlib: bars, or lines along time and numbers, always with the intervals of the noise.

Matplotlib is an extra (``pip install 'discreet[plots]'``) and is loaded by the first chart.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.answer_rows import Cell, Rows
from discreet.errors import ParameterError, UsageError
from discreet.picture import label_of, shorten_midnights, show_cell, show_key
from discreet.plan.types import Type, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More bars or series than this cannot be told apart.
MAX_BARS = 60
MAX_SERIES = 8


@dataclass(frozen=True, slots=True)
class PlottedSeries:
    """The values of one line, or of one colour of bars, with the lengths of their error bars below and above."""

    name: str
    places: list[Any]
    values: list[float]
    below: list[float]
    above: list[float]


def plot_rows(rows: Rows, level: str, column: str | None = None, ax: Axes | None = None) -> Axes:
    """A chart of one measured column: lines where the first key is a time or a number, otherwise bars.

    A second key makes a series for each of its values; more keys become one label.
    """
    shown = shorten_midnights(rows)
    measured = _choose_column(rows, column)
    keys = [i for i in range(len(rows.names)) if i != measured and not rows.measured[i]]
    by_line = bool(keys) and (rows.types[keys[0]].is_time or rows.types[keys[0]].is_number)
    if len(keys) > 2 or (len(keys) == 2 and _count_series(rows, keys) > MAX_SERIES):
        by_line = False
    axes = _make_axes() if ax is None else ax
    if by_line and len(keys) <= 2:
        _draw_lines(axes, rows, keys, measured)
    else:
        _draw_bars(axes, shown, keys if 1 <= len(keys) <= 2 else [], measured)
    _set_titles(axes, rows, keys, measured, level, by_line=by_line)
    return axes


def _choose_column(rows: Rows, column: str | None) -> int:
    """The place of the column to show: the one that is named, or the first with intervals."""
    shown = [name for name, kind, m in zip(rows.names, rows.types, rows.measured) if m and kind.is_number]
    if not shown:
        raise UsageError("This answer has no numbers with intervals, so there is nothing to plot.")
    if column is None:
        return rows.names.index(shown[0])
    if column not in shown:
        raise ParameterError("column", "has no interval to plot", f"Use one of: {', '.join(shown)}.")
    return rows.names.index(column)


def _make_axes() -> Axes:
    from discreet.pictures.figure import STYLE, check_installed

    check_installed()
    from matplotlib import pyplot, rc_context

    # The figure is made outside of the style: with the first one a notebook turns its display on, which must last.
    figure = pyplot.figure(layout="constrained")
    with rc_context(STYLE):
        return figure.subplots()


def _count_series(rows: Rows, keys: Sequence[int]) -> int:
    return len({row[keys[1]].value for row in rows.rows})


def _draw_lines(axes: Axes, rows: Rows, keys: Sequence[int], measured: int) -> None:
    """A line for each value of the second key. A NULL has no place on a line, and its values are told below it."""
    for series in _list_series(rows, keys, measured):
        pairs = sorted(zip(series.places, series.values, series.below, series.above), key=lambda point: point[0])
        places, values, below, above = zip(*pairs)
        line = axes.errorbar(places, values, yerr=(below, above), capsize=3, marker="o", markersize=4)
        line.set_label(series.name)
    if rows.types[keys[0]] is Type.INTEGER:
        from matplotlib.ticker import MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if rows.types[keys[0]].is_time:
        axes.tick_params(axis="x", labelrotation=30)


def _list_series(rows: Rows, keys: Sequence[int], measured: int) -> list[PlottedSeries]:
    found: dict[str, PlottedSeries] = {}
    for row in rows.rows:
        place, value = row[keys[0]].value, row[measured].value
        if place is None or not isinstance(value, int | float):
            continue
        name = show_key(row[keys[1]].value) if len(keys) > 1 else rows.names[measured]
        series = found.setdefault(name, PlottedSeries(name, [], [], [], []))
        series.places.append(_to_axis(place))
        series.values.append(float(value))
        series.below.append(_measure_end(row[measured].low, value, -1))
        series.above.append(_measure_end(row[measured].high, value, 1))
    return list(found.values())


def _draw_bars(axes: Axes, rows: Rows, keys: Sequence[int], measured: int) -> None:
    """Bars to the right, the first row on top; a colour for each value of the second key."""
    if len(rows.rows) > MAX_BARS:
        fix = "Ask with ORDER BY and LIMIT, or group more coarsely."
        raise UsageError(f"A chart of {len(rows.rows):,} bars cannot be read; {MAX_BARS} can. {fix}")
    grouped = len(keys) == 2 and _count_series(rows, keys) <= MAX_SERIES
    labels = [_label_row(rows, row, keys[:1] if grouped else ()) for row in rows.rows]
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    names = [show_key(row[keys[1]].value) if grouped else "" for row in rows.rows]
    series = {name: place for place, name in enumerate(dict.fromkeys(names))}
    height, ink = 0.8 / len(series), axes.xaxis.label.get_color()  # dark on light pages, and light on dark ones
    for name, number in series.items():
        chosen = [(places[label], row[measured]) for label, row, n in zip(labels, rows.rows, names) if n == name]
        known = [(place, cell) for place, cell in chosen if isinstance(cell.value, int | float)]
        values = [_to_float(cell.value) for _, cell in known]
        below = [_measure_end(cell.low, cell.value, -1) for _, cell in known]
        above = [_measure_end(cell.high, cell.value, 1) for _, cell in known]
        middles = [place + (number - (len(series) - 1) / 2) * height for place, _ in known]
        axes.barh(middles, values, height, xerr=(below, above), capsize=3, label=name, alpha=0.75, ecolor=ink)
    axes.set_yticks(list(places.values()), list(places))
    axes.invert_yaxis()


def _label_row(rows: Rows, row: tuple[Cell, ...], keys: Sequence[int]) -> str:
    return ", ".join(show_key(row[i].value) for i in keys) if keys else label_of(row, rows.measured)


def _set_titles(axes: Axes, rows: Rows, keys: Sequence[int], measured: int, level: str, *, by_line: bool) -> None:
    said = f"{rows.names[measured]} with noise {level}"
    first = ", ".join(rows.names[i] for i in (keys[:1] if len(keys) <= 2 else keys))
    if by_line:
        missing = [row for row in rows.rows if row[keys[0]].value is None]
        unplaced = ", ".join(show_cell(row[measured], measured=True) for row in missing[:MAX_SERIES])
        axes.set_xlabel(f"{first} (without NULL: {unplaced})" if missing else first)
        axes.set_ylabel(said)
    else:
        axes.set_xlabel(said)
        axes.set_ylabel(first)
    if len(keys) == 2 and _count_series(rows, keys) <= MAX_SERIES:
        # Beside the chart, where it hides no value.
        axes.legend(title=rows.names[keys[1]], loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _measure_end(end: Value, value: Value, side: int) -> float:
    """How far an end is from its value; nothing is drawn where it is not known."""
    return max(0.0, side * (_to_float(end) - _to_float(value))) if isinstance(end, int | float) else float("nan")


def _to_axis(value: Value) -> Any:
    return value if isinstance(value, dt.date) else _to_float(value)


def _to_float(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
