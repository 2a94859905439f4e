"""The meaning of every function: examples that fix it, and the promise that nothing raises."""

from __future__ import annotations

import datetime as dt
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InternalError
from discreet.plan.evaluate import NULL_AWARE, STRICT, _like, evaluate, settle
from discreet.plan.expressions import Call, Column, Literal, ReleasedValue
from discreet.plan.functions import FUNCTIONS, make_call, make_literal
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, LARGEST_REAL, Type, Value, type_of
from tests.engines.nasty import VALUES, calls, columns

NULL = None
DAY, NOON = dt.date(2021, 1, 3), dt.datetime(2021, 1, 3, 12, 30, 5, 7)  # noqa: DTZ001  # no zones here

EXAMPLES: list[tuple[str, tuple[Value, ...], Value]] = [
    ("add", (INTEGER_MAX, 1), NULL),
    ("add", (1, 0.5), 1.5),
    ("subtract", (INTEGER_MIN, 1), NULL),
    ("multiply", (2**40, 2**40), NULL),
    ("multiply", (1e300, 1e300), LARGEST_REAL),
    ("divide", (1, 2), 0.5),
    ("divide", (1, 0), NULL),
    ("divide", (0.0, 0.0), NULL),
    ("modulo", (-7, 3), -1),
    ("modulo", (7, -3), 1),
    ("modulo", (7, 0), NULL),
    ("modulo", (INTEGER_MIN, -1), 0),
    ("negate", (INTEGER_MIN,), NULL),
    ("negate", (0.0,), 0.0),
    ("abs", (INTEGER_MIN,), NULL),
    ("sign", (-2.5,), -1),
    ("floor", (-0.5,), -1.0),
    ("ceil", (-0.5,), 0.0),
    ("round", (2.5, 0), 3.0),
    ("round", (-2.5, 0), -3.0),
    ("round", (1234.0, -2), 1200.0),
    ("round", (1.0, 16), NULL),
    ("sqrt", (-1,), NULL),
    ("ln", (0,), NULL),
    ("exp", (1000,), LARGEST_REAL),
    ("power", (-1e200, 3), -LARGEST_REAL),
    ("power", (-1e200, 2), LARGEST_REAL),
    ("power", (0, -1), NULL),
    ("round", (1e300, 15), 1e300),
    ("power", (-8.0, 0.5), NULL),
    ("power", (0.0, -1.0), NULL),
    ("least", (3, NULL, 1), 1),
    ("greatest", (NULL, 2.5, 1), 2.5),
    ("clamp", (7, 0, 5), 5),
    ("clamp", (2**53 + 1, 0.0, 1e300), float(2**53)),
    ("bin", (7.5, 5), 5.0),
    ("bin", (-0.5, 5), -5.0),
    ("bin", (1.0, 0), NULL),
    ("bin", (17, 5), 15),
    ("bin", (-1, 5), -5),
    ("bin", (2**53 + 1, 1), 2**53 + 1),
    ("bin", (INTEGER_MIN, 10), NULL),
    ("magnitude", (5,), 4),
    ("magnitude", (INTEGER_MIN,), INTEGER_MIN),
    ("magnitude", (INTEGER_MAX,), 2**62),
    ("magnitude", (-0.3,), -0.25),
    ("magnitude", (-1e-300,), 0.0),
    ("magnitude", (1e300,), 2.0**63),
    ("equal", (2**53 + 1, float(2**53)), True),
    ("less", (float(2**53), 2**53 + 1), False),
    ("equal", (NULL, 1), NULL),
    ("less", (DAY, NOON), True),
    ("in", (2**53 + 1, float(2**53)), True),
    ("in", (1, 2, NULL), NULL),
    ("in", (NULL, 1), NULL),
    ("is_null", (NULL,), True),
    ("and", (NULL, False), False),
    ("and", (NULL, True), NULL),
    ("or", (NULL, True), True),
    ("coalesce", (NULL, 1, 2.5), 1.0),
    ("null_if", (2**53 + 1, float(2**53)), NULL),
    ("null_if", (INTEGER_MAX, 1.0), INTEGER_MAX),
    ("null_if", (1, NULL), 1),
    ("lower", ("ÉİSS",), "éiss"),
    ("upper", ("straße",), "STRAẞE"),
    ("trim", ("  a\t ",), "a\t"),
    ("length", ("e\u0301",), 2),
    ("concat", ("a", NULL), NULL),
    ("substring", ("hello", 2, 3), "ell"),
    ("substring", ("hello", 0, 3), NULL),
    ("like", ("a%b", "a\\%b"), False),
    ("like", ("a\nb", "a_b"), True),
    ("ilike", ("Müller", "MÜL%"), True),
    ("starts_with", ("abc", ""), True),
    ("part", ("dayofweek", DAY), 0),
    ("part", ("week", DAY), 53),
    ("part", ("second", NOON), 5),
    ("part", ("hour", DAY), 0),
    ("date_trunc", ("quarter", dt.date(2021, 6, 30)), dt.date(2021, 4, 1)),
    ("date_diff", ("year", dt.date(2020, 12, 31), dt.date(2021, 1, 1)), 1),
    ("date_diff", ("hour", DAY, NOON), 12),
    ("to_boolean", (-3,), True),
    ("to_integer", (2.5,), 2),
    ("to_integer", (1e19,), NULL),
    ("to_integer", (" +12 ",), 12),
    ("to_integer", ("1e3",), NULL),
    ("to_real", ("-.5e1",), -5.0),
    ("to_real", ("inf",), LARGEST_REAL),
    ("to_real", ("-Infinity",), -LARGEST_REAL),
    ("to_real", ("nan",), NULL),
    ("to_real", ("1e999",), LARGEST_REAL),
    ("to_text", (True,), "true"),
    ("to_text", (DAY,), "2021-01-03"),
    ("to_date", ("2021-02-29",), NULL),
    ("to_date", (NOON,), DAY),
    ("to_timestamp", (DAY,), dt.datetime(2021, 1, 3)),  # noqa: DTZ001  # no zones here
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "wanted"), EXAMPLES)
def test_examples(name: str, arguments: tuple[Value, ...], wanted: Value) -> None:
    """A function of literals, and what it means."""
    found = evaluate(make_call(name, *(make_literal(argument) for argument in arguments)), {})
    assert found == wanted and type(found) is type(wanted)
    if isinstance(found, float):
        assert math.copysign(1, found) == math.copysign(1, float(wanted or 0))  # type: ignore[arg-type]  # a number


