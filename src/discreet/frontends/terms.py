"""What somebody asked, before names and types are looked up: the common language of SQL and of the chain.

A term is a name, a constant, a function of ``plan.functions`` applied to terms, or an aggregate. Terms know where they
were written, so that a later refusal can point there; two terms that say the same are equal wherever they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from discreet.frontends.positions import Place, refusal
from discreet.plan.nodes import Statistic
from discreet.plan.types import Value

MAX_DEPTH = 60  # of functions within functions
MAX_MEMBERS = 4_000  # of an IN list, of AND, of OR
FLAT = frozenset({"and", "or", "concat"})  # a AND (b AND c) is one AND of three


@dataclass(frozen=True, slots=True)
class Name:
    """A column, or the name of an output; which one is decided by where it stands."""

    name: str
    qualifier: str | None = None
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that the analyst wrote."""

    value: Value
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Ordinal:
    """GROUP BY 1, ORDER BY 2: the output with this number."""

    position: int
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of terms. Made by ``apply``, which keeps the nesting within its limit."""

    function: str
    arguments: tuple[Term, ...]
    place: Place | None = field(default=None, compare=False, repr=False)
    depth: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate. ``sample`` asks for the sample form of a variance or standard deviation."""

    statistic: Statistic
    argument: Term | None = None
    sample: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)


Term: TypeAlias = Name | Constant | Ordinal | Apply | Measure


@dataclass(frozen=True, slots=True)
class Item:
    """A wanted output and the name the analyst gave it, if any."""

    term: Term
    alias: str | None = None
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Sort:
    """One criterion of ORDER BY."""

    term: Term
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A whole question in terms. ``group`` is None where every output without an aggregate is a key."""

    table: Name
    table_alias: str | None = None
    where: tuple[Term, ...] = ()
    group: tuple[Term, ...] | None = ()
    select: tuple[Item, ...] = ()
    having: tuple[Term, ...] = ()
    order: tuple[Sort, ...] = ()
    limit: int | None = None
    offset: int = 0


def apply(function: str, *arguments: Term, place: Place | None = None) -> Apply:
    """A function of terms, with AND, OR and joined texts flattened; refused where it is nested too deeply.

    >>> a, b, c = Name("a"), Name("b"), Name("c")
    >>> apply("and", a, apply("and", b, c)) == apply("and", apply("and", a, b), c)
    True
    """
    parts: list[Term] = []
    for argument in arguments:
        if function in FLAT and isinstance(argument, Apply) and argument.function == function:
            parts += argument.arguments
        else:
            parts.append(argument)
    depth = 1 + max((_depth(part) for part in parts), default=0)
    if depth > MAX_DEPTH:
        raise refusal(place, f"Functions are nested more than {MAX_DEPTH} deep.", "Ask for something simpler.")
    if len(parts) > MAX_MEMBERS:
        raise refusal(place, f"More than {MAX_MEMBERS:,} values or conditions in one list.", "Ask for fewer at once.")
    return Apply(function, tuple(parts), place, depth)


def _depth(term: Term) -> int:
    match term:
        case Apply():
            return term.depth
        case Measure() if term.argument is not None:
            return 1 + _depth(term.argument)
        case _:
            return 0


def parts_of(term: Term) -> Iterator[Term]:
    """The term and everything inside it, outermost first."""
    yield term
    inside = term.arguments if isinstance(term, Apply) else (term.argument,) if isinstance(term, Measure) else ()
    for part in inside:
        if part is not None:
            yield from parts_of(part)


def measures_in(term: Term) -> tuple[Measure, ...]:
    """The aggregates in a term, outermost first."""
    return tuple(part for part in parts_of(term) if isinstance(part, Measure))
