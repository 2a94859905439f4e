"""The lectures in the terminal: ``discreet learn`` lists them, ``discreet learn NAME`` shows one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.option_groups import take_groups
from discreet.cli.output import OutputOptions, Printout

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.lectures import Lecture


@take_groups
def learn(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The lecture; without it, all are listed.")] = None,
    *,
    output: OutputOptions,
) -> None:
    """Read the theory, a page at a time.

    Each page has a statement, its reason, and code that runs. Without a name, the list in its order. For example:
    discreet learn laplace
    """
    from discreet import lectures

    output.print(_make_list() if name is None else _make_page(lectures.find_lecture(name)))


def _make_list() -> Printout:
    from discreet.cli.rows import make_rows
    from discreet.lectures import list_lectures

    found = list_lectures()
    records = [{"name": lecture.name, "about": lecture.about} for lecture in found]
    return Printout(
        rows=lambda: make_rows({"name": "text", "about": "text"}, records),
        document=lambda: {lecture.name: lecture.about for lecture in found},
        draw=lambda console: _draw_list(console, found),
    )


def _draw_list(console: Console, found: tuple[Lecture, ...]) -> None:
    from discreet.cli import printing

    printing.print_facts(console, ((lecture.name, lecture.about) for lecture in found))
    console.out(f"Read one: discreet learn {found[0].name}", highlight=False)


def _make_page(lecture: Lecture) -> Printout:
    from discreet.cli.rows import make_rows

    record = {"name": lecture.name, "title": lecture.title, "about": lecture.about, "text": lecture.text}
    return Printout(
        rows=lambda: make_rows(dict.fromkeys(record, "text"), [record]),
        document=lambda: {**record, "next": lecture.following},
        draw=lambda console: _draw_page(console, lecture),
    )


def _draw_page(console: Console, lecture: Lecture) -> None:
    from discreet.cli import printing

    printing.print_page(console, lecture.plain)
    if lecture.following is not None:
        console.out(f"\nNext: discreet learn {lecture.following}", highlight=False)
