"""Questions in a cell of a notebook: ``%load_ext discreet``, then ``%%discreet --share 0.1`` above the SQL.

A cell asks the curator that the notebook has, or the one that is named: ``%%discreet hospital --epsilon 0.5``. It shows
in one line what the question costs and how far off it is, and then the answer. Without an offer, or with ``--preview``,
nothing is charged and the preview is shown. ``--as wards`` keeps the answer, or the preview, under a name.
"""

from __future__ import annotations

import argparse
import shlex
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from discreet.curator import Curator
from discreet.errors import DiscreetError, UsageError
from discreet.frontends.google.privacy_clause import mentions_clause
from discreet.preview import Preview, describe_cost

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from discreet.answer import Answer

_EXAMPLE = "%%discreet --share 0.1"


class _Words(argparse.ArgumentParser):
    """Reads the words behind ``%%discreet``, and refuses in our own way."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%discreet: {message}. Write for example {_EXAMPLE}. Nothing was charged.")


def _make_parser() -> _Words:
    parser = _Words(prog="%%discreet", add_help=False, allow_abbrev=False)
    parser.add_argument("curator", nargs="?")
    for name in ("--share", "--epsilon", "--rho", "--delta", "--level", "--group-size"):
        parser.add_argument(name, type=_read_number)
    parser.add_argument("--error", type=_read_error, action="append")
    parser.add_argument("--ends", action="store_true")
    parser.add_argument("--bounds", choices=["auto"])
    parser.add_argument("--preview", action="store_true")
    parser.add_argument("--as", dest="name")
    return parser


def _read_number(text: str) -> Fraction:
    """A number such as 0.1 or 1/10, exactly."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError("must be a number such as 0.1 or 1/10") from None


def _read_error(text: str) -> tuple[str, Fraction]:
    name, equals, size = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("must name a column: n=12")
    return name, _read_number(size)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What ``%load_ext discreet`` calls."""

    def ask(line: str, cell: str) -> Answer | Preview:
        try:
            return run_cell(line, cell, shell.user_ns)
        except DiscreetError as error:
            from IPython.core.error import UsageError as ShortError  # shown without a traceback of ours

            raise ShortError("\n".join([str(error), *getattr(error, "__notes__", ())])) from None

    shell.register_magic_function(ask, "cell", "discreet")  # type: ignore[arg-type]  # IPython types it as unbound


def run_cell(line: str, cell: str, names: dict[str, Any]) -> Answer | Preview:
    """The answer to a cell of SQL, or its preview; ``names`` are those of the notebook."""
    said = vars(_make_parser().parse_args(shlex.split(line)))
    name, preview_only, curator = said.pop("name"), said.pop("preview"), _find_curator(said.pop("curator"), names)
    offer = {word: value for word, value in said.items() if value not in (None, False)}
    if "error" in offer:
        offer["error"] = dict(offer["error"])
    offered = bool(offer.keys() & {"share", "epsilon", "rho", "error"}) or mentions_clause(cell)
    shown = _preview(curator, cell, offer, offered=offered)
    result = curator.ask(cell, **offer) if offered and not preview_only else shown
    if name is not None:
        names[name] = result
    return result


def _preview(curator: Curator, cell: str, offer: dict[str, Any], *, offered: bool) -> Preview:
    """What a cell would cost, in one line above what follows; without an offer, what shares would buy."""
    shown = curator.preview(cell, **offer, curve=not offered)
    errors = ", ".join(f"{column.name} {column.words()}" for column in shown.columns)
    print(f"{errors or 'keys alone'}; cost {describe_cost(shown)}")  # noqa: T201  # what a cell shows
    if not offered:
        print(f"Nothing was charged. To ask, offer something: {_EXAMPLE}")  # noqa: T201  # what a cell shows
    return shown


def _find_curator(name: str | None, names: dict[str, Any]) -> Curator:
    """The curator of a name; without one, the only curator that the notebook has."""
    known = {key: value for key, value in names.items() if isinstance(value, Curator) and not key.startswith("_")}
    if name is not None:
        if name not in known:
            listed = ", ".join(known) or "there is none yet: make one with discreet.open or discreet.curate"
            raise UsageError(f"%%discreet: {name!r} is no curator here. Curators: {listed}. Nothing was charged.")
        return known[name]
    if len({id(value) for value in known.values()}) != 1:
        listed = f"several curators ({', '.join(known)})" if known else "no curator"
        fix = "Name one: %%discreet hospital --share 0.1." if known else "Make one: curator = discreet.open(...)."
        raise UsageError(f"%%discreet: this notebook has {listed}. {fix} Nothing was charged.")
    return next(iter(known.values()))
