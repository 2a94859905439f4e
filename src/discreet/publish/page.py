"""The page of a bundle: one HTML file with pictures that opens offline. It shows only what manifest and tables say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import Any

from discreet.publish.columns import PublishedColumn
from discreet.publish.manifest import write_disclosure, write_promise
from discreet.publish.measurements import Measurements
from discreet.publish.page_figures import draw_column, draw_series, draw_strongest
from discreet.publish.part_tables import QUESTION, SERIES

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --paper: #ffffff; --bar: #a9c4de; --deep: #1f4e79; --edge: #d5dde5;
  --mark: #4878a8; --own: #b3541e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e8ee; --paper: #14191f; --bar: #3f6488; --deep: #9cc4ec; --edge: #33404d; --mark: #7fb0e0;
    --own: #f0a06a; }
}
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
p.lead { font-size: 1.05rem; border-left: 4px solid var(--mark); padding-left: .8rem; }
.bar { fill: var(--bar); } .cell { fill: var(--deep); stroke: var(--edge); }
.band { fill: var(--mark); fill-opacity: .35; } .line { fill: none; stroke: var(--deep); stroke-width: 2; }
.own { fill: var(--own); } .own-line { fill: none; stroke: var(--own); stroke-width: 1.5; }
.range { stroke: var(--ink); stroke-width: 1.5; } svg text { font-size: 10px; fill: var(--ink); }
svg { max-width: 100%; } details > summary { cursor: pointer; }
figure { display: inline-block; margin: 0 1.5rem 1rem 0; vertical-align: top; } figcaption { font-weight: 600; }
@media print { details > * { display: block; } }
"""
# So many tables are listed before the rest is folded away.
_MOST_LISTED = 20


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
    pictures = "".join(draw_column(measured, column, number, level) for number, column in enumerate(columns))
    return wrap_page(
        manifest["name"],
        f"<p class=lead>{escape(write_promise(manifest))}</p><table>{listed}</table>"
        f"<h2>In plain words</h2>{_write_words(manifest)}"
        f"{_write_questions(manifest)}{_write_series(manifest, level)}"
        f"{_introduce(columns, level)}{pictures}"
        f"{draw_strongest(measured, columns)}{_write_fit(manifest)}{_write_tables(manifest)}",
    )


def wrap_page(title: str, body: str) -> str:
    """A whole page in the style of a bundle, which loads nothing."""
    return (
        '<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1>{body}</html>\n"
    )


def _introduce(columns: Sequence[PublishedColumn], level: Fraction) -> str:
    words = f"Bars are values with noise; lines and bands are intervals at {float(level):.4g}."
    return f"<h2>Columns</h2><p>{words}</p>" if columns else ""


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


def _write_questions(manifest: Mapping[str, Any]) -> str:
    """The questions of the plan with their answers."""
    found = []
    for part in manifest["parts"]:
        if part["kind"] == QUESTION:
            shown = part["shown"]
            heads = "".join(f"<th>{escape(name)}</th>" for name in shown["columns"])
            lines = ["".join(f"<td>{escape(text)}</td>" for text in row) for row in shown["rows"]]
            body = "".join(f"<tr>{line}</tr>" for line in lines)
            rest = f"<p>The first {len(lines)} of {shown['count']} rows.</p>" if shown["count"] > len(lines) else ""
            found.append(f"<h3>{escape(part['name'])}</h3><table><tr>{heads}</tr>{body}</table>{rest}")
    return f"<h2>Questions</h2>{''.join(found)}" if found else ""


def _write_series(manifest: Mapping[str, Any], level: Fraction) -> str:
    """The series of the plan, a picture each."""
    found = "".join(draw_series(part) for part in manifest["parts"] if part["kind"] == SERIES)
    return f"<h2>Series</h2><p>Bands are intervals at {float(level):.4g}.</p>{found}" if found else ""


def _write_fit(manifest: Mapping[str, Any]) -> str:
    """How far the rows are from what was measured, column by column. No data were touched again for that."""
    rows = manifest.get("rows")
    if rows is None:
        return ""
    lines = "".join(
        f"<tr><td>{escape(name)}</td><td class=number>{100 * far:.4g} %</td></tr>"
        for name, far in rows["one_way"].items()
    )
    return (
        "<h2>How well rows fit</h2><p>The part of the synthetic rows that would have to change for a column to have "
        "its estimated counts. What was measured and what is true differ by noise beside that.</p>"
        f"<table>{lines}</table>"
    )


def _write_tables(manifest: Mapping[str, Any]) -> str:
    """The measured tables, the first ones in sight."""
    head = "<tr><th>columns</th><th>cells</th><th>standard deviation of a cell</th></tr>"
    lines = [
        f"<tr><td>{escape(' × '.join(table['columns']) or 'all rows')}</td><td class=number>{table['cells']}</td>"
        f"<td class=number>± {table['deviation']:.4g}</td></tr>"
        for table in manifest["tables"]
    ]
    shown = f"<h2>Measured tables</h2><table>{head}{''.join(lines[:_MOST_LISTED])}</table>"
    if len(lines) > _MOST_LISTED:
        shown += f"<details><summary>all others</summary><table>{head}{''.join(lines[_MOST_LISTED:])}</table></details>"
    return shown
