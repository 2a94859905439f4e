"""The same doors from the shell: read the words, call the curator, print.

Nothing heavy is imported until a command needs it, so that ``discreet --help`` is quick. Errors become one message on
standard error and an exit code by their root: 2 you asked wrongly, 3 privacy forbids it, 4 our bug.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import attack, audit, batch, ledger, local
from discreet.cli import bounds as cli_bounds
from discreet.cli.options import (
    AnalystOption,
    BoundsOption,
    CodebookPath,
    DeltaOption,
    EpsilonOption,
    ErrorOption,
    JsonOption,
    LevelOption,
    ProjectOption,
    PublicOption,
    RhoOption,
    Sql,
    SqlFile,
    make_console,
    note_forgetful,
    open_curator,
    print_json,
    read_number,
    read_offer,
    read_question,
)
from discreet.errors import DiscreetError, ParameterError, UsageError

if TYPE_CHECKING:
    from discreet.codebook import Codebook
    from discreet.codebook.check_lines import CheckLine
    from discreet.curator import Curator
    from discreet.plan.types import Type

app = typer.Typer(
    name="discreet",
    help="Ask private data, within a budget.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line and leave with the right exit code."""
    try:
        app(prog_name="discreet")
    except DiscreetError as error:
        _fail(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader has gone. Python would complain again when it flushes at exit, so that is sent nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _fail(error: DiscreetError) -> None:
    if "--json" in sys.argv:
        print_json({"error": {"code": error.code, "message": str(error)}})
        return
    from discreet.cli import printing

    printing.print_error(make_console(stderr=True), str(error), error.code)


def _print_version(value: bool) -> None:  # noqa: FBT001  # typer's shape of a callback
    if value:
        from discreet import __version__

        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Ask private data, within a budget."""


@app.command()
def init(
    data: Annotated[list[str], typer.Argument(metavar="DATA...", help="Files: .parquet, .csv or .duckdb.")],
    *,
    out: Annotated[Path | None, typer.Option(help="Where to write the codebook; beside the data if not said.")] = None,
    unit: Annotated[str | None, typer.Option(help="Who is protected: a column, or row.")] = None,
    max_rows: Annotated[int | None, typer.Option(help="How many rows of one unit may count.", min=1)] = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; leave blanks for what is not said.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a first codebook from the schema alone.

    Of the data only names and types are read, no value. What they cannot tell is asked, or left blank with --yes.
    """
    from discreet.codebook.draft import Choices, draft, inspect

    found = inspect(*data)
    target = out or Path(data[0].partition("*")[0]).with_suffix("").with_suffix(".toml")
    if target.exists():
        raise UsageError(f"{target} exists. Remove it or give another --out. Nothing was written or charged.")
    numbers = {"epsilon": epsilon, "delta": delta, "rho": rho}
    for name, text in numbers.items():
        if text is not None:
            read_number(text, name)
    choices = Choices(unit=unit, max_rows=None if max_rows is None else str(max_rows), **numbers)
    if not yes and sys.stdin.isatty() and not as_json:
        choices = _ask_choices(choices, found.likely, found.units)
    target.write_text(draft(found, choices, target.parent), encoding="utf-8")
    blanks = _list_blanks(choices)
    if as_json:
        print_json({"codebook": str(target), "tables": {t: dict(s) for t, s in found.tables.items()}, "blank": blanks})
        return
    typer.echo(f"Wrote {target} from the schema; no value was read.")
    if not found.typed:
        typer.echo("A CSV file has no types and only its header was read: mend the types, all are text now.")
    if blanks:
        typer.echo(f"Fill in: {', '.join(blanks)}.")
    typer.echo(f"Next: discreet check {target}")


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


@app.command()
def check(codebook: CodebookPath, *, as_json: JsonOption = False) -> None:
    """Is the codebook right, and are its choices wise?

    It is compared with the schema of the data; no value is read. Exit code 2 if something is wrong.
    """
    from discreet.codebook import Codebook
    from discreet.codebook.check_lines import Grade
    from discreet.codebook.checklist import make_checklist

    book = Codebook.load(codebook)
    lines = make_checklist(book, _read_schemas(book))
    if as_json:
        print_json(
            [
                {"mark": line.grade.name.lower(), "topic": line.topic, "finding": line.finding, "fix": line.fix}
                for line in lines
            ]
        )
    else:
        _show_checks(book.name, lines)
    if any(line.grade is Grade.WRONG for line in lines):
        raise typer.Exit(UsageError.exit_code)


def _show_checks(name: str, lines: Sequence[CheckLine]) -> None:
    from discreet.cli import printing
    from discreet.codebook.check_lines import Grade

    out = make_console()
    printing.print_heading(out, f"Checklist of {name}")
    printing.print_checks(out, lines)
    counts = {mark: sum(line.grade is mark for line in lines) for mark in Grade}
    out.print(f"{counts[Grade.GOOD]} good, {counts[Grade.WEAK]} to think about, {counts[Grade.WRONG]} wrong")


@app.command()
def preview(
    codebook: CodebookPath,
    sql: Sql = "",
    *,
    file: SqlFile = None,
    epsilon: EpsilonOption = None,
    rho: RhoOption = None,
    error: ErrorOption = None,
    delta: DeltaOption = None,
    level: LevelOption = "0.95",
    public: PublicOption = None,
    bounds: BoundsOption = None,
    analyst: AnalystOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what an answer would cost and how wrong it would be.

    Free: computed from public facts, no data is read, nothing is charged.
    """
    asked = read_question(sql, file)
    offered = read_offer(
        asked,
        epsilon=epsilon,
        rho=rho,
        error=error,
        delta=delta,
        level=level,
        analyst=analyst,
        project=project,
        public=public,
        bounds=bounds,
    )
    with open_curator(codebook) as curator:
        shown = curator.preview(asked, **offered)
        if as_json:
            print_json(shown.to_dict())
            return
        from discreet.bound_search import AutomaticPreview
        from discreet.cli import printing

        if isinstance(shown, AutomaticPreview):
            typer.echo(str(shown))
        else:
            printing.print_preview(make_console(), shown)


@app.command()
def ask(
    codebook: CodebookPath,
    sql: Sql = "",
    *,
    file: SqlFile = None,
    epsilon: EpsilonOption = None,
    rho: RhoOption = None,
    error: ErrorOption = None,
    delta: DeltaOption = None,
    level: LevelOption = "0.95",
    public: PublicOption = None,
    bounds: BoundsOption = None,
    analyst: AnalystOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question, and charge the budget for it.

    Say what it may cost (--epsilon, --rho) or how exact it must be (--error). Asking the same again is free.
    """
    asked = read_question(sql, file)
    offered = read_offer(
        asked,
        epsilon=epsilon,
        rho=rho,
        error=error,
        delta=delta,
        level=level,
        analyst=analyst,
        project=project,
        public=public,
        bounds=bounds,
    )
    with open_curator(codebook) as curator:
        given = _ask_with_progress(curator, asked, offered)
        note_forgetful(curator)
        if as_json:
            print_json(
                {
                    "rows": given.table.to_pylist(),
                    "receipt": dict(given.receipt),
                    "remaining": given.remaining,
                    "replayed": given.replayed,
                }
            )
            return
        from discreet.cli import printing

        printing.print_answer(make_console(), given)


def _ask_with_progress(curator: Curator, asked: str, offered: Mapping[str, Any]) -> Any:
    """Ask, with a bar on standard error where somebody may be watching."""
    out = make_console(stderr=True)
    if not out.is_terminal:
        return curator.ask(asked, **offered)
    from rich.progress import Progress

    with Progress(console=out, transient=True) as progress:
        task = progress.add_task("asking", total=1.0)
        return curator.ask(asked, watch=lambda share: progress.update(task, completed=share), **offered)


@app.command()
def explain(codebook: CodebookPath, sql: Sql = "", *, file: SqlFile = None, as_json: JsonOption = False) -> None:
    """Show the plan of a question, its limits and its noise."""
    with open_curator(codebook) as curator:
        text = curator.explain(read_question(sql, file))
    if as_json:
        print_json({"explanation": text})
    else:
        typer.echo(text)


@app.command()
def budget(codebook: CodebookPath, *, as_json: JsonOption = False) -> None:
    """Show what is left, and every charge so far."""
    from discreet.codebook import Codebook
    from discreet.codebook.checklist import find_worst_odds
    from discreet.exact import float_down, float_up

    odds = find_worst_odds(Codebook.load(codebook)).sentence()
    with open_curator(codebook) as curator:
        left, whole = float_down(curator.ledger.remaining), float_up(curator.budget.amount())
        entries = curator.history()
        note_forgetful(curator)
        if as_json:
            charges = [
                {
                    "number": entry.number,
                    "analyst": entry.charge.analyst,
                    "question": entry.charge.question,
                    "cost": curator.budget.describe_loss(entry.charge.loss),
                    "answered": entry.answered,
                }
                for entry in entries
            ]
            print_json({"left": left, "whole": whole, "words": curator.remaining, "odds": odds, "charges": charges})
            return
        from discreet.cli import printing

        printing.print_budget(make_console(), curator, odds)


@app.command()
def demo(
    *,
    folder: Annotated[Path, typer.Option(help="Where to put the fictional data.")] = Path("demo"),
    as_json: JsonOption = False,
) -> None:
    """Make fictional data and show how it all works.

    A preview, an answer, a refusal and the budget of a hospital that does not exist.
    """
    from discreet import demo as hospital
    from discreet.cli import demo_steps

    path = hospital.write(folder)
    with open_curator(str(path)) as curator:
        if as_json:
            print_json(demo_steps.run_as_record(path, curator))
        else:
            demo_steps.run(make_console(), path, curator)


def _read_schemas(book: Codebook) -> dict[str, Mapping[str, Type | None] | str]:
    """What each table's source really has, or why it cannot be opened."""
    from discreet.engines.duckdb.engine import DuckDBEngine
    from discreet.plan.catalog import Catalog

    # An engine that declares nothing, because what is declared is what is being checked.
    nothing = Catalog(tables={}, neighbours=book.neighbours)
    found: dict[str, Mapping[str, Type | None] | str] = {}
    for table, source in book.sources.items():
        try:
            engine = DuckDBEngine({table: source}, nothing)
            found[table] = engine.schema(table)
            engine.close()
        except DiscreetError as error:
            found[table] = str(error).removesuffix(" Nothing was charged.")
    return found


app.command()(batch.batch)
app.command()(cli_bounds.bounds)
app.command()(audit.audit)
app.command()(attack.attack)
app.add_typer(ledger.app)
app.add_typer(local.app)

if __name__ == "__main__":
    main()
