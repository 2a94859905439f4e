"""Magnitudes are exact: at every power of two and beside it, for every type."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from discreet.bounding.facts import facts_of
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column
from discreet.plan.functions import make_call, make_literal
from discreet.plan.magnitude import BUCKETS, LARGEST, SMALLEST, IntOrFloat, ends, magnitude
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type
from discreet.privacy import Neighbours, Unit

WHOLE, REAL = Column("t", "n", Type.INTEGER), Column("t", "x", Type.REAL)


def around_powers_of_reals() -> list[float]:
    """Every power of two that is a double, with its neighbours on both sides, of both signs, and zero."""
    powers = [math.ldexp(1.0, k) for k in range(-1074, 1024)]
    near = [x for p in powers for x in (math.nextafter(p, 0.0), p, math.nextafter(p, math.inf))]
    return [0.0, *(sign * x for x in near if math.isfinite(x) for sign in (1, -1))]


def around_powers_of_integers() -> list[int]:
    near = [p + step for k in range(64) for p in (1 << k, -(1 << k)) for step in (-1, 0, 1)]
    return [n for n in near if INTEGER_MIN <= n <= INTEGER_MAX]


def by_definition(number: IntOrFloat) -> Fraction:
    """The largest power of two at or below the size, by trying all, with the sign."""
    size = abs(Fraction(number))
    if isinstance(number, float) and size < Fraction(SMALLEST):
        return Fraction(0)
    powers = [Fraction(2) ** k for k in range(-40, 64) if Fraction(2) ** k <= size]
    return Fraction(0) if not powers else powers[-1] * (1 if number > 0 else -1)


def test_beside_every_power_of_two() -> None:
    """One step below a power of two is in the bucket before; the power and one step above are in its own."""
    numbers: list[IntOrFloat] = [*around_powers_of_reals(), *around_powers_of_integers()]
    for number in numbers:
        found = magnitude(number)
        assert Fraction(found) == by_definition(number), number
        assert (
            type(found) is type(number) and found in BUCKETS[Type.REAL if isinstance(number, float) else Type.INTEGER]
        )


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(INTEGER_MIN, INTEGER_MAX))
def test_a_number_lies_in_its_bucket(number: IntOrFloat) -> None:
    """Whatever the number, it is between the ends of its bucket, but for what is smaller or larger than all buckets."""
    low, high = map(Fraction, ends(magnitude(number)))
    if abs(number) >= 2 * LARGEST:
        assert abs(magnitude(number)) == LARGEST
    elif isinstance(number, float) and abs(number) < SMALLEST:
        assert low == high == 0
    else:
        assert low <= Fraction(number) <= high


def test_buckets_are_few_ascending_and_their_own_magnitudes() -> None:
    """The keys are a short public list; each is the bucket that it names."""
    for buckets, count in ((BUCKETS[Type.INTEGER], 128), (BUCKETS[Type.REAL], 193)):
        assert len(buckets) == count and list(buckets) == sorted(buckets)
        assert all(magnitude(bucket) == bucket for bucket in buckets)


def facts_with(kind: Type, low: Fraction | None, high: Fraction | None, *, nullable: bool = False) -> ColumnFacts:
    """The facts of the magnitude of a column with these bounds."""
    columns = {"x": (kind, ColumnFacts(nullable=nullable, low=low, high=high))}
    table = TableFacts(name="t", columns=columns, unit=Unit(), limits=ContributionLimits(max_rows=1))
    catalog = Catalog(tables={"t": table}, neighbours=Neighbours.ADD_REMOVE)
    return facts_of(make_call("magnitude", table.find_column("x")), catalog)


def test_keys_are_public_for_any_number() -> None:
    """Without bounds all buckets are keys, with NULL where there may be one; bounds leave fewer."""
    assert facts_with(Type.INTEGER, None, None).keys == BUCKETS[Type.INTEGER]
    assert facts_with(Type.REAL, None, None, nullable=True).keys == (*BUCKETS[Type.REAL], None)
    assert facts_with(Type.INTEGER, Fraction(0), Fraction(110)).keys == (0, 1, 2, 4, 8, 16, 32, 64)
    assert facts_with(Type.INTEGER, Fraction(-3), Fraction(5, 2)).keys == (-2, -1, 0, 1, 2)
    assert facts_with(Type.INTEGER, Fraction(1, 4), Fraction(3, 4)).keys is None
    assert facts_with(Type.INTEGER, Fraction(-(10**400)), Fraction(10**400)).keys == BUCKETS[Type.INTEGER]
    assert facts_with(Type.REAL, Fraction(10**400), Fraction(10**401)).keys == (LARGEST,)


def test_rounding_of_doubles_leaves_no_value_out() -> None:
    """0.7 − 0.2 is a little less than 0.5 in doubles, and its bucket is a key all the same."""
    asked = make_call("magnitude", make_call("subtract", make_literal(0.7), make_literal(0.2)))
    nothing = Catalog(tables={}, neighbours=Neighbours.ADD_REMOVE)
    assert evaluate(asked, {}) == 0.25 and 0.25 in (facts_of(asked, nothing).keys or ())


@given(
    st.sampled_from([Type.INTEGER, Type.REAL]),
    st.tuples(st.fractions(-(2**70), 2**70, max_denominator=2**40), st.fractions(-(2**70), 2**70)),
    st.data(),
)
def test_no_value_within_bounds_is_left_out(kind: Type, bounds: tuple[Fraction, Fraction], data: st.DataObject) -> None:
    """Every number that keeps the bounds has its bucket among the keys."""
    low, high = sorted(bounds)
    first, last = max(math.ceil(low), INTEGER_MIN), min(math.floor(high), INTEGER_MAX)
    if kind is Type.INTEGER:
        if first > last:
            return
        number: IntOrFloat = data.draw(st.integers(first, last))
    else:
        number = data.draw(st.floats(float(low), float(high)))
    assert magnitude(number) in (facts_with(kind, low, high).keys or ())
