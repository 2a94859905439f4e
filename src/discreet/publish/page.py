"""The page of a bundle: one HTML file with pictures that opens offline. It shows only what manifest and tables say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import Any

from discreet.publish.columns import PublishedColumn
from discreet.publish.intervals import tabulate_cells
from discreet.publish.manifest import write_disclosure
from discreet.publish.measurements import Measurements

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1d2733; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
p.words { white-space: pre-wrap; } .bar { fill: #4878a8; } .range { stroke: #1d2733; stroke-width: 1.5; }
figure { display: inline-block; margin: 0 1.5rem 1rem 0; vertical-align: top; } figcaption { font-weight: 600; }
"""
# The most bars of one picture.
_MOST_BARS = 40
_BAR, _WIDTH, _TEXT = 14, 220, 130


def make_page(manifest: Mapping[str, Any], measured: Measurements, columns: Sequence[PublishedColumn]) -> str:
    """The page of a bundle."""
    loss, method = manifest["loss"], manifest["method"]
    facts = [
        ("protects", f"{manifest['unit']} ({manifest['neighbours']} neighbours)"),
        ("this release", f"ε {loss['epsilon']:.4g} at δ {loss['delta']:.4g}"),
        ("all releases so far", f"ε {manifest['cumulative']['epsilon']:.4g} at δ {loss['delta']:.4g}"),
        ("rows (noisy)", f"{manifest['total']:.0f}"),
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
        f"<style>{_STYLE}</style><h1>{escape(manifest['name'])}</h1><table>{listed}</table>"
        f"<h2>In plain words</h2><p class=words>{escape(write_disclosure(manifest))}</p>"
        f"<h2>Columns</h2><p>Bars are values with noise; lines are intervals at {float(level):.4g}.</p>{pictures}"
        "<h2>Measured tables</h2><table><tr><th>columns</th><th>cells</th><th>standard deviation of a cell</th></tr>"
        f"{tables}</table></html>\n"
    )


def _describe_rows(manifest: Mapping[str, Any]) -> str:
    """How many there are, and how well they fit the estimated tables: 1000 is a perfect fit."""
    rows = manifest.get("rows")
    return "none" if rows is None else f"{rows['count']}, with a k-marginal score of {rows['k_marginal']} of 1000"


def _draw_column(measured: Measurements, column: PublishedColumn, number: int, level: Fraction) -> str:
    cells = tabulate_cells(measured, (number,), level)
    shown = min(column.size, _MOST_BARS)
    most = max(1.0, float(cells["high"].max()))
    parts = []
    for cell in range(shown):
        top = cell * _BAR
        value, low, high = (float(cells[name][cell]) for name in ("value", "low", "high"))
        wide, left, right = (_WIDTH * max(0.0, end) / most for end in (value, low, high))
        middle = top + _BAR / 2
        parts.append(
            f'<text x="{_TEXT - 6}" y="{top + 11}" text-anchor="end" font-size="10">'
            f"{escape(column.label(cell)[:22])}</text>"
            f'<rect class="bar" x="{_TEXT}" y="{top + 2}" width="{wide:.1f}" height="{_BAR - 4}"/>'
            f'<line class="range" x1="{_TEXT + left:.1f}" x2="{_TEXT + right:.1f}" y1="{middle}" y2="{middle}"/>'
        )
    rest = "" if shown == column.size else f" (the first {shown} of {column.size} cells)"
    return (
        f'<figure><figcaption>{escape(column.name)}{rest}</figcaption><svg width="{_TEXT + _WIDTH + 8}" '
        f'height="{shown * _BAR}" role="img" aria-label="counts of {escape(column.name)}">{"".join(parts)}</svg>'
        "</figure>"
    )
