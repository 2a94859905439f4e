"""The table of statistics: nothing in it is missing a part, and whatever it offers can be previewed and asked.

A statistic that is in the table but not everywhere else would be charged first and fail afterwards. So each one is
asked here from the table itself, with an argument of every type that it takes and refused with every other.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import MISSING, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlglot

import discreet
from discreet import Budget, released_columns
from discreet.bounding import bound as bounding
from discreet.bounding import recipes
from discreet.curator import Curator
from discreet.errors import DiscreetError, InternalError, QuestionError, UsageError
from discreet.frontends import read_sql
from discreet.frontends.chain.builder import TableBuilder
from discreet.frontends.resolve import computations
from discreet.frontends.sql import aggregates, function_tables
from discreet.plan import nodes
from discreet.plan.expressions import ReleasedValue
from discreet.plan.statistics.definitions import (
    ArgumentForm,
    Cells,
    ChoiceBasis,
    FirstMomentBasis,
    GroupBounds,
    PairDefinition,
    PairStatistic,
    SecondMomentBasis,
    Statistic,
    StatisticDefinition,
    Wording,
)
from discreet.plan.statistics.formulas import FirstMoments, SecondMoments
from discreet.plan.statistics.table import PAIR_STATISTICS, STATISTICS, list_names, list_wordings
from discreet.plan.types import Type
from tests.worlds.tables import CATALOG

ROWS = 40
FRAME = pa.table(
    {
        "patient_id": [i % 20 for i in range(ROWS)],
        "age": [None if i % 9 == 0 else (7 * i) % 100 for i in range(ROWS)],
        "cost": [None if i % 7 == 0 else ((13 * i) % 400) / 4 for i in range(ROWS)],
        "smoker": [(True, False, None)[i % 3] for i in range(ROWS)],
        "ward": ["AB"[i % 2] for i in range(ROWS)],
        "day": [dt.date(2024, 1, 1 + i % 3) for i in range(ROWS)],
        "seen": pa.array([dt.datetime.fromisoformat(f"2024-01-0{1 + i % 3} 08:00:00") for i in range(ROWS)]),
    }
)
# A column of every type.
COLUMNS = {
    Type.INTEGER: "age",
    Type.REAL: "cost",
    Type.BOOLEAN: "smoker",
    Type.TEXT: "ward",
    Type.DATE: "day",
    Type.TIMESTAMP: "seen",
}
KEYS: dict[str, list[Any]] = {
    "age": list(range(0, 100, 7)),
    "cost": [0.0, 3.25, 6.5],
    "smoker": [True, False],
    "ward": ["A", "B"],
    "day": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
    "seen": [dt.datetime.fromisoformat("2024-01-01 08:00:00")],
}


def label(value: Statistic | PairStatistic | Wording) -> str:
    return value.examples[0] if isinstance(value, Wording) else value.name


EVERY_WORDING = pytest.mark.parametrize(("statistic", "wording"), list(list_wordings()), ids=label)


def curate(budget: Budget) -> Curator:
    """A curator of tiny data."""
    return discreet.curate(
        {"visits": FRAME},
        unit="patient_id",
        max_groups=2,
        max_rows_per_group=2,
        bounds={
            "age": (0, 100),
            "cost": (0, 100),
            "day": (dt.date(2024, 1, 1), dt.date(2024, 1, 31)),
            "seen": (dt.date(2024, 1, 1), dt.date(2024, 1, 31)),
        },
        keys=KEYS,
        budget=budget,
    )


def define(statistic: Statistic | PairStatistic) -> StatisticDefinition | PairDefinition:
    return PAIR_STATISTICS[statistic] if isinstance(statistic, PairStatistic) else STATISTICS[statistic]


def write(example: str, column: str) -> str:
    return example.format(number=column, other="cost", condition="smoker", unit="patient_id", key=column)


# Completeness


def test_every_statistic_is_defined() -> None:
    """No statistic is without a row, and none without a way to ask for it."""
    assert set(STATISTICS) == set(Statistic)
    assert set(PAIR_STATISTICS) == set(PairStatistic)
    assert {statistic for statistic, _ in list_wordings()} == {*Statistic, *PairStatistic}
    assert set(COLUMNS) == set(Type)


@pytest.mark.parametrize("kind", [StatisticDefinition, PairDefinition])
def test_a_row_has_all_of_its_parts(kind: type) -> None:
    """No part of a definition has a default that could stand for one that was forgotten."""
    assert [part.name for part in fields(kind) if part.default is not MISSING] == []
    assert [part.name for part in fields(kind) if part.default_factory is not MISSING] == []
    row: Any = STATISTICS[Statistic.MEAN] if kind is StatisticDefinition else PAIR_STATISTICS[PairStatistic.SLOPE]
    known = {part.name: getattr(row, part.name) for part in fields(kind)}
    for name in known:
        with pytest.raises(TypeError, match=name):
            kind(**{other: value for other, value in known.items() if other != name})


def test_names_are_unique() -> None:
    """A name asks for one thing, in SQL, in GoogleSQL and in the parser's words."""
    wordings = [wording for _, wording in list_wordings()]
    for names in (
        list_names(),
        [name for wording in wordings for name in wording.google],
        [name for wording in wordings for name in wording.parsed],
        [(wording.verb, wording.sample) for wording in wordings if wording.verb],
        [wording.help for wording in wordings],
    ):
        assert len(set(names)) == len(names)


