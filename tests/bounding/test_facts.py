"""Facts: for every function, what is claimed of its values holds for every row that keeps the declarations."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.bounding.facts import NOTHING, RULES, facts_of
from discreet.errors import UsageError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column, Expression, ReleasedValue, find_columns
from discreet.plan.functions import DIFFERENCES, FUNCTIONS, PARTS, TRUNCATIONS, make_call, make_literal
from discreet.plan.times import from_days, to_days
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours, Unit

START, END = dt.datetime.fromisoformat("2024-02-28T23:59:59.999999"), dt.datetime.fromisoformat("2024-03-01T00:00")
DECLARED: dict[str, tuple[Type, ColumnFacts]] = {
    "age": (Type.INTEGER, ColumnFacts(low=Fraction(0), high=Fraction(110), resolution=Fraction(1))),
    "score": (Type.INTEGER, ColumnFacts(nullable=False, low=Fraction(-7), high=Fraction(5), resolution=Fraction(1))),
    "cost": (Type.REAL, ColumnFacts(low=Fraction(-5, 2), high=Fraction(1000), resolution=Fraction(1, 4))),
    "rate": (Type.REAL, ColumnFacts(nullable=False, low=Fraction(1, 2), high=Fraction(3))),
    "free": (Type.REAL, ColumnFacts()),
    "ward": (Type.TEXT, ColumnFacts(keys=("A", "B", None))),
    "sex": (Type.TEXT, ColumnFacts(nullable=False, keys=("f", "m"), constant=True)),
    "well": (Type.BOOLEAN, ColumnFacts(keys=(False, True, None))),
    "day": (Type.DATE, ColumnFacts()),
    "seen": (Type.TIMESTAMP, ColumnFacts(nullable=False)),
    "born": (Type.DATE, ColumnFacts(low=to_days(dt.date(1999, 12, 30)), high=to_days(dt.date(2001, 2, 3)))),
    "left": (Type.TIMESTAMP, ColumnFacts(nullable=False, low=to_days(START), high=to_days(END))),
}
TABLE = TableFacts(name="visits", columns=DECLARED, unit=Unit("id"), limits=ContributionLimits(max_rows=3))
CATALOG = Catalog(tables={"visits": TABLE}, neighbours=Neighbours.ADD_REMOVE)
COLUMNS = {name: TABLE.find_column(name) for name in DECLARED}


def _ends_of(name: str) -> tuple[Any, ...]:
    """The declared bounds of times, as times."""
    kind, facts = DECLARED[name]
    return () if facts.low is None or facts.high is None else (from_days(facts.low, kind), from_days(facts.high, kind))


def values(name: str) -> st.SearchStrategy[Value]:
    """Values that keep a column's declaration."""
    kind, facts = DECLARED[name]
    plain: st.SearchStrategy[Value]
    if facts.keys is not None:
        return st.sampled_from(facts.keys)
    if kind is Type.INTEGER:
        plain = st.integers(int(facts.low or 0), int(facts.high or 0))
    elif kind is Type.REAL:
        low, high = (None if end is None else float(end) for end in (facts.low, facts.high))
        plain = st.floats(low, high, allow_nan=False, allow_infinity=False)
    elif kind is Type.DATE:
        plain = st.dates(*_ends_of(name))
    else:
        plain = st.datetimes(*_ends_of(name))
    return plain | st.none() if facts.nullable else plain


constants_drawn: st.SearchStrategy[Expression] = st.sampled_from(
    [make_literal(value) for value in (1, 2, 5, 15, 0.5, 10.0, "A%", "_")]
)
literals: st.SearchStrategy[Expression] = st.sampled_from(
    [make_literal(value) for value in (0, 1, -3, 20, 0.5, -2.25, "A", "f", True, dt.date(2024, 2, 29), None)]
)
leaves: st.SearchStrategy[Expression] = st.sampled_from(list(COLUMNS.values())) | literals


@st.composite
def calls(draw: st.DrawFn, inner: st.SearchStrategy[Expression]) -> Expression:
    """A call that type-checks, of any function, on expressions made before."""
    name = draw(st.sampled_from(sorted(FUNCTIONS)))
    arguments = draw(st.lists(inner, min_size=1, max_size=3))
    words = {"part": PARTS, "date_trunc": TRUNCATIONS, "date_diff": DIFFERENCES}.get(name)
    if words:
        arguments = [make_literal(draw(st.sampled_from(words))), *arguments]
    constants = FUNCTIONS[name].constants - ({0} if words else set())
    for position in constants & set(range(len(arguments))):
        arguments[position] = draw(constants_drawn)
    try:
        return make_call(name, *arguments)
    except UsageError:
        return draw(inner)


