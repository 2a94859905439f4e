"""``discreet import``: a file as checked, typed Parquet, and what of it could not be read."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.option_groups import leave_out, take_groups
from discreet.cli.output import OutputOptions, Printout
from discreet.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.engines.unread import ValueReport
    from discreet.plan.types import Type


@take_groups
def import_file(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="CSV in any form, JSON lines, SQLite, Arrow, or a folder of Parquet files."
        ),
    ],
    *,
    out: Annotated[Path, typer.Option(help="The Parquet file to write; a new one.")],
    types: Annotated[
        list[str] | None,
        typer.Option("--type", help="What a column holds, such as age=integer.", metavar="COLUMN=TYPE"),
    ] = None,
    codebook: Annotated[Path | None, typer.Option(help="Take the types of a table from a codebook.")] = None,
    table: Annotated[
        str | None, typer.Option(help="Which table of a SQLite file, or of the codebook, if it has several.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a CSV file: utf-8 or latin-1.")] = None,
    propose: Annotated[
        bool, typer.Option("--types", help="Give columns of CSV the types that their values show.")
    ] = False,
    output: Annotated[OutputOptions, leave_out("out")],
) -> None:
    """Write a file as typed Parquet.

    Says what could not be read, by column and reason. The counts are exact: they are for the owner of the data only.
    """
    from discreet.engines import registry
    from discreet.plan.conversions import advise_conversion
    from discreet.plan.csv_form import CsvEncoding

    declared = {**_read_codebook(codebook, table), **dict(_read_type(text) for text in types or [])}
    advice = advise_conversion(file)
    if "://" in file:
        raise UsageError(f"{file} is not a local file. {advice} Nothing was charged.")
    if encoding is not None and encoding not in set(CsvEncoding):
        raise UsageError(f"--encoding is one of {', '.join(CsvEncoding)}. Nothing was written or charged.")
    known = None if encoding is None else CsvEncoding(encoding)
    report = registry.import_file(Path(file), out, declared, table=table, encoding=known, propose=propose)
    output.print(_make_printout(out, report))


def _read_codebook(codebook: Path | None, table: str | None) -> dict[str, Type]:
    from discreet.codebook import Codebook

    if codebook is None:
        return {}
    tables = Codebook.load(codebook).catalog().tables
    name = table or next(iter(tables))
    if name not in tables or (table is None and len(tables) > 1):
        raise UsageError(f"Give --table with one of {', '.join(tables)}. Nothing was written or charged.")
    return {column: kind for column, (kind, _) in tables[name].columns.items()}


def _read_type(text: str) -> tuple[str, Type]:
    from discreet.plan.types import Type

    name, _, kind = text.rpartition("=")
    if not name or kind not in set(Type):
        raise UsageError(
            f"--type {text!r} is not COLUMN=TYPE, with one of {', '.join(Type)}. Nothing was written or charged."
        )
    return name, Type(kind)


def _make_printout(out: Path, report: ValueReport) -> Printout:
    from discreet.cli.rows import make_rows

    found = [
        {"column": unread.column, "reason": unread.reason, "count": unread.count, "example": unread.example}
        for unread in report.unread
    ]
    note = f"Wrote {report.rows} rows to {out}."

    def draw(console: Console) -> None:
        lines = [
            f"{unread.column or 'the file'}: {unread.count:,} {unread.reason}"
            + ("" if unread.example is None else f", such as {unread.example!r}")
            for unread in report.unread
        ]
        lines = (
            ["Could not be read (exact, not for others to see):", *lines] if lines else ["Everything could be read."]
        )
        lines.append(f"Next: discreet init {shlex.quote(str(out))}")
        console.out("\n".join([note, *lines]), highlight=False)

    return Printout(
        rows=lambda: make_rows({"column": "text", "reason": "text", "count": "integer", "example": "text"}, found),
        document=lambda: {"rows": report.rows, "out": str(out), "unread": found},
        draw=draw,
        note=note,
    )
