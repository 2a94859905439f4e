"""How many rows of one unit a question can make: what joins multiply has a limit that is known when it is read.

Why: operators that are linear in a unit's rows cost like reading them, and an analyst cannot steer that. But rows that
are multiplied for one unit only, such as by a join on ``CASE WHEN pid = 17 AND age > 40 ...``, or a table that is
joined with itself, make the time and the memory of a question tell about that unit.

The claim, for every relation below a bounded question and for every unit: either the relation is *linear*, and then the
unit has at most as many rows in it as in the tables that it reads, each counted as often as the relation reads it (a
part of a union with a known number adds that number); or the relation is *multiplied*, and then the unit has at most
``Catalog.max_joined_rows`` rows in it. What would exceed the limit is refused when it is read.

How: a side of a multiplying join that is linear is truncated first (``truncation`` inserts ``Capped``). Until then its
cap is open. It is at least what the codebook declares for its rows, so that nobody loses rows that count.

The rules, by node, each with its reason:

- A table: linear. Where a row is its own unit: 1.
- Conditions, new columns, DISTINCT and windows: as the source, for they add no rows.
- ``Capped`` by the unit alone: its number, or that of the source if it is smaller. By more: as the source.
- Groups of a unit by the unit alone: 1. By more keys: as the source, for no group is without a row.
- A union: the sum; linear if a part is.
- A join with public rows: a row meets the public rows of its key, at most m of them, and stays once if there are none.
  If m is 1: as the private side. Otherwise: m for each row of the private side, after its cap.
- A join of private rows on the unit: if every row of one side meets at most one row of the other, as the one side.
  Otherwise the product of both numbers, after their caps: LEFT and RIGHT keep a row without a partner once, which is no
  more than one for each partner that it may have. FULL: also the rows of the right side.
- SEMI and ANTI: as the left side.
- A link, and a join after truncation by key (``Caps``): linear, for the truncation bounds what is made of a row.

When a row meets at most one of a private side: if the side has at most one row of a unit; if it has groups of a unit
and the join is on all of their keys, of which no two groups have the same values; if the join is on the unit alone and
the codebook declares one row of it; or if the join follows a declared foreign key to that side, in all of its columns.
In the last two cases the side is capped to one row for each unit (and key), because declarations are not believed.

Public rows in a question are counted as they are. Rows of declared public tables are counted by the engine, for each
version of the data; only a key that is declared unique is believed, and where it is not, look-ups match nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import assert_never

from discreet.errors import QuestionError
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog
from discreet.plan.evaluate import evaluate, settle
from discreet.plan.expressions import Column, Expression, ReleasedValue
from discreet.plan.functions import find_common_type
from discreet.plan.relations import (
    Capped,
    Distinct,
    Join,
    JoinKind,
    PerUnit,
    Projection,
    Relation,
    Scan,
    Union,
    Values,
    Where,
    Window,
)
from discreet.plan.types import Type, Value


@dataclass(frozen=True, slots=True)
class FanOut:
    """How many rows of a unit a relation may have: a sum of products, or None where it is linear.

    A product is a number, and the open caps that it is to be multiplied with, each by the least that it may be.
    """

    products: tuple[tuple[int, tuple[int, ...]], ...] | None = None

    @property
    def linear(self) -> bool:
        return self.products is None

    @property
    def most(self) -> int | None:
        """The most rows of a unit; None where that is not known, or depends on a cap that is still open."""
        if self.products is None or any(caps for _, caps in self.products):
            return None
        return sum(times for times, _ in self.products)

    @property
    def open(self) -> bool:
        """Whether a side below is still to be capped."""
        return self.products is not None and self.most is None

    def count(self, cap: int) -> int:
        """The most rows of a unit if every open cap is the given one, or the least that it may be if that is more."""
        return sum(times * prod(max(least, cap) for least in caps) for times, caps in self.products or ())


LINEAR = FanOut()


def bound_rows(rows: int) -> FanOut:
    """A relation that has at most so many rows of a unit."""
    return FanOut(((rows, ()),))


ONE_ROW = bound_rows(1)


@dataclass(frozen=True, slots=True)
class PairedSide:
    """One side of a join of private rows: its rows, and the limit that is declared for them.

    ``once`` says that a row of the other side meets at most one row of this one. ``single`` are the keys beside the
    unit with which it would, by the codebook, so that it may be capped to one row for each unit and value of these.
    """

    rows: FanOut
    declared: int
    once: bool = False
    single: tuple[Expression, ...] | None = None


@dataclass(frozen=True, slots=True)
class Pairing:
    """The rows of a join, and how each side has to be capped below it, left and right; None where it need not be.

    ``once`` says for each side whether none of its rows is in the join twice.
    """

    rows: FanOut
    caps: tuple[SideCap | None, SideCap | None] = (None, None)
    once: tuple[bool, bool] = (False, False)

    def exchange(self) -> Pairing:
        """The same with its sides exchanged."""
        return Pairing(self.rows, (self.caps[1], self.caps[0]), (self.once[1], self.once[0]))


@dataclass(frozen=True, slots=True)
class SideCap:
    """How a side is capped: by the unit and ``keys`` to one row, or (``open``) by the unit to what the limit allows.

    An open cap is at least ``least``.
    """

    keys: tuple[Expression, ...] = ()
    least: int = 1
    open: bool = False


def add_parts(parts: Sequence[FanOut]) -> FanOut:
    """The rows of a union."""
    found: Counter[tuple[int, ...]] = Counter()
    for part in parts:
        if part.products is None:
            return LINEAR
        for times, caps in part.products:
            found[caps] += times
    return FanOut(tuple((times, caps) for caps, times in sorted(found.items())))


def multiply(left: FanOut, right: FanOut) -> FanOut:
    """The pairs of rows, each with each. Both sides are known, or have open caps."""
    products = [
        FanOut(((one * two, tuple(sorted(ours + theirs))),))
        for one, ours in left.products or ()
        for two, theirs in right.products or ()
    ]
    return add_parts(products)


def pair_private(kind: JoinKind, left: PairedSide, right: PairedSide) -> Pairing:
    """The pairs of a unit's rows in two private relations, the unmatched rows that stay, and the caps they need."""
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return Pairing(left.rows, once=(True, False))
    keeps_left, keeps_right = kind in (JoinKind.LEFT, JoinKind.FULL), kind in (JoinKind.RIGHT, JoinKind.FULL)
    if (cap := _make_single(right)) is not None:
        rows = add_parts([left.rows, _take_cap(right, cap)]) if keeps_right else left.rows
        return Pairing(rows, (None, None if right.once else cap), once=(True, left.once))
    if (cap := _make_single(left)) is not None:
        rows = add_parts([right.rows, _take_cap(left, cap)]) if keeps_left else right.rows
        return Pairing(rows, (None if left.once else cap, None), once=(False, True))
    caps = (_make_open(left), _make_open(right))
    ours, theirs = (_take_cap(side, cap) for side, cap in zip((left, right), caps))
    product = multiply(ours, theirs)
    return Pairing(add_parts([product, theirs]) if kind is JoinKind.FULL else product, caps)


