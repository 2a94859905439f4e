"""Tables and facts as HTML for notebooks: inline styles, no scripts, and nothing that is loaded from elsewhere.

Colours are those of the page, some of them fainter. So it looks right on light pages and on dark ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "font-variant-numeric:tabular-nums;white-space:nowrap;vertical-align:top;padding:.2em .6em"
_FACTS = "display:grid;grid-template-columns:max-content auto;gap:.15em .9em;margin:.6em 0;font-size:90%;max-width:60em"
_FAINT = "opacity:.65"


def make_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool], faint: Sequence[bool]
) -> str:
    """A table of texts: some columns stand to the right, and some are fainter than the others."""
    styles = [
        f"text-align:{'right' if r else 'left'};{_CELL}{f';{_FAINT};font-weight:normal' if f else ''}"
        for r, f in zip(right, faint)
    ]
    head = "".join(f'<th style="{style}">{escape(text)}</th>' for text, style in zip(heads, styles))
    body = "".join(
        "<tr>" + "".join(f'<td style="{style}">{escape(text)}</td>' for text, style in zip(row, styles)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def make_facts(facts: Iterable[tuple[str, str]]) -> str:
    """Titles, and what is said under each, in two columns; a title that comes again is written once."""
    cells, before = "", ""
    for title, words in facts:
        shown = "" if title == before else title
        cells += f'<span style="{_FAINT}">{escape(shown)}</span><span>{escape(words)}</span>'
        before = title
    return f'<div style="{_FACTS}">{cells}</div>' if cells else ""
