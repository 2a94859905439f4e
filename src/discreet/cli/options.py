"""What all commands of the shell share: options, exact numbers, the question's text, public tables, and printing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.errors import ParameterError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.curator import Curator

CodebookPath = Annotated[str, typer.Argument(metavar="CODEBOOK", help="The TOML file about the dataset.")]
Sql = Annotated[str, typer.Argument(metavar="SQL", help="The question; - reads it from standard input.")]
SqlFile = Annotated[Path | None, typer.Option("--file", help="Read the question from a file.")]
EpsilonOption = Annotated[str | None, typer.Option(help="The loss ε to spend.", metavar="ε")]
RhoOption = Annotated[str | None, typer.Option(help="The loss ρ to spend (zCDP).", metavar="ρ")]
ErrorOption = Annotated[
    list[str] | None, typer.Option(help="The error wanted for a column, such as n=12.", metavar="COLUMN=SIZE")
]
DeltaOption = Annotated[str | None, typer.Option(help="What naming groups from the data may cost.", metavar="δ")]
LevelOption = Annotated[str, typer.Option(help="The confidence of errors and intervals.")]
AnalystOption = Annotated[str | None, typer.Option(help="Who asks.")]
ProjectOption = Annotated[str | None, typer.Option(help="For which project, where the codebook has any.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
BoundsOption = Annotated[
    str | None, typer.Option("--bounds", help="auto: buy missing bounds with half of the offer.", metavar="auto")
]
PublicOption = Annotated[
    list[str] | None,
    typer.Option(help="A public table for the question: a .csv, .parquet or answer (.json) file.", metavar="NAME=FILE"),
]


def make_console(*, stderr: bool = False) -> Console:
    """Where to print for eyes."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


def print_json(value: Any) -> None:
    """Print for programs."""
    from discreet.cli.printing import to_json_value

    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=to_json_value))


def open_curator(codebook: str) -> Curator:
    """The curator of a codebook."""
    from discreet.opening import open_codebook

    return open_codebook(codebook)


def note_forgetful(curator: Curator) -> None:
    """Say so where the ledger ends with this command: a budget that is forgotten protects nobody."""
    from discreet.ledger.memory import MemoryLedger

    if isinstance(curator.ledger, MemoryLedger):
        typer.echo("Note: this ledger is in memory and forgets its charges when the command ends.", err=True)


def read_question(sql: str, file: Path | None) -> str:
    """The SQL text, from the one place where it was given."""
    if (file is not None) == bool(sql):
        raise UsageError(
            "Give the question once: as SQL, as - for standard input, or with --file. Nothing was charged."
        )
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} cannot be read. Nothing was charged.") from error
    return sys.stdin.read() if sql == "-" else sql


def read_offer(
    asked: str,
    *,
    epsilon: str | None,
    rho: str | None,
    delta: str | None,
    level: str,
    analyst: str | None,
    project: str | None = None,
    error: list[str] | None = None,
    public: list[str] | None = None,
    bounds: str | None = None,
) -> dict[str, Any]:
    """What the analyst offers, as exact numbers. A question in the GoogleSQL form may say it by itself."""
    forms = sum(form is not None for form in (epsilon, rho, error or None))
    if forms > 1 or (not forms and "DIFFERENTIAL_PRIVACY" not in asked.upper()):
        raise UsageError("Say what it may cost: --epsilon 0.5, --rho 0.01, or --error n=12. Nothing was charged.")
    said: dict[str, Any] = {"level": read_number(level, "--level")}
    if epsilon is not None:
        said["epsilon"] = read_number(epsilon, "--epsilon")
    if rho is not None:
        said["rho"] = read_number(rho, "--rho")
    if delta is not None:
        said["delta"] = read_number(delta, "--delta")
    if error:
        said["error"] = dict(_read_error(pair) for pair in error)
    if bounds is not None:
        said["bounds"] = bounds
    if public:
        said["public"] = dict(_read_public_table(pair) for pair in public)
    who = {"analyst": analyst, "project": project}
    return said | {word: name for word, name in who.items() if name is not None}


def _read_public_table(pair: str) -> tuple[str, Any]:
    """A public table by name: an answer as ``discreet ask --json`` prints it, or a file of rows."""
    name, equals, file = pair.partition("=")
    if not equals or not name.strip() or not file.strip():
        raise UsageError("--public takes a name and a file, such as --public wards=wards.csv. Nothing was charged.")
    import pyarrow as pa

    path = Path(file.strip())
    try:
        if path.suffix == ".json":
            rows = json.loads(path.read_text(encoding="utf-8"))
            return name.strip(), pa.Table.from_pylist(rows["rows"] if isinstance(rows, dict) else rows)
        if path.suffix in (".parquet", ".pq"):
            from pyarrow import parquet

            return name.strip(), parquet.read_table(path)
        from pyarrow import csv

        return name.strip(), csv.read_csv(path)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise UsageError(f"{path} cannot be read as a table of rows. Nothing was charged.") from error


def _read_error(pair: str) -> tuple[str, Any]:
    column, equals, size = pair.rpartition("=")
    if not equals or not column.strip():
        raise UsageError("--error takes a column and a size, such as --error n=12. Nothing was charged.")
    return column.strip(), read_number(size, "--error")


def read_number(text: str, name: str) -> Any:
    """A number exactly as it was typed."""
    from decimal import Decimal, InvalidOperation

    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise ParameterError(name, "must be a number", "Write it like 0.5 or 1e-6. Nothing was charged.")
    return value
