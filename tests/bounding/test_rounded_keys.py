"""Rounded numbers as keys: all values between the bounds are listed, and what the engine computes is among them."""

# ruff: noqa: S311  # values need seeds, not secrets
from __future__ import annotations

import random
from fractions import Fraction

import pytest

from discreet.bounding.bound import bound_all
from discreet.bounding.facts import facts_of
from discreet.bounding.rounded_keys import MAX_STEPS
from discreet.errors import UsageError
from discreet.frontends import read_sql
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Expression
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit

TABLE = TableFacts(
    name="t",
    columns={
        "id": (Type.INTEGER, ColumnFacts()),
        "age": (Type.INTEGER, ColumnFacts(low=Fraction(-13), high=Fraction(110), resolution=Fraction(1))),
        "cost": (Type.REAL, ColumnFacts(low=Fraction(-5, 2), high=Fraction(900), nullable=False)),
        "size": (Type.REAL, ColumnFacts(low=Fraction(0), high=Fraction(MAX_STEPS + 1))),
        "free": (Type.REAL, ColumnFacts()),
    },
    unit=Unit("id"),
    limits=ContributionLimits(max_rows=5),
)
CATALOG = Catalog(tables={"t": TABLE}, neighbours=Neighbours.ADD_REMOVE)

KEYS = [
    "age // 10",
    "age // -7",
    "floor(age / 10)",
    "floor(age / 10) * 10",
    "ceil(cost / 100)",
    "trunc(cost)",
    "round(age, -1)",
    "round(cost, -2)",
    "round(cost, 1)",
    "round(cost)",
    "CAST(cost / 10 AS BIGINT)",
    "CAST(floor(age / 5) AS BIGINT) * 5",
]


def key_of(key: str) -> Expression:
    return read_sql.read(f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY k", CATALOG).keys[0]


@pytest.mark.parametrize("key", KEYS)
def test_every_value_within_the_bounds_is_listed(key: str) -> None:
    """Whatever value keeps the bounds, its key is one of the public ones; and the keys are not many more."""
    expression = key_of(key)
    keys = facts_of(expression, CATALOG).keys
    assert keys is not None and len(keys) == len(set(keys))
    rng = random.Random(key)
    ages, costs = (
        range(-13, 111),
        [-2.5, 900.0, 0.0, 0.05, -0.05, 899.95, *(rng.uniform(-2.5, 900) for _ in range(3000))],
    )
    found = {
        evaluate(expression, {TABLE.find_column("age"): age, TABLE.find_column("cost"): cost})
        for age, cost in [*((age, 1.0) for age in ages), *((1, cost) for cost in costs), (None, 1.0)]
    }
    assert found <= {*keys, None}
    assert None in keys or "age" not in key


def test_the_domain_of_a_question_is_public() -> None:
    (form,) = bound_all(read_sql.read("SELECT age // 50 AS k, COUNT(*) AS n FROM t GROUP BY k", CATALOG), CATALOG)
    assert form.bounded.domain == ((0,), (1,), (2,), (None,))


def test_too_many_keys_are_not_listed() -> None:
    """Beyond the limit, and without bounds, there are no public keys; reals are then refused with what to write."""
    assert facts_of(key_of("floor(size)"), CATALOG).keys is None
    assert facts_of(key_of("floor(free)"), CATALOG).keys is None
    assert facts_of(key_of("round(size, -12)"), CATALOG).keys == (0.0, 1e12, None)
    with pytest.raises(UsageError, match="Use bin"):
        bound_all(read_sql.read("SELECT floor(size) AS k, COUNT(*) AS n FROM t GROUP BY k", CATALOG), CATALOG)
