"""Cells of spreads as arrays: the same integers as the definition gives, row by row, in Python."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from discreet.engines.duckdb import weighed_cells
from discreet.engines.duckdb.weighed_cells import weigh_cells
from discreet.engines.duckdb.weighed_pairs import HALF, UnitRows, WeightRule, gather

SIZE = 6
RULE = WeightRule(bits=16, rows=None, rows_in_group=2, groups=3, groups_of_unit=None, shares=())
RULES = {
    "groups and rows": RULE,
    "rows of a group": replace(RULE, groups=None),
    "rows": replace(RULE, rows=5, rows_in_group=None, groups=None),
    "wide weights": replace(RULE, rows_in_group=2**40),
}


def some_rows(seed: int, groups: int, rows: int = 900) -> UnitRows:
    """A few units with extreme numbers, some of which have most of the rows."""
    rng = np.random.default_rng(seed)
    names = np.concatenate((rng.integers(-(2**63), 2**63, 37), [-(2**63), 2**63 - 1, 0]))
    owners = names[(40 * rng.random(rows) ** 2).astype(int)]
    return UnitRows(owners, rng.integers(0, groups * SIZE, rows).astype(np.uint32), ())


def follow_definition(rows: UnitRows, rule: WeightRule) -> Counter[int]:
    """What contributions.py says of a Spread, word by word, in Python's integers."""
    entries = [(unit, number // SIZE, number) for unit, number in zip(rows.units.tolist(), rows.groups.tolist())]
    everywhere = Counter(unit for unit, _, _ in entries)
    pairs = Counter((unit, group) for unit, group, _ in entries)
    had, whole = Counter(unit for unit, _ in pairs), 1 << rule.bits
    totals = Counter[int]()
    for unit, group, number in entries:
        if rule.rows is not None:
            weight = min(whole, rule.rows * whole // everywhere[unit])
        else:
            weight = min(whole, (rule.rows_in_group or 0) * whole // pairs[unit, group])
            parts = 1 if rule.groups is None else -(-had[unit] // rule.groups)
            weight = weight * (whole // parts) >> rule.bits
        totals[number] += weight
    return totals


def add_up(rows: UnitRows, groups: int, rule: WeightRule) -> Counter[int]:
    totals = Counter[int]()
    for sums in weigh_cells(rows, SIZE, groups, rule):
        found = (sums.low[0] + (sums.high[0] << HALF)).tolist()
        totals.update(dict(zip(sums.groups.tolist(), found)))
    return totals


@pytest.mark.parametrize("groups", [1, 3, 500], ids=["one group", "few groups", "more groups than rows"])
@pytest.mark.parametrize("name", RULES)
def test_cells_follow_the_definition(name: str, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows as they are, rows gathered, and sums of few at a time."""
    rows, rule = some_rows(groups, groups), RULES[name]
    wanted = follow_definition(rows, rule)
    assert add_up(rows, groups, rule) == wanted
    assert add_up(gather([rows], groups * SIZE), groups, rule) == wanted
    monkeypatch.setattr(weighed_cells, "MOST_PAIRS", 100)
    assert add_up(rows, groups, rule) == wanted


def test_without_a_limit_on_groups_the_integers_differ() -> None:
    """Negative control: the rows above do bring the limits into play."""
    rows = some_rows(3, 30)
    found = {name: add_up(rows, 30, rule) for name, rule in RULES.items()}
    assert all(found[name] != found["groups and rows"] for name in RULES if name != "groups and rows")


def test_nothing_is_weighed_of_no_rows() -> None:
    assert weigh_cells(some_rows(1, 1, rows=0), SIZE, 1, RULE) == []
