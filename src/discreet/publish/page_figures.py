"""The figures of a bundle's page: bars, histograms, lines with bands, and the map of a pair. Plain SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

from discreet.exact import Floats, Integers
from discreet.publish.columns import PublishedColumn
from discreet.publish.estimates import estimate_table
from discreet.publish.intervals import find_half, tabulate_cells
from discreet.publish.measurements import Measurements
from discreet.publish.part_tables import make_series_table
from discreet.publish.workload import Attributes

# The most bars with a label each, and the most cells of a map's side.
_MOST_BARS = 40
_MOST_SIDE = 24
_BAR, _WIDTH, _TEXT, _NUMBER = 15, 170, 150, 130
_SIDE = 18
_CHART_WIDTH, _CHART_HEIGHT, _LEFT, _FOOT = 420, 170, 56, 20
# Labels below a chart are about so far apart.
_LABEL_WIDTH = 80


def draw_column(measured: Measurements, column: PublishedColumn, number: int, level: Fraction) -> str:
    """A column's counts with their intervals: bars with labels, or a histogram where there are too many cells."""
    cells = tabulate_cells(measured, (number,), level)
    return draw_counts(
        column, [cells[name] for name in ("value", "low", "high")], find_half(measured, (number,), level)
    )


def draw_counts(column: PublishedColumn, numbers: Sequence[Floats], half: float, beside: Integers | None = None) -> str:
    """Counts of a column's cells (value, low, high) as bars or a histogram; ``beside`` are other counts, as marks."""
    labels = [column.label(cell) for cell in range(column.size)]
    if column.size > _MOST_BARS:
        return _draw_chart(column.name, f"each ± {half:,.0f}", labels, numbers, bars=True, beside=beside)
    most = max(1.0, float(numbers[2].max()), *([] if beside is None else [float(beside.max())]))
    parts = []
    for cell, label in enumerate(labels):
        top = cell * _BAR
        value, low, high = (float(each[cell]) for each in numbers)
        wide, left, right = (_WIDTH * max(0.0, end) / most for end in (value, low, high))
        middle = top + _BAR / 2
        parts.append(
            f'<text x="{_TEXT - 6}" y="{top + 11}" text-anchor="end">{escape(label[:26])}</text>'
            f'<rect class="bar" x="{_TEXT}" y="{top + 2}" width="{wide:.1f}" height="{_BAR - 4}"/>'
            f'<line class="range" x1="{_TEXT + left:.1f}" x2="{_TEXT + right:.1f}" y1="{middle}" y2="{middle}"/>'
            f'<text x="{_TEXT + _WIDTH + 8}" y="{top + 11}">{value:,.0f} ± {half:,.0f}</text>'
        )
        if beside is not None:
            place = _TEXT + _WIDTH * float(beside[cell]) / most
            hint = f"<title>{escape(label)}: {int(beside[cell]):,} synthetic rows</title>"
            parts.append(
                f'<rect class="own" x="{place - 1.5:.1f}" y="{top + 1}" width="3" height="{_BAR - 2}">{hint}</rect>'
            )
    return _frame(column.name, f"counts of {column.name}", (_TEXT + _WIDTH + _NUMBER, column.size * _BAR), parts)


def draw_series(part: Mapping[str, Any]) -> str:
    """A series of a plan: its values as a line, its intervals as a band."""
    table = make_series_table(part)
    labels = [str(day) for day in table.column("start").to_pylist()]
    numbers = [table.column(name).to_numpy() for name in ("value", "low", "high")]
    told = f"{part['wanted']}, {len(labels)} of {part['periods']} periods"
    return _draw_chart(part["name"], told, labels, numbers, bars=False) if labels else ""