expressions = st.recursive(leaves, calls, max_leaves=6)


def respects(value: Value, facts: ColumnFacts) -> bool:
    """Whether a value is what the facts say; reals may be off by what doubles round."""
    if value is None:
        return facts.nullable
    if isinstance(value, int | float) and not isinstance(value, bool):
        slack = Fraction(1, 10**9) * (1 + abs(Fraction(value)))
        if facts.low is not None and Fraction(value) < facts.low - slack:
            return False
        if facts.high is not None and Fraction(value) > facts.high + slack:
            return False
    if isinstance(value, dt.date) and facts.low is not None and facts.high is not None:
        return facts.low <= to_days(value) <= facts.high
    return True


@settings(deadline=None, max_examples=1500)
@given(st.data())
def test_what_is_claimed_holds_for_every_row(data: st.DataObject) -> None:
    """Bounds, nullability and keys derived for a random expression hold for random rows that keep the declarations."""
    expression = data.draw(expressions)
    facts = facts_of(expression, CATALOG)
    row: dict[Column | ReleasedValue, Value] = {
        column: data.draw(values(column.name)) for column in find_columns(expression)
    }
    value = evaluate(expression, row)
    assert respects(value, facts), (str(expression), facts)
    # Keys list the groups; a function of keyed columns stays within them.
    keyed = all(DECLARED[c.name][1].keys is not None for c in find_columns(expression))
    if facts.keys is not None and keyed and not isinstance(value, float):
        assert value in facts.keys, (str(expression), facts.keys)


def test_the_check_can_fail() -> None:
    """Negative control: a value outside bounds, or a NULL where none was claimed, is seen."""
    claim = ColumnFacts(nullable=False, low=Fraction(0), high=Fraction(1))
    assert not respects(2, claim)
    assert not respects(-0.5, claim)
    assert not respects(None, claim)
    assert respects(1, claim)
    day = ColumnFacts(low=to_days(dt.date(2024, 1, 1)), high=to_days(dt.date(2024, 1, 2)))
    assert respects(dt.date(2024, 1, 2), day) and not respects(dt.datetime.fromisoformat("2024-01-02T00:00:01"), day)


def test_every_rule_is_of_a_function_and_the_default_is_nothing() -> None:
    """No rule for a function that does not exist, and none known for one without a rule."""
    assert set(RULES) <= set(FUNCTIONS)
    assert facts_of(make_call("length", COLUMNS["ward"]), CATALOG).low is None
    assert facts_of(make_call("power", COLUMNS["age"], make_literal(2)), CATALOG) == NOTHING


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        (make_call("add", COLUMNS["age"], COLUMNS["score"]), -7, 115),
        (make_call("multiply", COLUMNS["score"], COLUMNS["score"]), -35, 49),
        (make_call("subtract", COLUMNS["age"], make_literal(1)), -1, 109),
        (make_call("divide", COLUMNS["age"], COLUMNS["rate"]), 0, 220),
        (make_call("abs", COLUMNS["score"]), 0, 7),
        (make_call("clamp", COLUMNS["free"], make_literal(2), make_literal(9)), 2, 9),
        (make_call("case", make_call("is_null", COLUMNS["ward"]), make_literal(3), COLUMNS["score"]), -7, 5),
        (make_call("coalesce", COLUMNS["age"], make_literal(-1)), -1, 110),
    ],
)
def test_bounds_follow_interval_arithmetic(expression: Expression, low: int, high: int) -> None:
    """Known intervals come out as a person would work them out."""
    facts = facts_of(expression, CATALOG)
    assert facts.low == low and facts.high == high


def test_facts_die_when_a_column_is_redefined() -> None:
    """A name is nothing: the same name computed anew has the facts of what it is now."""
    redefined = make_call("multiply", COLUMNS["age"], COLUMNS["free"])  # "SELECT age * free AS age"
    assert facts_of(COLUMNS["age"], CATALOG).bounded
    assert not facts_of(redefined, CATALOG).bounded


