"""What every command shows in the same way: tables, facts, checklists and errors; in colour on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from discreet.codebook.check_lines import CheckLine


PAGE = 80
"""The width of prose and of lines across a page, where the screen is not narrower."""

# As box.SIMPLE_HEAD; a terminal without its line gets a substitute sign (``signs``), and no other box.
_LINE_UNDER_HEAD = box.Box("    \n    \n ── \n    \n    \n    \n    \n    \n", ascii=True)


def make_table(*, header: bool = True) -> Table:
    """An empty table in the one style."""
    return Table(box=_LINE_UNDER_HEAD if header else None, show_header=header, pad_edge=False, header_style="bold")


def print_table(
    console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]], bars: Sequence[Text] = ()
) -> None:
    """A table of short texts, and bars beside them if there is room.

    Where the table itself has no room, each row is a sentence: a number that is cut or folded would be another one.
    """
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    room = console.width - sum(widths) - 3 * len(widths) + 1
    if room < 0:
        for name, *cells in rows:
            parts = [f"{head} {cell}".strip() for head, cell in zip(heads[1:], cells) if cell]
            console.print(Text(name, style="cyan").append(f"  {', '.join(parts)}", style="default"))
        return
    drawn = bars if max((len(bar) for bar in bars), default=0) + 3 <= room else ()
    table = make_table()
    for place, head in enumerate([*heads, ""] if drawn else heads):
        table.add_column(head, style="cyan" if place == 0 else "", no_wrap=True)
    for number, row in enumerate(rows):
        table.add_row(*map(Text, row), *drawn[number : number + 1])
    console.print(table)


def print_heading(console: Console, text: str) -> None:
    """A title over what follows."""
    console.print(Text(text, style="bold"))


def print_page(console: Console, markdown: str) -> None:
    """A page folded to the screen, and to a page's width where there is none.

    Code keeps its colours on light and on dark screens.
    """
    from rich.markdown import Markdown

    console.print(Markdown(markdown, code_theme="ansi_dark"), width=min(console.width, PAGE))


def print_facts(console: Console, pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values, below each other."""
    table = make_table(header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, Text(value))
    console.print(table)


def print_done(console: Console, name: str, value: str) -> None:
    """A step that is behind us."""
    table = make_table(header=False)
    for style in ("green", "cyan", ""):
        table.add_column(style=style, overflow="fold", min_width=10 if style == "cyan" else None)
    table.add_row("✓", name, Text(value))
    console.print(table)


def print_checks(console: Console, lines: Sequence[CheckLine]) -> None:
    """A checklist: mark, topic, finding, and the fix below it."""
    from discreet.codebook.check_lines import Grade

    styles = {Grade.GOOD: "green", Grade.WEAK: "yellow", Grade.WRONG: "bold red"}
    table = make_table(header=False)
    table.add_column(no_wrap=True)
    table.add_column(style="cyan")
    table.add_column(overflow="fold")
    for line in lines:
        finding = Text(line.finding)
        if line.fix:
            finding.append(f"\n{line.fix}", style="italic")
        table.add_row(Text(str(line.grade), style=styles[line.grade]), line.topic, finding)
    console.print(table)


def print_error(console: Console, message: str, code: str) -> None:
    """What went wrong, and where to read about it."""
    text = Text("✗ ", style="bold red").append(Text(message, style=""))
    console.print(text)
    console.print(Text(f"  code {code}: discreet help {code}", style="dim"))