def _draw_chart(
    name: str,
    told: str,
    labels: Sequence[str],
    numbers: Sequence[Any],
    *,
    bars: bool,
    beside: Integers | None = None,
) -> str:
    """Values over places in order: thin bars or a line, with the band of the intervals, and other values as a line."""
    value, low, high = (np.asarray(each, dtype=np.float64) for each in numbers)
    top, bottom = max(1.0, float(high.max())), min(0.0, float(low.min()))
    top = top if beside is None else max(top, float(beside.max()))
    step = _CHART_WIDTH / len(labels)

    def place(cell: int, number: float) -> str:
        height = _CHART_HEIGHT * (1 - (number - bottom) / (top - bottom))
        return f"{_LEFT + (cell + 0.5) * step:.1f},{height:.1f}"

    band = [place(cell, x) for cell, x in enumerate(low)] + [place(cell, high[cell]) for cell in range(len(high))][::-1]
    parts = [f'<polygon class="band" points="{" ".join(band)}"/>']
    if bars:
        zero = _CHART_HEIGHT * (1 + bottom / (top - bottom))
        for cell, x in enumerate(value):
            tall = _CHART_HEIGHT * max(0.0, float(x)) / (top - bottom)
            where = f'x="{_LEFT + cell * step:.1f}" y="{zero - tall:.1f}"'
            hint = f"<title>{escape(labels[cell])}: {x:,.0f}</title>"
            parts.append(
                f'<rect class="bar" {where} width="{max(0.5, step - 0.5):.1f}" height="{tall:.1f}">{hint}</rect>'
            )
    else:
        parts.append(f'<polyline class="line" points="{" ".join(place(c, float(x)) for c, x in enumerate(value))}"/>')
    if beside is not None:
        own = " ".join(place(cell, float(x)) for cell, x in enumerate(beside))
        parts.append(f'<polyline class="own-line" points="{own}"/>')
    parts.append(f'<text x="{_LEFT - 6}" y="10" text-anchor="end">{top:,.0f}</text>')
    every = max(1, math.ceil(len(labels) * _LABEL_WIDTH / _CHART_WIDTH))
    parts += [
        f'<text x="{_LEFT + (cell + 0.5) * step:.1f}" y="{_CHART_HEIGHT + 14}" text-anchor="middle">'
        f"{escape(labels[cell][:12])}</text>"
        for cell in range(0, len(labels), every)
    ]
    size = (_LEFT + _CHART_WIDTH + 30, _CHART_HEIGHT + _FOOT)
    return _frame(f"{name} ({told})", f"{name} over its values", size, parts)


def draw_bars(title: str, bars: Sequence[tuple[str, float]], deviation: float) -> str:
    """Named amounts with the standard deviation of each, at most as many as have labels."""
    most = max([1e-12, *(amount + deviation for _, amount in bars)])
    parts = []
    for place, (name, amount) in enumerate(bars[:_MOST_BARS]):
        top, wide = place * _BAR, _WIDTH * max(0.0, amount) / most
        parts.append(
            f'<text x="{2 * _TEXT - 6}" y="{top + 11}" text-anchor="end">{escape(name[:52])}</text>'
            f'<rect class="bar" fill="#4878a8" x="{2 * _TEXT}" y="{top + 2}" width="{wide:.1f}" height="{_BAR - 4}"/>'
            f'<text x="{2 * _TEXT + _WIDTH + 8}" y="{top + 11}">{amount:.4f} ± {deviation:.2g}</text>'
        )
    size = (2 * _TEXT + _WIDTH + _NUMBER, min(len(bars), _MOST_BARS) * _BAR)
    return _frame(title, title, size, parts)


def _frame(title: str, words: str, size: tuple[int, int], parts: Sequence[str]) -> str:
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg width="{size[0]}" height="{size[1]}" role="img" '
        f'aria-label="{escape(words)}">{"".join(parts)}</svg></figure>'
    )


def find_strongest(measured: Measurements) -> Attributes | None:
    """The measured pair of columns whose estimate is furthest from independence, if it fits a picture."""
    workload, best, found = measured.allocation.workload, 0.0, None
    for pair in workload.weights:
        if len(pair) == 2 and max(workload.shape(pair)) <= _MOST_SIDE:
            table = estimate_table(measured, pair)
            total = table.sum()
            apart = float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0)) / total).sum() / total)
            if apart > best:
                best, found = apart, pair
    return found


def draw_strongest(measured: Measurements, columns: Sequence[PublishedColumn]) -> str:
    """A map of the pair of columns that hang together most: the share of each cell in its row."""
    pair = find_strongest(measured)
    if pair is None:
        return ""
    table = estimate_table(measured, pair)
    sums = table.sum(axis=1, keepdims=True)
    shares = np.divide(table, sums, out=np.zeros_like(table), where=sums > 0)
    one, two = (columns[number] for number in pair)
    parts = [
        f'<text x="{_TEXT - 6}" y="{row * _SIDE + 13}" text-anchor="end">{escape(one.label(row)[:26])}</text>'
        + "".join(
            f'<rect class="cell" x="{_TEXT + cell * _SIDE}" y="{row * _SIDE}" width="{_SIDE - 1}" height="{_SIDE - 1}" '
            f'fill-opacity="{share:.3f}"><title>{escape(one.label(row))}, {escape(two.label(cell))}'
            "</title></rect>"
            for cell, share in enumerate(line)
        )
        for row, line in enumerate(shares)
    ]
    foot = one.size * _SIDE
    deep = 20 + 6 * max(len(two.label(cell)[:26]) for cell in range(two.size))
    parts += [
        f'<text transform="translate({_TEXT + cell * _SIDE + 12},{foot + 6}) rotate(60)">{escape(two.label(cell)[:26])}'
        "</text>"
        for cell in range(two.size)
    ]
    return (
        f"<h2>What hangs together most</h2><p>{escape(two.name)} by {escape(one.name)}, as the estimates have it. "
        "The stronger the colour, the larger the share of the line.</p>"
        + _frame(
            f"{two.name} by {one.name}",
            f"{two.name} by {one.name}",
            (_TEXT + two.size * _SIDE + 100, foot + deep),
            parts,
        )
    )
