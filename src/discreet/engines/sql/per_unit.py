"""Features in SQL: what is computed over some rows of one unit, as a function of their values.

Integers are summed in 128 bits, so no order matters, and what leaves 64 bits is NULL. Reals are summed one by one in
ascending order, in doubles. Running sums of reals would need that once for every row; they are taken in whole steps
instead, which are so fine that a double could not tell: the step is a power of two, 2^-77 of the largest value of the
part or less. Medians are half-way between the two middle values. NULLs count nowhere; without values all but counts
are NULL. Nothing raises, and no order of rows or threads shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.layers import write_real
from discreet.errors import InternalError
from discreet.plan.relations import Feature, FeatureCall
from discreet.plan.types import Type

# A step of a running sum: 2^-77 of a power of two near the largest value. With 2^47 rows, sums stay below 2^127.
STEP_BITS = 77
# Powers of two beyond this are not needed to be finer: the smallest doubles would only get steps of nothing.
FINEST = 1000
# Where a wide integer is cut in two to become a double, so that each half is an exact integer of 64 bits.
HALF = 2**63

POSITIONS = (Feature.ROW_NUMBER, Feature.RANK, Feature.DENSE_RANK, Feature.LAG, Feature.LEAD)
UNTIED = (Feature.ROW_NUMBER, Feature.LAG, Feature.LEAD)
"""The features that would show how equal ranks are ordered, and so need all values to tell rows apart."""


@dataclass(frozen=True, slots=True)
class FeatureSql:
    """A feature as aggregates, and a form over their names ({0}, {1}) that yields the value."""

    pieces: tuple[str, ...]
    form: str = "{0}"

    def write_value(self, names: Sequence[str]) -> str:
        """The value, from the names that the aggregates got."""
        return self.form.format(*names)


def write_aggregate(dialect: Dialect, compute: FeatureCall, value: str, over: str = "") -> FeatureSql:
    """A feature of the column ``value`` (empty: of rows), over a group or, with ``over``, over a frame."""
    kind = None if compute.argument is None else compute.argument.type
    if kind is None:
        if compute.feature is not Feature.COUNT:
            raise InternalError(f"{compute.feature} of nothing.")
        return FeatureSql((f"count(*){over}",))
    match compute.feature:
        case Feature.COUNT:
            return FeatureSql((f"count({value}){over}",))
        case Feature.COUNT_DISTINCT:
            return FeatureSql((f"count(DISTINCT {value}){over}",))
        case Feature.SUM | Feature.MEAN:
            whole = kind is Type.INTEGER
            total = f"{dialect.wide_sum(value)}{over}" if whole else dialect.ordered_sum(value, over)
            return _write_sum(dialect, compute, total, f"count({value}){over}", whole=whole)
        case Feature.MEDIAN:
            real = dialect.widen(value, kind, Type.REAL)
            # The lower middle of the negatives is the upper middle.
            pieces = (dialect.lower_median(real, over), dialect.lower_median(f"-({real})", over))
            apart = dialect.subtract("{0}", "{1}", Type.REAL)
            between = write_real(dialect, f"({apart} / {dialect.literal(2.0, Type.REAL)})")
            return FeatureSql(pieces, f"CASE WHEN {{0}} = -{{1}} THEN {{0}} ELSE {between} END")
        case Feature.MIN | Feature.MAX | Feature.ANY | Feature.ALL:
            names = {Feature.MIN: "min", Feature.MAX: "max", Feature.ANY: "bool_or", Feature.ALL: "bool_and"}
            return FeatureSql((f"{names[compute.feature]}({value}){over}",), dialect.widen("{0}", kind, compute.type))
        case Feature.ROW_NUMBER | Feature.RANK | Feature.DENSE_RANK | Feature.LAG | Feature.LEAD:
            raise InternalError(f"{compute.feature} is for windows only.")
        case _:
            assert_never(compute.feature)


def _write_sum(dialect: Dialect, compute: FeatureCall, total: str, count: str, *, whole: bool) -> FeatureSql:
    if compute.feature is Feature.MEAN:
        real = dialect.real_of_wide("{0}") if whole else "{0}"
        members = dialect.widen("{1}", Type.INTEGER, Type.REAL)
        return FeatureSql((total, count), write_real(dialect, f"({real} / {members})"))
    if whole:
        return FeatureSql((total,), dialect.widen(dialect.narrow("{0}"), Type.INTEGER, compute.type))
    return FeatureSql((total,), write_real(dialect, "{0}"))


def is_stepped(compute: FeatureCall, *, running: bool) -> bool:
    """Whether a feature is a running sum of reals, which is taken in steps."""
    real = compute.argument is not None and compute.argument.type is Type.REAL
    return running and real and compute.feature in (Feature.SUM, Feature.MEAN)


def write_scale(dialect: Dialect, value: str, parts: str) -> str:
    """How many steps make up 1: a power of two, by the largest value of a part; 1 for a part of zeros."""
    largest = f"max(abs({value})) OVER ({parts})"
    one, two, bits, finest, zero = (dialect.literal(float(n), Type.REAL) for n in (1, 2, STEP_BITS, FINEST, 0))
    exponent = f"least({bits} - {dialect.floor(dialect.log2(f'nullif({largest}, {zero})'))}, {finest})"
    return f"coalesce({dialect.power(two, exponent)}, {one})"


def write_steps(dialect: Dialect, value: str, scaled: str) -> str:
    """A value in whole steps, towards zero."""
    return dialect.wide_of_real(f"{value} * {scaled}")


def write_running(dialect: Dialect, compute: FeatureCall, stepped: str, scaled: str, over: str) -> FeatureSql:
    """A running sum or mean of reals, from steps."""
    half = dialect.wide_literal(HALF)
    high, low = (
        dialect.widen(dialect.as_integer(part), Type.INTEGER, Type.REAL)
        for part in (dialect.trunc_divide("{0}", half), dialect.trunc_remainder("{0}", half))
    )
    real = f"(({high} * {dialect.literal(float(HALF), Type.REAL)} + {low}) / {{1}})"
    pieces = (f"{dialect.wide_sum(stepped)}{over}", scaled)
    if compute.feature is Feature.MEAN:
        members = dialect.widen("{2}", Type.INTEGER, Type.REAL)
        return FeatureSql((*pieces, f"count({stepped}){over}"), write_real(dialect, f"({real} / {members})"))
    return FeatureSql(pieces, write_real(dialect, real))


def write_position(dialect: Dialect, compute: FeatureCall, value: str, over: str) -> FeatureSql:
    """A feature of a row's place among others. ``over`` tells rows apart where that shows (``UNTIED``)."""
    if compute.feature in (Feature.ROW_NUMBER, Feature.RANK, Feature.DENSE_RANK):
        return FeatureSql((f"{compute.feature}(){over}",))
    if compute.feature not in (Feature.LAG, Feature.LEAD) or compute.argument is None:
        raise InternalError(f"{compute.feature} of nothing.")
    away = dialect.literal(min(max(compute.offset, -HALF + 1), HALF - 1), Type.INTEGER)
    kind = compute.argument.type
    piece = f"{compute.feature}({value}, {away}, {dialect.literal(None, kind)}){over}"
    return FeatureSql((piece,), dialect.widen("{0}", kind, compute.type))
