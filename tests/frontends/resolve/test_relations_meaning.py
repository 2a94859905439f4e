"""What joins and subqueries mean to us is what they mean to DuckDB: plans without noise against the same SQL."""

from __future__ import annotations

from collections import Counter
from functools import cache

import duckdb
import pytest

from discreet.bounding.relation_facts import Owner
from discreet.bounding.stability import find_relation_facts
from discreet.errors import QuestionError
from discreet.frontends import read_sql
from discreet.plan.relations import Distinct, Join, PerUnit, Relation, Union, Window, walk_relations
from discreet.plan.statistics.definitions import Statistic
from tests.fixtures.cases import QuestionCase, cases
from tests.worlds.plain import Tables, answer, plain, some_tables, theirs
from tests.worlds.random_sql import a_question
from tests.worlds.tables import HOSPITAL, PUBLIC, SEVERAL

COMPUTED = (Statistic.COUNT, Statistic.SUM, Statistic.MEAN)


@cache
def hospital(seed: int) -> tuple[Tables, duckdb.DuckDBPyConnection]:
    """Random tables, for our oracle and in DuckDB."""
    tables = some_tables(seed)
    return tables, plain(tables)


def comparable(case: QuestionCase) -> bool:
    """Whether a fixture is about several tables and its aggregates can be computed by hand."""
    if case.file not in SEVERAL or case.expected.startswith("question"):
        return False
    question = read_sql.read(case.question, HOSPITAL, PUBLIC)
    whole = find_relation_facts(question.source, HOSPITAL).owner is not Owner.MIXED  # a truncated join has other rows
    return whole and all(aggregate.statistic in COMPUTED for aggregate in question.aggregates)


FIXTURES = [case for case in cases() if comparable(case)]


@pytest.mark.parametrize("case", FIXTURES, ids=lambda case: f"{case.file}: {case.question[:60]}")
def test_fixtures_mean_the_same(case: QuestionCase) -> None:
    """The plan of a fixture gives DuckDB's own answer, on several random tables."""
    question = read_sql.read(case.question, HOSPITAL, PUBLIC)
    for seed in range(3):
        tables, connection = hospital(seed)
        assert answer(question, tables) == theirs(case.question, connection), case.question


def test_there_are_enough_fixtures() -> None:
    """Most of the accepted fixtures about several tables are compared."""
    assert len(FIXTURES) >= 65


@pytest.mark.parametrize("start", range(0, 300, 60))
def test_random_questions_mean_the_same(start: int) -> None:
    """Random joins, subqueries, features, windows, unions and memberships give DuckDB's own answer."""
    tables, connection = hospital(start)
    for seed in range(start, start + 60):
        text = a_question(seed)
        question = read_sql.read(text, HOSPITAL, PUBLIC)
        assert answer(question, tables) == theirs(text, connection), text


def test_random_questions_are_worth_asking() -> None:
    """They hold all kinds of nodes, and many of their answers are not empty."""
    kinds: Counter[type[Relation]] = Counter()
    tables, full = some_tables(1), 0
    for seed in range(300):
        question = read_sql.read(a_question(seed), HOSPITAL, PUBLIC)
        kinds.update({type(node) for node in walk_relations(question.source)})
        full += answer(question, tables)[0][0] != 0
    assert full > 150 and min(kinds[kind] for kind in (Join, PerUnit, Distinct, Window, Union)) > 7


@pytest.mark.long
def test_many_random_questions_mean_the_same() -> None:
    """Thousands of them; what is refused is refused as a question, and seldom."""
    refused = 0
    for start in range(1_000, 9_000, 100):
        tables, connection = hospital(start)
        for seed in range(start, start + 100):
            text = a_question(seed)
            try:
                question = read_sql.read(text, HOSPITAL, PUBLIC)
            except QuestionError:
                refused += 1
                continue
            assert answer(question, tables) == theirs(text, connection), text
    assert refused < 400
