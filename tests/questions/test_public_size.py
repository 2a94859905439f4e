"""Exact public sizes: free and exact where neighbours cannot change them, as ever elsewhere, and never a channel."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.bounding.bound import bound
from discreet.bounding.contributions import Counts, sensitivity
from discreet.curator import Curator
from discreet.engines.memory.engine import MemoryEngine
from discreet.entropy import SeededForTestsOnly
from discreet.errors import CodebookError
from discreet.frontends import read_sql
from discreet.privacy import Neighbours
from discreet.recorded_release import describe_release
from discreet.release import draw

BUDGETS: list[tuple[discreet.Budget, dict[str, Any]]] = [
    (discreet.Budget(epsilon=4), {"epsilon": 1}),
    (discreet.Budget(epsilon=4, delta=1e-6), {"epsilon": 1}),
    (discreet.Budget(rho=4), {"rho": 1}),
    (discreet.Budget(mu=4), {"rho": 1}),
]
IDS = ["pure", "approximate", "zcdp", "gdp"]
PURE = BUDGETS[0][0]


def make_table(values: Sequence[float | None], people: Sequence[int | None] | None = None) -> pa.Table:
    return pa.table(
        {
            "person": pa.array(list(range(len(values))) if people is None else people, pa.int64()),
            "x": pa.array(values, pa.float64()),
            "y": pa.array([None] * len(values), pa.float64()),
            "ward": pa.array(["AB"[i % 2] for i in range(len(values))], pa.string()),
        }
    )


TABLE = make_table([100 + i % 11 for i in range(200)])


def curate(table: pa.Table = TABLE, budget: discreet.Budget = PURE, **changes: Any) -> Curator:
    said: dict[str, Any] = {
        "neighbours": "replace",
        "bounds": {"x": (100, 110), "y": (0, 1)},
        "not_null": ["x"],
        "keys": {"ward": ["A", "B"]},
        "exact_rows": {"t": 200},
        "budget": budget,
    }
    return discreet.curate({"t": table}, **{name: value for name, value in (said | changes).items() if value})


def curate_people(table: pa.Table, **changes: Any) -> Curator:
    return curate(table, unit="person", max_rows=2, exact_rows=None, **({"exact_units": {"t": 3}} | changes))


# What is free


@pytest.mark.parametrize(("budget", "offer"), BUDGETS, ids=IDS)
def test_the_count_of_everything_is_exact_and_free(budget: discreet.Budget, offer: dict[str, Any]) -> None:
    """Nothing is charged, the interval is the number, and also an empty budget pays for it."""
    curator = curate(budget=budget)
    left = curator.remaining
    for sql in ("SELECT COUNT(*) AS n FROM t", "SELECT COUNT(x) AS n FROM t", "SELECT COUNT(*) AS n FROM t AS u"):
        assert "public and exact" in str(curator.preview(sql, **offer))
        assert curator.ask(sql, **offer).table.to_pylist() == [{"n": 200, "n_low": 200, "n_high": 200}]
    assert curator.remaining == left
    curator.ask("SELECT COUNT(*) AS n FROM t WHERE x > 101", share=1)
    assert curator.ask("SELECT COUNT(*) AS m FROM t", **offer).table["m"].to_pylist() == [200]


@pytest.mark.parametrize(("budget", "offer"), BUDGETS, ids=IDS)
def test_averages_and_sums_have_the_noise_of_a_centred_sum_alone(
    budget: discreet.Budget, offer: dict[str, Any]
) -> None:
    """An average has 0.72 of its error without the size, or less; a sum of large numbers a tenth; a variance gains."""
    known, unknown = curate(budget=budget), curate(budget=budget, exact_rows=None)
    shown = [
        curator.preview("SELECT AVG(x) AS a FROM t", **offer).columns[0].by_size[0] for curator in (known, unknown)
    ]
    assert shown[0][1] <= 0.72 * shown[1][1]
    sums = [curator.preview("SELECT SUM(x) AS a FROM t", **offer).columns[0].error or 0 for curator in (known, unknown)]
    assert 0 < sums[0] <= 0.11 * sums[1]
    deviations = []
    for curator in (known, unknown):
        (release,) = curator.preview("SELECT VAR_SAMP(x) AS a FROM t", **offer).plan.releases
        count, steps, squares = range(3)
        mean = Fraction(release.bounded.bounded.measures[steps].last, 2)
        deviations.append(release.deviation({squares: Fraction(1), steps: -2 * mean, count: mean**2}))
    assert deviations[0] <= 0.96 * deviations[1]
    answer = known.ask("SELECT COUNT(*) AS n, AVG(x) AS a, SUM(x) AS s FROM t", **offer)
    (row,) = answer.table.to_pylist()
    assert row["n"] == 200 and row["s"] == pytest.approx(200 * row["a"])


def test_a_free_grouping_leaves_its_share_to_the_others() -> None:
    """The total of a ROLLUP and a question of a batch that are public take nothing from the rest."""
    curator = curate()
    plain = curator.preview("SELECT ward, COUNT(*) AS n FROM t GROUP BY ward", epsilon=1).plan
    rolled = curator.preview("SELECT ward, COUNT(*) AS n FROM t GROUP BY ROLLUP(ward)", epsilon=1).plan
    assert [event for event in rolled.events if event in plain.events] and rolled.loss.epsilon() == 1
    questions = ["SELECT COUNT(*) AS n FROM t", "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward"]
    total, by_ward = curator.preview_batch(questions, epsilon=1).each
    assert total.loss.epsilon() == 0 and by_ward.plan.events == plain.events


def test_a_fixed_batch_of_public_numbers_is_free() -> None:
    """There is nothing whose price could be searched for."""
    curator = curate(budget=BUDGETS[1][0])
    (answer,) = curator.ask_batch(["SELECT COUNT(*) AS n FROM t"], epsilon=1, fixed=True)
    assert answer.table["n"].to_pylist() == [200] and answer.spent.epsilon(1e-6) == 0


def test_units_are_counted_where_the_unit_is_a_column() -> None:
    """People are exact and free; their rows, and averages over rows, are not."""
    curator = curate_people(make_table([101.0] * 6, [1, 1, 1, 2, 3, 3]))
    assert curator.ask("SELECT COUNT(DISTINCT person) AS n FROM t", epsilon=1).table["n"].to_pylist() == [3]
    assert curator.remaining == curate_people(TABLE).remaining
    (release,) = curator.preview("SELECT COUNT(*) AS n, AVG(x) AS a FROM t", epsilon=1).plan.releases
    assert not release.bounded.public and release.error(release.bounded.estimates[0])


# Where it does not hold


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(DISTINCT person) AS n FROM (SELECT person FROM t UNION ALL SELECT person FROM t) AS u",
        "SELECT COUNT(DISTINCT person) FILTER (WHERE x > 105) AS n FROM t",
        "SELECT COUNT(DISTINCT person) AS n FROM t WHERE x > 105",
        "SELECT ward, COUNT(DISTINCT person) AS n FROM t GROUP BY ward",
        "SELECT COUNT(*) AS n FROM t",
        "SELECT COUNT(DISTINCT x) AS n FROM t",
        "SELECT COUNT(DISTINCT a.person) AS n FROM t AS a JOIN t AS b ON a.person = b.person",
    ],
)
def test_people_in_a_part_of_a_table_have_noise_and_a_price(sql: str) -> None:
    """All people of one table, and nothing else, are what the number is declared for."""
    plan = curate_people(TABLE).preview(sql, epsilon=1).plan
    assert plan.loss.epsilon() == 1 and not any(release.bounded.public for release in plan.releases)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM t WHERE x > 0",
        "SELECT COUNT(*) AS n FROM t WHERE true",
        "SELECT COUNT(y) AS n FROM t",
        "SELECT COUNT(*) FILTER (WHERE x > 0) AS n FROM t",
        "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward",
        "SELECT COUNT(*) AS n FROM (SELECT * FROM t WHERE x > 0) AS u",
        "SELECT COUNT(DISTINCT x) AS n FROM t",
    ],
)
def test_other_counts_have_noise_and_a_price(sql: str) -> None:
    """Conditions, groups, missing values, unions: there a neighbour can change the number."""
    plan = curate().preview(sql, epsilon=1).plan
    assert plan.loss.epsilon() == 1 and all(release.noises for release in plan.releases)
    assert all((plan.error(i) or 0) > 0 for i in range(len(plan.question.aggregates)))


def test_sums_of_what_may_be_missing_do_not_use_it() -> None:
    """How many values there are of a column with NULLs is not public."""
    (release,) = curate().preview("SELECT AVG(y) AS a FROM t", epsilon=1).plan.releases
    assert not release.bounded.public


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"neighbours": "add-remove"}, 'needs neighbours = "replace"'),
        ({"exact_rows": None, "exact_units": {"t": 3}}, "Write exact_rows"),
        ({"unit": "person", "max_rows": 2}, "Write exact_units"),
        ({"exact_rows": {"u": 3}}, "is not a table"),
        ({"exact_rows": {"t": 0}}, "exact_rows"),
        ({"exact_rows": {"t": True}}, "exact_rows"),
        ({"exact_rows": {"t": 2.5}}, "exact_rows"),
    ],
    ids=str,
)
def test_sizes_that_are_not_public_are_refused(changes: dict[str, Any], told: str) -> None:
    """In the codebook, before any data is read."""
    with pytest.raises(CodebookError, match=told):
        curate(**changes)


def test_a_table_that_reaches_its_unit_by_others_has_no_exact_size() -> None:
    """A person may have no row there. Where each table names the person, each may have a size."""
    tables = {"people": pa.table({"person": [1, 2]}), "labs": pa.table({"visit": [1]}), "visits": VISITS}
    said: dict[str, Any] = {
        "unit": "person",
        "max_rows": 2,
        "neighbours": "replace",
        "foreign_keys": {"labs.visit": "visits.visit"},
        "budget": PURE,
    }
    with pytest.raises(CodebookError, match="column of their own"):
        discreet.curate(tables, exact_units={"labs": 2}, **said)
    curator = discreet.curate(tables, exact_units={"people": 2, "visits": 2}, **said)
    joined = "SELECT COUNT(DISTINCT l.person) AS n FROM people AS l JOIN visits AS v ON l.person = v.person"
    assert curator.preview(joined, epsilon=1).loss.epsilon() == 1


VISITS = pa.table({"visit": [1, 2], "person": [1, 2]})


# Neighbours, from the definition


VALUES: list[float | None] = [100.0, 103.0, 110.0, None, float("nan"), float("inf"), -1e300]


def measure(table: pa.Table, sql: str, curator: Curator) -> dict[Any, tuple[int, ...]]:
    """The exact integers of all measures, in both engines."""
    form = bound(read_sql.read(sql, curator.catalog), curator.catalog)
    found = []
    for engine in (curator._engine, MemoryEngine({"t": table}, curator.catalog)):
        groups = engine.run(form.bounded, salt=b"0123456789abcdef")
        found.append(dict(zip(groups.keys, zip(*groups.values))))
    assert found[0] == found[1]
    return found[0]


def test_one_row_moves_sums_as_far_as_claimed_and_no_further() -> None:
    """Brute force: replaced rows move the centred sum and its squares by the claim, and half of it would be false."""
    sql, base = "SELECT COUNT(*) AS n, SUM(x) AS s, VAR_SAMP(x) AS v FROM t", [101.0, 109.0]
    worlds = [make_table([*base, value]) for value in VALUES]
    curators = [curate(world, exact_rows={"t": 3}) for world in worlds]
    form = bound(read_sql.read(sql, curators[0].catalog), curators[0].catalog)
    exact = [measure(world, sql, curator)[()] for world, curator in zip(worlds, curators)]
    assert [m.counts for m in form.bounded.measures if m.public is not None] == [Counts.ROWS]
    for position in form.measured:
        claim = sensitivity(form.bounded, form.bounded.measures[position], Neighbours.REPLACE)
        moved = max(abs(one[position] - two[position]) for one, two in itertools.product(exact, repeat=2))
        assert claim.l1 / 2 < moved <= claim.l1


@pytest.mark.parametrize("size", [1, 3, 200])
def test_a_wrong_size_tells_nothing_and_fails_nothing(size: int) -> None:
    """Whatever the data are, also none, the count is what is declared, at the same price, with the same plan."""
    worlds = [make_table([]), make_table([101.0] * 3), make_table([None, float("nan"), 1e300] * 50)]
    outcomes = set()
    for world in worlds:
        curator = curate(world, exact_rows={"t": size})
        answer = curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
        rest = curator.ask("SELECT COUNT(*) AS n, AVG(x) AS a, SUM(x) AS s FROM t", epsilon=1)
        (row,) = rest.table.to_pylist()
        assert None not in row.values()
        outcomes.add((str(answer.table.to_pylist()), row["n"], str(rest.spent), curator.remaining))
    assert len(outcomes) == 1


def test_a_wrong_number_of_people_tells_nothing() -> None:
    """Also where ids are missing, or nobody is there."""
    worlds = [make_table([]), make_table([101.0] * 4, [1, 1, None, None]), make_table([101.0] * 9)]
    sql = "SELECT COUNT(DISTINCT person) AS n FROM t"
    assert {curate_people(world).ask(sql, epsilon=1).table["n"][0].as_py() for world in worlds} == {3}


def test_what_engines_count_is_not_used() -> None:
    """Negative control: the draw of a public count is the declared number even if an engine hands over another one."""
    curator = curate()
    (release,) = curator.preview("SELECT COUNT(*) AS n, SUM(x) AS s FROM t", epsilon=1).plan.releases
    plan = release.bounded.bounded
    groups = curator._engine.run(plan, salt=b"0123456789abcdef")
    (place,) = release.bounded.public
    values = [list(each) for each in groups.values]
    values[place] = [10**9]
    forged = type(groups)(groups.keys, tuple(map(tuple, values)))
    drawn = [draw(release, each, source=SeededForTestsOnly(7)) for each in (groups, forged)]
    assert [int(each.measures[place][0]) for each in drawn] == [200, 200]
    assert all(list(drawn[0].measures[p]) == list(drawn[1].measures[p]) for p in release.recoveries)


def test_another_declared_size_is_another_release() -> None:
    """A record of the old number does not answer for the new one."""
    curators = [curate(exact_rows={"t": size}) for size in (200, 201)]
    sql = "SELECT COUNT(*) AS n, SUM(x) AS s FROM t"
    forms = [bound(read_sql.read(sql, curator.catalog), curator.catalog) for curator in curators]
    plans = [curator.preview(sql, epsilon=1).plan for curator in curators]
    names = [describe_release(plan.releases[0], "frame")["measures"] for plan in plans]
    (place,) = forms[0].public
    assert names[0][str(place)]["of"] != names[1][str(place)]["of"]
