"""HTML as values: a text becomes part of a page only through ``element``, which escapes it."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import TypeAlias

_VOID = frozenset({"br", "input", "link", "meta"})


class Html(str):
    """A text that is HTML already. It is made here and nowhere else."""

    __slots__ = ()


class Figure(str):
    """A number as it is written for people."""

    __slots__ = ()


Child: TypeAlias = "str | int | float | Iterable[Child] | None"


def element(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """An element. Children that are no HTML are escaped; an attribute that is None or False is left out.

    >>> print(element("p", "1 < 2", class_="note", data_size=3, hidden=True))
    <p class="note" data-size="3" hidden>1 &lt; 2</p>
    """
    words = "".join(_write_attribute(word, value) for word, value in attributes.items())
    opened = f"<{name}{words}>"
    return Html(opened if name in _VOID else f"{opened}{join(*children)}</{name}>")


def join(*children: Child) -> Html:
    """Children one after the other, each escaped unless it is HTML."""
    return Html("".join(_write_child(child) for child in children))


def _write_child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return str(child)
    if isinstance(child, str | int | float):
        return html.escape(str(child))
    return "".join(_write_child(each) for each in child)


def _write_attribute(word: str, value: str | float | None) -> str:
    """An attribute; ``class_`` and ``for_`` are words of Python, so a line at the end is left out."""
    name = word.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


def write_figure(value: float) -> Figure:
    """A number for people: thousands apart, and no more digits than one can read.

    >>> [str(write_figure(each)) for each in (1234567, -0.25, 1234567.8, 56.490612, 1e-7)]
    ['1,234,567', '-0.25', '1,234,568', '56.4906', '1e-07']
    """
    if isinstance(value, int):
        return Figure(f"{value:,}")
    return Figure(f"{value:,.0f}" if abs(value) >= 100_000 and math.isfinite(value) else f"{value:,.6g}")


def make_table(heads: Iterable[str], rows: Iterable[Iterable[Child]], caption: str, *, stacked: bool = False) -> Html:
    """A table that scrolls by itself where the screen is small. Columns of numbers stand to the right.

    ``stacked`` puts the cells of a row below each other there, each with its head.
    """
    lines, names = [list(row) for row in rows], list(heads)
    places = range(len(lines[0])) if lines else range(0)
    numbers = {place for place in places if all(isinstance(row[place], int | float | Figure) for row in lines)}
    head = [_make_cell("th", each, number=place in numbers, scope="col") for place, each in enumerate(names)]
    body = [
        element("tr", [
            # The parts of a cell stay together beside its head.
            _make_cell("td", element("div", cell) if stacked else cell, number=place in numbers,
                       data_label=names[place] if stacked else None)
            for place, cell in enumerate(row)
        ])
        for row in lines
    ]  # fmt: skip
    drawn = element("table", element("caption", caption), element("thead", element("tr", head)), element("tbody", body))
    class_ = "scroll stacked" if stacked else "scroll"
    return element("div", drawn, class_=class_, tabindex="0", role="region", aria_label=caption)


def _make_cell(name: str, cell: Child, *, number: bool, **attributes: str | None) -> Html:
    return element(name, cell, **attributes, class_="number" if number else None)


def make_explanation(words: str, *meaning: Child) -> Html:
    """What a word means, folded away beside it."""
    return element("details", element("summary", words), element("p", *meaning), class_="explanation")
