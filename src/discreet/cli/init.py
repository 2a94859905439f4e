"""``discreet init``: a first codebook from the schema of the data, and questions about what only a person knows."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.option_groups import leave_out, take_groups
from discreet.cli.options import DeltaOption, EpsilonOption, RhoOption, read_number
from discreet.cli.output import OutputOptions, Printout, write_file
from discreet.entropy import SYSTEM
from discreet.errors import ParameterError, UsageError

if TYPE_CHECKING:
    from rich.console import Console


@take_groups
def init(
    data: Annotated[list[str], typer.Argument(metavar="DATA...", help="Files: .parquet, .csv or .duckdb.")],
    *,
    out: Annotated[Path | None, typer.Option(help="Where to write the codebook; beside the data if not said.")] = None,
    unit: Annotated[str | None, typer.Option(help="Who is protected: a column, or row.")] = None,
    max_rows: Annotated[int | None, typer.Option(help="How many rows of one unit may count.", min=1)] = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    header: Annotated[
        bool, typer.Option("--header", help="The first line of a CSV file has names, whatever they look like.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; leave blanks for what is not said.")] = False,
    output: Annotated[OutputOptions, leave_out("out")],
) -> None:
    """Write a first codebook from the schema alone.

    Of the data only names and types are read, no value. What they cannot tell is asked, or left blank with --yes.
    """
    from discreet.codebook.draft import Choices, draft, inspect

    found = inspect(*data, header=header)
    target = out or Path(data[0].partition("*")[0]).with_suffix("").with_suffix(".toml")
    if target.exists():
        raise UsageError(f"{target} exists. Remove it or give another --out. Nothing was written or charged.")
    numbers = {"epsilon": epsilon, "delta": delta, "rho": rho}
    for name, text in numbers.items():
        if text is not None:
            read_number(text, name)
    ledger_id = str(uuid.UUID(int=SYSTEM.bits(128), version=4))
    choices = Choices(ledger_id=ledger_id, unit=unit, max_rows=None if max_rows is None else str(max_rows), **numbers)
    if not yes and sys.stdin.isatty() and output.for_eyes:
        choices = _ask_choices(choices, found.likely, found.units)
    write_file(target, draft(found, choices, target.parent))
    output.print(_make_printout(target, found, _list_blanks(choices)))


def _make_printout(target: Path, found: Any, blanks: Sequence[str]) -> Printout:
    from discreet.cli.rows import make_rows

    tables = {table: dict(schema) for table, schema in found.tables.items()}
    columns = [{"table": t, "column": c, "type": kind} for t, schema in tables.items() for c, kind in schema.items()]

    def draw(console: Console) -> None:
        lines = [f"Wrote {target} from the schema; no value was read."]
        if not found.typed:
            lines.append("A CSV file has no types and only its header was read: mend the types, all are text now.")
        if blanks:
            lines.append(f"Fill in: {', '.join(blanks)}.")
        lines.append(f"Next: discreet check {target}")
        console.out("\n".join(lines), highlight=False)

    return Printout(
        rows=lambda: make_rows({"table": "text", "column": "text", "type": "text"}, columns),
        document=lambda: {"codebook": str(target), "tables": tables, "blank": blanks},
        draw=draw,
        note=f"Wrote {target}." + (f" Fill in: {', '.join(blanks)}." if blanks else ""),
    )


def _ask_choices(choices: Any, columns: Sequence[str], units: Sequence[str]) -> Any:
    """What only a person knows, asked one by one; an empty line leaves a blank."""
    from dataclasses import replace

    typer.echo("Columns: " + ", ".join(columns))
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


def _list_blanks(choices: Any) -> list[str]:
    wanted = {
        "unit": choices.unit,
        "max_rows": "1" if choices.unit == "row" else choices.max_rows,
        "epsilon": choices.epsilon or choices.rho,
    }
    return [name for name, value in wanted.items() if value is None]
