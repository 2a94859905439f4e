"""What PostgreSQL makes of our words: types are those of the plan, doubles are those of IEEE, and nothing raises."""

# ruff: noqa: S311  # numbers need seeds, not secrets
from __future__ import annotations

import inspect
import math
import random
import re
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from discreet.engines.postgres import reals
from discreet.engines.postgres.dialect import DIALECT, TYPES, PostgresDialect
from discreet.engines.postgres.session import PostgresSession, number_parameters
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.layers import Layers
from discreet.plan.expressions import Column
from discreet.plan.functions import FUNCTIONS
from discreet.plan.types import Type
from tests.engines.nasty import calls, columns
from tests.engines.postgres.loading import database

NAMES = {"bigint": "bigint", "float8": "double precision", "timestamp": "timestamp without time zone"}


def ask(sql: str, parameters: dict[str, str] | None = None) -> list[tuple[Any, ...]]:
    with PostgresSession(database().reader, work_memory="64MB") as session:
        return session.run(sql, parameters)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_results_have_the_declared_type(name: str) -> None:
    """PostgreSQL gives a call the very type that the plan gives it, so that no wider value can slip through."""
    asked = [
        (expression, kinds) for expression, kinds in calls(name) if "\0" not in "".join(map(str, expression.arguments))
    ]
    with PostgresSession(database().reader, work_memory="64MB") as session:
        for expression, kinds in asked[:15]:
            layers = Layers({column: column.name for column in columns(kinds)}, DIALECT)
            value = layers.write_value(expression)
            clauses, top = layers.write_ctes("data", "l")
            nulls = ", ".join(f"{DIALECT.literal(None, kind)} AS c{i}" for i, kind in enumerate(kinds))
            typed = f"SELECT CAST(pg_typeof({value}) AS text) FROM {top}"
            sql = f"WITH data AS (SELECT {nulls}), {', '.join(clauses)} {typed}"
            wanted = TYPES[expression.type]
            assert session.run(sql, layers.parameters) == [(NAMES.get(wanted, wanted),)]


def test_18_no_function_is_volatile() -> None:
    """Nothing that is written draws, tells the time or counts."""
    for name in FUNCTIONS:
        expression, kinds = next(calls(name))
        layers = Layers({Column("t", f"c{i}", kind): f"c{i}" for i, kind in enumerate(kinds)}, DIALECT)
        layers.write_value(expression)
        text = " ".join(layers.write_ctes("t", "e")[0])
        assert not re.search(r"\b(random|now|current_\w+|clock_timestamp|gen_random\w*|nextval)\b", text), name


def test_every_primitive_takes_the_same_arguments() -> None:
    for name, method in inspect.getmembers(Dialect, inspect.isfunction):
        if not name.startswith("_"):
            own = inspect.signature(getattr(PostgresDialect, name))
            assert list(own.parameters) == list(inspect.signature(method).parameters)


def test_parameters_get_numbers_and_names_stay() -> None:
    """A name that looks like a parameter stays a name; what is not named is not sent; a NUL in a name is refused."""
    sql = f"SELECT {DIALECT.parameter('t1')} AS {DIALECT.quote_name('$t1')}, {DIALECT.parameter('t1')}"
    text, values = number_parameters(sql, {"t0": "a", "t1": "b"})
    assert values == ["b"] and text.count("$1") == 2 and '"$t1"' in text
    assert ask(sql, {"t0": "a", "t1": "b"}) == [("b", "b")]
    with pytest.raises(Exception, match="NUL"):
        DIALECT.quote_name("a\0t1\0")


EDGES = (0.0, 1.0, 0.5, 2.0**-1074, 2.0**-1022, sys.float_info.max, 2.0**1023, 2.0**-537, 2.0**-538, 2.0**511, 2.0**512)


def some_doubles(seed: int, count: int) -> list[float]:
    """Doubles of all sizes, those where results over- or underflow among them."""
    rng, found = random.Random(seed), list[float]()
    while len(found) < count:
        near = rng.choice((-1074, -1022, -600, -538, -537, -500, -1, 0, 1, 500, 511, 512, 600, 1022, 1023))
        exponent = rng.choice((rng.randint(-1074, 1023), min(1023, max(-1074, near + rng.randint(-2, 2)))))
        found.append(rng.choice((-1, 1)) * math.ldexp(rng.choice((1.0, 1 + rng.random(), 2 - 2**-52)), exponent))
    return [*found, *EDGES, *(-edge for edge in EDGES)]


