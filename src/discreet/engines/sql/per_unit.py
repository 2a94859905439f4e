"""Features in DuckDB's SQL: what is computed over some rows of one unit, as a function of their values.

Integers are summed in 128 bits, so no order matters, and what leaves 64 bits is NULL. Reals are summed one by one in
ascending order, in doubles. Running sums of reals would need that once for every row; they are taken in whole steps
instead, which are so fine that a double could not tell: the step is a power of two, 2^-77 of the largest value of the
part or less. Medians are half-way between the two middle values. NULLs count nowhere; without values all but counts
are NULL. Nothing raises, and no order of rows or threads shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.engines.sql.layers import SQL_TYPES, cast, write_finite
from discreet.errors import InternalError
from discreet.plan.relations import Feature, FeatureCall
from discreet.plan.types import Type

# A step of a running sum: 2^-77 of a power of two near the largest value. With 2^47 rows, sums stay below 2^127.
STEP_BITS = 77
# Powers of two beyond this are not needed to be finer: the smallest doubles would only get steps of nothing.
FINEST = 1000
# Where a HUGEINT is cut in two to become a double, so that each half is an exact BIGINT.
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


def write_aggregate(compute: FeatureCall, value: str, over: str = "") -> FeatureSql:
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
            total = f"sum({value}){over}" if kind is Type.INTEGER else f"sum({value} ORDER BY {value}){over}"
            return _write_sum(compute, kind, total, f"count({value}){over}")
        case Feature.MEDIAN:
            real = cast(value, kind, Type.REAL)
            # The lower middle of the negatives is the upper middle.
            pieces = (f"quantile_disc({real}, 0.5){over}", f"quantile_disc(-({real}), 0.5){over}")
            return FeatureSql(
                pieces, f"CASE WHEN {{0}} = -{{1}} THEN {{0}} ELSE {write_finite('(({0} - {1}) / 2)')} END"
            )
    names = {Feature.MIN: "min", Feature.MAX: "max", Feature.ANY: "bool_or", Feature.ALL: "bool_and"}
    if compute.feature not in names:
        raise InternalError(f"{compute.feature} is for windows only.")
    return FeatureSql((f"{names[compute.feature]}({value}){over}",), cast("{0}", kind, compute.type))


def _write_sum(compute: FeatureCall, kind: Type, total: str, count: str) -> FeatureSql:
    if compute.feature is Feature.MEAN:
        real = _write_nearest_double("{0}") if kind is Type.INTEGER else "{0}"
        return FeatureSql((total, count), write_finite(f"({real} / {{1}})"))
    if kind is Type.INTEGER:
        return FeatureSql((total,), cast("TRY_CAST({0} AS BIGINT)", kind, compute.type))
    return FeatureSql((total,), write_finite("{0}"))


def _write_nearest_double(whole: str) -> str:
    """The double nearest to a HUGEINT. DuckDB rounds twice beyond 64 bits, but reads digits correctly."""
    small = f"TRY_CAST({whole} AS BIGINT)"
    text = f"CAST(CAST({whole} AS VARCHAR) AS DOUBLE)"
    return f"CASE WHEN {small} IS NOT NULL THEN CAST({small} AS DOUBLE) ELSE {text} END"


def is_stepped(compute: FeatureCall, *, running: bool) -> bool:
    """Whether a feature is a running sum of reals, which is taken in steps."""
    real = compute.argument is not None and compute.argument.type is Type.REAL
    return running and real and compute.feature in (Feature.SUM, Feature.MEAN)


def write_scale(value: str, parts: str) -> str:
    """How many steps make up 1: a power of two, by the largest value of a part; 1 for a part of zeros."""
    largest = f"max(abs({value})) OVER ({parts})"
    exponent = f"least({STEP_BITS} - floor(log2(nullif({largest}, 0))), {FINEST})"
    return f"coalesce(pow(CAST(2 AS DOUBLE), {exponent}), CAST(1 AS DOUBLE))"


def write_steps(value: str, scaled: str) -> str:
    """A value in whole steps, towards zero."""
    return f"CAST(trunc({value} * {scaled}) AS HUGEINT)"


def write_running(compute: FeatureCall, stepped: str, scaled: str, over: str) -> FeatureSql:
    """A running sum or mean of reals, from steps."""
    half = f"CAST({HALF} AS HUGEINT)"
    high, low = f"CAST(CAST({{0}} // {half} AS BIGINT) AS DOUBLE)", f"CAST(CAST({{0}} % {half} AS BIGINT) AS DOUBLE)"
    real = f"(({high} * CAST('{float(HALF)!r}' AS DOUBLE) + {low}) / {{1}})"
    pieces = (f"sum({stepped}){over}", scaled)
    if compute.feature is Feature.MEAN:
        return FeatureSql((*pieces, f"count({stepped}){over}"), write_finite(f"({real} / {{2}})"))
    return FeatureSql(pieces, write_finite(real))


def write_position(compute: FeatureCall, value: str, over: str) -> FeatureSql:
    """A feature of a row's place among others. ``over`` tells rows apart where that shows (``UNTIED``)."""
    match compute.feature:
        case Feature.LAG | Feature.LEAD if compute.argument is not None:
            away = f"CAST({min(max(compute.offset, -HALF + 1), HALF - 1)} AS BIGINT)"
            kind = SQL_TYPES[compute.argument.type]
            piece = f"{compute.feature}({value}, {away}, CAST(NULL AS {kind})){over}"
            return FeatureSql((piece,), cast("{0}", compute.argument.type, compute.type))
        case Feature.ROW_NUMBER | Feature.RANK | Feature.DENSE_RANK:
            return FeatureSql((f"{compute.feature}(){over}",))
        case _:
            raise InternalError(f"{compute.feature} of nothing.")
