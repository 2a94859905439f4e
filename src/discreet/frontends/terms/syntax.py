"""Terms: the parts of a question before names and types are looked up.

A term is a name, a constant, a function of ``plan.functions`` applied to terms, or an aggregate. A term knows its place
in the text, so that a later refusal can show it. The place does not count when terms are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from fractions import Fraction
from typing import TypeAlias, assert_never

from discreet.frontends.terms.positions import Place, refusal
from discreet.late_dataclass import dataclass
from discreet.plan.relations import Feature, JoinKind, RowFrame
from discreet.plan.statistics.definitions import PairStatistic, Statistic
from discreet.plan.types import Value

MAX_DEPTH = 60  # functions within functions
MAX_MEMBERS = 4_000  # members of an IN list, of AND or of OR
FLAT = frozenset({"and", "or", "concat"})  # a AND (b AND c) is one AND of three


@dataclass(frozen=True, slots=True)
class NameTerm:
    """The name of a column or of an output. The clause decides which one it is."""

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
    """The number of an output, as in GROUP BY 1 or ORDER BY 2."""

    position: int
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FunctionTerm:
    """A function of terms. ``apply`` makes it and limits the nesting."""

    function: str
    arguments: tuple[Term, ...]
    place: Place | None = field(default=None, compare=False, repr=False)
    depth: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AggregateTerm:
    """An aggregate.

    ``sample`` asks for the sample form of a variance, standard deviation or covariance. ``second`` is the other
    argument of a pair statistic. ``share`` is the q of a quantile. ``condition`` says which rows take part (FILTER),
    and ``bounds`` what one unit may add. ``distinct`` takes each value once, whoever has it. ``word`` is "min", "max"
    or "median" for quantiles that were written so: over all units MIN(x) is the 1 % quantile, and inside one unit it is
    the least value.
    """

    statistic: Statistic | PairStatistic
    argument: Term | None = None
    sample: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)
    second: Term | None = None
    share: Fraction | None = None
    condition: Term | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    word: str = ""
    distinct: bool = False

    @property
    def inside(self) -> tuple[Term, ...]:
        """The terms inside the aggregate."""
        return tuple(term for term in (self.argument, self.second, self.condition) if term is not None)


@dataclass(frozen=True, slots=True)
class FeatureTerm:
    """A feature that can be computed inside one unit only: BOOL_OR, BOOL_AND, and the functions of windows."""

    feature: Feature
    argument: Term | None = None
    offset: int = 1
    condition: Term | None = None
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def inside(self) -> tuple[Term, ...]:
        """The terms that it is made of."""
        return tuple(term for term in (self.argument, self.condition) if term is not None)


@dataclass(frozen=True, slots=True)
class WindowTerm:
    """A function over the rows of a part: f(x) OVER (PARTITION BY ... ORDER BY ...)."""

    function: AggregateTerm | FeatureTerm
    parts: tuple[Term, ...] = ()
    order: tuple[Sort, ...] = ()
    place: Place | None = field(default=None, compare=False, repr=False)
    frame: RowFrame | None = None

    @property
    def inside(self) -> tuple[Term, ...]:
        """The terms inside the window. The function itself is not one of them, because it is no aggregate here."""
        return (*self.function.inside, *self.parts, *(sort.term for sort in self.order))


@dataclass(frozen=True, slots=True)
class GroupingTerm:
    """GROUPING(a, b): which of these keys a row of the answer is not grouped by, as a number in binary."""

    keys: tuple[Term, ...]
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MembershipTerm:
    """x IN (SELECT ...); or EXISTS (SELECT ...), where ``tested`` is None."""

    tested: Term | None
    query: QueryTerm
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Star:
    """All columns, or all columns of one table."""

    qualifier: str | None = None
    without: tuple[str, ...] = ()
    place: Place | None = field(default=None, compare=False, repr=False)


Term: TypeAlias = (
    NameTerm
    | Constant
    | Ordinal
    | FunctionTerm
    | AggregateTerm
    | FeatureTerm
    | WindowTerm
    | GroupingTerm
    | MembershipTerm
    | Star
)


@dataclass(frozen=True, slots=True)
class Item:
    """An output, and its name if the analyst gave one."""

    term: Term
    alias: str | None = None
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Sort:
    """One criterion of ORDER BY."""

    term: Term
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class TableTerm:
    """A table by its declared name, and its alias in the question."""

    name: NameTerm
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class SubqueryTerm:
    """A SELECT in parentheses or by a name from WITH. ``columns`` are new names for its outputs."""

    query: QueryTerm
    alias: str | None = None
    columns: tuple[str, ...] = ()
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ValuesTerm:
    """Rows of constants in the question: VALUES (...), (...)."""

    rows: tuple[tuple[Constant, ...], ...]
    alias: str | None = None
    columns: tuple[str, ...] = ()
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class JoinTerm:
    """A join of two sources. ``using`` is None without USING; ``natural`` equates all columns of the same name."""

    left: SourceTerm
    right: SourceTerm
    kind: JoinKind = JoinKind.INNER
    on: tuple[Term, ...] = ()
    using: tuple[NameTerm, ...] | None = None
    natural: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)


SourceTerm: TypeAlias = TableTerm | SubqueryTerm | ValuesTerm | JoinTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A SELECT in terms: a whole question, or a subquery. ``group`` is None for GROUP BY ALL.

    ``sets`` are several groupings, each a list of positions in ``group``; None means one grouping by all keys.
    """

    source: SourceTerm
    where: tuple[Term, ...] = ()
    group: tuple[Term, ...] | None = ()
    sets: tuple[tuple[int, ...], ...] | None = None
    select: tuple[Item, ...] = ()
    having: tuple[Term, ...] = ()
    order: tuple[Sort, ...] = ()
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
    qualify: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class UnionTerm:
    """UNION ALL of several SELECTs; UNION without ALL is ``distinct``."""

    parts: tuple[QueryTerm, ...]
    distinct: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SetTerm:
    """INTERSECT of two SELECTs: the rows that both have, each once; with ``without`` EXCEPT, which the second lacks."""

    left: QueryTerm
    right: QueryTerm
    without: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)