def _make_single(side: PairedSide) -> SideCap | None:
    """The cap under which a row of the other side meets at most one row of this one; None if there is no reason."""
    if side.once:
        return SideCap()
    return None if side.single is None else SideCap(side.single)


def _make_open(side: PairedSide) -> SideCap | None:
    return SideCap(least=side.declared, open=True) if side.rows.linear else None


def _take_cap(side: PairedSide, cap: SideCap | None) -> FanOut:
    """The rows of a side below its cap."""
    if cap is None or cap.keys or side.once:
        return side.rows
    return FanOut(((1, (cap.least,)),)) if cap.open else ONE_ROW


def pair_public(private: PairedSide, matches: int) -> Pairing:
    """The pairs of private rows with public ones, of which at most ``matches`` have the same key."""
    if matches <= 1:
        return Pairing(private.rows, once=(True, False))
    cap = _make_open(private)
    return Pairing(multiply(_take_cap(private, cap), bound_rows(matches)), (cap, None))


def check_rows(rows: FanOut, limit: int) -> FanOut:
    """Refuse a relation in which a unit may have more rows than the limit, even if open caps are the least."""
    most = rows.count(1)
    if most > limit:
        raise QuestionError(
            f"These joins may make {most:,} rows of one unit; at most {limit:,} are allowed, so that the work for one "
            "unit does not depend on what it holds.",
            "Join with public rows whose keys differ, aggregate per unit before joining, or declare smaller limits or "
            "a larger max_joined_rows in the codebook.",
        )
    return rows


