"""Ranges hold for every row: random expressions and conditions, over extreme values."""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest

from discreet.bounding import choice_facts, facts, ranges
from discreet.bounding.facts import facts_of, narrow_columns
from discreet.exact import decimal
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column, Expression, ReleasedValue
from discreet.plan.functions import make_call, make_literal
from discreet.plan.times import to_days, to_moment
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, LARGEST_REAL, Type, Value
from discreet.privacy import Neighbours, Unit

INTEGERS = (0, 1, -1, 2, 5, 10, 11, 2**53, 2**53 + 1, -(2**53) - 1, INTEGER_MAX, INTEGER_MIN)
REALS = (0.0, 0.5, -0.5, 0.1, 0.3, 1.0, 9.999, 10.0, 10.5, float(2**53), 1e300, LARGEST_REAL, -LARGEST_REAL, 5e-324)
TABLE = TableFacts(
    name="t",
    columns={
        "small": (Type.INTEGER, ColumnFacts(low=Fraction(0), high=Fraction(10), resolution=Fraction(1))),
        "sure": (Type.INTEGER, ColumnFacts(nullable=False, low=Fraction(-1), high=Fraction(5), resolution=Fraction(1))),
        "wide": (Type.INTEGER, ColumnFacts()),
        "real": (Type.REAL, ColumnFacts(low=Fraction(-1, 2), high=Fraction(21, 2))),
        "free": (Type.REAL, ColumnFacts(nullable=False)),
        "open": (Type.REAL, ColumnFacts()),
    },
    unit=Unit("id"),
    limits=ContributionLimits(max_rows=1),
)
CATALOG = Catalog(tables={"t": TABLE}, neighbours=Neighbours.ADD_REMOVE)
COLUMNS = {name: TABLE.find_column(name) for name in TABLE.columns}
SMALL, WIDE, REAL, FREE, OPEN = (COLUMNS[name] for name in ("small", "wide", "real", "free", "open"))


def draw_row(rng: random.Random) -> dict[Column | ReleasedValue, Value]:
    """A row that keeps the declarations; their ends, and the ends of the types, are often reached."""
    return {column: rng.choice(pool) for column, pool in POOLS.items()}


def _make_pool(column: Column) -> list[Value]:
    known = CATALOG.find_facts(column)
    ends = [end for end in (known.low, known.high) if end is not None]
    pool = [
        *(INTEGERS if column.type is Type.INTEGER else REALS),
        *map(int if column.type is Type.INTEGER else float, ends),
    ]
    kept: list[Value] = [value for value in pool if not ends or ends[0] <= decimal(value) <= ends[1]]
    return [*kept, None] if known.nullable else kept


POOLS = {column: _make_pool(column) for column in COLUMNS.values()}


def draw_number(rng: random.Random, depth: int) -> Expression:
    kind = rng.choice(
        ("column", "constant", "least", "greatest", "clamp", "case", "coalesce") if depth else ("column",)
    )
    inner = [draw_number(rng, depth - 1) for _ in range(rng.randrange(2, 4))] if depth else []
    match kind:
        case "column":
            return rng.choice([*COLUMNS.values()])
        case "constant":
            return make_literal(rng.choice((*INTEGERS, *REALS)))
        case "clamp":
            ends = sorted(rng.sample((0, 1, 5, 10, 0.5, 9.5), 2))
            return make_call("clamp", inner[0], *map(make_literal, ends))
        case "case":
            branches = [part for result in inner[:-1] for part in (draw_condition(rng, depth, inner), result)]
            return make_call("case", *branches, inner[-1])
        case _:
            return make_call(kind, *inner)