QueryTerm: TypeAlias = Draft | UnionTerm | SetTerm


def apply(function: str, *arguments: Term, place: Place | None = None) -> FunctionTerm:
    """A function of terms, in which nested ANDs, ORs and joined texts are made flat. Too deep nesting is refused.

    >>> a, b, c = NameTerm("a"), NameTerm("b"), NameTerm("c")
    >>> apply("and", a, apply("and", b, c)) == apply("and", apply("and", a, b), c)
    True
    """
    parts: list[Term] = []
    for argument in arguments:
        if function in FLAT and isinstance(argument, FunctionTerm) and argument.function == function:
            parts += argument.arguments
        else:
            parts.append(argument)
    depth = 1 + max((_depth(part) for part in parts), default=0)
    if depth > MAX_DEPTH:
        raise refusal(place, f"Functions are nested more than {MAX_DEPTH} deep.", "Ask for something simpler.")
    if len(parts) > MAX_MEMBERS:
        raise refusal(place, f"More than {MAX_MEMBERS:,} values or conditions in one list.", "Ask for fewer at once.")
    return FunctionTerm(function, tuple(parts), place, depth)


def _depth(term: Term) -> int:
    match term:
        case FunctionTerm():
            return term.depth
        case AggregateTerm() | FeatureTerm() | WindowTerm():
            return 1 + max((_depth(part) for part in term.inside), default=0)
        case NameTerm() | Constant() | Ordinal() | GroupingTerm() | MembershipTerm() | Star():
            return 0
        case _:
            assert_never(term)


def parts_of(term: Term) -> Iterator[Term]:
    """The term and all terms inside it, outermost first."""
    yield term
    match term:
        case FunctionTerm():
            inside = term.arguments
        case AggregateTerm() | FeatureTerm() | WindowTerm():
            inside = term.inside
        case NameTerm() | Constant() | Ordinal() | GroupingTerm() | MembershipTerm() | Star():
            return
        case _:
            assert_never(term)
    for part in inside:
        yield from parts_of(part)


def aggregates_in(term: Term) -> tuple[AggregateTerm, ...]:
    """The aggregates in a term, outermost first."""
    return tuple(part for part in parts_of(term) if isinstance(part, AggregateTerm))
