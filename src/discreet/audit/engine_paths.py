"""Engines under audit: the exact integers, before any noise, on every way in which a plan can be run.

A dataset has a background of ordinary people and one person who has, in turn, as much as can be in one place, or in
every place, or nothing that counts. Then the integers of any two of these datasets must be no further apart than
``sensitivity`` and ``reach`` claim, in every norm, for the relation under which the two are neighbours. The data is
made so that the claims are reached: one row, one group or one value too many exceeds them.

Where no secret order decides (everybody is in one group, and all values to tell apart are different), the integers must
be those of the oracle, one by one.
"""

# ruff: noqa: S608  # questions of our own, put together from constants
from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.audit.findings import Finding, Verdict, Witness
from discreet.audit.greybox import check_bundles
from discreet.audit.neighbours import AuditRow
from discreet.audit.questions import EngineMaker, check_distances, make_small_engine, to_arrow
from discreet.bounding.bound import bound_all
from discreet.bounding.contributions import BoundedPlan, reach
from discreet.engines.engine import Engine, Groups, key_order
from discreet.engines.memory.engine import MemoryEngine
from discreet.entropy import SYSTEM
from discreet.frontends import read_sql
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit

WARDS = ("A", "B", "C")
TOWNS = ("North", "South", "West", "East")
LIMITS = (
    ContributionLimits(max_groups=2, max_rows_per_group=3),
    ContributionLimits(max_rows=4),
)
COLUMNS: Mapping[str, tuple[Type, ColumnFacts]] = {
    "person": (Type.INTEGER, ColumnFacts()),
    "ward": (Type.TEXT, ColumnFacts(keys=WARDS)),
    "town": (Type.TEXT, ColumnFacts()),
    # Bounds above zero and below it: a person who adds nothing is outside of both.
    "age": (Type.INTEGER, ColumnFacts(low=Fraction(20), high=Fraction(110))),
    "hours": (Type.INTEGER, ColumnFacts(low=Fraction(20), high=Fraction(110))),
    "debt": (Type.REAL, ColumnFacts(low=Fraction(-900), high=Fraction(-100), resolution=Fraction(1))),
    "code": (Type.INTEGER, ColumnFacts()),
}
_MEASURED = (
    "COUNT(*) AS n, COUNT(age) AS ages, COUNT(DISTINCT person) AS people, SUM(hours) AS hours, SUM(debt) AS debt, "
    "AVG(age) AS age, VAR_POP(age) AS spread, MEDIAN(debt) AS middle"
)
_CODES = "COUNT(DISTINCT code) AS codes"
_SUMMED = (
    "SUM(hours, contribution_bounds_per_group => (100, 300)) AS hours, "
    "SUM(debt, contribution_bounds_per_group => (-2000, -500)) AS debt"
)
_GOOGLE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_groups_contributed=2, privacy_unit_column=person)"
QUESTIONS = (
    f"SELECT {_MEASURED}, {_CODES} FROM visits",
    f"SELECT town, {_MEASURED}, {_CODES} FROM visits GROUP BY town",
    # Without distinct values a prepared table is read in ranges; with rows alone, counts may be joined to them.
    f"SELECT ward, {_MEASURED} FROM visits GROUP BY ward",
    f"SELECT ward, {_CODES} FROM visits GROUP BY ward",
    "SELECT ward, COUNT(*) AS n, SUM(hours) AS hours, VAR_POP(age) AS spread FROM visits GROUP BY ward",
    f"{_GOOGLE} {_SUMMED} FROM visits WHERE ward = 'A'",
    f"{_GOOGLE} ward, {_SUMMED} FROM visits GROUP BY ward",
)
# All pairs of a person's rows: below the join at most four of them remain, so at most 16 pairs are made.
JOINED_ROWS = 16
JOINS = (
    "SELECT SUM(clamp(pairs, 0, 100)) AS pairs FROM (SELECT a.person, COUNT(*) AS pairs FROM visits a "
    "JOIN visits b ON a.person = b.person GROUP BY a.person) AS t",
    "SELECT a.ward, COUNT(*) AS n FROM visits a LEFT JOIN visits b ON a.person = b.person GROUP BY a.ward",
)
_FAR: AuditRow = {"age": 110, "hours": 110, "debt": -900.0}
_NEAR: AuditRow = {"age": 20, "hours": 20, "debt": -100.0}
_BEYOND: AuditRow = {"age": 10**6, "hours": 10**6, "debt": -1e9}
_NOTHING: AuditRow = {"age": None, "hours": None, "debt": None, "code": None}


