"""From SQL to integers: every engine and the oracle agree on what questions about several tables read."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pyarrow as pa
import pytest

from discreet.bounding.bound import bound_all
from discreet.bounding.contributions import BoundedPlan
from discreet.engines.engine import Engine
from discreet.frontends import read_sql
from tests.engines.answers import as_dict
from tests.engines.conformance.engines import EngineUnderTest
from tests.engines.worlds import ARROW, SALT
from tests.fixtures.cases import QuestionCase, cases
from tests.worlds.plain import Tables, some_tables
from tests.worlds.random_sql import a_question
from tests.worlds.tables import HOSPITAL, PUBLIC, SEVERAL

FIXTURES = [case for case in cases() if case.file in SEVERAL and not case.expected.startswith("question")]


def frames(tables: Tables) -> dict[str, pa.Table]:
    """The tables in Arrow, with the declared types."""
    return {
        name: pa.table({
            column: pa.array([row[column] for row in tables[name]], ARROW[kind])
            for column, (kind, _) in facts.columns.items()
        })
        for name, facts in HOSPITAL.tables.items()
    }  # fmt: skip  # one table after the other


FRAMES = frames(some_tables(5, patients=9))


def forms(text: str) -> list[BoundedPlan]:
    """The bounded forms of a question, without spreads, which have tests of their own."""
    question = read_sql.read(text, HOSPITAL, PUBLIC)
    return [replace(form.bounded, spreads=()) for form in bound_all(question, HOSPITAL)]


@pytest.mark.parametrize("case", FIXTURES, ids=lambda case: f"{case.file}: {case.question[:60]}")
def test_fixtures(case: QuestionCase, stored: EngineUnderTest) -> None:
    """Every accepted fixture about several tables, truncated joins included."""
    agree(stored, forms(case.question))


@pytest.mark.parametrize("seed", range(0, 600, 15))
def test_random_questions(seed: int, stored: EngineUnderTest) -> None:
    """Random questions, counted."""
    agree(stored, forms(" FROM ".join(("SELECT COUNT(*) AS n", a_question(seed).split(" FROM ", 1)[1]))))


def agree(engine: EngineUnderTest, plans: list[BoundedPlan]) -> None:
    opened = open_once(engine)
    for bounded in plans:
        wanted = as_dict(engine.run_oracle(FRAMES, HOSPITAL, bounded))
        assert as_dict(opened.run(bounded, salt=SALT)) == wanted


@cache
def open_once(engine: EngineUnderTest) -> Engine:
    """One engine for all questions of this file; it is let go with the process."""
    return engine.make(FRAMES, HOSPITAL)
