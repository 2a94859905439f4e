"""Rows parted by unit: none is lost, none is double, and no unit is in two parts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from discreet.engines.duckdb import unit_parts
from discreet.engines.duckdb.unit_parts import UnitParts
from discreet.engines.duckdb.weighed_pairs import UnitRows, gather
from discreet.errors import InternalError

GROUPS = 7


def some_rows(units: np.ndarray, seed: int = 1) -> UnitRows:
    rng = np.random.default_rng(seed)
    return UnitRows(units, rng.integers(0, GROUPS, len(units)).astype(np.uint32), (rng.integers(0, 99, len(units)),))


def count_pairs(parts: list[UnitRows]) -> Counter[tuple[int, ...]]:
    """What all parts hold together: rows and sums of each pair."""
    pairs = gather(parts, GROUPS)
    counts = np.ones(len(pairs), np.int64) if pairs.rows is None else pairs.rows
    return Counter(
        zip(pairs.units.tolist(), np.asarray(pairs.groups).tolist(), counts.tolist(), pairs.sums[0].tolist())
    )


def check_parts(rows: UnitRows, found: list[UnitRows], most: int) -> None:
    assert count_pairs(found) == count_pairs([rows])
    owners = [set(part.units.tolist()) for part in found]
    assert sum(map(len, owners)) == len(set(rows.units.tolist()))
    assert all(len(part) <= most for part in found)


@pytest.mark.parametrize("most_bytes", [2**30, 20_000], ids=["in memory", "in files"])
@pytest.mark.parametrize("heavy", [0, 3000], ids=["all alike", "one with many rows"])
def test_every_row_is_in_the_part_of_its_unit(
    most_bytes: int, heavy: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small parts, which most rows are too many for, at several levels."""
    for name, size in (("MOST_PAIRS", 40), ("BLOCK_ROWS", 16), ("FEW_ROWS", 8)):
        monkeypatch.setattr(unit_parts, name, size)
    rng = np.random.default_rng(5)
    rows = some_rows(np.concatenate((rng.integers(-(2**63), 2**63, 9000), np.full(heavy, 2**63 - 1))))
    parts = UnitParts(tmp_path, most_bytes, GROUPS)
    for start in range(0, len(rows), 1000):
        parts.add(rows.pick(slice(start, start + 1000)))
    assert any(tmp_path.iterdir()) is (most_bytes < 2**30)
    check_parts(rows, list(parts.read()), 40)
    assert not any(tmp_path.iterdir())


def test_units_that_follow_each_other_are_spread(tmp_path: Path) -> None:
    parts = UnitParts(tmp_path, 2**30, GROUPS)
    rows = some_rows(np.arange(2**17))
    parts.add(rows)
    found = list(parts.read())
    assert len(found) > 3
    check_parts(rows, found, unit_parts.FEW_ROWS)


def test_units_of_one_part_are_parted_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Units that are chosen to meet in the first seven levels."""
    for name in ("MOST_PAIRS", "FEW_ROWS"):
        monkeypatch.setattr(unit_parts, name, 16)
    inverse = pow(int(unit_parts._FACTOR), -1, 2**64)
    units = np.array([(last * inverse) % 2**64 for last in range(40)], np.uint64).view(np.int64)
    rows, parts = some_rows(np.repeat(units, 9)), UnitParts(tmp_path, 2**30, GROUPS)
    parts.add(rows)
    check_parts(rows, list(parts.read()), 16)


def test_one_unit_with_very_many_rows_takes_little_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are pairs of the unit and a group by the time they are in a file."""
    monkeypatch.setattr(unit_parts, "MOST_PAIRS", 1000)
    parts, written = UnitParts(tmp_path, 100_000, GROUPS), 0
    for _ in range(20):
        parts.add(some_rows(np.zeros(20_000, np.int64)))
    written = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert 0 < written <= 20 * GROUPS * 4 * 8
    assert sum(map(len, parts.read())) <= GROUPS


def test_there_is_a_last_level(tmp_path: Path) -> None:
    with pytest.raises(InternalError):
        UnitParts(tmp_path, 1, GROUPS, level=8)


@pytest.mark.parametrize("most_bytes", [2**30, 20_000], ids=["in memory", "in files"])
def test_one_unit_in_more_groups_than_fit_stays_whole(
    most_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where groups are cells of groups, too: it is parted from all others, and not from itself."""
    for name, size in (("MOST_PAIRS", 100), ("BLOCK_ROWS", 64), ("FEW_ROWS", 8)):
        monkeypatch.setattr(unit_parts, name, size)
    rng, groups = np.random.default_rng(3), 3000
    owners = rng.permutation(np.concatenate((rng.integers(-(2**63), 2**63, 2000), np.full(20_000, 7))))
    rows = UnitRows(owners, rng.integers(0, groups, len(owners)).astype(np.uint32), ())
    parts = UnitParts(tmp_path, most_bytes, groups)
    for start in range(0, len(rows), 1000):
        parts.add(rows.pick(slice(start, start + 1000)))
    found = [gather([part], groups) for part in parts.read()]
    pairs = [pair for part in found for pair in zip(*(array.tolist() for array in part.arrays))]
    whole = gather([rows], groups)
    assert sorted(pairs) == sorted(zip(*(array.tolist() for array in whole.arrays)))
    assert sum(7 in part.units for part in found) == 1
    assert max(map(len, found)) <= groups
