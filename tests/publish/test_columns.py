"""Tests of columns: values to cells and back, and refusals where nothing is declared."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import numpy as np
import pytest

from discreet.engines.tabulation import FIRST_CODE, NULL_CODE, OTHER_CODE
from discreet.errors import UsageError
from discreet.plan.catalog import ColumnFacts
from discreet.plan.expressions import Column
from discreet.plan.types import Type
from discreet.publish.chance import PublicChance
from discreet.publish.columns import ColumnChoice, PublishedColumn, publish_column
from discreet.publish.records import dump_column, load_column


def make(kind: Type, facts: ColumnFacts, choice: ColumnChoice | None = None) -> PublishedColumn:
    return publish_column("c", Column("t", "c", kind), facts, choice or ColumnChoice())


def bounded(low: int, high: int, **more: object) -> ColumnFacts:
    return ColumnFacts(low=Fraction(low), high=Fraction(high), **more)  # type: ignore[arg-type]


def test_listed_values_are_cells() -> None:
    column = make(Type.TEXT, ColumnFacts(keys=("a", None, "b")))
    assert [column.label(cell) for cell in range(column.size)] == ["NULL", "(other)", "a", "b"]
    assert column.view(0).cells[[NULL_CODE, OTHER_CODE, FIRST_CODE, FIRST_CODE + 1]].tolist() == [0, 1, 2, 3]
    decoded = column.decode(np.array([0, 1, 2, 3]), None, PublicChance(b""))
    assert decoded.to_pylist() == [None, "(other)", "a", "b"]


def test_what_was_declared_away_counts_somewhere() -> None:
    """A NULL where none may be is no error, which would tell that it is there."""
    column = make(Type.TEXT, ColumnFacts(keys=("a", "b"), nullable=False))
    assert column.size == 3
    assert column.view(0).cells.tolist() == [0, 0, 1, 2]
    number = make(Type.INTEGER, bounded(0, 3, nullable=False))
    assert number.view(0).cells.tolist() == [0, 0, 0, 1, 2, 3]


def test_small_ranges_keep_every_number() -> None:
    column = make(Type.INTEGER, bounded(-2, 2))
    assert column.size == 6 and column.fine_size == 0
    assert column.decode(np.array([0, 1, 5]), None, PublicChance(b"")).to_pylist() == [None, -2, 2]
    assert column.find_value(3) == (True, 0)


def test_large_ranges_have_bins_and_keep_spikes() -> None:
    """Within a bin rows are where the fine histogram says: all at the round number."""
    column = make(Type.INTEGER, bounded(0, 999), ColumnChoice(bins=10))
    assert column.size == 11 and column.fine_size == 1000
    fine = np.zeros(1000)
    fine[550] = 7.0
    values = column.decode(np.full(50, 6), fine, PublicChance(b"")).to_pylist()
    assert set(values) == {550}
    spread = column.decode(np.full(200, 6), None, PublicChance(b"")).to_pylist()
    assert min(spread) >= 500 and max(spread) < 600
    assert column.find_value(6) == (False, None)


def test_reals_fall_into_their_bins() -> None:
    column = make(Type.REAL, bounded(0, 10), ColumnChoice(bins=5))
    values = column.decode(np.full(100, 2), None, PublicChance(b"")).to_pylist()
    assert all(2 <= value < 4 for value in values)
    edges = make(Type.REAL, bounded(0, 10), ColumnChoice(edges=(1.0, 9.0)))
    assert edges.size == 4


def test_days_come_back_as_days() -> None:
    choice = ColumnChoice(low=dt.date(2024, 1, 1), high=dt.date(2024, 12, 31), bins=12)
    column = make(Type.DATE, ColumnFacts(), choice)
    values = column.decode(np.full(50, 1), None, PublicChance(b"")).to_pylist()
    assert all(dt.date(2024, 1, 1) <= day < dt.date(2024, 2, 1) for day in values)
    moments = make(Type.TIMESTAMP, ColumnFacts(), choice).decode(np.full(3, 2), None, PublicChance(b""))
    assert all(isinstance(moment, dt.datetime) for moment in moments.to_pylist())


@pytest.mark.parametrize(
    ("kind", "choice", "what"),
    [
        (Type.TEXT, ColumnChoice(), "keys"),
        (Type.REAL, ColumnChoice(), "bounds"),
        (Type.REAL, ColumnChoice(low=3, high=3), "low < high"),
        (Type.REAL, ColumnChoice(low="3", high=4), "are numbers"),
        (Type.DATE, ColumnChoice(), "days"),
        (Type.TEXT, ColumnChoice(keys=()), "lists no values"),
        (Type.INTEGER, ColumnChoice(low=0, high=10**6, bins=0), "bins"),
    ],
)
def test_columns_without_facts_are_refused(kind: Type, choice: ColumnChoice, what: str) -> None:
    with pytest.raises(UsageError, match=f"(?s){what}.*Nothing was charged"):
        make(kind, ColumnFacts(), choice)


@pytest.mark.parametrize(
    "column",
    [
        make(Type.TEXT, ColumnFacts(keys=("a", "b"))),
        make(Type.REAL, bounded(0, 10, resolution=Fraction(1, 3))),
        make(Type.DATE, ColumnFacts(), ColumnChoice(low=dt.date(2024, 1, 1), high=dt.date(2024, 2, 1))),
        make(Type.DATE, ColumnFacts(keys=(dt.date(2024, 1, 1),))),
    ],
)
def test_columns_on_record_decode_the_same(column: PublishedColumn) -> None:
    again = load_column(dump_column(column))
    cells = np.arange(column.size)
    assert [again.label(cell) for cell in cells.tolist()] == [column.label(cell) for cell in cells.tolist()]
    assert again.decode(cells, None, PublicChance(b"s")) == column.decode(cells, None, PublicChance(b"s"))
