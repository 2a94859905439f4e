"""Conditions on one table that follow from those on several."""

from __future__ import annotations

from itertools import product

from discreet.engines.sql.implied_conditions import find_implied
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Call, Column, Expression, ReleasedValue
from discreet.plan.types import Type, Value

A, B, C = (Column(table, name, Type.BOOLEAN) for table, name in (("s", "a"), ("t", "b"), ("s", "c")))


def join_all(function: str, *parts: Expression) -> Expression:
    return Call(function, parts, Type.BOOLEAN)


def test_what_follows_is_true_wherever_the_condition_is() -> None:
    given = join_all("or", join_all("and", A, B), join_all("and", C, join_all("not", B)))
    implied = list(find_implied(given))
    assert implied == [join_all("or", A, C), join_all("or", B, join_all("not", B))]
    for values in product((True, False, None), repeat=3):
        row: dict[Column | ReleasedValue, Value] = dict(zip((A, B, C), values))
        if evaluate(given, row) is True:
            assert all(evaluate(condition, row) is True for condition in implied)


def test_nothing_follows_where_a_part_says_nothing_of_a_table() -> None:
    assert not list(find_implied(join_all("or", A, B)))
    assert not list(find_implied(join_all("or", A, C)))
    assert list(find_implied(join_all("or", join_all("and", A, B), C))) == [join_all("or", A, C)]
