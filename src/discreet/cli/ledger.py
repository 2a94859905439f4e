"""``discreet ledger``: verify, history, show, export, backup, heads and declarations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.option_groups import take_groups
from discreet.cli.output import Format, OutputOptions, Printout
from discreet.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.ledger.administration import Share
    from discreet.ledger.base_ledger import BaseLedger
    from discreet.ledger.chain import Head

app = typer.Typer(
    name="ledger",
    help="Look after the record of charges and answers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

LedgerPath = Annotated[str, typer.Argument(metavar="CODEBOOK", help="The codebook, or the ledger's own file.")]
OutOption = Annotated[Path | None, typer.Option("--out", help="Write to a file instead of the terminal.")]
ByOption = Annotated[str, typer.Option(help="Who declares it; stays on record.")]
ReasonOption = Annotated[str, typer.Option(help="Why, in a sentence; stays on record.")]

_REPORT = {
    "whole": "boolean",
    "entries": "integer",
    "charges": "integer",
    "unanswered": "integer",
    "first": "text",
    "last": "text",
    "head": "text",
}
_CHARGES = {
    "number": "integer",
    "time": "text",
    "analyst": "text",
    "project": "text",
    "cost": "text",
    "answered": "boolean",
    "question": "text",
}
_SHARES = {"analyst": "text", "charges": "integer", "spent": "real", "cap": "real"}


@app.command()
@take_groups
def verify(
    ledger: LedgerPath,
    *,
    head: Annotated[list[Path] | None, typer.Option(help="A head kept earlier; the log must still hold it.")] = None,
    output: OutputOptions,
) -> None:
    """Check every entry, hash, answer and sum, and heads kept earlier."""
    from discreet.cli.rows import make_rows
    from discreet.ledger import administration

    with _open_to_read(ledger) as book:
        report = administration.verify(book, [_read_head(path) for path in head or []])
    found = {name: getattr(report, name) for name in ("entries", "charges", "unanswered", "first", "last")}
    known = {"whole": True, **found, "head": json.loads(report.head.to_json())}
    output.print(
        Printout(
            rows=lambda: make_rows(_REPORT, [known | {"head": report.head.to_json()}]),
            document=lambda: known,
            draw=lambda console: console.out(str(report), highlight=False),
        )
    )


@app.command()
@take_groups
def history(ledger: LedgerPath, *, output: OutputOptions) -> None:
    """Every charge, oldest first."""
    from discreet.accounting.cost_words import describe_cost
    from discreet.cli.rows import make_rows

    with _open_to_read(ledger) as book:
        charges: list[dict[str, Any]] = [
            {
                "number": entry.number,
                "time": entry.time,
                "analyst": entry.charge.analyst,
                "project": entry.charge.project,
                "cost": describe_cost(book.budget, entry.charge.loss),
                "answered": entry.answered,
                "question": entry.charge.question,
            }
            for entry in book.history()
        ]
    output.print(
        Printout(
            rows=lambda: make_rows(_CHARGES, charges),
            document=lambda: charges,
            draw=lambda console: _draw_history(console, charges),
        )
    )


def _draw_history(console: Console, charges: Sequence[dict[str, Any]]) -> None:
    for row in charges:
        mark = "" if row["answered"] else "  (not answered)"
        question = " ".join(row["question"].split())
        line = f"{row['number']:>6}  {row['time'][:19]}  {row['analyst']}  {row['cost']}{mark}  {question}"
        console.out(line, highlight=False)


@app.command()
def show(ledger: LedgerPath, number: Annotated[int, typer.Argument(help="The number of the entry.")]) -> None:
    """One entry, as it was written."""
    from discreet.ledger import administration

    with _open_to_read(ledger) as book:
        typer.echo(json.dumps(administration.show(book, number), indent=2, ensure_ascii=False))


@app.command()
def export(
    ledger: LedgerPath,
    *,
    form: Annotated[str, typer.Option(help="jsonl (the log itself), csv, or registry.")] = "jsonl",
    out: OutOption = None,
) -> None:
    """Write the whole log out; no answer is in it."""
    from discreet.ledger import administration

    with _open_to_read(ledger) as book:
        _write(administration.export(book, form), out)


@app.command()
@take_groups
def burndown(
    ledger: LedgerPath,
    *,
    svg: Annotated[bool, typer.Option(help="Draw an SVG.")] = False,
    output: OutputOptions,
) -> None:
    """How the budget went down, and what each analyst spent."""
    from discreet.accounting.cost_words import describe_left
    from discreet.cli.rows import make_rows
    from discreet.ledger import administration
    from discreet.ledger import burndown as curve

    if svg and output.form is not Format.TABLE:
        raise UsageError(f"--svg draws a picture and contradicts the format {output.form}. Leave one of them out.")
    with _open_to_read(ledger) as book:
        if svg:
            output.print_text(curve.as_svg(book))
            return
        found, points = administration.find_shares(book), curve.read_curve(book)
        left = describe_left(book.budget, book.remaining, *book.counted)
    shares = [asdict(share) for share in found]
    output.print(
        Printout(
            rows=lambda: make_rows(_SHARES, shares),
            document=lambda: {"left": left, "curve": [asdict(point) for point in points], "analysts": shares},
            draw=lambda console: _draw_burndown(console, f"{curve.as_text(points)}\nleft {left}", found),
        )
    )


def _draw_burndown(console: Console, picture: str, found: Sequence[Share]) -> None:
    console.out(picture, highlight=False)
    most = max([share.cap or share.spent for share in found], default=1.0)
    width = max([len(share.analyst) for share in found], default=0)
    for share in found:
        bar = "█" * round(30 * share.spent / most)
        of = "" if share.cap is None else f" of {share.cap:.4g}"
        line = f"{share.analyst:<{width}}  {bar:<30}  {share.spent:.4g}{of}  ({share.charges:,} charges)"
        console.out(line, highlight=False)


@app.command()
def head(ledger: LedgerPath, *, out: OutOption = None) -> None:
    """How far the log is: keep this elsewhere, and verify with it later."""
    with _open_to_read(ledger) as book:
        _write(book.head.to_json() + "\n", out)


@app.command()
def backup(ledger: LedgerPath, to: Annotated[Path, typer.Argument(help="A file that is not there yet.")]) -> None:
    """Copy the ledger while others go on using it."""
    from discreet.ledger.sqlite import SQLiteLedger

    with SQLiteLedger.open_existing(_find_file(ledger)) as book:
        made = book.backup(to)
    typer.echo(f"{to} holds {made.number + 1:,} entries; head {made.to_json()}")


@app.command()
def verifier(*, out: OutOption = None) -> None:
    """Print the program that checks an exported log with Python alone."""
    from discreet.ledger import administration

    _write(administration.read_verifier(), out)


@app.command()
def amend(
    codebook: Annotated[str, typer.Argument(metavar="CODEBOOK", help="The codebook with the new budget or caps.")],
    *,
    by: ByOption,
    reason: ReasonOption,
) -> None:
    """Put the budget, caps and names of a changed codebook on record."""
    from discreet.codebook import Codebook
    from discreet.opening import open_existing_ledger, terms_of

    book = Codebook.load(codebook)
    terms = terms_of(book)
    with open_existing_ledger(book) as found:
        terms.check_people(found.state)
        found.amend(budget=terms.budget, policy=terms.policy, by=by, reason=reason)
        typer.echo(f"On record as entry {found.head.number}: {terms.budget!r}.")


@app.command()
def renew(
    ledger: LedgerPath,
    *,
    by: ByOption,
    reason: ReasonOption,
    other_people: Annotated[
        bool, typer.Option("--other-people", help="I declare that nobody of the earlier data is in the new data.")
    ] = False,
) -> None:
    """Start the budget anew, because the data is now about other people."""
    if not other_people:
        raise LedgerError(
            "A new version about the same people keeps the same budget. If nobody of the earlier data is in the new "
            "data, say so with --other-people. Nothing was changed."
        )
    with _open_existing(ledger) as book:
        made = book.renew(by=by, reason=reason)
    typer.echo(f"On record as entry {made.number}; the whole budget is there again.")


@app.command()
def resume(ledger: LedgerPath, *, by: ByOption, reason: ReasonOption) -> None:
    """Go on after a question failed, once you have looked at the log.

    A failure stops all charges, because whether a question fails can tell something about the data. Recorded answers
    and previews go on meanwhile.
    """
    with _open_existing(ledger) as found:
        head = found.allow(by=by, reason=reason)
    typer.echo(f"Questions are charged again, from entry {head.number} on.")


@app.command()
def restore(ledger: LedgerPath, *, by: ByOption, reason: ReasonOption) -> None:
    """Go on with a backup that was put back; what is known to be spent stays spent."""
    from discreet.codebook import Codebook
    from discreet.ledger.sqlite import restore as put_back
    from discreet.opening import restore_ledger

    if ledger.endswith(".toml"):
        made = restore_ledger(Codebook.load(ledger), by=by, reason=reason)
    else:
        made = put_back(ledger, by=by, reason=reason)
    typer.echo(f"On record as entry {made.number}.")


def _find_file(ledger: str) -> Path:
    """The ledger's file, told by itself or by its codebook."""
    if not ledger.endswith(".toml"):
        return Path(ledger)
    from discreet.codebook import Codebook
    from discreet.opening import ledger_path_of

    return ledger_path_of(Codebook.load(ledger))


def _open_to_read(ledger: str) -> AbstractContextManager[BaseLedger]:
    """The ledger, told in the same ways, for commands that change nothing."""
    from discreet.codebook import Codebook
    from discreet.ledger.sqlite import read_ledger as read_file
    from discreet.opening import read_ledger

    return read_ledger(Codebook.load(ledger)) if ledger.endswith(".toml") else read_file(ledger)


def _open_existing(ledger: str) -> BaseLedger:
    """The ledger, told by its file or by its codebook, which may say that it is in a database."""
    from discreet.codebook import Codebook
    from discreet.ledger.sqlite import SQLiteLedger
    from discreet.opening import open_existing_ledger

    return (
        open_existing_ledger(Codebook.load(ledger)) if ledger.endswith(".toml") else SQLiteLedger.open_existing(ledger)
    )


def _read_head(path: Path) -> Head:
    from discreet.ledger.chain import Head

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise LedgerError(f"{path} cannot be read. Give a file that `discreet ledger head` wrote.") from None
    return Head.from_json(text)


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError:
        raise LedgerError(f"{out} cannot be written.") from None
