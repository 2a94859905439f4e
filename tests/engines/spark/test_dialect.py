"""Spark's words where the shared tests cannot look: the hash that the oracle follows, and division of wide integers."""

# ruff: noqa: S311, DTZ001  # worlds need seeds, not secrets; statements are our own; plan times have no zone
from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa

from discreet.engines.order import TypedValue
from discreet.engines.spark.dialect import DIALECT, WIDE
from discreet.engines.spark.session import SparkQuestion
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type
from tests.engines.nasty import VALUES
from tests.engines.spark.loading import NEEDS_SPARK, spark
from tests.engines.spark.order import SparkOrder, hash_bytes
from tests.engines.worlds import ARROW, SALT

pytestmark = NEEDS_SPARK


def test_the_hash_in_python_is_spark_s() -> None:
    """For every nasty value of every type, alone and behind another one; all lengths of text."""
    order = SparkOrder()
    texts: list[TypedValue] = [(("x" * n) + "é", Type.TEXT) for n in range(70)]
    single: list[TypedValue] = [(value, kind) for kind, values in VALUES.items() for value in values] + texts
    with SparkQuestion(spark()) as question:
        for kind in Type:
            values = [value for value, own in single if own is kind]
            question.fill("given", pa.table({"i": range(len(values)), "x": pa.array(values, ARROW[kind])}))
            identity = DIALECT.identity("x", kind)
            row = DIALECT.place_of_row([("x", kind), ("i", Type.INTEGER)], SALT)
            group = DIALECT.place_of_group(identity, [("x", kind)], SALT, order.bits)
            found = question.run(
                f"SELECT {row} AS r, CASE WHEN x IS NOT NULL THEN {group} END AS g FROM given ORDER BY i"
            )
            assert found["r"].to_pylist() == [
                order.place_of_row(SALT, [(value, kind), (i, Type.INTEGER)]) for i, value in enumerate(values)
            ]
            assert found["g"].to_pylist() == [
                None if value is None else order.place_of_group(SALT, (value, kind), [(value, kind)])
                for value in values
            ]
    assert hash_bytes(b"", 0) == 0xEF46DB3751D8E999  # the published value


def test_null_is_a_value_of_the_secret_order() -> None:
    """Spark's own hash passes over NULL: a NULL in the first place and one in the second would be the same."""
    order = SparkOrder()
    one: list[TypedValue] = [(None, Type.TEXT), ("a", Type.TEXT)]
    assert order.place_of_row(SALT, one) != order.place_of_row(SALT, one[::-1])


def test_wide_integers_are_divided_exactly() -> None:
    """Towards zero, for all sizes up to 2^126; the smallest and the largest integers among the divisors."""
    draw = random.Random(7)
    sizes = [0, 1, 2**31, 2**63, 10**19, 10**31 - 1, 10**31, 2**126 - 1, *(draw.getrandbits(126) for _ in range(40))]
    divisors = [2, 3, 10, 2**24, 2**31 - 1, INTEGER_MAX, INTEGER_MIN, *(draw.getrandbits(60) + 2 for _ in range(8))]
    pairs = [(sign * size, divisor) for size in sizes for divisor in divisors for sign in (1, -1)]
    given = pa.table({"i": range(len(pairs)), "a": [str(a) for a, _ in pairs], "b": [b for _, b in pairs]})
    left = f"CAST(a AS {WIDE})"
    with SparkQuestion(spark()) as question:
        question.fill("given", given)
        quotient, rest = (f(left, "b", wide=True) for f in (DIALECT.trunc_divide, DIALECT.trunc_remainder))
        found = question.run(f"SELECT {quotient} AS q, {rest} AS r FROM given ORDER BY i")
    wanted = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in pairs]
    assert [int(q) for q in found["q"].to_pylist()] == wanted
    assert [int(r) for r in found["r"].to_pylist()] == [a - q * b for (a, b), q in zip(pairs, wanted)]


def test_moments_are_those_of_utc() -> None:
    """The owner's session is somewhere else, and a question's is not."""
    moment = dt.datetime(2024, 3, 31, 1, 30)
    with SparkQuestion(spark()) as question:
        question.fill("given", pa.table({"x": pa.array([moment], pa.timestamp("us"))}))
        hour, code = DIALECT.date_part("hour", "x"), DIALECT.code("x", Type.TIMESTAMP)
        (found,) = question.read(
            f"SELECT {hour}, {code}, {DIALECT.date_trunc('day', 'x', Type.TIMESTAMP)} FROM given", {}
        )
    assert found == (1, 1_711_848_600_000_000, dt.datetime(2024, 3, 31))
    assert spark().conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"
