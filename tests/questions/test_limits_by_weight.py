"""Whatever the limit, shares stay shares: answers before noise, where units have many more rows than are allowed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from discreet import Budget
from discreet.bounding.bound import BoundedQuestion, bound
from discreet.bounding.contributions import unit_bits
from discreet.codebook import Codebook
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.memory.engine import MemoryEngine
from discreet.frontends import read_sql

UNITS, ROWS = 60, 40
LIMITS: dict[str, dict[str, int]] = {
    **{f"max_rows {n}": {"max_rows": n} for n in (20, 7, 4, 1)},
    **{f"{g} groups of {r}": {"max_groups": g, "max_rows_per_group": r} for g, r in ((3, 2), (1, 1), (2, 5))},
}
# Of each unit's forty rows, every fifth is marked (0.2), and two are in the small ward (0.05).
VISITS = pa.table(
    {
        "person": [u for u in range(UNITS) for _ in range(ROWS)],
        "ward": ["small" if i in (3, 21) else "AB"[i % 2] for _ in range(UNITS) for i in range(ROWS)],
        "marked": [i % 5 == 0 for _ in range(UNITS) for i in range(ROWS)],
        "cost": [float(i % 5 == 0) for _ in range(UNITS) for i in range(ROWS)],
        "age": [(u + i) % 90 for u in range(UNITS) for i in range(ROWS)],
        "town": [f"town {i % 4}" for _ in range(UNITS) for i in range(ROWS)],
    }
)


def ask(sql: str, make: Any, **limits: Any) -> tuple[BoundedQuestion, dict[Any, list[Fraction]]]:
    """The exact numbers of each group, in steps."""
    book = Codebook.from_frames(
        {"visits": VISITS},
        unit="person",
        bounds={"cost": (0, 1), "age": (0, 100)},
        resolution={"cost": 1},
        keys={"ward": ["A", "B", "small"]},
        budget=Budget(epsilon=3, delta=1e-6),
        **limits,
    )
    catalog = book.catalog()
    form = bound(read_sql.read(sql, catalog), catalog)
    engine = make({"visits": VISITS}, catalog)
    groups = engine.run(form.bounded, salt=bytes(16))
    engine.close()
    parts = [1 << unit_bits(form.bounded, measure) for measure in form.bounded.measures]
    found = {
        key: [Fraction(column[i], part) for column, part in zip(groups.values, parts)]
        for i, key in enumerate(groups.keys)
    }
    return form, found


ENGINES = pytest.mark.parametrize("make", [MemoryEngine, DuckDBEngine], ids=["memory", "duckdb"])
FEW_ROWS = pytest.mark.parametrize("limit", [20, 7, 4, 1])
MARKED = "COUNT(*) FILTER (WHERE marked) AS f, COUNT(*) FILTER (WHERE NOT marked) AS g, COUNT(*) AS n"


@ENGINES
@FEW_ROWS
def test_a_share_stays_what_it_is(limit: int, make: Any) -> None:
    """0.2 is 0.2 to a thousandth, as a count by FILTER and as an average; so is the variance that belongs to it."""
    form, found = ask(f"SELECT {MARKED}, VARIANCE(cost) AS v FROM visits", make, max_rows=limit)
    (numbers,) = found.values()
    marked, _, rows, *_ = form.estimates
    variance = next(estimate for estimate in form.estimates if estimate.squares is not None)
    count = numbers[rows.count or 0]
    assert count == pytest.approx(limit * UNITS, rel=1e-3)
    assert numbers[marked.count or 0] / count == pytest.approx(Fraction(1, 5), rel=1e-3)
    mean = variance.origin + numbers[variance.steps or 0] / count
    squares = numbers[variance.squares or 0] / count - (mean - variance.origin) ** 2
    assert mean == pytest.approx(Fraction(1, 5), rel=1e-3) and squares == pytest.approx(Fraction(4, 25), rel=1e-3)


@ENGINES
@FEW_ROWS
def test_a_small_group_keeps_its_proportion(limit: int, make: Any) -> None:
    """Everybody has 5 % of their rows in the small ward, and so has the answer."""
    _, found = ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", make, max_rows=limit)
    counts = {key: numbers[0] for (key,), numbers in found.items()}
    assert counts["small"] / sum(counts.values()) == pytest.approx(Fraction(1, 20), rel=1e-3)


@ENGINES
@pytest.mark.parametrize("limit", LIMITS)
def test_parts_add_up_to_the_whole(limit: str, make: Any) -> None:
    """COUNT FILTER(a) + COUNT FILTER(NOT a) = COUNT(*), and the share in each group is that of its rows."""
    for keys in ("ward", "town"):
        form, found = ask(f"SELECT {keys}, {MARKED} FROM visits GROUP BY {keys}", make, **LIMITS[limit])
        fine = any(unit_bits(form.bounded, measure) for measure in form.bounded.measures)
        for (key,), numbers in found.items():
            part, other, whole = (numbers[estimate.count or 0] for estimate in form.estimates)
            assert part + other == whole if fine else abs(part + other - whole) <= 1
            own = [m for k, m in zip(VISITS[keys].to_pylist(), VISITS["marked"].to_pylist()) if k == key]
            assert part / whole == pytest.approx(Fraction(sum(own), len(own)), rel=1e-3 if fine else 0.1)


@ENGINES
def test_units_in_more_groups_than_count_weigh_less(make: Any) -> None:
    """Everybody is in four towns: of two that count each town gets a half, and nobody's towns are left out."""
    _, found = ask("SELECT ward, COUNT(DISTINCT person) AS p FROM visits GROUP BY ward", make, max_rows=1)
    assert [numbers[0] for numbers in found.values()] == pytest.approx([UNITS / 3] * 3, rel=1e-3)


@ENGINES
def test_where_and_filter_differ_where_limits_bite(make: Any) -> None:
    """WHERE leaves eight rows of a unit, which count as four; FILTER counts eight of forty that count as four."""
    _, kept = ask("SELECT COUNT(*) AS n FROM visits WHERE marked", make, max_rows=4)
    _, filtered = ask("SELECT COUNT(*) FILTER (WHERE marked) AS n FROM visits", make, max_rows=4)
    assert kept[()][0] == 4 * UNITS and filtered[()][0] == pytest.approx(4 * UNITS / 5, rel=1e-2)