@EVERY_WORDING
def test_the_parser_makes_what_the_table_says(statistic: object, wording: Wording) -> None:
    """Each name is parsed to one of the classes of its row, or is known by name only."""
    del statistic
    arguments = {ArgumentForm.PAIR: "x, y", ArgumentForm.VALUE_AND_SHARE: "x, 0.5"}.get(wording.arguments, "x")
    found = {
        type(sqlglot.parse_one(f"SELECT {name}({arguments})", dialect="duckdb").expressions[0]).__name__
        for name in wording.names
    }
    assert found - {"Anonymous"} == set(wording.parsed)
    assert set(wording.parsed) <= set(aggregates.FORMS)
    assert "Anonymous" not in found or any(name in aggregates.NAMED for name in wording.names)


# What it offers can be asked


@EVERY_WORDING
def test_names_and_examples_mean_this(statistic: Statistic | PairStatistic, wording: Wording) -> None:
    """Every example and every name in SQL is accepted, and measures the statistic of its row."""
    arguments = {
        ArgumentForm.PAIR: "cost, age", ArgumentForm.VALUE_AND_SHARE: "cost, 0.25", ArgumentForm.CONDITION: "smoker"
    }.get(wording.arguments, "ward" if statistic is Statistic.MODE else "cost")  # fmt: skip  # a table
    ways = [example.format(**function_tables.EXAMPLE_COLUMNS) for example in wording.examples]
    for way in (*ways, *(f"{name}({arguments})" for name in wording.names)):
        question = read_sql.read(f"SELECT {way} AS x FROM visits", CATALOG)
        if isinstance(statistic, Statistic):
            assert question.aggregates[0].statistic is statistic
            quarter = Fraction(1, 4) if wording.arguments is ArgumentForm.VALUE_AND_SHARE else None
            assert question.aggregates[0].share == (wording.share or quarter)
        else:
            assert question.aggregates and not isinstance(question.outputs[0].expression, ReleasedValue)


@EVERY_WORDING
def test_the_chain_means_the_same(statistic: object, wording: Wording) -> None:
    """The verb of a row is public, documented, and gives the plan of the row's first example."""
    del statistic
    if wording.verb is None:
        assert wording.arguments is ArgumentForm.CONDITION  # in a chain, count().filter(condition)
        return
    assert wording.verb in discreet.__all__
    verb: Any = getattr(discreet, wording.verb)
    column = function_tables.EXAMPLE_COLUMNS["key" if "{key}" in wording.examples[0] else "number"]
    arguments: dict[ArgumentForm, tuple[Any, ...]] = {
        ArgumentForm.VALUE: (column,),
        ArgumentForm.VALUE_AND_SHARE: (column, 0.25),
        ArgumentForm.PAIR: (column, function_tables.EXAMPLE_COLUMNS["other"]),
    }
    made = verb(*arguments.get(wording.arguments, ()), **({"sample": True} if wording.sample else {}))
    way = wording.examples[0].format(**function_tables.EXAMPLE_COLUMNS)
    asked = read_sql.read(f"SELECT {way} AS x FROM visits", CATALOG)
    assert TableBuilder(CATALOG, "visits").agg(x=made).question == asked