def compute(form: str, pairs: Sequence[tuple[float, float]]) -> list[float | None]:
    """A form over doubles a and b, for many pairs at once."""
    with PostgresSession(database().reader, work_memory="64MB") as session:
        import pyarrow as pa

        left, right = ([pair[i] for pair in pairs] for i in range(2))
        session.fill("pairs", pa.table({"n": range(len(pairs)), "a": left, "b": right}))
        return [row[0] for row in session.run(f"SELECT {form} FROM pairs ORDER BY n")]


PAIRS = [(a, b) for a, b in zip(some_doubles(1, 4000), reversed(some_doubles(2, 4000)))]


def divide(a: float, b: float) -> float | None:
    if b == 0:
        return None
    try:
        return a / b
    except OverflowError:
        return math.copysign(math.inf, a) * math.copysign(1, b)


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        (reals.write_sum("a", "b"), lambda a, b: a + b),
        (reals.write_product("a", "b"), lambda a, b: a * b),
        (reals.write_quotient("a", "b"), divide),
    ],
    ids=["sum", "product", "quotient"],
)
def test_arithmetic_is_that_of_ieee_and_never_raises(form: str, wanted: Any) -> None:
    """Doubles of all sizes, and those beside every threshold: the same double, infinite where it overflows."""
    unlike = [
        (a, b, got)
        for (a, b), got in zip(PAIRS, compute(form, PAIRS))
        if got != (right := wanted(a, b)) and not _is_beside_nothing(got, right)
    ]
    assert unlike == []


def _is_beside_nothing(got: float | None, right: float | None) -> bool:
    """The one exception: a product just above half of the smallest double may be 0."""
    return got == 0.0 and right is not None and abs(right) == 2.0**-1074


@pytest.mark.parametrize("operator", ["+", "*", "/"])
def test_without_guards_it_raises(operator: str) -> None:
    """Negative control: the same pairs make the bare operators fail."""
    import psycopg

    with pytest.raises(psycopg.Error):
        compute(f"a {operator} nullif(b, 0)", PAIRS)


@pytest.mark.parametrize("form", [reals.write_exponential("a"), reals.write_power("a", "b"), DIALECT.square_root("a")])
def test_functions_never_raise(form: str) -> None:
    pairs = [*PAIRS, *((a, b) for a in EDGES for b in EDGES), *((float(a), 0.5) for a in range(-800, 800))]
    pairs += [
        (a, b) for a in (-2.0, -1.0, 10.0, 2.0) for b in (307.0, 308.0, 309.0, 1023.0, 1024.0, -1074.0, -1076.0, 3.5)
    ]
    assert len(compute(form, pairs)) == len(pairs)


@pytest.mark.parametrize("resolution", [2.0**-1074, 1e-300, 0.01, 1.0, 3.0, 1e250, 1e300])
@pytest.mark.parametrize("origin", [0.0, -7.5, 1e290, sys.float_info.max])
def test_steps_never_raise(origin: float, resolution: float) -> None:
    """Whatever a row holds, for every grid; and ordinary values have the steps that the formula says."""
    numbers = [*some_doubles(3, 500), math.inf, -math.inf, math.nan]
    found = compute(reals.write_steps("a", origin, resolution), [(number, 0.0) for number in numbers])
    for number, got in zip(numbers, found):
        assert got is not None
        with_steps = (number - origin) / resolution + 0.5 if abs(number - origin) < 2.0**900 * resolution else math.inf
        if abs(with_steps) < 2**62:
            assert got == math.floor(with_steps)


@pytest.mark.parametrize("name", ["exp", "square_root"])
def test_a_constant_in_a_branch_not_taken_does_not_raise(name: str) -> None:
    """PostgreSQL computes constant parts while it plans, also in branches that no row takes."""
    form = getattr(DIALECT, name)(reals.constant(-1e6 if name != "exp" else 1e6))
    ((kept,),) = ask(f"SELECT count(CASE WHEN x > 5 THEN {form} END) FROM (VALUES (1), (2)) AS t(x)")
    assert kept == 0


def test_texts_compare_by_code_points_whoever_made_them() -> None:
    """The database's own locale sorts otherwise; constants, numbers as texts, and columns all follow ours."""
    a, b = DIALECT.parameter("t0"), DIALECT.parameter("t1")
    assert ask(f"SELECT {a} < {b}", {"t0": "B", "t1": "a"}) == [(True,)]
    ten, nine = (DIALECT.to_text(DIALECT.literal(number, Type.INTEGER), Type.INTEGER) for number in (10, 9))
    assert ask(f"SELECT {ten} < {nine}") == [(True,)]
    assert ask("SELECT CAST(10 AS text) < CAST(9 AS text)") == [(False,)]  # the database's locale compares numbers
