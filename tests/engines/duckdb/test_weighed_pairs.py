"""Rows of units as arrays: the same integers as the definition gives, pair by pair, in Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.engines.duckdb import weighed_pairs
from discreet.engines.duckdb.weighed_pairs import (
    GroupTotals,
    PairShare,
    UnitRows,
    WeightRule,
    gather,
    join,
    number_units,
    weigh,
)
from discreet.errors import InternalError
from discreet.exact import Integers

BITS = 16
RULE = WeightRule(
    bits=BITS,
    rows=None,
    rows_in_group=2,
    groups=3,
    groups_of_unit=3,
    shares=(PairShare(2 << BITS), PairShare(2 * 10**9 << BITS, 0), PairShare(1 << BITS, 1, by_unit=True)),
)
RULES = {
    "groups and rows": RULE,
    "rows of a group": replace(RULE, groups=None, groups_of_unit=None),
    "rows": replace(RULE, rows=5, rows_in_group=None, groups=None),
    "rows without units": replace(RULE, rows=5, rows_in_group=None, groups=None, shares=RULE.shares[:2]),
}


def some_rows(seed: int, *, units: int = 40, groups: int = 30, rows: int = 900) -> UnitRows:
    """A few units with extreme numbers, values of both signs, and some that count for nothing."""
    rng = np.random.default_rng(seed)
    names = np.concatenate((rng.integers(-(2**63), 2**63, units - 3), [-(2**63), 2**63 - 1, 0]))
    counted = rng.integers(0, 2, rows).astype(np.int8)
    values = rng.integers(-(10**9), 10**9, rows).astype(np.int32)
    owners = names[(units * rng.random(rows) ** 2).astype(int)]
    return UnitRows(owners, rng.integers(0, groups, rows).astype(np.uint32), (values, counted))


def meet_in_one_slot(units: int) -> Integers:
    """Different units whose products with the factor have the same upper half."""
    inverse = pow(int(weighed_pairs._SLOT_FACTOR), -1, 2**64)
    return np.array([inverse * small % 2**64 for small in range(units)], np.uint64).view(np.int64)


UNITS = {
    "few": np.arange(7),
    "as many as rows": np.arange(-1000, 1000),
    "all in one slot": meet_in_one_slot(500),
    "some in one slot": np.concatenate((meet_in_one_slot(9), np.arange(1, 40))),
    "extremes": np.array([-(2**63), 2**63 - 1, 0, -1]),
    "one": np.array([5]),
}


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 2000])
@pytest.mark.parametrize("in_order", [False, True])
def test_units_are_numbered(name: str, rows: int, in_order: bool) -> None:
    """Each number is one unit's, and all numbers are used: for any units, in any order."""
    rng = np.random.default_rng(rows)
    units = rng.permutation(np.resize(UNITS[name], rows))
    units = np.sort(units) if in_order else units
    found, numbers = number_units(units)
    assert sorted(found.tolist()) == sorted(set(units.tolist()))
    assert numbers.dtype == np.int64 and np.array_equal(found[numbers], units)