def google(name: str, arguments: str, bounds: str = "") -> str:
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1)"
    inside = f"{arguments}, {bounds} => (0, 9)" if bounds else arguments
    return " ".join(("SELECT", clause, f"{name}({inside}) AS x FROM visits"))


@EVERY_WORDING
def test_google_names_and_bounds(statistic: Statistic | PairStatistic, wording: Wording) -> None:
    """GoogleSQL's names are accepted there, with exactly the bounds that the table allows."""
    arguments = {
        ArgumentForm.PAIR: "cost, age", ArgumentForm.VALUE_AND_SHARE: "cost, 0.25", ArgumentForm.CONDITION: "smoker"
    }.get(wording.arguments, "cost")  # fmt: skip  # a table
    known = define(statistic)
    per_group = isinstance(known, StatisticDefinition) and known.group_bounds is not GroupBounds.REFUSED
    per_row = isinstance(known, StatisticDefinition) and known.needs_bounds
    for name in wording.google:
        assert read_sql.read_with_offer(google(name, arguments), CATALOG).question.aggregates
        for bounds, allowed in (("contribution_bounds_per_group", per_group), ("contribution_bounds_per_row", per_row)):
            text = google(name, arguments, bounds)
            if allowed:
                assert read_sql.read_with_offer(text, CATALOG).question.aggregates
            else:
                with pytest.raises(QuestionError, match=bounds):
                    read_sql.read_with_offer(text, CATALOG)


@pytest.mark.parametrize("notion", ["pure", "approx"])
@EVERY_WORDING
def test_everything_is_previewed_and_asked(statistic: Statistic | PairStatistic, wording: Wording, notion: str) -> None:
    """Whatever the table offers goes the whole way, with an argument of every type; everything else costs nothing."""
    pure = notion == "pure"
    curator = curate(Budget(epsilon=1000) if pure else Budget(epsilon=1000, delta=1e-6))
    for kind, column in COLUMNS.items():
        for example in wording.examples[: 1 if pure else None]:
            text = f"SELECT {write(example, column)} AS x FROM visits"
            if kind in define(statistic).takes:
                check_answered(curator, text, statistic, wording, kind)
            else:
                check_refused(curator, text)


def check_refused(curator: Curator, text: str) -> None:
    before = curator.ledger.remaining
    for do in (curator.preview, curator.ask):
        with pytest.raises(UsageError, match="Nothing was charged"):
            do(text, epsilon=1)
    assert curator.ledger.remaining == before


def check_answered(
    curator: Curator, text: str, statistic: Statistic | PairStatistic, wording: Wording, kind: Type
) -> None:
    known = define(statistic)
    (column,) = curator.preview(text, epsilon=1).columns
    if isinstance(known, StatisticDefinition) and not wording.sample:
        assert known.title in column.what
        assert (column.error is not None) is known.has_direct_error
    (value,) = curator.ask(text, epsilon=1).table["x"].to_pylist()
    assert holds(value, known, kind, wording)


def holds(value: Any, known: StatisticDefinition | PairDefinition, kind: Type, wording: Wording) -> bool:
    """Whether a value is of the type that the table promises, and finite."""
    if value is None:
        return True
    result = known.result if isinstance(known, StatisticDefinition) else Type.REAL
    if kind is Type.BOOLEAN and known is STATISTICS[Statistic.SUM]:
        kind = Type.INTEGER  # a condition counts as 1 and 0
    wanted = kind if result is None and not wording.sample else result or Type.REAL
    if wanted is Type.REAL:
        return isinstance(value, float) and bool(np.isfinite(value))
    names = {Type.INTEGER: int, Type.BOOLEAN: bool, Type.TEXT: str, Type.DATE: dt.date, Type.TIMESTAMP: dt.datetime}
    return isinstance(value, names[wanted])