def test_every_function_has_a_meaning() -> None:
    assert set(NULL_AWARE) | set(STRICT) | {"case", "null_if"} == set(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_nothing_raises_and_results_are_of_their_type(name: str) -> None:
    """For values that break things the result is None or a value of the type that the call says."""
    for expression, kinds in calls(name):
        inputs = columns(kinds)
        for shift in range(max(len(VALUES[kind]) for kind in kinds)):
            row: dict[Column | ReleasedValue, Value] = {
                c: VALUES[c.type][(shift * (i + 1)) % len(VALUES[c.type])] for i, c in enumerate(inputs)
            }
            found = evaluate(expression, row)
            assert found is None or type_of(found) is expression.type
            assert not isinstance(found, float) or math.isfinite(found)


def test_case_takes_the_first_true_branch_only() -> None:
    """A condition that is NULL is not true; results are of the common type."""
    flag = Column("t", "flag", Type.BOOLEAN)
    choice = make_call("case", flag, make_literal(1), make_call("is_null", flag), make_literal(2.5), make_literal(None))
    assert [evaluate(choice, {flag: value}) for value in (True, None, False)] == [1.0, 2.5, None]


@settings(deadline=None, max_examples=300)
@given(st.text("ab%_\n", max_size=12), st.text("ab%_\n", max_size=8))
def test_like_is_the_pattern_it_looks_like(text: str, pattern: str) -> None:
    """The matcher without backtracking agrees with a regular expression."""
    wanted = re.compile("".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern), re.DOTALL)
    assert _like(text, pattern) == (wanted.fullmatch(text) is not None)


def test_like_cannot_be_made_slow() -> None:
    """Many wildcards over a long text end at once."""
    assert _like("a" * 3000, "%a" * 50 + "%b") is False


def test_settling() -> None:
    assert settle(10**400, Type.REAL) == LARGEST_REAL
    assert settle(-math.inf, Type.REAL) == -LARGEST_REAL
    assert settle(math.nan, Type.REAL) is None
    assert settle(2**63, Type.INTEGER) is None
    assert str(settle(-0.0, Type.REAL)) == "0.0"


def test_an_unknown_function_is_our_bug() -> None:
    with pytest.raises(InternalError):
        evaluate(Call("nonsense", (Literal(1, Type.INTEGER),), Type.INTEGER), {})