def test_units_that_meet_in_a_slot_are_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: they are what the table cannot number; without Arrow they would be one unit."""
    left: list[int] = []
    encode = weighed_pairs._encode

    def note(units: Integers) -> Any:
        left.append(len(units))
        return encode(units)

    monkeypatch.setattr(weighed_pairs, "_encode", note)
    number_units(meet_in_one_slot(500))
    assert left == [499]


def follow_definition(rows: UnitRows, rule: WeightRule) -> dict[int, tuple[int, ...]]:
    """Steps 3 and 4 of contributions.py, word by word, in Python's integers."""
    pairs: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * 3)
    for unit, group, value, counted in zip(*(array.tolist() for array in rows.arrays)):
        pairs[unit, group] = [a + b for a, b in zip(pairs[unit, group], (1, value, counted))]
    everywhere, had = Counter[int](), Counter[int]()
    for (unit, _), (n, _, _) in pairs.items():
        everywhere[unit] += n
        had[unit] += 1

    def share(most: int | None, count: int) -> int:
        return 1 << rule.bits if most is None else min(1 << rule.bits, (most << rule.bits) // count)

    totals: dict[int, list[int]] = defaultdict(lambda: [0] * len(rule.shares))
    for (unit, group), sums in pairs.items():
        in_all = rule.rows is not None
        weight = share(rule.rows, everywhere[unit]) if in_all else share(rule.rows_in_group, sums[0])
        weight = weight if in_all else (weight * share(rule.groups, had[unit])) >> rule.bits
        own = (weight * sums[0], weight * sums[1], share(rule.groups_of_unit, had[unit]) if sums[2] else 0)
        totals[group] = [a + b for a, b in zip(totals[group], own)]
    return {group: tuple(sums) for group, sums in totals.items()}


def add_up(parts: list[UnitRows], rule: WeightRule, groups: int = 30) -> dict[int, tuple[int, ...]]:
    totals = GroupTotals(groups, len(rule.shares))
    for part in parts:
        totals.add(weigh(part, groups, rule))
    return totals.read()


@pytest.mark.parametrize("dense", [0, 4], ids=["sorted", "counted"])
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", range(3))
def test_sums_are_those_of_the_definition(name: str, seed: int, dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs are brought together by a sort, or by counting in all cells."""
    monkeypatch.setattr(weighed_pairs, "DENSE", dense)
    rows = some_rows(seed)
    assert add_up([rows], RULES[name]) == follow_definition(rows, RULES[name])


@pytest.mark.parametrize("name", RULES)
def test_pairs_weigh_as_their_rows_do(name: str) -> None:
    """Rows that were gathered before, some of them, and in two parts by unit."""
    rows = some_rows(7)
    gathered = join([gather([rows.pick(slice(0, 500))], 30), rows.pick(slice(500, None))])
    low, high = (gathered.pick(np.flatnonzero((gathered.units < 0) == side)) for side in (True, False))
    assert add_up([low, high], RULES[name]) == add_up([rows], RULES[name])


def test_a_unit_in_two_parts_would_weigh_too_much() -> None:
    """Negative control: parts that cut a unit in two give other sums."""
    rows = some_rows(7)
    assert add_up([rows.pick(slice(0, 500)), rows.pick(slice(500, None))], RULE) != add_up([rows], RULE)


@pytest.mark.parametrize("groups", [1, 2**16 - 1, 2**16, 2**20])
def test_many_groups_and_few(groups: int) -> None:
    """Cells of one, two and three digits."""
    rows = some_rows(3, groups=min(groups, 5), rows=300)
    far = replace(rows, groups=(rows.groups.astype(np.int64) * max(1, groups // 5)))
    assert add_up([far], RULE, groups) == follow_definition(far, RULE)


def test_sums_beyond_64_bits() -> None:
    """Sums of pairs that wrap around, whose products with a weight do not; and totals of more than 64 bits."""
    most = 2**45
    rule = replace(RULE, rows_in_group=1, groups=None, groups_of_unit=None, shares=(PairShare(most << BITS, 0),))
    rows = UnitRows(np.zeros(2**19, np.int64), np.zeros(2**19, np.uint32), (np.full(2**19, most),))
    found = follow_pair(2**19, most)
    assert 2**19 * most >= 2**63 and add_up([rows], rule, 1) == {0: (found,)}
    totals = GroupTotals(1, 1)
    for _ in range(10):
        totals.add(weigh(rows, 1, rule))
    assert totals.read() == {0: (10 * found,)}


def follow_pair(rows: int, each: int) -> int:
    return ((1 << BITS) // rows) * rows * each


def test_wide_numbers_are_not_summed_as_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would lose the last digits: with room for them, the sum is another one."""
    rule = replace(RULE, bits=0, rows_in_group=9, groups=None, groups_of_unit=None, shares=(PairShare(2**61, 0),))
    rows = UnitRows(np.zeros(3, np.int64), np.zeros(3, np.uint32), (np.array([2**58, 1, 2**58]),))
    assert add_up([rows], rule, 1) == {0: (2**59 + 1,)}
    monkeypatch.setattr(weighed_pairs, "_EXACT_BYTES", 8)
    assert add_up([rows], rule, 1) == {0: (2**59,)}


def test_totals_carry_over() -> None:
    """Sums of both signs at the ends of what one part may add, so often that 64 bits would not hold them."""
    for value in (2**62 - 1, -(2**62) + 1):
        rule = replace(RULE, bits=0, rows_in_group=1, groups=None, groups_of_unit=None, shares=(PairShare(2**62, 0),))
        rows = UnitRows(np.arange(1000), np.zeros(1000, np.uint32), (np.full(1000, value),))
        assert add_up([rows] * 20, rule, 1) == {0: (20_000 * value,)}


def test_groups_without_rows_are_not_there() -> None:
    rows = some_rows(1, groups=4)
    assert set(add_up([rows], RULE, 9)) == set(np.unique(rows.groups).tolist())
    assert add_up([rows.pick(slice(0, 0))], RULE) == {}


def test_more_than_sums_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighed_pairs, "MOST_PAIRS", 899)
    with pytest.raises(InternalError):
        weigh(some_rows(1), 30, RULE)


def test_a_missing_value_is_an_error() -> None:
    import pyarrow as pa

    with pytest.raises(InternalError):
        weighed_pairs.read_array(pa.array([1, None]))
    assert weighed_pairs.read_array(pa.array([1, 2, 3])[1:]).tolist() == [2, 3]
