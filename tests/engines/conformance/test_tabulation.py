"""Tables of cells: every engine counts what the oracle counts, and no unit moves them further than its rows allow."""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from discreet.bounding.contributions import BoundedPlan, Spread
from discreet.engines.tabulation import CellView, Tabulation, count_codes
from discreet.errors import InternalError
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from tests.engines.conformance.engines import EngineUnderTest
from tests.engines.worlds import AGE, COST, FLAG, NAME, SALT, UNIT, WARD, Rows, a_row, a_world, catalog, frame

SPREADS = (
    Spread(argument=WARD, values=("A", "B", ""), last=2),
    Spread(argument=AGE, first=-1, last=5, resolution=Fraction(10)),
    Spread(argument=COST, first=0, last=3, origin=Fraction(1, 2)),
    Spread(argument=FLAG, values=(False, True), last=1),
)


def make_tabulation(unit: Column | None, max_rows: int = 2) -> Tabulation:
    """All pairs, a coarse view beside a fine one, and the total."""
    bounded = BoundedPlan(
        source=Scan("t"),
        keys=(),
        domain=((),),
        unit=unit,
        measures=(),
        spreads=SPREADS,
        max_rows=None if unit is None else max_rows,
        weight_bits=0 if unit is None else 16,
    )
    fine = tuple(CellView(i, np.arange(count_codes(s)), count_codes(s)) for i, s in enumerate(SPREADS))
    coarse = CellView(1, np.array([0, 1, 2, 2, 2, 3, 3, 3, 3]), 4)
    return Tabulation(bounded, (*fine, coarse), ((), (0,), (0, 1), (2, 3), (0, 4), (4, 1, 3)))


UNITS = pytest.mark.parametrize("unit", [None, UNIT, NAME], ids=["row", "integer", "text"])


def tabulate(engine: EngineUnderTest, rows: Rows, tabulation: Tabulation) -> list[list[int]]:
    with engine.open({"t": frame(rows)}, catalog(tabulation.bounded.unit)) as opened:
        return [table.reshape(-1).tolist() for table in opened.tabulate(tabulation, salt=SALT)]


@UNITS
@pytest.mark.parametrize("seed", [1, 2])
def test_engines_count_the_same_tables(seed: int, unit: Column | None, other: EngineUnderTest) -> None:
    """NULL, other values, infinities and values beyond bounds included, weighed by unit."""
    rows, tabulation = a_world(seed, unit=unit, most=14).rows, make_tabulation(unit)
    oracle = other.make_oracle({"t": frame(rows)}, catalog(unit))
    assert tabulate(other, rows, tabulation) == [
        table.reshape(-1).tolist() for table in oracle.tabulate(tabulation, salt=SALT)
    ]


@pytest.mark.parametrize("unit", [None, UNIT], ids=["row", "integer"])
def test_one_unit_adds_no_more_than_its_limit(unit: Column | None, engine: EngineUnderTest) -> None:
    """Every unit removed: each table loses at most what one unit may add, all tables alike; without weights more."""
    rng = random.Random(5)
    rows = [a_row(rng, person) for person in range(4) for _ in range(3 * person + 1)]
    tabulation = make_tabulation(unit)
    full = tabulate(engine, rows, tabulation)
    most = 1 if unit is None else 2 << 16
    moves = []
    for i in range(4):
        rest = rows[1:] if unit is None else [row for row in rows if row["unit"] != i]
        less = tabulate(engine, rest, tabulation)
        moved = [[a - b for a, b in zip(one, two)] for one, two in zip(full, less)]
        assert min(map(min, moved)) >= 0
        moves.append({sum(table) for table in moved})
        assert len(moves[-1]) == 1, "all tables lose the same rows"
    assert max(map(max, moves)) <= most
    assert max(map(max, moves)) > most // 2, "a halved claim is broken"


def test_an_empty_table_has_zeros(engine: EngineUnderTest) -> None:
    found = tabulate(engine, [], make_tabulation(UNIT))
    assert {value for table in found for value in table} == {0}


def test_views_that_miss_codes_are_refused() -> None:
    tabulation = make_tabulation(None)
    with pytest.raises(InternalError, match="each of its codes"):
        Tabulation(tabulation.bounded, (CellView(0, np.arange(2), 2),), ((0,),))
    with pytest.raises(InternalError, match="each of its codes"):
        Tabulation(tabulation.bounded, (CellView(0, np.arange(5), 4),), ((0,),))