@dataclass(frozen=True, slots=True)
class EngineWay:
    """A way in which plans are run: an engine, perhaps with other settings."""

    name: str
    open: EngineMaker


def list_ways() -> tuple[EngineWay, ...]:
    """Every way of the engine for real data. None of them may change an integer."""
    return (
        EngineWay("as it comes", make_small_engine),
        EngineWay("prepared tables", _make_prepared),
    )


def _make_prepared(tables: Mapping[str, Any], catalog: Catalog) -> Engine:
    engine = make_small_engine(tables, catalog)
    for table in catalog.tables:
        engine.prepare(table)
    return engine


@dataclass(frozen=True, slots=True)
class OneUnit:
    """All rows of the one person in whom datasets differ. ``plain`` rows are all in one group."""

    what: str
    rows: Sequence[AuditRow]
    plain: bool = False


def make_units() -> list[OneUnit]:
    """Persons who reach as far as they can, each in another way; the first has no rows at all."""

    def make(count: int, wards: Sequence[str], towns: Sequence[str], values: AuditRow = _FAR) -> list[AuditRow]:
        places = [(ward, town) for ward in wards for town in towns] * count
        return [
            {"person": 7, "ward": ward, "town": town, "code": 7_000 + i, **values}
            for i, (ward, town) in enumerate(places)
        ]

    here, there = make(9, "A", TOWNS[:1]), make(9, "B", TOWNS[1:2])
    return [
        OneUnit("nobody", [], plain=True),
        OneUnit("many rows at the far bounds, in one group", here, plain=True),
        OneUnit("many rows at the far bounds, in another group", there, plain=True),
        OneUnit("many rows at the near bounds", [row | _NEAR for row in here], plain=True),
        OneUnit("many rows beyond the bounds", [row | _BEYOND for row in here], plain=True),
        OneUnit("rows without values", [row | _NOTHING for row in here], plain=True),
        OneUnit("rows in no public group", [row | {"ward": "none", "town": "Far"} for row in here], plain=True),
        OneUnit("a single row", here[:1], plain=True),
        OneUnit("many rows in every group", make(5, WARDS, TOWNS)),
        OneUnit("one row in every group", make(1, WARDS, TOWNS, _NEAR)),
    ]


def make_background() -> list[AuditRow]:
    """Ordinary people, each in one group, with values that nobody else has; some groups have one person only."""
    found: list[AuditRow] = []
    for person in range(100, 111):
        place = (0, 0, 1, 0, 2, 1, 0)[person % 7]
        rows = 1 + person % 5
        found += [
            {
                "person": person,
                "ward": WARDS[place],
                "town": TOWNS[place],
                "age": 30 + (7 * person + 13 * i) % 70,
                "hours": 30 + (11 * person + 3 * i) % 70,
                "debt": -100.0 - (31 * person + 57 * i) % 700,
                "code": 10 * person + i,
            }
            for i in range(rows)
        ]
    return found


def make_catalog(limits: ContributionLimits) -> Catalog:
    """What is declared; the relation is that of each comparison."""
    facts = TableFacts(name="visits", columns=COLUMNS, unit=Unit("person"), limits=limits)
    return Catalog(tables={"visits": facts}, neighbours=Neighbours.ADD_REMOVE, max_joined_rows=JOINED_ROWS)


def make_plans() -> list[BoundedPlan]:
    """Every question under every limit; joins under the limit on rows in all."""
    asked: list[tuple[Catalog, Sequence[str]]] = [(make_catalog(limits), QUESTIONS) for limits in LIMITS]
    asked.append((make_catalog(LIMITS[1]), JOINS))
    return [
        bounded.bounded
        for catalog, questions in asked
        for question in questions
        for bounded in bound_all(read_sql.read_with_offer(question, catalog, {}).question, catalog)
    ]


def check_engines() -> Iterator[Finding]:
    """Every way, every limit, every question: claims between neighbours, and the oracle's integers."""
    runs = _Runs(make_catalog(LIMITS[0]), make_plans(), SYSTEM.bits(128).to_bytes(16, "big"))
    oracle, truth = EngineWay("oracle", MemoryEngine), dict[str, list[Groups]]()
    for way in list_ways():
        yield from _check_way(way, runs, oracle, truth)


@dataclass(frozen=True, slots=True)
class _Runs:
    """What is run on every dataset: all plans, with one secret order."""

    catalog: Catalog
    plans: Sequence[BoundedPlan]
    salt: bytes

    def run(self, way: EngineWay, unit: OneUnit) -> list[Groups]:
        table = to_arrow([*make_background(), *unit.rows], self.catalog.tables["visits"])
        engine = way.open({"visits": table}, self.catalog)
        found = [engine.run(plan, salt=self.salt) for plan in self.plans]
        engine.close()
        return found


