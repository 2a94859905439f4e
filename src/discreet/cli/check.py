"""``discreet check``: is a codebook right, and are its choices wise?"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.option_groups import take_groups
from discreet.cli.options import CodebookPath
from discreet.cli.output import OutputOptions, Printout
from discreet.errors import DiscreetError, UsageError
from discreet.exact import float_up
from discreet.late_dataclass import dataclass

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.codebook import Codebook
    from discreet.codebook.check_lines import CheckLine, Grade
    from discreet.engines.unread import Unread, ValueReport
    from discreet.plan.catalog import TableFacts
    from discreet.plan.types import Type

COUNT_TOPIC = ": a count"
# What is said also where it is good, because the number in it matters.
ALWAYS_SHOWN = (COUNT_TOPIC, ": exact_rows", ": exact_units")
# An expected error above this share of the rows makes even a plain count of little use.
WEAK_COUNT = 0.1


@take_groups
def check(
    codebook: CodebookPath,
    *,
    values: Annotated[
        bool, typer.Option("--values", help="Also count what cannot be read; exact, so for the data's owner only.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Also say what is good, and why.")] = False,
    output: OutputOptions,
) -> None:
    """Is the codebook right, and are its choices wise?

    It is compared with the schema of the data; no value is read without --values. Exit code 2 if something is wrong.
    """
    from discreet.codebook import Codebook
    from discreet.codebook.check_lines import Grade
    from discreet.codebook.checklist import make_checklist

    book = Codebook.load(codebook)
    lines = [*make_checklist(book, _read_schemas(book)), *_check_counts(book)]
    if values and not any(line.grade is Grade.WRONG for line in lines):
        lines += _check_values(book)
    place = shlex.quote(str(codebook))
    lines = [replace(line, fix=line.fix.replace("CODEBOOK", place)) for line in lines]
    shown = CheckReport(book, place, tuple(lines), values=values, every=every)
    output.print(_make_printout(shown))
    if shown.count(Grade.WRONG):
        raise typer.Exit(UsageError.exit_code)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The lines of a checklist, and what to type next."""

    book: Codebook
    place: str
    lines: tuple[CheckLine, ...]
    values: bool
    every: bool

    def count(self, grade: Grade) -> int:
        return sum(line.grade is grade for line in self.lines)


def _make_printout(report: CheckReport) -> Printout:
    from discreet.cli.rows import make_rows

    found = [
        {"mark": line.grade.name.lower(), "topic": line.topic, "finding": line.finding, "fix": line.fix}
        for line in report.lines
    ]
    return Printout(
        rows=lambda: make_rows(dict.fromkeys(("mark", "topic", "finding", "fix"), "text"), found),
        document=lambda: found,
        draw=lambda console: _draw(console, report),
    )


def _draw(console: Console, report: CheckReport) -> None:
    """What is weak or wrong on one screen, and what to type; what is good by its topics only."""
    from discreet.cli import printing
    from discreet.codebook.check_lines import Grade

    printing.print_heading(console, f"Checklist of {report.book.name}")
    good = [line for line in report.lines if line.grade is Grade.GOOD]
    counts = [line for line in good if line.topic.endswith(ALWAYS_SHOWN)]
    rest = [line for line in report.lines if line.grade is not Grade.GOOD]
    printing.print_checks(console, report.lines if report.every else [*rest, *counts])
    topics = ", ".join(dict.fromkeys(line.topic for line in good if line not in counts))
    if topics and not report.every:
        console.print(f"{Grade.GOOD} good: {topics}", markup=False, highlight=False)
    console.print(
        f"{len(good)} good, {report.count(Grade.WEAK)} to think about, {report.count(Grade.WRONG)} wrong"
        + ("" if report.every else "; --all says why"),
        markup=False,
        highlight=False,
    )
    for line in _list_next(report):
        console.out(line, highlight=False)


def _list_next(report: CheckReport) -> Iterator[str]:
    from discreet.codebook.check_lines import Grade

    if report.count(Grade.WRONG):
        yield f"Next: mend what is wrong, then discreet check {report.place}"
        return
    if not report.values and any(source.kind == "csv" for source in report.book.sources.values()):
        yield f"What of the values would be NULL: discreet check {report.place} --values"
    table = next(name for name, entry in report.book.document.tables.items() if not entry.public)
    question = shlex.quote(_write_count(table))
    yield f"Next: discreet preview {report.place} {question} --share {_find_share(report.book)}"