def choose_cap(relations: Iterable[FanOut], limit: int) -> int:
    """The largest cap with which no relation exceeds the limit. Each was checked by ``check_rows``."""
    largest, beyond = 1, limit + 1
    opened = [rows for rows in relations if rows.open]
    while beyond - largest > 1:
        middle = (largest + beyond) // 2
        fits = all(rows.count(middle) <= limit for rows in opened)
        largest, beyond = (middle, beyond) if fits else (largest, middle)
    return largest


# Public rows


def count_matches(relation: Join, public: Relation, side: int, catalog: Catalog) -> int:
    """The most public rows that a private row can meet. ``side`` is their place in the join's conditions."""
    kinds = [find_common_type((one.type, two.type)) or one.type for one, two in relation.on]
    pairs = tuple((pair[side], kind) for pair, kind in zip(relation.on, kinds))
    return _count_equal(public, pairs, catalog)


def _count_equal(public: Relation, on: tuple[tuple[Expression, Type], ...], catalog: Catalog) -> int:
    """The largest number of public rows, or more, that are equal in some expressions, each compared in a type.

    Rows with a NULL among them match nothing. Conditions take rows away, so they are passed over.
    """
    while isinstance(public, Where):
        public = public.source
    if isinstance(public, Projection):
        own = {Column(public.name, name, value.type): value for name, value in public.columns}
        if all(isinstance(expression, Column) for expression, _ in on):
            below = tuple((own[e], kind) for e, kind in on if isinstance(e, Column))
            return _count_equal(public.source, below, catalog)
    if isinstance(public, Values) and on:
        return _count_equal_values(public, on)
    if isinstance(public, Scan):
        # In another type, more values may be equal: such columns are left out, which counts more rows.
        names = {part.name for part, kind in on if isinstance(part, Column) and part.type is kind}
        return _count_table(public.table, tuple(sorted(names)), catalog)
    return _count_rows(public, catalog)


@lru_cache(maxsize=64)
def _count_equal_values(public: Values, on: tuple[tuple[Expression, Type], ...]) -> int:
    columns = [Column(public.name, name, kind) for name, kind in public.columns]
    found: Counter[tuple[Value, ...]] = Counter()
    for values in public.rows:
        row: dict[Column | ReleasedValue, Value] = dict(zip(columns, values))
        key = tuple(settle(evaluate(expression, row), kind) for expression, kind in on)
        if None not in key:
            found[key] += 1
    return max(found.values(), default=0)


def _count_table(table: str, columns: tuple[str, ...], catalog: Catalog) -> int:
    """The most rows of a declared public table that are equal in some columns; all of them without columns."""
    if catalog.count_public is None:
        raise QuestionError(
            f"How many rows of the public table {table!r} have the same key is not known here.",
            "Join on a column that the codebook declares unique, or open the codebook with its data.",
        )
    return catalog.count_public(table, columns)


def _count_rows(public: Relation, catalog: Catalog) -> int:
    """The most rows of a public relation."""
    match public:
        case Scan():
            return _count_table(public.table, (), catalog)
        case Values():
            return len(public.rows)
        case Where() | Projection() | Distinct() | Window() | PerUnit() | Capped():
            return _count_rows(public.source, catalog)
        case Union():
            return sum(_count_rows(source, catalog) for source in public.sources)
        case Join():
            left, right = _count_rows(public.left, catalog), _count_rows(public.right, catalog)
            return left if public.kind in (JoinKind.SEMI, JoinKind.ANTI) else left * right + left + right
        case _:
            assert_never(public)