def _check_way(way: EngineWay, runs: _Runs, oracle: EngineWay, truth: dict[str, list[Groups]]) -> Iterator[Finding]:
    """One way of the engine. ``truth`` keeps what the oracle gave. Where integers are wrong, claims are passed over."""
    name, start, plans = f"exact integers: {way.name}", time.monotonic(), runs.plans
    units, found = make_units(), dict[str, list[Groups]]()
    problem, pair = "", ("", "")
    for unit in units:
        found[unit.what] = runs.run(way, unit)
        if unit.plain:
            if unit.what not in truth:
                truth[unit.what] = runs.run(oracle, unit)
            problem, pair = find_wrong_integers(plans, {unit.what: truth[unit.what]}, found)
        if problem:
            break
    yield _make_finding(f"{name}, as the oracle", problem, pair, f"{len(plans) * len(truth)} plans run", start)
    if problem:
        return
    for relation in Neighbours:
        start = time.monotonic()
        problem, pair = find_broken_claim(plans, found, relation)
        pairs = len(plans) * len(units) * (len(units) - 1) // 2
        yield _make_finding(f"{name}, within claims ({relation})", problem, pair, f"up to {pairs} pairs", start)


def find_wrong_integers(
    plans: Sequence[BoundedPlan], expected: Mapping[str, Sequence[Groups]], found: Mapping[str, Sequence[Groups]]
) -> tuple[str, tuple[str, str]]:
    """Where an engine gives other integers than the oracle, or groups in another order than that of their keys."""
    for what, truth in expected.items():
        for number, (bounded, right, given) in enumerate(zip(plans, truth, found[what])):
            if list(given.keys) != sorted(given.keys, key=key_order):
                return f"groups of plan {number + 1} are not in the order of their keys", (what, "the oracle")
            if _to_table(bounded, right) != _to_table(bounded, given):
                return f"plan {number + 1} gives other integers than the oracle", (what, "the oracle")
    return "", ("", "")


def _to_table(bounded: BoundedPlan, groups: Groups) -> dict[Any, Any]:
    """All that a group has, by key. A group without anything may be missing, so it is left out."""
    table = {}
    for place, key in enumerate(groups.keys):
        if bounded.domain is not None and bounded.keys and key not in bounded.domain:
            continue  # nobody reads it
        values = tuple(measure[place] for measure in groups.values)
        spreads = tuple((spread[place][0].tolist(), spread[place][1].tolist()) for spread in groups.spreads)
        if any(values) or any(counts for _, counts in spreads):
            table[key] = values, spreads
    return table


def find_broken_claim(
    plans: Sequence[BoundedPlan], found: Mapping[str, Sequence[Groups]], relation: Neighbours
) -> tuple[str, tuple[str, str]]:
    """Two neighbours whose integers are further apart than claimed: one person is there or not, or is another one."""
    names = list(found)
    first = names[:1] if relation is Neighbours.ADD_REMOVE else names[1:]
    for place, one in enumerate(first):
        for other in names[1:] if relation is Neighbours.ADD_REMOVE else first[place + 1 :]:
            for number, (bounded, here, there) in enumerate(zip(plans, found[one], found[other])):
                problem = check_distances(bounded, here, there, relation) or check_spreads(
                    bounded, here, there, relation
                )
                if problem:
                    return f"plan {number + 1}: {problem}", (one, other)
    return "", ("", "")


def check_spreads(bounded: BoundedPlan, before: Groups, after: Groups, relation: Neighbours) -> str:
    """Whether more rows of spreads moved than claimed; empty if not."""
    if not bounded.spreads:
        return ""
    far = reach(bounded, relation)
    keys = sorted({*before.keys, *after.keys}, key=key_order)
    nothing: tuple[list[int], list[int]] = ([], [])
    for place in range(len(bounded.spreads)):
        here, there = (
            [dict(zip(groups.keys, groups.spreads[place])).get(key, nothing) for key in keys]
            for groups in (before, after)
        )
        problem = check_bundles(here, there, far.rows, far.groups, relation, in_place=far.in_place)
        if problem:
            return f"spread {place + 1}: {problem}"
    return ""


def _make_finding(name: str, problem: str, pair: tuple[str, str], good: str, start: float) -> Finding:
    return Finding(
        name=name,
        method="engine",
        verdict=Verdict.BROKEN if problem else Verdict.HOLDS,
        detail=problem or good,
        witness=Witness(first=pair[0], second=pair[1], event=problem) if problem else None,
        seconds=time.monotonic() - start,
    )
