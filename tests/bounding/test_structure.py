"""Questions that are written in Python: what is no question through and through is refused before anything else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.bounding.bound import bound_all
from discreet.bounding.structure import MAX_DEPTH
from discreet.errors import Unbounded, UsageError
from discreet.frontends import read_sql
from discreet.plan.catalog import ContributionLimits
from discreet.plan.expressions import Call, Column, Literal, ReleasedValue
from discreet.plan.functions import make_call, make_literal
from discreet.plan.nodes import Aggregate, Order, Output, Question
from discreet.plan.relations import Caps, Join, JoinKind, Projection, Relation, Scan, Union, Values, Where
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type
from tests.worlds.tables import HOSPITAL

GOOD = read_sql.read("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n LIMIT 2", HOSPITAL, {})
WARD, UNIT = Column("visits", "ward", Type.TEXT), Column("visits", "patient_id", Type.INTEGER)
COUNT = ReleasedValue(1, "n", Type.INTEGER)


class Always(Column):
    """A column that says of itself that it equals every other."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(UNIT)


def deep(times: int) -> Relation:
    found: Relation = Scan("visits")
    for i in range(times):
        found = Where(found, make_call("greater", UNIT, make_literal(i)))
    return found


def doubled(times: int) -> Relation:
    """Small in memory, and endless as a tree."""
    found: Relation = Scan("visits")
    for i in range(times):
        here = Column(f"u{i - 1}" if i else "visits", "patient_id", Type.INTEGER)
        part = Projection(found, f"d{i}", (("patient_id", here),))
        found = Union(f"u{i}", (part, part))
    return found


def public(rows: Any) -> Relation:
    values = Values("mine", (("ward", Type.TEXT),), rows)
    return Join(Scan("visits"), values, JoinKind.INNER, ((WARD, Column("mine", "ward", Type.TEXT)),))


def asked(**changes: Any) -> Question:
    return replace(GOOD, **changes)


def joined(**changes: Any) -> Relation:
    """A join of public rows, with something else in it."""
    source: Any = public((("A",),))
    changed: Relation = replace(source, **changes)
    return changed


def aggregates(**changes: Any) -> Question:
    return replace(GOOD, aggregates=(replace(GOOD.aggregates[0], **changes),))


