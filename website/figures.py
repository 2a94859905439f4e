"""Figures that pages make themselves: their code is run, and what it calls ``figure`` is drawn.

A figure stands in the page as SVG without colours of its own: it takes those of the page, in light and in dark.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from typing import Any

PICTURE = re.compile(r"<!-- picture: (.+?) -->", re.S)
"""Where a page has a picture, with the words for those who do not see it."""

_BLOCK = re.compile(r"```pycon\n(.*?)\n```|<!-- picture: .+? -->", re.S)
_HEAD = re.compile(r"\A.*?(?=<svg)|<metadata>.*?</metadata>|<style.*?</style>", re.S)
# The colours of discreet.pictures, and what the site calls them.
_COLOURS = {
    "#2563a6": "var(--on)",
    "#c8651b": "var(--beside)",
    "#2f8f5b": "var(--third)",
    "#7a4fa3": "var(--fourth)",
    "#8a8f98": "var(--quiet)",
    "#e3e5e8": "var(--grid)",
    "#000000": "currentColor",
    "#ffffff": "none",
}


def make_figures(text: str) -> list[str]:
    """The figures of a page as SVG, in the order of their marks; the code of the page is run up to the last one."""
    names: dict[str, Any] = {}
    figures: list[str] = []
    wanted = len(PICTURE.findall(text))
    for found in _BLOCK.finditer(text):
        if len(figures) == wanted:
            break
        if found[1] is None:
            figures.append(draw_inline(names["figure"], f"f{len(figures)}-"))
        else:
            _run(found[1], names)
    return figures


def draw_inline(figure: Any, prefix: str) -> str:
    """A figure of matplotlib as SVG that can stand in a page; a prefix keeps its names apart from those of others."""
    from discreet.pictures.figure import encode_figure

    drawn = _HEAD.sub("", encode_figure(figure, "svg").decode())
    drawn = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{prefix}", drawn)
    drawn = re.sub(r"#[0-9a-f]{6}", lambda colour: _COLOURS.get(colour[0], colour[0]), drawn)
    drawn = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', 'fill="currentColor" aria-hidden="true"', drawn, count=1)
    return re.sub(r"\n+", "\n", drawn)


def _run(block: str, names: dict[str, Any]) -> None:
    """Run the lines of a session. Whether they print what they show is checked by the tests of the pages."""
    for example in doctest.DocTestParser().get_examples(f"{block}\n"):
        refused = contextlib.suppress(Exception) if example.exc_msg is not None else contextlib.nullcontext()
        with refused, contextlib.redirect_stdout(io.StringIO()):  # the page shows what is printed, and this error
            exec(compile(example.source, "page", "exec"), names)  # noqa: S102  # our own page
