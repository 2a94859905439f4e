"""Features in SQL: what is computed over some rows of one unit, as a function of their values.

Integers are summed in 128 bits, so no order matters, and what leaves 64 bits is NULL. Reals are summed in whole steps
(``real_sums``), so no order matters either. Medians are half-way between the two middle values, which are read from
numbered rows (``unit_groups``): no aggregate holds the rows of a unit. NULLs count nowhere; without values all but
counts are NULL. Nothing raises, and no order of rows or threads shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.layers import write_real
from discreet.errors import InternalError
from discreet.late_dataclass import dataclass
from discreet.plan.relations import Feature, FeatureCall
from discreet.plan.types import INTEGER_MAX, Type

RANKS = (Feature.RANK, Feature.DENSE_RANK)
POSITIONS = (*RANKS, Feature.ROW_NUMBER, Feature.LAG, Feature.LEAD)
UNTIED = (Feature.ROW_NUMBER, Feature.LAG, Feature.LEAD)
"""The features that would show how equal ranks are ordered, and so need all values to tell rows apart."""


@dataclass(frozen=True, slots=True)
class FeatureSql:
    """A feature as aggregates, and a form over their names ({0}, {1}) that yields the value.

    ``stages`` are computed in between, one after the other, each over the names of what comes before it.
    """

    pieces: tuple[str, ...]
    form: str = "{0}"
    stages: tuple[str, ...] = ()

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
        case Feature.COUNT_DISTINCT if not over or compute.frame is not None:
            return FeatureSql((f"count(DISTINCT {value}){over}",))  # not every engine has it in a frame: plan.gaps
        case Feature.SUM | Feature.MEAN if kind is Type.INTEGER:
            return _write_sum(dialect, compute, f"{dialect.wide_sum(value)}{over}", f"count({value}){over}")
        case Feature.SUM | Feature.MEAN | Feature.MEDIAN | Feature.COUNT_DISTINCT:
            raise InternalError(f"{compute.feature} of {kind} is read from steps or places.")
        case Feature.MIN | Feature.MAX | Feature.ANY | Feature.ALL:
            truth = kind is Type.BOOLEAN  # false comes before true
            names = {Feature.MIN: "bool_and" if truth else "min", Feature.MAX: "bool_or" if truth else "max"}
            names |= {Feature.ANY: "bool_or", Feature.ALL: "bool_and"}
            return FeatureSql((f"{names[compute.feature]}({value}){over}",), dialect.widen("{0}", kind, compute.type))
        case Feature.ROW_NUMBER | Feature.RANK | Feature.DENSE_RANK | Feature.LAG | Feature.LEAD:
            raise InternalError(f"{compute.feature} is for windows only.")
        case _:
            assert_never(compute.feature)


def _write_sum(dialect: Dialect, compute: FeatureCall, total: str, count: str) -> FeatureSql:
    if compute.feature is Feature.MEAN:
        members = dialect.widen("{1}", Type.INTEGER, Type.REAL)
        return FeatureSql((total, count), write_real(dialect, f"({dialect.real_of_wide('{0}')} / {members})"))
    return FeatureSql((total,), dialect.widen(dialect.narrow("{0}"), Type.INTEGER, compute.type))


def write_median(dialect: Dialect, real: str, place: str, count: str) -> FeatureSql:
    """The median of reals, from the place of each in ascending order, NULLs last, and the number of values."""
    one, two = (dialect.literal(n, Type.INTEGER) for n in (1, 2))
    lower = f"{place} = {dialect.trunc_divide(f'{count} + {one}', two)}"
    upper = f"{place} = {dialect.trunc_divide(count, two)} + {one}"
    pieces = tuple(f"max(CASE WHEN {middle} THEN {real} END)" for middle in (lower, upper))
    stages = (dialect.add("{0}", "{1}", Type.REAL), dialect.divide("{2}", dialect.literal(2.0, Type.REAL)))
    return FeatureSql(pieces, f"CASE WHEN {{0}} = {{1}} THEN {{0}} ELSE {write_real(dialect, '{3}')} END", stages)


def write_position(dialect: Dialect, compute: FeatureCall, value: str, over: str) -> FeatureSql:
    """A feature of a row's place among others. ``over`` tells rows apart where that shows (``UNTIED``)."""
    if compute.feature is Feature.ROW_NUMBER or compute.feature in RANKS:
        # Spark's have 32 bits, which the secret order would tell from 64.
        return FeatureSql((f"{compute.feature}(){over}",), dialect.as_integer("{0}"))
    if compute.feature not in (Feature.LAG, Feature.LEAD) or compute.argument is None:
        raise InternalError(f"{compute.feature} of nothing.")
    away, kind = min(max(compute.offset, -INTEGER_MAX), INTEGER_MAX), compute.argument.type
    piece = f"{dialect.row_away(compute.feature, value, away, kind)}{over}"
    return FeatureSql((piece,), dialect.widen("{0}", kind, compute.type))