@pytest.mark.parametrize(("statistic", "known"), STATISTICS.items(), ids=lambda value: getattr(value, "name", ""))
def test_what_needs_bounds_is_refused_without(statistic: Statistic, known: StatisticDefinition) -> None:
    """Where one row could move a statistic without limit, a column without bounds is refused, and only there."""
    income = CATALOG.find_table("answers").find_column("Income")  # a real number without bounds
    free = nodes.Aggregate(statistic, income, share=Fraction(1, 4) if known.has_share else None)
    question = read_sql.read("SELECT COUNT(*) AS x FROM answers", CATALOG)
    asked = replace(question, aggregates=(free,), outputs=())
    if known.needs_bounds:
        with pytest.raises(DiscreetError, match="no bounds"):
            bounding.bound(asked, CATALOG)
    elif known.basis != ChoiceBasis(Cells.KEYS):
        assert bounding.bound(asked, CATALOG).measured


# Formulas


@pytest.mark.parametrize(("statistic", "known"), STATISTICS.items(), ids=lambda value: getattr(value, "name", ""))
def test_formulas_are_finite_whatever_the_noise(statistic: Statistic, known: StatisticDefinition) -> None:
    """A formula gives a finite number for any noisy counts and sums, even at the ends of what is allowed."""
    del statistic
    source = np.random.default_rng(3)
    for size, reach in ((1.0, 55.0), (2.0**-400, 2.0**-380), (2.0**380, 2.0**400), (0.25, 0.0)):
        count = np.maximum(1.0, source.integers(-5, 50, 400).astype(np.float64))
        steps, squares = (source.integers(-(1 << 62), 1 << 62, 400).astype(np.float64) for _ in range(2))
        first = FirstMoments(count=count, steps=steps, origin=reach / 2, size=size, low=-reach, high=reach)
        if isinstance(known.basis, FirstMomentBasis):
            assert np.isfinite(known.basis.formula(first)).all()
        elif isinstance(known.basis, SecondMomentBasis):
            assert np.isfinite(known.basis.formula(SecondMoments(first=first, squares=squares))).all()


# Negative controls: what is forgotten is seen before anything is charged


def test_a_statistic_without_a_row_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statistic that is missing in the table fails while a question is read."""
    curator = curate(Budget(epsilon=10))
    before = curator.ledger.remaining
    for module in (nodes, bounding):
        monkeypatch.setattr(module, "STATISTICS", {k: v for k, v in STATISTICS.items() if k is not Statistic.MEAN})
    with pytest.raises(KeyError):
        curator.ask("SELECT AVG(age) AS x FROM visits", epsilon=1)
    assert curator.ledger.remaining == before


def test_a_basis_that_bounding_does_not_know_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A basis without a rule fails while the question is bounded."""
    curator = curate(Budget(epsilon=10))
    before = curator.ledger.remaining
    unknown: Any = "by magic"
    broken = {**STATISTICS, Statistic.MEAN: replace(STATISTICS[Statistic.MEAN], basis=unknown)}
    monkeypatch.setattr(recipes, "STATISTICS", broken)
    with pytest.raises(AssertionError):
        curator.ask("SELECT AVG(age) AS x FROM visits", epsilon=1)
    assert curator.ledger.remaining == before


def test_the_end_to_end_test_sees_a_missing_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """If finishing did not know a basis, the question would be paid for and fail; the test above asks, so it fails."""
    unknown: Any = "by magic"
    broken = {**STATISTICS, Statistic.MEAN: replace(STATISTICS[Statistic.MEAN], basis=unknown)}
    monkeypatch.setattr(released_columns, "STATISTICS", broken)
    (wording,) = STATISTICS[Statistic.MEAN].wordings
    with pytest.raises(InternalError):
        test_everything_is_previewed_and_asked(Statistic.MEAN, wording, "pure")


def test_features_are_those_of_the_table() -> None:
    """Two wordings of one statistic are the same inside one unit."""
    for statistic, wording in list_wordings():
        assert computations.FEATURES[statistic, wording.word] is wording.inside


def test_what_is_said_of_aggregates_inside_is_in_step() -> None:
    """The refusal of an aggregate inside one unit names everything that the table has there."""
    with pytest.raises(QuestionError) as caught:
        read_sql.read("SELECT COUNT(*) FROM (SELECT patient_id, MODE(ward) FROM visits GROUP BY 1) AS t", CATALOG)
    for _, wording in list_wordings():
        if wording.inside is not None and wording.arguments is ArgumentForm.VALUE:
            assert wording.examples[0].partition("(")[0] in str(caught.value)