def draw_condition(rng: random.Random, depth: int, about: Sequence[Expression] = ()) -> Expression:
    """A condition, often about one of some expressions, which are the results that it chooses between."""
    if depth > 1 and rng.random() < 0.4:
        word = rng.choice(("and", "or", "not"))
        parts = [draw_condition(rng, depth - 1, about) for _ in range(1 if word == "not" else 2)]
        return make_call(word, *parts)
    left = rng.choice(about) if about and rng.random() < 0.7 else draw_number(rng, min(1, depth - 1))
    if rng.random() < 0.2:
        return make_call("in", left, *(make_literal(rng.choice((*INTEGERS, *REALS[:9], None))) for _ in range(3)))
    word = rng.choice(("less", "at_most", "greater", "at_least", "equal", "unequal"))
    right = draw_number(rng, 0) if rng.random() < 0.4 else make_literal(rng.choice((*INTEGERS, *REALS)))
    return make_call(word, left, right)


def draw_limited(rng: random.Random) -> Expression:
    """A CASE that limits one column, in ways that people write, or get wrong."""
    column = rng.choice([*COLUMNS.values()])
    results = [rng.choice((column, make_literal(rng.choice((0, 1, 5, 0.5, 10))))) for _ in range(3)]
    conditions = [
        make_call(word, column, make_literal(rng.choice((0, 1, 5, 0.5, 10, 10.5))))
        for word in (rng.choice(("less", "at_most", "greater", "at_least", "equal")) for _ in range(2))
    ]
    if rng.random() < 0.3:
        conditions[0] = make_call(rng.choice(("and", "or")), *conditions)
    return make_call("case", conditions[0], results[0], conditions[1], results[1], results[2])


def lies_outside(value: Value, known: ColumnFacts) -> bool:
    """Whether a value breaks the range that is claimed for it."""
    if value is None:
        return False
    exact = Fraction(value) if isinstance(value, int) else decimal(value)  # type: ignore[arg-type]  # a number
    below = known.low is not None and exact < known.low
    return below or (known.high is not None and exact > known.high)


def count_violations(rounds: int) -> tuple[int, int]:
    """How many values break their range, of expressions and under conditions; and how many ranges had an end."""
    rng = random.Random(14)
    broken = narrowed = 0
    for _ in range(rounds):
        expression = draw_number(rng, 3) if rng.random() < 0.5 else draw_limited(rng)
        condition = draw_condition(rng, 3)
        claimed = facts_of(expression, CATALOG)
        below: Mapping[Column, ColumnFacts] = {column: CATALOG.find_facts(column) for column in COLUMNS.values()}
        columns = narrow_columns(below, condition, CATALOG)
        narrowed += columns != below
        for row in (draw_row(rng) for _ in range(25)):
            broken += lies_outside(evaluate(expression, row), claimed)
            if evaluate(condition, row) is True:
                broken += any(lies_outside(row[column], known) for column, known in columns.items())
    return broken, narrowed


def test_values_lie_in_their_ranges() -> None:
    broken, narrowed = count_violations(1200)
    assert broken == 0
    assert narrowed > 100, "hardly any condition narrows anything"