BAD: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "a source that is a name": lambda: asked(source="visits"),
    "keys in a list": lambda: asked(keys=[WARD]),
    "a key that is none": lambda: asked(keys=(None,)),
    "a column that equals the unit": lambda: asked(keys=(Always("visits", "ward", Type.TEXT),)),
    "arguments in a list": lambda: asked(keys=(Call("lower", [WARD], Type.TEXT),)),  # type: ignore[arg-type]  # wrong
    "no groupings": lambda: asked(sets=()),
    "a grouping that is a number": lambda: asked(sets=(0,)),
    "a grouping by truth": lambda: asked(sets=((False,),)),
    "limits in a dict": lambda: asked(limits={"max_rows": 3}),
    "limits of a half": lambda: asked(limits=ContributionLimits(max_rows=1.5)),  # type: ignore[arg-type]  # wrong
    "a statistic in words": lambda: aggregates(statistic="count"),
    "a share of a count": lambda: aggregates(share=Fraction(1, 2)),
    "a quantile without a share": lambda: aggregates(statistic=Statistic.QUANTILE, argument=UNIT),
    "bounds of units": lambda: aggregates(statistic=Statistic.COUNT_UNITS, bounds=(Fraction(0), Fraction(0))),
    "one bound": lambda: aggregates(bounds=(Fraction(0),)),
    "a bound that is a double": lambda: aggregates(bounds=(0.0, 1.0)),
    "a text of half a character": lambda: asked(
        source=Where(GOOD.source, make_call("equal", WARD, make_literal("\ud800")))
    ),
    "a name of half a character": lambda: asked(outputs=(Output("\ud800", COUNT),)),
    "rows of half a character": lambda: asked(source=public((("\ud800",),))),
    "rows in a list": lambda: asked(source=public([("A",)])),
    "rows of lists": lambda: asked(source=public((["A"],))),
    "rows of bytes": lambda: asked(source=public(((b"A",),))),
    "rows of different width": lambda: asked(source=public((("A",), ("B", 1)))),
    "rows of numbers": lambda: asked(source=public(((1,),))),
    "caps for one side": lambda: asked(source=joined(caps=(Caps(UNIT, 1, 1),))),
    "a kind of join in words": lambda: asked(source=joined(kind="inner")),
    "too deep": lambda: asked(source=deep(MAX_DEPTH)),
    "far too deep": lambda: asked(source=deep(5_000)),
    "doubled": lambda: asked(source=doubled(60)),
    "a column in the answer": lambda: asked(outputs=(Output("n", UNIT),)),
    "a column in the order": lambda: asked(order=(Order(UNIT),)),
    "a column in HAVING": lambda: asked(having=make_call("greater", UNIT, make_literal(1))),
    "a released number that is not there": lambda: asked(outputs=(Output("n", ReleasedValue(2, "n", Type.INTEGER)),)),
    "the mark of a key that is not there": lambda: asked(outputs=(Output("n", ReleasedValue(-2, "n", Type.INTEGER)),)),
    "the mark of a key as a text": lambda: asked(outputs=(Output("n", ReleasedValue(-1, "n", Type.TEXT)),)),
    "a released number of another type": lambda: asked(outputs=(Output("n", ReleasedValue(1, "n", Type.TEXT)),)),
    "HAVING a number": lambda: asked(having=COUNT),
    "a wrong call in the answer": lambda: asked(outputs=(Output("n", Call("lower", (COUNT,), Type.TEXT)),)),
    "a wrong constant in the answer": lambda: asked(outputs=(Output("n", Literal("a", Type.INTEGER)),)),
    "a limit below zero": lambda: asked(limit=-1),
    "an offset of a half": lambda: asked(offset=1.5),
}  # fmt: skip  # one line each


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_question_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="Nothing was charged"):
        bound_all(BAD[name](), HOSPITAL)


def test_what_is_one_is_not() -> None:
    """The question that the bad ones are made of, deep ones, and public rows of every kind."""
    assert len(bound_all(GOOD, HOSPITAL)) == 1
    assert bound_all(replace(GOOD, source=deep(200)), HOSPITAL)
    assert bound_all(replace(GOOD, source=public((("A",), ("é",), (None,)))), HOSPITAL)
    assert bound_all(replace(GOOD, sets=((0,), ())), HOSPITAL)
    two = Aggregate(Statistic.COUNT, bounds=(Fraction(0), Fraction(5)))
    assert bound_all(replace(GOOD, aggregates=(two,)), HOSPITAL)


@pytest.mark.parametrize("ends", ["0, 1e308", "-1e308, 1e308", "-1e200, 0"])
def test_bounds_beyond_all_use_are_refused(ends: str) -> None:
    """Sums or squares of them would leave doubles, after the charge."""
    for words in (f"VAR_POP(clamp(cost, {ends}))", f"SUM(clamp(cost, {ends}))"):
        with pytest.raises(Unbounded, match="beyond all use"):
            bound_all(read_sql.read(f"SELECT {words} AS x FROM visits", HOSPITAL, {}), HOSPITAL)


@pytest.mark.parametrize("ends", ["0, 1e-320", "-5e-324, 0", "0, 0"])
def test_bounds_next_to_nothing_have_steps_that_are_doubles(ends: str) -> None:
    for words in (f"AVG(clamp(cost, {ends}))", f"MEDIAN(clamp(cost, {ends}))"):
        (form,) = bound_all(read_sql.read(f"SELECT {words} AS x FROM visits", HOSPITAL, {}), HOSPITAL)
        grids = [part.resolution for part in form.bounded.measures] + [part.resolution for part in form.bounded.spreads]
        assert all(float(resolution) > 0 for resolution in grids)
