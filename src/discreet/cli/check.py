"""``discreet check``: is a codebook right, and are its choices wise?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.option_groups import take_groups
from discreet.cli.options import CodebookPath
from discreet.cli.output import OutputOptions, Printout
from discreet.errors import DiscreetError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.codebook import Codebook
    from discreet.codebook.check_lines import CheckLine
    from discreet.engines.unread import ValueReport
    from discreet.plan.catalog import TableFacts
    from discreet.plan.types import Type


@take_groups
def check(
    codebook: CodebookPath,
    *,
    values: Annotated[
        bool, typer.Option("--values", help="Also count what cannot be read; exact, so for the data's owner only.")
    ] = False,
    output: OutputOptions,
) -> None:
    """Is the codebook right, and are its choices wise?

    It is compared with the schema of the data; no value is read without --values. Exit code 2 if something is wrong.
    """
    from discreet.codebook import Codebook
    from discreet.codebook.check_lines import Grade
    from discreet.codebook.checklist import make_checklist

    book = Codebook.load(codebook)
    lines = make_checklist(book, _read_schemas(book))
    if values and not any(line.grade is Grade.WRONG for line in lines):
        lines = (*lines, *_check_values(book))
    output.print(_make_printout(book.name, lines))
    if any(line.grade is Grade.WRONG for line in lines):
        raise typer.Exit(UsageError.exit_code)


def _make_printout(name: str, lines: Sequence[CheckLine]) -> Printout:
    from discreet.cli.rows import make_rows

    found = [
        {"mark": line.grade.name.lower(), "topic": line.topic, "finding": line.finding, "fix": line.fix}
        for line in lines
    ]
    return Printout(
        rows=lambda: make_rows(dict.fromkeys(("mark", "topic", "finding", "fix"), "text"), found),
        document=lambda: found,
        draw=lambda console: _draw(console, name, lines),
    )


def _draw(console: Console, name: str, lines: Sequence[CheckLine]) -> None:
    from discreet.cli import printing
    from discreet.codebook.check_lines import Grade

    printing.print_heading(console, f"Checklist of {name}")
    printing.print_checks(console, lines)
    counts = {grade: sum(line.grade is grade for line in lines) for grade in Grade}
    console.print(f"{counts[Grade.GOOD]} good, {counts[Grade.WEAK]} to think about, {counts[Grade.WRONG]} wrong")


def _read_schemas(book: Codebook) -> dict[str, Mapping[str, Type | None] | str]:
    """What each table's source really has, or why it cannot be opened."""
    from discreet.engines.registry import open_engine
    from discreet.plan.catalog import Catalog

    # An engine that declares nothing, because what is declared is what is being checked.
    nothing = Catalog(tables={}, neighbours=book.neighbours)
    found: dict[str, Mapping[str, Type | None] | str] = {}
    for table, source in book.sources.items():
        try:
            engine = open_engine({table: source}, nothing)
            found[table] = engine.schema(table)
            engine.close()
        except DiscreetError as error:
            words = str(error).removesuffix(" Nothing was charged.")
            found[table] = " ".join([words, *getattr(error, "__notes__", ())])
    return found


def _check_size(facts: TableFacts, report: ValueReport) -> Iterator[CheckLine]:
    """Whether an exact size is true. Only the owner is told: questions take what is declared, true or not."""
    from discreet.codebook.check_lines import CheckLine, Grade

    if facts.exact_units is None:
        return
    by_row = facts.unit_column is None
    word, counted = ("exact_rows", report.rows) if by_row else ("exact_units", report.units)
    topic = f"{facts.name}: {word}"
    if counted == facts.exact_units:
        yield CheckLine(Grade.GOOD, topic, f"The data has exactly {counted:,}.")
        return
    finding = f"{facts.exact_units:,} is declared, and the data has {counted:,}."
    yield CheckLine(Grade.WRONG, topic, finding, "Mend the number or the data: counts and averages take it as true.")


def _check_values(book: Codebook) -> Iterator[CheckLine]:
    """What questions will miss, by table, column and reason."""
    from discreet.codebook.check_lines import CheckLine, Grade
    from discreet.engines.registry import count_unread

    facts = book.catalog().tables
    for table, source in book.sources.items():
        columns = facts[table].columns
        types = {name: kind for name, (kind, _) in columns.items()}
        lengths = {name: known.max_length for name, (_, known) in columns.items() if known.max_length is not None}
        unit = facts[table].unit_column
        report = count_unread(source, table, types, lengths, None if unit is None else unit.name)
        yield from _check_size(facts[table], report)
        if not report.unread:
            yield CheckLine(Grade.GOOD, f"values of {table}", f"All of {report.rows} rows can be read as declared.")
        for unread in report.unread:
            topic = f"values of {table}" + (f".{unread.column}" if unread.column else "")
            words = "Questions leave them out" if unread.column is None else "Questions take them as missing"
            yield CheckLine(
                Grade.WEAK,
                topic,
                f"{unread.count} {unread.reason}.",
                f"{words}. Mend the data, or see: discreet import.",
            )