def test_wrong_ranges_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: LEAST that ignores NULLs, and a CASE that takes false conditions for true ones, break rows."""
    with monkeypatch.context() as patched:
        patched.setattr(
            choice_facts,
            "range_of_extreme",
            lambda given, least: ranges.range_of_extreme(tuple(replace_null(fact) for fact in given), least=least),
        )
        assert count_violations(300)[0] > 0
    with monkeypatch.context() as patched:
        patched.setattr(facts, "find_ranges", lambda c, f, holds: ranges.find_ranges(c, f, holds=True))  # noqa: ARG005
        assert count_violations(300)[0] > 0


def replace_null(fact: ColumnFacts) -> ColumnFacts:
    return ColumnFacts(nullable=False, low=fact.low, high=fact.high)


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        (make_call("least", make_call("greatest", OPEN, make_literal(0)), make_literal(10)), 0, 10),
        (make_call("clamp", SMALL, make_literal(2), make_literal(50)), 2, 50),
        (make_call("case", make_call("greater", OPEN, make_literal(10)), make_literal(10),
                   make_call("less", OPEN, make_literal(0)), make_literal(0), OPEN), 0, 10),
        (make_call("case", make_call("less", WIDE, make_literal(3)), WIDE, make_literal(None)), None, 2),
        (make_call("least", SMALL, WIDE), None, None),
    ],
)  # fmt: skip
def test_choices_narrow_like_clamp(expression: Expression, low: int | None, high: int | None) -> None:
    found = facts_of(expression, CATALOG)
    if low is not None and high is not None:
        assert (found.low, found.high) == (Fraction(low), Fraction(high))
    else:
        assert not found.bounded


DAY, SEEN = Column("t", "day", Type.DATE), Column("t", "seen", Type.TIMESTAMP)
FIRST, LAST = to_moment(dt.date.min), dt.datetime.combine(dt.date.max, dt.time.max)
NEW_YEAR, NOON = dt.date(2024, 1, 1), dt.datetime.fromisoformat("2024-01-01T12:00")
DAYS: tuple[Value, ...] = (None, dt.date.min, dt.date(2023, 12, 31), NEW_YEAR, dt.date(2024, 1, 2), dt.date.max)
MOMENTS: tuple[Value, ...] = (
    *(None if day is None else to_moment(day) for day in DAYS),  # type: ignore[arg-type]  # days
    NOON,
    NOON - dt.timedelta(microseconds=1),
    NOON + dt.timedelta(microseconds=1),
    LAST,
)


@pytest.mark.parametrize("word", ["less", "at_most", "greater", "at_least", "equal", "unequal"])
@pytest.mark.parametrize("other", [NEW_YEAR, NOON, dt.date.max, FIRST, LAST])
@pytest.mark.parametrize("column", [DAY, SEEN])
def test_comparisons_of_times_bound_them_tightly(column: Column, other: dt.date, word: str) -> None:
    """The range of the rows for which it is true holds all of them, and begins and ends with one of them."""
    condition = make_call(word, column, make_literal(other))
    found = narrow_columns({column: ColumnFacts()}, condition, CATALOG)[column]
    rows = [value for value in (DAYS if column is DAY else MOMENTS) if evaluate(condition, {column: value})]
    places = [to_days(value) for value in rows if isinstance(value, dt.date)]
    assert all((found.low is None or found.low <= p) and (found.high is None or p <= found.high) for p in places)
    if places and word in ("greater", "at_least") and other in (NEW_YEAR, NOON):
        assert found.low == min(places) or word == "greater"
    if places and word in ("less", "at_most") and other == NOON:
        assert found.high == max(places)


def test_clamps_with_fractions_have_steps_that_reach_their_ends() -> None:
    """Whole numbers that are clamped to [0.5, 10.5] are sums of halves."""
    found = facts_of(make_call("clamp", WIDE, make_literal(0.5), make_literal(10.5)), CATALOG)
    assert found.resolution is None or found.resolution == Fraction(1, 2)
    whole = facts_of(make_call("clamp", SMALL, make_literal(0.5), make_literal(9.5)), CATALOG)
    assert (whole.low, whole.high, whole.resolution) == (Fraction(1, 2), Fraction(19, 2), Fraction(1, 2))


def test_a_list_of_other_values_tells_no_range() -> None:
    """Truths and texts in a list: nothing is known, and nothing fails; numbers tell their ends."""
    truth, text = Column("t", "truth", Type.BOOLEAN), Column("t", "text", Type.TEXT)
    for compared, members in ((truth, (True, False)), (text, ("a", "b"))):
        listed = make_call("in", compared, *map(make_literal, members))
        assert ranges.find_ranges(listed, lambda _: ColumnFacts(), holds=True) == {}
    listed = make_call("in", WIDE, make_literal(3), make_literal(7))
    assert ranges.find_ranges(listed, lambda _: ColumnFacts(), holds=True) == {
        WIDE: ranges.Range(Fraction(3), Fraction(7))
    }
