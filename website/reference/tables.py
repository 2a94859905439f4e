"""Tables and texts of Markdown for pages that are made from the code."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

MADE = "<!-- made from the code by `python -m website.reference`; edit the code, not this page -->"
"""The second line of every page that is made."""


def write_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [_write_row(heads), "|" + "---|" * len(heads), *map(_write_row, rows)]
    return "\n".join(lines) + "\n"


def write_list(items: Iterable[tuple[str, str, str]]) -> str:
    """Names, each with what it means and, on a line of its own, its parameters, which may be long."""
    return "\n".join(_write_item(*item) for item in items) + "\n"


def _write_item(name: str, parameters: str, meaning: str) -> str:
    told = f"- **{quote(name)}**: {meaning}" if meaning else f"- **{quote(name)}**"
    return f"{told}\\\n  {quote(parameters)}" if parameters else told


def _write_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in cells) + " |"


def quote(text: str) -> str:
    """A text as code in Markdown, whatever is in it."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def read_summary(thing: Any) -> str:
    """The first paragraph of what the code says about a thing, up to its first full stop."""
    text = inspect.getdoc(thing) or ""
    paragraph = " ".join(text.partition("\n\n")[0].replace("``", "`").split())
    first, stop, _ = paragraph.partition(". ")
    return first + stop.strip()
