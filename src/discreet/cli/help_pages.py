"""``discreet help CODE``: what an error means and what to do, without a network. Also the pages that messages name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.option_groups import take_groups
from discreet.cli.output import OutputOptions, Printout
from discreet.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

SHIPPED = Path("pages")
"""Where the wheel has the pages, inside the package."""

PAGES = {
    "errors": "every error and what to do about it",
    "sql": "what can be asked, with every function",
    "codebook": "every word of a codebook",
    "ledger": "the record of charges: heads, backups, amendments",
}
_PACKAGE = Path(__file__).parents[1]
_PLACES = (_PACKAGE / SHIPPED, _PACKAGE.parents[1] / "docs")
_LINK = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")
_COMMENT = re.compile(r"<!--.*?-->\n*", re.S)


@take_groups
def show_help(
    topic: Annotated[
        str | None, typer.Argument(metavar="CODE", help="The code of an error, or a page: sql, codebook, ledger.")
    ] = None,
    *,
    output: OutputOptions,
) -> None:
    """Say what an error means and what to do about it.

    Without a code, everything that there is help for. For example: discreet help budget-exceeded
    """
    found = list_topics()
    if topic is None:
        output.print(_make_list(found))
        return
    from discreet.parameters import find_name

    name = find_name(topic, found, "topic")
    output.print(_make_page(name, found[name]))


def list_topics() -> dict[str, str]:
    """For each code of an error its section of docs/errors.md, and the pages. A page follows the code of its name."""
    _, *sections = re.split(r"^## ", _read_page("errors"), flags=re.M)
    found = {name: text.strip() for name, _, text in (section.partition("\n") for section in sections)}
    for name in PAGES:
        found[name] = f"{found.get(name, '')}\n\n{_read_page(name)}".strip()
    return found


def _read_page(name: str) -> str:
    for place in _PLACES:
        if (place / f"{name}.md").is_file():
            page = (place / f"{name}.md").read_text(encoding="utf-8")
            return _LINK.sub(r"\1", _COMMENT.sub("", page))
    raise UsageError("This installation has no pages. Install discreet from its wheel, or run it from its source.")


def _make_list(found: Mapping[str, str]) -> Printout:
    from discreet.cli.printing import print_facts
    from discreet.cli.rows import make_rows

    about = {name: PAGES.get(name) or _shorten(text) for name, text in found.items()}
    records = [{"topic": name, "about": words} for name, words in about.items()]
    return Printout(
        rows=lambda: make_rows({"topic": "text", "about": "text"}, records),
        document=lambda: about,
        draw=lambda console: print_facts(console, about.items()),
    )


def _shorten(section: str) -> str:
    """The first sentence of a section."""
    words = " ".join(section.partition("\n\n")[0].split()).replace("`", "")
    return re.split(r"(?<=\.) ", words)[0]


def _make_page(name: str, text: str) -> Printout:
    from discreet.cli.printing import print_page
    from discreet.cli.rows import make_rows

    return Printout(
        rows=lambda: make_rows({"topic": "text", "text": "text"}, [{"topic": name, "text": text}]),
        document=lambda: {"topic": name, "text": text},
        draw=lambda console: print_page(console, text),
    )
