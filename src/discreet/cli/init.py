"""``discreet init``: a first codebook from the schema of the data, and questions about what only a person knows.

With the owner's leave it also reads the values of CSV files, to propose types and to say what would be NULL.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.option_groups import leave_out, take_groups
from discreet.cli.options import DeltaOption, EpsilonOption, RhoOption, read_number
from discreet.cli.output import OutputOptions, Printout, write_file
from discreet.entropy import SYSTEM
from discreet.errors import ParameterError, UsageError
from discreet.late_dataclass import dataclass

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.codebook.data_files import DataFiles
    from discreet.codebook.redraft import Redraft
    from discreet.engines.unread import Unread
    from discreet.plan.csv_form import CsvForm


@take_groups
def init(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="Files or patterns in quotes (.csv, .csv.gz, .parquet, .duckdb), or postgres:SCHEMA.TABLE, "
            "spark:CATALOG.SCHEMA.TABLE.",
        ),
    ],
    *,
    out: Annotated[Path | None, typer.Option(help="Where to write the codebook; beside the data if not said.")] = None,
    unit: Annotated[str | None, typer.Option(help="Who is protected: a column, or row.")] = None,
    max_rows: Annotated[int | None, typer.Option(help="How many rows of one unit may count.", min=1)] = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    types: Annotated[
        bool | None,
        typer.Option("--types/--no-types", help="Read the values of CSV files to propose types; for their owner only."),
    ] = None,
    header: Annotated[
        bool, typer.Option("--header", help="The first line of a CSV file has names, whatever they look like.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; leave blanks for what is not said.")] = False,
    output: Annotated[OutputOptions, leave_out("out")],
) -> None:
    """Write a first codebook, or add to the one that is there.

    Of the data only names and types are read, no value, unless --types gives leave. What they cannot tell is asked, or
    left blank with --yes. Asking again keeps what was edited.
    """
    from discreet.codebook.draft import Choices, draft
    from discreet.codebook.redraft import redraft

    bare = _inspect(data, header=header)
    target = out or _place_beside(data[0])
    old = _read_old(target)
    numbers = {"epsilon": epsilon, "delta": delta, "rho": rho}
    for name, text in numbers.items():
        if text is not None:
            read_number(text, name)
    ledger_id = str(uuid.UUID(int=SYSTEM.bits(128), version=4))
    choices = Choices(ledger_id=ledger_id, unit=unit, max_rows=None if max_rows is None else str(max_rows), **numbers)
    asks = not yes and sys.stdin.isatty() and output.for_eyes
    if types is None and asks and bare.untyped:
        types = _ask_leave(bare)
    found, unread, doubtful = _propose(bare) if types else (bare, (), ())
    if asks and old is None:
        choices = _ask_choices(choices, found.likely, found.units)
    anew = None if old is None else redraft(old, bare, found, choices, target.parent)
    text = draft(found, choices, target.parent) if anew is None else anew.text
    write_file(target, text)
    output.print(_make_printout(InitReport(target, data, found, unread, doubtful, anew, text)))


def _inspect(data: Sequence[str], *, header: bool) -> DataFiles:
    """The tables of files and of databases, by their schemas alone."""
    from discreet.codebook.data_files import inspect
    from discreet.plan.source_kinds import split_stored

    stored = [named for text in data if (named := split_stored(text)) is not None]
    found = inspect(*(text for text in data if split_stored(text) is None), header=header)
    if stored:
        from discreet.engines.registry import find_stored_tables

        for kind, name in stored:
            found = found.add_stored(find_stored_tables(kind, name))
    return found


@dataclass(frozen=True, slots=True)
class InitReport:
    """What was written, for the owner: exact counts and examples are among it."""

    target: Path
    data: Sequence[str]
    found: DataFiles
    unread: Sequence[tuple[str, Unread]]
    doubtful: Sequence[str]
    anew: Redraft | None
    text: str

    @property
    def blanks(self) -> list[str]:
        """The words that the codebook leaves blank, in the order in which they are asked."""
        blank = re.findall(r'^(unit|epsilon|max_rows) = "\?"', self.text, re.MULTILINE)
        return [word for word in ("unit", "max_rows", "epsilon") if word in blank]

    @property
    def untyped(self) -> bool:
        """Whether columns of the codebook are text only because nobody has said more."""
        from discreet.codebook.draft import TYPES_NOTE

        return f"{TYPES_NOTE}only the header" in self.text

    @property
    def declared(self) -> Mapping[str, Mapping[str, Any]]:
        """The columns that the codebook declares, by table."""
        tables = tomllib.loads(self.text)["tables"]
        return {name: table.get("columns", {}) for name, table in tables.items()}

    def list_lines(self) -> Iterator[str]:
        yield self._describe_file()
        for table in self.found.tables:
            yield from self._describe_table(table)
        if self.untyped:
            yield (
                "A CSV file has no types and only its header was read: all columns are text. With --types the values "
                "are read, too; they stay on this computer."
            )
        if self.found.proposed:
            yield "Types were proposed from the values; no value is in the codebook."
        yield from self._describe_unread()
        for name in self.doubtful:
            yield f'{name}: day or month first? Write dates = "dmy" or "mdy" into its source, and its type: date.'
        from discreet.codebook.data_files import find_folder_columns, find_parts

        for table, (column, folder) in find_folder_columns(self.found).items():
            yield f"{table}: the names of folders are no column here. If {column} should be one, convert them first:"
            yield f"  discreet import {shlex.quote(folder)} --types --out {shlex.quote(folder.rstrip('/'))}.parquet"
        if (pattern := find_parts(self.data, self.found)) is not None:
            yield "These files have the same columns. If they are parts of one table, give them as one pattern:"
            yield f"  discreet init {shlex.quote(pattern)}"
        if self.blanks or self.untyped:
            likely = f" The unit may be {' or '.join(self.found.likely[:3])}." if self.found.likely else ""
            if self.blanks:
                yield f"Fill in: {', '.join(self.blanks)}.{likely if 'unit' in self.blanks else ''}"
            yield f"Next: {self._write_command(*self._list_options())}"
        else:
            yield f"Next: discreet check {shlex.quote(str(self.target))}"

    def _describe_file(self) -> str:
        read = "" if self.found.proposed else "; no value was read"
        if self.anew is None:
            return f"Wrote {self.target} from the schema{read}."
        changed = [
            *([f"added {', '.join(self.anew.added)}"] if self.anew.added else []),
            *([f"filled in {', '.join(self.anew.filled)}"] if self.anew.filled else []),
            *([f"wrote the types of {_join(self.anew.typed)}"] if self.anew.typed else []),
            *([f"not taken, because it was edited: {', '.join(self.anew.kept)}"] if self.anew.kept else []),
            *([f"kept, but gone from the data: {', '.join(self.anew.gone)}"] if self.anew.gone else []),
        ]
        return f"{self.target} was there, and edited lines stay: {'; '.join(changed) or 'nothing to add'}."

    def _describe_table(self, table: str) -> Iterator[str]:
        declared = self.declared.get(table, {}).values()
        counts = Counter(str(column["type"] if isinstance(column, Mapping) else column) for column in declared)
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
        form = self.found.sources[table].form
        yield f"  {table}: {len(declared)} columns ({kinds})" + ("" if form is None else _describe_form(form))
        for name in sorted(self.found.unnamed.get(table, ())):
            yield f"  {table}.{name} has no name in the header, as row numbers of pandas: not declared."

    def _describe_unread(self) -> Iterator[str]:
        lost = [(place, unread) for place, unread in self.unread if not unread.meant]
        meant = [place for place, unread in self.unread if unread.meant]
        if lost:
            yield "What questions would miss (exact, for the owner of the data only):"
        for place, unread in lost:
            example = "" if unread.example is None else f", such as {unread.example!r}"
            yield f"  {place}: {unread.count:,} {unread.reason}{example}"
        if meant:
            yield f"Written as missing (NA and the like) in {_join(meant)}."

    def _list_options(self) -> Iterator[str]:
        """The options that fill in what is blank."""
        if self.untyped:
            yield "--types"
        examples = {"unit": next(iter(self.found.likely), "row"), "max_rows": "10", "epsilon": "1"}
        by_row = examples["unit"] == "row" and "unit" in self.blanks
        for name in self.blanks:
            if not (by_row and name == "max_rows"):
                yield f"--{name.replace('_', '-')} {shlex.quote(examples[name])}"

    def _write_command(self, *options: str) -> str:
        files = [shlex.quote(file) for file in self.data]
        usual = self.target == _place_beside(self.data[0])
        return " ".join(
            ["discreet init", *files, *([] if usual else [f"--out {shlex.quote(str(self.target))}"]), *options]
        )


def _make_printout(report: InitReport) -> Printout:
    from discreet.cli.rows import make_rows

    tables = {table: dict(schema) for table, schema in report.found.tables.items()}
    columns = [{"table": t, "column": c, "type": kind} for t, schema in tables.items() for c, kind in schema.items()]
    unread = [
        {"place": place, "reason": u.reason, "count": u.count, "example": u.example} for place, u in report.unread
    ]
    anew = report.anew
    return Printout(
        rows=lambda: make_rows({"table": "text", "column": "text", "type": "text"}, columns),
        document=lambda: {
            "codebook": str(report.target),
            "tables": tables,
            "blank": report.blanks,
            "unread": unread,
            "added": [] if anew is None else anew.added,
            "gone": [] if anew is None else anew.gone,
        },
        draw=lambda console: _draw(console, report),
        note=f"Wrote {report.target}." + (f" Fill in: {', '.join(report.blanks)}." if report.blanks else ""),
    )


def _draw(console: Console, report: InitReport) -> None:
    """Sentences fit the width; a command stays on its line, so that it can be copied."""
    for line in report.list_lines():
        if "discreet " in line:
            console.out(line, highlight=False)
        else:
            console.print(line, markup=False, highlight=False)


def _describe_form(form: CsvForm) -> str:
    from discreet.plan.csv_form import CsvEncoding, DateOrder

    words = [
        "" if form.delimiter == "," else f"separated by {form.delimiter!r}",
        "" if form.encoding is CsvEncoding.UTF8 else f"in {form.encoding}",
        "" if form.decimal == "." else f"decimal sign {form.decimal!r}",
        "" if not form.thousands else f"thousands as in 1{form.thousands}000",
        "" if form.dates is DateOrder.YMD else f"dates {form.dates}",
    ]
    return "".join(f", {word}" for word in words if word)


def _join(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _place_beside(data: str) -> Path:
    """Where the codebook of some data is put: beside it, under its name; beside the folders of a pattern.

    That of tables of a database is put here, under the name of their schema.
    """
    from discreet.codebook.data_files import name_table
    from discreet.plan.source_kinds import split_stored

    stored = split_stored(data)
    if stored is not None:
        return Path(f"{name_table(stored[1])}.toml")
    file = Path(data)
    if not re.search(r"[*?\[]", data):
        return file.with_name(file.name.partition(".")[0] + ".toml")
    while re.search(r"[*?\[]", str(file)):
        file = file.parent
    return file / f"{name_table(data)}.toml"


def _read_old(target: Path) -> str | None:
    """The codebook that is there; None where there is none."""
    if not target.exists():
        return None
    try:
        return target.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{target} is there and cannot be read. Give another --out. Nothing was written.") from None


def _ask_leave(found: DataFiles) -> bool:
    tables = ", ".join(found.untyped)
    text = f"May the values of {tables} be read to propose types? They stay on this computer"
    return typer.confirm(text, default=False)


def _propose(bare: DataFiles) -> tuple[DataFiles, Sequence[tuple[str, Unread]], Sequence[str]]:
    """The files with the types that their values show, what questions would then miss, and dates in doubt."""
    from discreet.engines import registry

    found = bare
    unread: list[tuple[str, Unread]] = []
    doubtful: list[str] = []
    for table in bare.untyped:
        proposal = registry.propose_types(bare.sources[table], table)
        found = found.propose(table, proposal.form, proposal.types)
        report = registry.count_unread(found.sources[table], table, proposal.types, {})
        unread += [(f"{table}.{u.column}" if u.column else table, u) for u in report.unread]
        doubtful += [f"{table}.{name}" for name in proposal.doubtful]
    return found, unread, doubtful


def _ask_choices(choices: Any, columns: Sequence[str], units: Sequence[str]) -> Any:
    """What only a person knows, asked one by one; an empty line leaves a blank."""
    from dataclasses import replace

    if columns:
        typer.echo("Likely columns: " + ", ".join(columns[:8]))
    if choices.unit is None:
        text = "Who is protected? A column that says whose row it is, or row"
        choices = replace(choices, unit=_prompt(text, [*units, "row"]))
    if choices.max_rows is None and choices.unit not in (None, "row"):
        choices = replace(choices, max_rows=_prompt(f"How many rows of one {choices.unit} may count in a question?"))
    if choices.epsilon is None and choices.rho is None:
        choices = replace(choices, epsilon=_prompt("What may be spent in all? ε (1 turns a 50:50 guess into 73:27)"))
        if choices.delta is None and choices.epsilon is not None:
            choices = replace(choices, delta=_prompt("And δ? Far below one over the number of people, or nothing"))
    return choices


def _prompt(text: str, known: Sequence[str] | None = None) -> str | None:
    """One answer: one of the known words, or a number; None for an empty line."""
    while True:
        said = str(typer.prompt(text, default="", show_default=False)).strip()
        if not said:
            return None
        if known is None:
            try:
                read_number(said, "answer")
            except ParameterError as error:
                typer.echo(str(error))
                continue
            return said
        if said in known:
            return said
        from discreet.codebook.entries import did_you_mean

        typer.echo(did_you_mean(said, known))
