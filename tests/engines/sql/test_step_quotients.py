"""Steps by a product where a quotient is meant: the same double for every value, or it is a quotient."""

from __future__ import annotations

import math
import struct

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.sql.step_quotients import find_exact_inverse, write_step_quotient
from discreet.plan.types import LARGEST_REAL

TINY = math.ulp(0.0)
VALUES = [0.0, -0.0, 1.0, -0.1, 1 / 3, 7e5, TINY, -3 * TINY, 2.3e-308, LARGEST_REAL, -LARGEST_REAL, math.inf,
          -math.inf, math.nan]  # fmt: skip
POWERS = st.integers(-1001, 999)


def bits(real: float) -> bytes:
    """A double bit by bit; every NaN is the same."""
    return b"NaN" if math.isnan(real) else struct.pack("<d", real)


@given(st.floats(), POWERS)
def test_a_power_of_two_divides_as_its_inverse_multiplies(value: float, exponent: int) -> None:
    """Also where the result is subnormal, which is rounded, or infinite."""
    resolution = 2.0**exponent
    inverse = find_exact_inverse(resolution)
    assert inverse is not None
    assert bits(value * inverse) == bits(value / resolution)


@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_an_inverse_has_no_error(resolution: float) -> None:
    inverse = find_exact_inverse(resolution)
    if inverse is None:
        assert math.frexp(resolution)[0] != 0.5 or not 2.0**-1001 <= resolution < 2.0**1000
    else:
        assert inverse.as_integer_ratio() == resolution.as_integer_ratio()[::-1]


@pytest.mark.parametrize("exponent", [-1022, -1002, -1001, -54, -1, 0, 1, 24, 999, 1000, 1023])
def test_duckdb_computes_the_quotient(exponent: int) -> None:
    resolution = 2.0**exponent
    sql = write_step_quotient(DIALECT, "x", resolution)
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT x, {sql} FROM (SELECT unnest(?::DOUBLE[]) AS x)", [VALUES]).fetchall()
    assert [bits(found) for _, found in rows] == [bits(x / resolution) for x, _ in rows]


@pytest.mark.parametrize("resolution", [0.01, 0.1, 3.0, 1 - 2.0**-53, 2.0**-1022, 2.0**1000])
def test_others_are_divided_by(resolution: float) -> None:
    assert " / " in write_step_quotient(DIALECT, "x", resolution)


def test_a_product_would_be_noticed_elsewhere() -> None:
    """Negative control: by the inverse of a hundredth some values are another double."""
    assert any(bits(x * 100) != bits(x / 0.01) for x in (0.07, 0.29, 1.1, 5.3))