def test_division_by_what_may_be_zero_has_no_bounds() -> None:
    """1/x is unbounded where x may be zero."""
    assert not facts_of(make_call("divide", make_literal(1), COLUMNS["score"]), CATALOG).bounded


def test_public_keys_follow_through_functions() -> None:
    """Functions of keyed columns, conditions, bins and parts of dates have public keys; free text has not."""
    assert facts_of(make_call("lower", COLUMNS["ward"]), CATALOG).keys == ("a", "b", None)
    assert facts_of(make_call("equal", COLUMNS["age"], make_literal(3)), CATALOG).keys == (False, True, None)
    assert facts_of(make_call("bin", COLUMNS["score"], make_literal(5)), CATALOG).keys == (-10.0, -5.0, 0.0, 5.0)
    assert facts_of(make_call("part", make_literal("month"), COLUMNS["seen"]), CATALOG).keys == tuple(range(1, 13))
    assert facts_of(make_call("part", make_literal("year"), COLUMNS["seen"]), CATALOG).keys is None
    assert facts_of(make_call("to_text", COLUMNS["day"]), CATALOG).keys is None


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_units_of_time_between_bounds_are_public_keys(data: st.DataObject) -> None:
    """Every row within the bounds has a key among them, and no key is listed that no row could have."""
    name = data.draw(st.sampled_from(["born", "left"]))
    column, value = COLUMNS[name], data.draw(values(name))
    units = data.draw(st.sampled_from(TRUNCATIONS))
    made = [make_call("date_trunc", make_literal(units), column), make_call("part", make_literal("year"), column)]
    made += [make_call("to_date", column)] if name == "left" else []
    for expression in made:
        keys = facts_of(expression, CATALOG).keys
        if keys is None:  # seconds of some hours are too many
            assert units == "second" and expression is made[0] and name == "left"
            continue
        assert evaluate(expression, {column: value}) in keys
        first, last = _ends_of(name)
        reached = {evaluate(expression, {column: end}) for end in (first, last)}
        known = [key for key in keys if key is not None]
        assert {min(known), max(known)} == reached and len(set(keys)) == len(keys)


def test_times_between_bounds_by_hand() -> None:
    """Two days and a microsecond around the end of a February."""
    left, born = COLUMNS["left"], COLUMNS["born"]
    days = facts_of(make_call("date_trunc", make_literal("day"), left), CATALOG).keys
    assert [str(day) for day in days or ()] == ["2024-02-28 00:00:00", "2024-02-29 00:00:00", "2024-03-01 00:00:00"]
    assert facts_of(make_call("part", make_literal("year"), born), CATALOG).keys == (1999, 2000, 2001, None)
    weeks = facts_of(make_call("date_trunc", make_literal("week"), born), CATALOG).keys or ()
    assert str(weeks[0]) == "1999-12-27" and weeks[-1] is None and len(weeks) == 59
    ages = facts_of(make_call("date_diff", make_literal("year"), born, left), CATALOG)
    assert (ages.low, ages.high, ages.nullable) == (Fraction(23), Fraction(25), True)
    assert facts_of(make_call("date_trunc", make_literal("day"), COLUMNS["day"]), CATALOG).keys is None


def test_constancy_needs_every_column() -> None:
    """A key is constant for a unit only if all it is made of is."""
    assert facts_of(make_call("upper", COLUMNS["sex"]), CATALOG).constant
    assert not facts_of(make_call("concat", COLUMNS["sex"], COLUMNS["ward"]), CATALOG).constant
    assert isinstance(COLUMNS["sex"], Column)


def test_keys_of_a_choice_have_its_type() -> None:
    """A date among times is its midnight, and a whole number among reals a real: so that they can be sorted and met."""
    day, moment = dt.date(2024, 1, 2), dt.datetime(2024, 1, 1, 12)  # noqa: DTZ001  # plan times have no zone
    is_null = make_call("is_null", COLUMNS["ward"])
    mixed = facts_of(make_call("case", is_null, make_literal(day), make_literal(moment)), CATALOG).keys
    assert mixed == (moment, dt.datetime(2024, 1, 2))  # noqa: DTZ001
    assert facts_of(make_call("coalesce", make_literal(day), make_literal(moment)), CATALOG).keys is not None
    numbers = facts_of(make_call("case", is_null, make_literal(2), make_literal(1.5)), CATALOG).keys or ()
    assert [type(key) for key in numbers] == [float, float]
