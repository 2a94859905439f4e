"""A prepared table in ranges of units: the same integers as in one statement."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.bounding.contributions import Counts, Measure
from discreet.engines.duckdb import prepared, unit_ranges
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.sql.unit_sums import write_by_units
from discreet.errors import DiscreetError
from discreet.plan.expressions import Column
from tests.engines.conformance.test_measures import a_broad_world, answer
from tests.engines.worlds import NAME, SALT, UNIT, catalog, frame


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of three rows, none of which are joined."""
    monkeypatch.setattr(prepared, "RANGE_ROWS", 3)
    monkeypatch.setattr(unit_ranges, "MOST_PAIRS", 1)


@pytest.mark.parametrize("pairs", [1, 12, 1 << 20])
@pytest.mark.parametrize(
    ("seed", "unit"), [(205, UNIT), (210, NAME), (218, UNIT), (219, NAME), (220, UNIT), (232, NAME)]
)
@pytest.mark.usefixtures("small_ranges")
def test_small_ranges_change_nothing(seed: int, unit: Column, pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of three rows, which no unit may be cut by: each by itself, some of them as one, and all as one."""
    monkeypatch.setattr(unit_ranges, "MOST_PAIRS", pairs)
    world = a_broad_world(seed, unit=unit, units=8, most=20)
    tables = {"t": frame(world.rows)}
    engine, plain = (DuckDBEngine(tables, catalog(unit), threads=2) for _ in range(2))
    engine.prepare("t")
    wanted = answer(plain.run(world.bounded, salt=SALT))
    assert len(wanted) > 2
    for _ in range(2):  # nothing is left behind in the session that the second question gets
        assert answer(engine.run(world.bounded, salt=SALT)) == wanted
    engine.close()
    plain.close()


@pytest.mark.usefixtures("small_ranges")
def test_a_range_that_is_missing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the ranges do share the work."""
    world = a_broad_world(220, unit=UNIT, units=8, most=20)
    engine = DuckDBEngine({"t": frame(world.rows)}, catalog(UNIT), threads=2)
    engine.prepare("t")
    wanted = answer(engine.run(world.bounded, salt=SALT))
    spans = prepared.UnitRanges.write_spans
    monkeypatch.setattr(prepared.UnitRanges, "write_spans", lambda self, ordinal: spans(self, ordinal)[1:])
    assert answer(engine.run(world.bounded, salt=SALT)) != wanted
    engine.close()


@pytest.mark.usefixtures("small_ranges")
def test_a_failed_question_leaves_no_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a range fails, the next question starts with none."""
    world = a_broad_world(220, unit=UNIT, units=8, most=20)
    engine = DuckDBEngine({"t": frame(world.rows)}, catalog(UNIT), threads=2)
    engine.prepare("t")
    wanted = answer(engine.run(world.bounded, salt=SALT))
    with monkeypatch.context() as patch:
        broken = iter((False, False, True))
        patch.setattr(
            unit_ranges,
            "write_by_units",
            lambda *given: "SELECT error('no')" if next(broken, False) else write_by_units(*given),
        )
        with pytest.raises(DiscreetError):
            engine.run(world.bounded, salt=SALT)
    assert answer(engine.run(world.bounded, salt=SALT)) == wanted
    engine.close()


@pytest.mark.usefixtures("small_ranges")
def test_progress_is_the_share_of_ranges() -> None:
    world, shares = a_broad_world(202, unit=UNIT, units=8, most=20), list[float]()
    bounded = replace(world.bounded, measures=(Measure(counts=Counts.UNITS),), spreads=())
    engine = DuckDBEngine({"t": frame(world.rows)}, catalog(UNIT), threads=2)
    engine.prepare("t")
    engine.run(bounded, salt=SALT, watch=shares.append)
    assert len(shares) > 3 and shares == sorted(shares) and shares[-1] == 1.0
    engine.close()


def test_ranges_cover_all_units_once() -> None:
    ranges = prepared.UnitRanges((-5, 3, 9), (2, 2, 7))
    assert ranges.write_spans("x") == ["x < 3", "x >= 3 AND x < 9", "x >= 9"]
    assert prepared.UnitRanges((), ()).write_spans("x") == ["true"]


@given(st.lists(st.integers(0, 9)), st.integers(0, 30))
def test_joined_ranges_are_the_same_units_in_fewer(units: list[int], most: int) -> None:
    """No edge is new, no unit is lost, one more of them joined to its neighbour would be too many."""
    ranges = prepared.UnitRanges(tuple(range(len(units))), tuple(units))
    joined = ranges.join(most)
    ends = (*joined.edges[1:], len(units))
    assert [sum(units[edge:end]) for edge, end in zip(joined.edges, ends)] == list(joined.units)
    assert sum(joined.units) == sum(units) and joined.edges[:1] == ranges.edges[:1]
    assert all(total <= most or end - edge == 1 for edge, end, total in zip(joined.edges, ends, joined.units))
    assert all(total + units[end] > most for end, total in zip(ends[:-1], joined.units))


def test_ranges_are_joined_by_what_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four public groups a quarter of the pairs is what units there may be. Unknown groups join nothing."""
    monkeypatch.setattr(unit_ranges, "MOST_PAIRS", 100)
    listed = tuple((key,) for key in "abcd")
    public = replace(a_broad_world(220, unit=UNIT, units=8, most=20).bounded, keys=(NAME,), domain=listed)
    plans = (public, replace(public, domain=None), replace(public, keys=(), domain=None), replace(public, domain=()))
    ranges = prepared.UnitRanges(tuple(range(24)), (8,) * 24)
    assert [len(unit_ranges.join_ranges(plan, ranges).edges) for plan in plans] == [8, 24, 2, 2]
