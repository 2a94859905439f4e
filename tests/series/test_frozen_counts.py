"""Tests of frozen counts: who is counted, by brute force over all histories; and a folder that is written once."""

from __future__ import annotations

import datetime as dt
from itertools import combinations, pairwise, product
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import UsageError
from discreet.exact import Integers
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours
from discreet.series.frozen_counts import FolderCounts, FrozenCount, MemoryCounts, UnitLimits, select_units
from discreet.series.mechanism import SeriesMechanism

PERIODS = 5
LIMITS = [UnitLimits(1, 1, 1), UnitLimits(2, 1, 1), UnitLimits(2, 2, 3), UnitLimits(3, 2, 1), UnitLimits(5, 1, 2)]
# One unit's rows on each day: none, or more than any limit.
HISTORIES = [
    tuple(4 if day in days else 0 for day in range(PERIODS))
    for size in range(PERIODS + 1)
    for days in combinations(range(PERIODS), size)
]


def count(histories: dict[Value, tuple[int, ...]], limits: UnitLimits) -> Integers:
    """All periods, one after the other, each from the rows that are there then."""
    before: dict[Value, tuple[int, int]] = {}
    found = []
    for period in range(PERIODS):
        frozen = select_units({u: rows[period] for u, rows in histories.items()}, before, period, limits)
        for unit in frozen.units:
            before[unit] = (before.get(unit, (0, 0))[0] + 1, period)
        found.append(frozen.count)
    return np.array(found, dtype=np.int64)


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("limits", LIMITS)
def test_one_unit_moves_the_series_no_further_than_claimed(limits: UnitLimits, neighbours: Neighbours) -> None:
    """Every history of one unit beside others, before and after, through the counting and the encoding itself."""
    series = SeriesMechanism(
        periods=PERIODS,
        max_periods=limits.max_periods,
        apart=limits.apart,
        max_count=limits.max_count,
        mu=1,
        wanted="totals",
        neighbours=neighbours,
    )
    others: dict[Value, tuple[int, ...]] = {"b": (1, 0, 4, 0, 1), "c": (0, 0, 0, 2, 0)}
    counted = [count({**others, "a": history}, limits) for history in HISTORIES]
    encoded = [np.convolve(series.weights, x)[:PERIODS] for x in counted]
    nobody = encoded[0]
    pairs = product(encoded, encoded) if neighbours is Neighbours.REPLACE else ((x, nobody) for x in encoded)
    worst = max(int(((one - two) ** 2).sum()) for one, two in pairs)
    assert worst <= series.squared_sensitivity
    alone = max(int(((one - nobody) ** 2).sum()) for one in encoded)
    assert alone == (
        series.squared_sensitivity if neighbours is Neighbours.ADD_REMOVE else series.squared_sensitivity // 2
    )


@pytest.mark.parametrize("limits", LIMITS)
def test_limits_hold_however_rows_change_between_periods(limits: UnitLimits) -> None:
    """In each period the rows of before may be others: only what was frozen counts."""
    before: dict[Value, tuple[int, int]] = {}
    taken = []
    for period in range(40):
        frozen = select_units({"a": 1 + period % 5}, before, period, limits)
        if frozen.units:
            taken.append(period)
            before["a"] = (before.get("a", (0, 0))[0] + 1, period)
            assert frozen.count <= limits.max_count
    assert len(taken) == limits.max_periods
    assert all(b - a >= limits.apart for a, b in pairwise(taken))


def test_without_memory_of_who_was_counted_the_claim_fails() -> None:
    """Control: a count of each day by itself lets one unit move the series further than claimed."""
    limits = UnitLimits(2, 1, 1)
    series = SeriesMechanism(periods=PERIODS, max_periods=2, mu=1, wanted="totals")
    forgetful = [select_units({"a": 1}, {}, period, limits).count for period in range(PERIODS)]
    moved = np.convolve(series.weights, np.array(forgetful))[:PERIODS]
    assert int((moved**2).sum()) > series.squared_sensitivity


@pytest.mark.parametrize(
    ("kind", "units"), [(Type.INTEGER, (1, -5)), (Type.TEXT, ("a", "\u00e9")), (Type.DATE, (dt.date(2024, 1, 2),))]
)
def test_a_folder_keeps_what_was_frozen_first(tmp_path: Path, kind: Type, units: tuple[Value, ...]) -> None:
    counts = FolderCounts(tmp_path / "s", "plan", kind)
    assert counts.read(0) is None
    first = FrozenCount(2**70, units)
    assert counts.freeze(0, first) == first
    assert counts.freeze(0, FrozenCount(1, ())) == first == counts.read(0)
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["0000.json"]
    with pytest.raises(UsageError, match="another series"):
        FolderCounts(tmp_path / "s", "other", kind).read(0)
    (tmp_path / "s" / "0000.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        counts.read(0)


def test_memory_keeps_what_was_frozen_first() -> None:
    counts = MemoryCounts()
    assert counts.freeze(3, FrozenCount(1, ("a",))) == counts.freeze(3, FrozenCount(2, ()))
    assert counts.read(4) is None
