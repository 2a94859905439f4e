"""From the words of a question to its integers: no neighbour of a nasty world moves them further than is claimed.

Every accepted fixture about several tables and random SQL is read, bounded and run on a dataset and on each of its
neighbours, by both engines. Checked are the measures (those that choose groups, too), the spreads, and that nobody
else's contribution changes: with the rows of the differing units left out, both answers are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from discreet.bounding.bound import BoundedQuestion, bound_all
from discreet.bounding.contributions import Bounded, Counts, Reach, Sensitivity, reach, sensitivity
from discreet.bounding.stability import Owner, known
from discreet.engines.engine import Groups
from discreet.errors import DiscreetError
from discreet.frontends import sql
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Column
from discreet.plan.functions import call, literal
from discreet.plan.relations import Distinct, Filter, Join, JoinKind, PerUnit, Scan, Union, Values, Window, every
from discreet.plan.types import Type
from tests.engines.oracle import exceeds, histograms, moved, overreaches
from tests.frontends.cases import cases
from tests.frontends.tables import CATALOG, HOSPITAL, PUBLIC, SURVEY
from tests.frontends.tables import world as world_of
from tests.several import Data, Neighbour, a_question, row_neighbours, some_tables, tight, unit_neighbours


@dataclass(frozen=True)
class World:
    """A dataset with its neighbours, whose engines serve many questions."""

    data: Data
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True)
class Claims:
    """What is claimed; tests that must fail claim less."""

    sensitivity: Callable[[Sensitivity], Sensitivity] = lambda claim: claim
    reach: Callable[[Reach], Reach] = lambda claim: claim


HONEST = Claims()


@cache
def hospital(seed: int) -> World:
    data = Data(some_tables(seed), tight(HOSPITAL, seed))
    return World(data, tuple(unit_neighbours(data, seed)))


@cache
def one_table(seed: int) -> World:
    """The catalog with one table of visits, beside answers whose rows are units, which its questions leave alone."""
    catalog = tight(CATALOG, seed)
    data = Data(some_tables(seed), catalog)
    return World(data, tuple(unit_neighbours(data, seed)))


@cache
def survey(seed: int, catalog: str) -> World:
    data = Data(some_tables(seed), SURVEY if catalog == "survey" else CATALOG)
    return World(data, tuple(row_neighbours(data, "Answers", seed)))


# The oracle


def broken(bounded: Bounded, world: World, kind: str, claims: Claims = HONEST) -> list[str]:
    """The claims that some neighbour breaks, in words."""
    before = world.data.run(kind, bounded)
    found = []
    for neighbour in world.neighbours:
        after = neighbour.data.run(kind, bounded)
        found += list(_moves(bounded, neighbour, before, after, claims))
        if bounded.unit is not None:
            rest = of_others(bounded, neighbour.differ)
            old, new = (as_dict(data.run(kind, rest)) for data in (world.data, neighbour.data))
            if old != new:
                found.append(f"{neighbour.relation}: others contribute something else")
    return found


def _moves(
    bounded: Bounded, neighbour: Neighbour, before: Groups, after: Groups, claims: Claims
) -> Iterator[str]:
    relation = neighbour.relation
    for i, measure in enumerate(bounded.measures):
        claim = claims.sensitivity(sensitivity(bounded, measure, relation))
        if exceeds(moved(before, after, i), claim):
            yield f"{relation}: {measure} moved {moved(before, after, i)} beyond {claim}"
    for i, spread in enumerate(bounded.spreads):
        reached = claims.reach(reach(bounded, relation))
        if overreaches(before, after, i, reached, relation):
            yield f"{relation}: {spread} beyond {reached}"


def of_others(bounded: Bounded, differ: frozenset[int]) -> Bounded:
    """The same question about everybody else."""
    unit = bounded.unit
    if unit is None:
        raise AssertionError("there are no units here")
    them = call("in", unit, *(literal(unit) for unit in sorted(differ)))
    return replace(bounded, source=Filter(bounded.source, call("not", them)))


def as_dict(groups: Groups) -> dict[Any, Any]:
    """The integers and histograms by group, without groups that hold nothing."""
    spreads = [histograms(groups, i) for i in range(len(groups.spreads))]
    found = {
        key: (tuple(column[i] for column in groups.values), tuple(spread[key] for spread in spreads))
        for i, key in enumerate(groups.keys)
    }
    return {key: value for key, value in found.items() if any(value[0]) or any(value[1])}


def forms(text: str, catalog: Catalog, public: dict[str, Values]) -> tuple[BoundedQuestion, ...]:
    """The bounded forms of a question; none where it is refused."""
    try:
        return bound_all(sql.read(text, catalog, public), catalog)
    except DiscreetError as error:
        assert "Nothing was charged" in str(error), text
        return ()


def check(text: str, world: World, kinds: Sequence[str], public: dict[str, Values] | None = None) -> int:
    """Assert every claim about a question; how many groupings it has."""
    found = forms(text, world.data.catalog, public or {})
    for form in found:
        for kind in kinds:
            assert broken(form.bounded, world, kind) == [], f"{kind}: {text}"
    return len(found)


# Fixtures and random questions


def fixtures() -> list[tuple[str, str]]:
    return [(case.file, case.question) for case in cases() if "refused" not in case.file]


def world_for(file: str, text: str, seed: int) -> World:
    catalog, _ = world_of(file)
    if catalog is SURVEY:
        return survey(seed, "survey")
    if catalog is HOSPITAL:
        return hospital(seed)
    return survey(seed, "one table") if "answers" in text.lower() else one_table(seed)


def test_fixtures_keep_their_claims() -> None:
    """All accepted fixtures, the first of each three also in DuckDB."""
    checked = 0
    for i, (file, text) in enumerate(fixtures()):
        several = file not in {"expressions", "conditions", "released"} or i % 4 == 0
        if several:
            kinds = ("memory", "duckdb") if i % 6 == 0 else ("memory",)
            checked += check(text, world_for(file, text, 1), kinds, world_of(file)[1])
    assert checked > 100


def test_random_questions_keep_their_claims() -> None:
    checked = sum(check(a_question(seed), hospital(seed % 3), ("memory",), PUBLIC) for seed in range(60))
    assert checked > 60


def test_random_questions_keep_their_claims_in_duckdb() -> None:
    checked = sum(check(a_question(seed), hospital(1), ("duckdb",), PUBLIC) for seed in range(500, 512))
    assert checked > 10


@pytest.mark.long
def test_all_fixtures_keep_their_claims_in_duckdb() -> None:
    for file, text in fixtures():
        for seed in (1, 2):
            check(text, world_for(file, text, seed), ("memory", "duckdb"), world_of(file)[1])


@pytest.mark.long
@pytest.mark.parametrize("part", range(5))
def test_many_random_questions_keep_their_claims(part: int) -> None:
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        check(a_question(seed), hospital(10 + seed % 7), ("memory", "duckdb"), PUBLIC)
