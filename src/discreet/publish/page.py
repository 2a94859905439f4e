"""The page of a bundle: one HTML file with pictures that opens offline. It shows only what manifest and tables say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

from discreet.publish.columns import PublishedColumn
from discreet.publish.estimates import estimate_table
from discreet.publish.intervals import find_width, tabulate_cells
from discreet.publish.manifest import write_disclosure, write_promise
from discreet.publish.measurements import Measurements
from discreet.publish.workload import Attributes

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1d2733; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
p.lead { font-size: 1.05rem; border-left: 4px solid #4878a8; padding-left: .8rem; }
.bar { fill: #a9c4de; } .cell { fill: #1f4e79; stroke: #d5dde5; }
.range { stroke: #1d2733; stroke-width: 1.5; } svg text { font-size: 10px; fill: #1d2733; }
figure { display: inline-block; margin: 0 1.5rem 1rem 0; vertical-align: top; } figcaption { font-weight: 600; }
"""
# The most bars of one picture, and the most cells of a map's side.
_MOST_BARS = 40
_MOST_SIDE = 24
_BAR, _WIDTH, _TEXT, _NUMBER = 15, 170, 150, 130
_SIDE = 18


def make_page(manifest: Mapping[str, Any], measured: Measurements, columns: Sequence[PublishedColumn]) -> str:
    """The page of a bundle."""
    loss, method = manifest["loss"], manifest["method"]
    facts = [
        ("protects", f"{manifest['unit']} ({manifest['neighbours']} neighbours)"),
        ("this release", f"ε {loss['epsilon']:.4g} at δ {loss['delta']:.4g}"),
        ("all releases so far", f"ε {manifest['cumulative']['epsilon']:.4g} at δ {loss['delta']:.4g}"),
        ("rows (noisy)", f"{manifest['total']:,.0f}"),
        ("synthetic rows", _describe_rows(manifest)),
        ("method", f"{method['name']}: {method['reason']}"),
        ("ledger", f"line {manifest['receipt']['number']}, {manifest['receipt']['hash'][:16]}"),
    ]
    listed = "".join(f"<tr><th>{escape(name)}</th><td>{escape(words)}</td></tr>" for name, words in facts)
    level = Fraction(manifest["level"])
    pictures = "".join(_draw_column(measured, column, number, level) for number, column in enumerate(columns))
    tables = "".join(
        f"<tr><td>{escape(' × '.join(table['columns']) or 'all rows')}</td><td class=number>{table['cells']}</td>"
        f"<td class=number>± {table['deviation']:.4g}</td></tr>"
        for table in manifest["tables"]
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(manifest['name'])}</title>"
        f"<style>{_STYLE}</style><h1>{escape(manifest['name'])}</h1>"
        f"<p class=lead>{escape(write_promise(manifest))}</p><table>{listed}</table>"
        f"<h2>In plain words</h2>{_write_words(manifest)}"
        f"<h2>Columns</h2><p>Bars are values with noise; lines are intervals at {float(level):.4g}.</p>{pictures}"
        f"{_draw_strongest(measured, columns)}"
        "<h2>Measured tables</h2><table><tr><th>columns</th><th>cells</th><th>standard deviation of a cell</th></tr>"
        f"{tables}</table></html>\n"
    )


def _describe_rows(manifest: Mapping[str, Any]) -> str:
    """How many there are, and how well they fit the estimated tables: 1000 is a perfect fit."""
    rows = manifest.get("rows")
    return "none" if rows is None else f"{rows['count']:,}, with a k-marginal score of {rows['k_marginal']} of 1000"


def _write_words(manifest: Mapping[str, Any]) -> str:
    """The disclosure, with the first words of each paragraph in bold."""
    found = []
    for paragraph in write_disclosure(manifest).strip().split("\n\n")[1:]:
        head, dot, rest = paragraph.partition(". ")
        found.append(f"<p><b>{escape(head + dot.strip())}</b> {escape(rest)}</p>")
    return "".join(found)


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


def _draw_strongest(measured: Measurements, columns: Sequence[PublishedColumn]) -> str:
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
        "The darker, the larger its share of the line.</p>"
        f'<figure><svg width="{_TEXT + two.size * _SIDE + 100}" height="{foot + deep}" role="img" '
        f'aria-label="{escape(two.name)} by {escape(one.name)}">{"".join(parts)}</svg></figure>'
    )


def _draw_column(measured: Measurements, column: PublishedColumn, number: int, level: Fraction) -> str:
    cells = tabulate_cells(measured, (number,), level)
    shown = min(column.size, _MOST_BARS)
    most = max(1.0, float(cells["high"].max()))
    half = find_width(level) * math.sqrt(measured.allocation.cell_variance((number,)))
    parts = []
    for cell in range(shown):
        top = cell * _BAR
        value, low, high = (float(cells[name][cell]) for name in ("value", "low", "high"))
        wide, left, right = (_WIDTH * max(0.0, end) / most for end in (value, low, high))
        middle = top + _BAR / 2
        parts.append(
            f'<text x="{_TEXT - 6}" y="{top + 11}" text-anchor="end">{escape(column.label(cell)[:26])}</text>'
            f'<rect class="bar" x="{_TEXT}" y="{top + 2}" width="{wide:.1f}" height="{_BAR - 4}"/>'
            f'<line class="range" x1="{_TEXT + left:.1f}" x2="{_TEXT + right:.1f}" y1="{middle}" y2="{middle}"/>'
            f'<text x="{_TEXT + _WIDTH + 8}" y="{top + 11}">{value:,.0f} ± {half:,.0f}</text>'
        )
    rest = "" if shown == column.size else f" (the first {shown} of {column.size} cells)"
    return (
        f'<figure><figcaption>{escape(column.name)}{rest}</figcaption><svg width="{_TEXT + _WIDTH + _NUMBER}" '
        f'height="{shown * _BAR}" role="img" aria-label="counts of {escape(column.name)}">{"".join(parts)}</svg>'
        "</figure>"
    )
