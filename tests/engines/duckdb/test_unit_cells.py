"""Spreads of units, read part by part or range by range: the integers of one statement, and of the oracle."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Spread
from discreet.engines.duckdb import prepared, unit_cells, unit_parts, unit_pieces
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.session import Settings
from discreet.engines.engine import Groups
from discreet.engines.memory.engine import MemoryEngine
from discreet.plan.expressions import Column
from discreet.plan.functions import make_call, make_literal
from discreet.plan.relations import Join, JoinKind, Scan
from tests.engines.duckdb.test_unit_tally import many_rows, opened, some_rows
from tests.engines.worlds import AGE, CODE, COST, FLAG, NAME, SALT, UNIT, WARD, add_conditions, catalog, frame

Histogram: TypeAlias = tuple[list[int], list[int]]
COSTS = Spread(argument=COST, resolution=Fraction(1, 2), first=-7, last=9)
BY_GROUP = BoundedPlan(
    source=Scan("t"),
    keys=(WARD, CODE),
    domain=None,
    unit=UNIT,
    measures=(Measure(counts=Counts.UNITS),),
    spreads=(COSTS, Spread(argument=WARD, first=0, last=2, values=("B", "nobody's", "A"))),
    max_groups=2,
    max_rows_per_group=2,
    weight_bits=16,
)
PLANS = {
    "groups and rows": BY_GROUP,
    "rows of groups": replace(BY_GROUP, max_groups=None, measures=()),
    "rows": replace(BY_GROUP, max_groups=None, max_rows_per_group=None, max_rows=5),
    "public groups": replace(BY_GROUP, keys=(WARD,), domain=(("A",), ("B",), ("nobody's",), (None,))),
    "no groups": replace(BY_GROUP, keys=(), max_groups=None),
    "groups by lot": replace(BY_GROUP, measures=(Measure(counts=Counts.NAMED),)),
    "keys of other kinds": replace(BY_GROUP, keys=(FLAG, make_call("length", WARD))),
    "a condition": replace(
        BY_GROUP, source=add_conditions(Scan("t"), make_call("equal", WARD, make_literal("B"))), keys=(CODE,)
    ),
    "nobody": replace(BY_GROUP, source=add_conditions(Scan("t"), make_call("greater", CODE, make_literal(9)))),
}


@pytest.fixture
def tallied(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each spread that could be tallied was."""
    found: list[bool] = []
    count = unit_cells.CellTally.count

    def note(*given: Any) -> Any:
        answer = count(*given)
        found.append(answer is not None)
        return answer

    monkeypatch.setattr(unit_cells.CellTally, "count", note)
    return found


@pytest.mark.parametrize("is_prepared", [False, True], ids=["parts", "ranges"])
@pytest.mark.parametrize("name", PLANS)
def test_parts_change_nothing(
    name: str, is_prepared: bool, tallied: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts and ranges of a few rows, which no unit may be cut by; the oracle says what is right."""
    for module, constant, size in ((prepared, "RANGE_ROWS", 50), (unit_parts, "FEW_ROWS", 9)):
        monkeypatch.setattr(module, constant, size)
    monkeypatch.setattr(unit_pieces, "SLICE_ROWS", 16)
    rows, bounded = some_rows(), PLANS[name]
    with opened(frame(rows)) as engine:
        if is_prepared:
            engine.prepare("t")
        found = engine.run(bounded, salt=SALT)
        assert tallied == [True, True]
        engine._least_tallied = 10**9
        assert list_cells(engine.run(bounded, salt=SALT)) == list_cells(found)
    assert len(tallied) == 2  # negative control: the second answer is one of DuckDB's alone
    plain = replace(bounded, measures=tuple(m for m in bounded.measures if not m.by_lot))
    wanted = MemoryEngine({"t": rows}, catalog(UNIT)).run(plain, salt=SALT)
    assert list_cells(found) == list_cells(wanted) and any(list_cells(found)) is (name != "nobody")


def list_cells(groups: Groups) -> list[dict[tuple[Any, ...], Histogram]]:
    """For each spread the cells and what they hold, of each group that has any."""
    found = [
        {key: (c.tolist(), n.tolist()) for key, (c, n) in zip(groups.keys, s, strict=True)} for s in groups.spreads
    ]
    return [{key: cells for key, cells in spread.items() if cells[0]} for spread in found]


@pytest.mark.parametrize("is_prepared", [False, True], ids=["parts", "ranges"])
def test_one_person_with_most_of_all_rows(
    is_prepared: bool, tallied: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that no part can hold are gathered by group and cell; parts that memory cannot hold lie in files."""
    for module, constant, size in (
        (unit_parts, "BLOCK_ROWS", 4096),
        (unit_pieces, "BLOCK_ROWS", 4096),
        (unit_parts, "MOST_PAIRS", 10_000),
    ):
        monkeypatch.setattr(module, constant, size)
    monkeypatch.setattr(Settings, "count_bytes", lambda _: 300_000)
    bounded = replace(BY_GROUP, keys=(CODE,), spreads=(COSTS,), max_groups=50)
    answers = []
    for least in (0, 10**9):
        with opened(many_rows(50_000, keys=500)) as engine:
            engine._least_tallied = least
            if is_prepared:
                engine.prepare("t")
            answers.append(list_cells(engine.run(bounded, salt=SALT)))
    assert answers[0] == answers[1] and tallied == [True]


def test_too_many_cells_are_left_to_one_statement(tallied: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody hears of it: the answer is the same."""
    answers = []
    for most in (2**24, 10):
        monkeypatch.setattr("discreet.engines.duckdb.session.MOST_CELLS", most)
        with opened(frame(some_rows())) as engine:
            answers.append(list_cells(engine.run(BY_GROUP, salt=SALT)))
    assert answers[0] == answers[1] and tallied == [True, True, False, False]


JOINED = Join(Scan("t"), Scan("t", "o"), JoinKind.INNER, ((UNIT, Column("o", UNIT.name, UNIT.type)),))


@pytest.mark.parametrize(
    "bounded",
    [
        replace(BY_GROUP, unit=None, max_groups=None, max_rows_per_group=None, weight_bits=0, measures=()),
        replace(BY_GROUP, unit=NAME),
        replace(BY_GROUP, source=JOINED),
        replace(BY_GROUP, max_rows_per_group=2**50),
        replace(BY_GROUP, spreads=(), measures=(Measure(counts=Counts.VALUES, argument=AGE),)),
    ],
    ids=["rows", "a text", "a join", "no limit", "no spread"],
)
def test_other_questions_are_left_to_one_statement(bounded: BoundedPlan, tallied: list[bool]) -> None:
    unit = bounded.unit if isinstance(bounded.unit, Column) else None
    with opened(frame(some_rows())) as engine:
        engine._catalog = catalog(unit)
        engine.run(bounded, salt=SALT)
    assert not tallied


def test_few_rows_are_left_to_one_statement(tallied: list[bool]) -> None:
    """By default; so a small question takes no longer than before."""
    engine = DuckDBEngine({"t": frame(some_rows())}, catalog(UNIT))
    engine.run(BY_GROUP, salt=SALT)
    engine.close()
    assert not tallied