def _write_count(table: str) -> str:
    name = table if re.fullmatch("[a-z_][a-z0-9_]*", table) else '"' + table.replace('"', '""') + '"'
    return f"SELECT COUNT(*) AS n FROM {name}"  # noqa: S608  # a question, which the curator reads and bounds


def _find_share(book: Codebook) -> Fraction:
    """A tenth of the budget, or what one question may spend if that is less."""
    tenth, whole = Fraction(1, 10), book.budget.amount()
    if book.per_query is None:
        return tenth
    return min(tenth, book.per_query / (whole if isinstance(whole, Fraction) else Fraction(float_up(whole))))


def _check_counts(book: Codebook) -> Iterator[CheckLine]:
    """How far off a plain count of each private table would be, from public facts alone; nothing is opened or read."""
    from discreet.codebook.check_lines import CheckLine, Grade
    from discreet.curator import Curator
    from discreet.engines.memory.engine import MemoryEngine
    from discreet.ledger.memory import MemoryLedger
    from discreet.opening import terms_of

    catalog, share = book.catalog(), _find_share(book)
    engine = MemoryEngine({name: [] for name in catalog.tables}, catalog)
    curator = Curator(name=book.name, catalog=catalog, engine=engine, ledger=MemoryLedger.on(terms_of(book)))
    for name, entry in book.document.tables.items():
        if entry.public:
            continue
        topic = f"{name}{COUNT_TOPIC}"
        try:
            column, *_ = curator.preview(_write_count(name), share=share).columns
        except DiscreetError as error:
            yield CheckLine(Grade.WEAK, topic, f"cannot be priced: {error}")
            continue
        within = "" if column.error is None else f"{math.ceil(column.error):,} "
        said = f"COUNT(*) for {share} of the budget is within ± {within}rows, 95 times in 100"
        if entry.rows is None or column.error is None:
            fix = f"Write rows = 60_000, roughly, into [tables.{name}] if that is public: then shares are told."
            yield CheckLine(Grade.GOOD, topic, f"{said}.", fix)
            continue
        part = column.error / entry.rows
        finding = f"{said}: {part:.2g} of {entry.rows:,}." if part >= 1 else f"{said}: {part:.2%} of {entry.rows:,}."
        weak = part > WEAK_COUNT
        fix = "Allow fewer rows of one unit, or spend more on a question." if weak else ""
        yield CheckLine(Grade.WEAK if weak else Grade.GOOD, topic, finding, fix)


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
    """What questions will miss, by table, column and reason, with an example for the owner."""
    from discreet.codebook import owners
    from discreet.codebook.check_lines import CheckLine, Grade
    from discreet.engines.registry import count_unread

    facts, ways = book.catalog().tables, owners.find_ways(book.document)
    for table, source in book.sources.items():
        columns = facts[table].columns
        types = {name: kind for name, (kind, _) in columns.items()}
        lengths = {name: known.max_length for name, (_, known) in columns.items() if known.max_length is not None}
        way = ways.get(table)
        report = count_unread(source, table, types, lengths, None if way is None else way.owner)
        yield from _check_size(facts[table], report)
        if not any(not unread.meant for unread in report.unread):
            yield CheckLine(Grade.GOOD, f"values of {table}", f"All of {report.rows} rows can be read as declared.")
        for unread in report.unread:
            yield _make_line(table, unread)


def _make_line(table: str, unread: Unread) -> CheckLine:
    from discreet.codebook.check_lines import CheckLine, Grade

    topic = f"values of {table}" + (f".{unread.column}" if unread.column else "")
    example = "" if unread.example is None else f", such as {unread.example!r}"
    finding = f"{unread.count:,} {unread.reason}{example}."
    if unread.meant:
        return CheckLine(Grade.GOOD, topic, finding)
    words = "Questions leave them out" if unread.column is None else "Questions take them as missing"
    return CheckLine(Grade.WEAK, topic, finding, f"{words}. Mend the data or the codebook, or see: discreet import.")
