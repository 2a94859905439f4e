"""How many rows a question can make of one row: joins with public rows multiply, and a product has a limit.

Why: operators that are linear in a unit's rows cost like reading them, and an analyst cannot steer that. But rows that
are multiplied for one unit only, such as by a join with public rows on ``CASE WHEN pid = 17 AND age > 40 ...``, make
the time and the memory of a question tell about that unit. So two facts of every relation are known when a question is
read. ``most`` is the largest number of rows that a unit has in it, or None. Where it is None, a unit has at most
``fan`` rows for each combination of its rows in the tables that are joined (for each row, if there is one table; a
table in which it has no rows counts as one). Both are at most ``MAX_FAN``, or the question is refused.

What this does not bound: two private tables that are joined make combinations of a unit's own rows, as many as it has
in the tables. Only a side with a ``most`` bounds them.

The rules, by node, each with its reason:

- A table: no ``most``, and ``fan`` 1. Where a row is its own unit: ``most`` 1.
- Conditions, new columns, DISTINCT and windows: as the source, for they add no rows.
- Groups of a unit by the unit alone: ``most`` 1. By more keys: as the source, for no group is without a row.
- A union: sums. Where one part has a ``most`` and another has none, the former counts as a ``fan``: a unit with a row
  in that part has at least one row below it.
- A join with public rows: a row pairs with the public rows of its key, which are at most the largest number of public
  rows with equal keys; an unmatched row stays once. A look-up (``single``) pairs once. SEMI and ANTI add nothing.
- A join of private rows on the unit: the product, for each combination of one side meets each of the other; where
  unmatched rows stay, plus the rows of that side.
- A link, and a join after truncation: as the rows that are read, which the truncation bounds.

Public rows in a question are counted as they are. The planner does not read declared public tables. One whose key is
declared unique pairs once, by the word of the owner. One whose key is not counts as ``UNREAD`` rows with equal keys:
few such joins can follow each other, but how many rows they make is the owner's choice of public rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from discreet.errors import UsageError
from discreet.plan.evaluate import evaluate, settle
from discreet.plan.expressions import Column, Expression, ReleasedValue
from discreet.plan.functions import find_common_type
from discreet.plan.relations import (
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

# The most rows that may be made of one row of a unit, and the most rows of a unit where their number is known.
MAX_FAN = 10_000
# How many rows with equal keys a declared public table is taken to have, where its key is not declared unique.
UNREAD = 20


@dataclass(frozen=True, slots=True)
class FanOut:
    """The most rows of a unit, or None; then at most ``fan`` for each combination of its rows in the tables."""

    most: int | None = None
    fan: int = 1

    @property
    def factor(self) -> int:
        """The most rows for each combination of a unit's rows."""
        return self.fan if self.most is None else self.most

    def multiply(self, times: int) -> FanOut:
        """Every row becomes at most so many."""
        return _check(FanOut(None if self.most is None else self.most * times, self.factor * times))


ONE_ROW = FanOut(most=1)


def add_parts(parts: Sequence[FanOut]) -> FanOut:
    """The rows of a union."""
    known = [part.most for part in parts if part.most is not None]
    return _check(FanOut(sum(known) if len(known) == len(parts) else None, sum(part.factor for part in parts)))


def pair_private(kind: JoinKind, left: FanOut, right: FanOut) -> FanOut:
    """The pairs of a unit's rows in two private relations, and the unmatched rows that stay."""
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left
    rows = left.factor * right.factor
    rows += left.factor if kind in (JoinKind.LEFT, JoinKind.FULL) else 0
    rows += right.factor if kind in (JoinKind.RIGHT, JoinKind.FULL) else 0
    return _check(FanOut(None if left.most is None or right.most is None else rows, rows))


def pair_public(relation: Join, private: FanOut, public: Relation, side: int, *, unique: bool) -> FanOut:
    """The pairs of private rows with public ones. ``side`` is the place of the public rows in the join's conditions.

    ``unique`` says that no two public rows have the same value of one of the conditions.
    """
    if unique or relation.single or relation.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return private
    kinds = [find_common_type((one.type, two.type)) or one.type for one, two in relation.on]
    pairs = tuple((pair[side], kind) for pair, kind in zip(relation.on, kinds))
    return private.multiply(max(1, count_equal(public, pairs)))


@lru_cache(maxsize=64)
def count_equal(public: Relation, on: tuple[tuple[Expression, Type], ...]) -> int:
    """The largest number of public rows, or more, that are equal in some expressions, each compared in a type.

    Rows with a NULL among them match nothing. Conditions take rows away, so they are passed over.
    """
    while isinstance(public, Where):
        public = public.source
    if isinstance(public, Projection):
        own = {Column(public.name, name, value.type): value for name, value in public.columns}
        if all(isinstance(expression, Column) for expression, _ in on):
            return count_equal(public.source, tuple((own[e], kind) for e, kind in on if isinstance(e, Column)))
    if isinstance(public, Values) and on:
        return _count_equal_values(public, on)
    return _count_rows(public)


def _count_equal_values(public: Values, on: Sequence[tuple[Expression, Type]]) -> int:
    columns = [Column(public.name, name, kind) for name, kind in public.columns]
    found: Counter[tuple[Value, ...]] = Counter()
    for values in public.rows:
        row: dict[Column | ReleasedValue, Value] = dict(zip(columns, values))
        key = tuple(settle(evaluate(expression, row), kind) for expression, kind in on)
        if None not in key:
            found[key] += 1
    return max(found.values(), default=0)


def _count_rows(public: Relation) -> int:
    """The most rows of a public relation; a declared table counts as ``UNREAD``."""
    match public:
        case Scan():
            return UNREAD
        case Values():
            return len(public.rows)
        case Where() | Projection() | Distinct() | Window() | PerUnit():
            return _count_rows(public.source)
        case Union():
            return sum(map(_count_rows, public.sources))
        case Join():
            left, right = _count_rows(public.left), _count_rows(public.right)
            return left if public.kind in (JoinKind.SEMI, JoinKind.ANTI) else left * right + left + right
        case _:
            assert_never(public)


def _check(rows: FanOut) -> FanOut:
    if rows.factor > MAX_FAN:
        raise UsageError(
            f"These joins may make {rows.factor:,} rows of one; at most {MAX_FAN:,} are allowed, so that the work for "
            "one unit does not depend on what it holds. Join with public rows whose keys differ, or aggregate per unit "
            "before joining. Nothing was charged."
        )
    return rows
