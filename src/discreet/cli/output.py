"""The one way to print: a command hands over what it found, and the options say in which form and to which place.

Four forms. ``table`` is for eyes. ``json`` is the whole document. ``csv`` and ``parquet`` are the rows alone, with full
numbers; what stands around them (cost, receipt, budget) goes to standard error in one line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, assert_never

import typer

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.row_formats import to_csv, to_json, to_parquet

if TYPE_CHECKING:
    import pyarrow
    from rich.console import Console


class Format(StrEnum):
    """How a command prints."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


UNLIMITED = 100_000
"""The width of a place that has none."""

_BY_SUFFIX = {".json": Format.JSON, ".csv": Format.CSV, ".parquet": Format.PARQUET}


@dataclass(frozen=True, slots=True, kw_only=True)
class Printout:
    """What a command found, in every form it can be printed in; only the chosen one is made.

    ``rows`` are an Arrow table, ``document`` is plain JSON values, ``draw`` prints for eyes. ``note`` says in one line
    what the rows leave out.
    """

    rows: Callable[[], pyarrow.Table]
    document: Callable[[], Any]
    draw: Callable[[Console], None]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Form and place of what is printed. Contradictions are refused here, before a command does or charges anything."""

    output_format: Annotated[
        Format | None, typer.Option("--format", help="How to print: table, json, csv or parquet.", metavar="FORMAT")
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Print to a new file; .json, .csv, .parquet set the format.", metavar="FILE"),
    ] = None

    def __post_init__(self) -> None:
        if self.as_json and self.output_format not in (None, Format.JSON):
            raise UsageError(
                f"--json is short for --format json and contradicts --format {self.output_format}. "
                "Leave one of them out. Nothing was charged."
            )
        if self.out is not None:
            _check_place(self.out)
        elif self.form is Format.PARQUET and sys.stdout.isatty():
            raise UsageError(
                "Parquet is not text and would garble the terminal. Add --out FILE, or send it to a file or a pipe. "
                "Nothing was charged."
            )

    @property
    def form(self) -> Format:
        """The form that was chosen: in words, by the ending of the file, or a table."""
        if self.as_json:
            return Format.JSON
        by_place = Format.TABLE if self.out is None else _BY_SUFFIX.get(self.out.suffix.lower(), Format.TABLE)
        return self.output_format or by_place

    @property
    def for_eyes(self) -> bool:
        """Whether a person reads it, who can be asked back."""
        return self.form is Format.TABLE and self.out is None

    def print(self, printout: Printout) -> None:
        """Print in the chosen form, to the chosen place."""
        match self.form:
            case Format.TABLE:
                self._draw(printout.draw)
            case Format.JSON:
                # JSON is UTF-8, whatever the terminal is.
                self._write((to_json(printout.document()) + "\n").encode())
            case Format.CSV | Format.PARQUET as form:
                made = to_csv(printout.rows()) if form is Format.CSV else to_parquet(printout.rows())
                self._write(made)
                if printout.note:
                    typer.echo(printout.note, err=True)
            case _:
                assert_never(self.form)

    def print_text(self, text: str) -> None:
        """Print a text as it is."""
        if self.out is None:
            typer.echo(text, nl=False)
        else:
            self._write(text.encode())

    def _draw(self, draw: Callable[[Console], None]) -> None:
        if self.out is None:
            draw(make_console())
            return
        import io

        page = io.StringIO()
        draw(_make_console(file=page))
        self.print_text(page.getvalue())

    def _write(self, made: bytes) -> None:
        if self.out is None:
            sys.stdout.flush()
            stream = typer.get_binary_stream("stdout")
            stream.write(made)
            stream.flush()
            return
        try:
            # A file that has come up meanwhile, such as a ledger, is never overwritten.
            with self.out.open("wb" if _is_device(self.out) else "xb") as file:
                file.write(made)
        except OSError as error:
            raise UsageError(
                f"{self.out} cannot be written: {error.strerror}. What was charged stays charged and is on record; "
                "asking the same again is free. Give another --out."
            ) from error


def write_file(path: Path, text: str) -> None:
    """Write a text to a file that was named on the command line."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}. Give another place.") from None


def _check_place(out: Path) -> None:
    """Refuse a place that cannot be written, while nothing is charged yet. Making the file is what tells."""
    if not out.parent.is_dir():
        raise UsageError(f"There is no folder {out.parent}. Make it first, or give another --out. Nothing was charged.")
    try:
        if not _is_device(out):
            out.open("xb").close()
            out.unlink()
    except FileExistsError:
        raise UsageError(f"{out} exists. Remove it or give another --out. Nothing was charged.") from None
    except OSError as error:
        words = f"{out} cannot be written: {error.strerror}. Give another --out. Nothing was charged."
        raise UsageError(words) from None


def _is_device(place: Path) -> bool:
    """Whether this is a pipe or a device, to which writing destroys nothing."""
    return place.exists() and not place.is_file() and not place.is_dir()


def make_console(*, stderr: bool = False) -> Console:
    """Where to print for eyes."""
    return _make_console(stderr=stderr)


def _make_console(**place: Any) -> Console:
    """A terminal has a width; a pipe and a file have none, so that no line is folded there."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False, emoji=False, **place)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = UNLIMITED
    return console


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, also where the rest of it could not be read.

    >>> wants_json(["ask", "--json"]), wants_json(["ask", "--format", "json"]), wants_json(["ask", "--format=csv"])
    (True, True, False)
    """
    pairs = pairwise(arguments)
    return "--json" in arguments or "--format=json" in arguments or ("--format", "json") in pairs
