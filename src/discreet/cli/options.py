"""What the commands of the shell take: arguments, the options of an offer, exact numbers, and the question's text."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.errors import ParameterError, UsageError
from discreet.late_dataclass import dataclass

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.ledger.ledger import Ledger

CodebookPath = Annotated[str, typer.Argument(metavar="CODEBOOK", help="The TOML file about the dataset.")]
Sql = Annotated[str, typer.Argument(metavar="SQL", help="The question; - reads it from standard input.")]
SqlFile = Annotated[Path | None, typer.Option("--file", help="Read the question from a file.")]
EpsilonOption = Annotated[str | None, typer.Option(help="The loss ε to spend.", metavar="ε")]
RhoOption = Annotated[str | None, typer.Option(help="The loss ρ to spend (zCDP).", metavar="ρ")]
ShareOption = Annotated[str | None, typer.Option(help="The share of the budget to spend.", metavar="1/10")]
DeltaOption = Annotated[str | None, typer.Option(help="What naming groups from the data may cost.", metavar="δ")]

_LEVEL = "0.95"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferOptions:
    """What an analyst offers for an answer: a price or a wanted error, and for whom. As typed."""

    epsilon: EpsilonOption = None
    rho: RhoOption = None
    share: ShareOption = None
    error: Annotated[
        list[str] | None, typer.Option(help="The error wanted for a column, such as n=12.", metavar="COLUMN=SIZE")
    ] = None
    group_size: Annotated[
        str | None, typer.Option(help="With --error of an average: roughly how many rows a group has.", metavar="ROWS")
    ] = None
    delta: DeltaOption = None
    level: Annotated[str, typer.Option(help="The confidence of errors and intervals.")] = _LEVEL
    ends: Annotated[
        bool, typer.Option("--ends", help="Buy intervals of quantiles, MIN and MAX with half of their price.")
    ] = False
    public: Annotated[
        list[str] | None,
        typer.Option(
            help="A public table for the question: a .csv, .parquet or answer (.json) file.", metavar="NAME=FILE"
        ),
    ] = None
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            help="The value of @NAME in the question: a number, true, false, null, or a text.", metavar="NAME=VALUE"
        ),
    ] = None
    bounds: Annotated[
        str | None,
        typer.Option("--bounds", help="auto: buy missing bounds with a quarter of the offer.", metavar="auto"),
    ] = None
    analyst: Annotated[str | None, typer.Option(help="Who asks.")] = None
    project: Annotated[str | None, typer.Option(help="For which project, where the codebook has any.")] = None

    @property
    def prices(self) -> int:
        """In how many ways the price is stated; one is right."""
        return sum(form is not None for form in (self.epsilon, self.rho, self.share, self.error or None))

    def read(self, wanted: str) -> dict[str, Any]:
        """The offer for the curator, as exact numbers; ``wanted`` says which price is missing."""
        if self.prices != 1:
            raise UsageError(f"{wanted} Nothing was charged.")
        return self._read_all()

    def read_for(self, question: str) -> dict[str, Any]:
        """The offer for a question. One in the GoogleSQL form may state its price by itself."""
        if self.prices == 0 and _states_price(question):
            return self._read_all()
        return self.read("Say what it may cost: --share 1/10, --epsilon 0.5, --rho 0.01, or --error n=12.")

    def read_any(self, question: str) -> dict[str, Any]:
        """The offer for a curve, which needs none."""
        return self._read_all() if self.prices == 0 else self.read_for(question)

    def read_if_stated(self, question: str) -> dict[str, Any]:
        """The offer for an explanation, which needs none; but what belongs to a price needs the price."""
        stated = self.prices or _states_price(question) or self.delta is not None or self.ends or self.level != _LEVEL
        return self.read_for(question) if stated else self._read_brought()

    def _read_all(self) -> dict[str, Any]:
        numbers = {"level": self.level, "epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
        offer: dict[str, Any] = {n: read_number(text, f"--{n}") for n, text in numbers.items() if text is not None}
        if self.share is not None:
            offer["share"] = _read_share(self.share)
        if self.group_size is not None:
            offer["group_size"] = read_number(self.group_size, "--group-size")
        if self.error:
            offer["error"] = dict(_read_error(pair) for pair in self.error)
        if self.ends:
            offer["ends"] = True
        names = {"bounds": self.bounds, "analyst": self.analyst, "project": self.project}
        return offer | self._read_brought() | {word: name for word, name in names.items() if name is not None}

    def _read_brought(self) -> dict[str, Any]:
        """What is brought beside the question: public tables, and values of its parameters."""
        found: dict[str, Any] = {}
        if self.public:
            found["public"] = dict(_read_public_table(pair) for pair in self.public)
        if self.parameter:
            found["parameters"] = _read_parameters(self.parameter)
        return found


def _states_price(question: str) -> bool:
    return "DIFFERENTIAL_PRIVACY" in question.upper()


def open_curator(codebook: str) -> Curator:
    """The curator of a codebook."""
    from discreet.opening import open_codebook

    return open_codebook(codebook)


def note_forgetful(ledger: Ledger) -> None:
    """Say so where the ledger ends with this command: a budget that is forgotten protects nobody."""
    from discreet.ledger.memory import MemoryLedger

    if isinstance(ledger, MemoryLedger):
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


_CONSTANTS = {"true": True, "false": False, "null": None}


def _read_parameters(pairs: Sequence[str]) -> dict[str, Any]:
    """Values by name. What reads as a number is one; quotes make a text of anything: --parameter "code='18'"."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign or not name or name in found:
            rule = "--parameter takes a name and a value, each name once, such as --parameter least=18."
            raise UsageError(f"{rule} Nothing was charged.")
        found[name] = _read_value(text)
    return found


def _read_value(text: str) -> Any:
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1]
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"[+-]?([0-9]+\.[0-9]*|\.?[0-9]+)([eE][+-]?[0-9]+)?", text, re.ASCII):
        return float(text)
    return text


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
    except (
        OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, pa.ArrowException,
    ) as error:  # fmt: skip
        raise UsageError(f"{path} cannot be read as a table of rows. Nothing was charged.") from error


def _read_share(text: str) -> Any:
    """A share as it was typed: 0.1, 1/10 or 10%."""
    from fractions import Fraction

    whole, slash, parts = text.strip().partition("/")
    if slash:
        below = read_number(parts, "--share")
        if not below:
            raise ParameterError("--share", "divides by zero", "Write it like 1/10. Nothing was charged.")
        return Fraction(read_number(whole, "--share")) / Fraction(below)
    if whole.endswith("%"):
        return Fraction(read_number(whole[:-1], "--share")) / 100
    return read_number(whole, "--share")


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
