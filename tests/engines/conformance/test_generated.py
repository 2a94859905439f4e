"""Hundreds of questions at random: with one secret order for all, every engine gives the integers of the oracle.

So all engines give the same integers. A part of them is asked in every run, all of them in ``make test-long``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, get_args

import pytest

from discreet.bounding.contributions import Counts, Measure, Spread
from discreet.engines.duckdb.dialect import DuckDBDialect
from discreet.engines.engine import Engine, Groups
from discreet.engines.memory.engine import MemoryEngine
from discreet.plan.expressions import Call
from discreet.plan.functions import FUNCTIONS
from discreet.plan.gaps import walk_plan
from discreet.plan.relations import Feature, FeatureCall, Join, JoinKind, Relation, walk_relations
from discreet.plan.types import Type
from tests.engines.answers import Sums, as_dict
from tests.engines.conformance.engines import DUCKDB, EngineUnderTest
from tests.engines.conformance.generated import INEXACT, Data, a_question
from tests.engines.conformance.portable import DigestOrder, one_order_for_all
from tests.engines.worlds import SALT

ALL, PART = range(640), range(0, 640, 15)
Answer = tuple[Sums, dict[object, list[dict[int, int]]]]


def compare_form(groups: Groups) -> Answer:
    """Integers and spreads of the groups that have any."""
    cells = [[dict(zip(map(int, cell), map(int, count))) for cell, count in spread] for spread in groups.spreads or ()]
    by_key = {key: [spread[i] for spread in cells] for i, key in enumerate(groups.keys)}
    return as_dict(groups), {key: spreads for key, spreads in by_key.items() if any(spreads)}


@pytest.fixture(autouse=True)
def order() -> Iterator[DigestOrder]:
    with one_order_for_all() as found:
        yield found


@cache
def ask_oracle(seed: int) -> Answer:
    question = a_question(seed)
    oracle = MemoryEngine(question.data.tables, question.data.catalog, order=DigestOrder())
    return compare_form(oracle.run(question.bounded, salt=SALT))


@cache
def open_once(engine: EngineUnderTest, data: Data) -> Engine:
    """One engine for all questions about the same tables; it is let go with the process."""
    return engine.make(data.tables, data.catalog)


def agree(engine: EngineUnderTest, seeds: range) -> None:
    for seed in seeds:
        question = a_question(seed)
        opened = open_once(engine, question.data)
        assert compare_form(opened.run(question.bounded, salt=SALT)) == ask_oracle(seed), seed


@pytest.mark.parametrize("start", range(4))
def test_some_generated_questions(start: int, sql_engine: EngineUnderTest) -> None:
    agree(sql_engine, PART[start::4])


@pytest.mark.long
@pytest.mark.parametrize("start", ALL[::40])
def test_all_generated_questions(start: int, sql_engine: EngineUnderTest) -> None:
    agree(sql_engine, range(start, start + 40))


def list_parts(seed: int) -> set[str]:
    """What is in a question: nodes, kinds of joins, features, functions, types, what is counted, and limits."""
    bounded = a_question(seed).bounded
    found = {type(node).__name__ for node in walk_relations(bounded.source)}
    for part in walk_plan((bounded.source, bounded.keys, bounded.measures, bounded.spreads)):
        match part:
            case Call():
                found.add(part.function)
            case Join():
                found |= {f"join {part.kind}", f"single {part.single}", f"caps {part.caps is not None}"}
            case FeatureCall():
                found |= {f"feature {part.feature}", f"frame {part.frame is not None}"}
            case Measure():
                found |= {f"counts {part.counts}", f"partial {part.partial is not None}"}
            case Spread():
                found.add(f"spread {part.values is not None}")
    found |= {f"key {key.type}" for key in bounded.keys}
    found |= {f"{name} {getattr(bounded, name) is not None}" for name in ("domain", "unit", "max_rows", "max_groups")}
    return found


EVERYTHING = {
    *(node.__name__ for node in get_args(Relation)),
    *(f"join {kind}" for kind in JoinKind),
    *(f"feature {feature}" for feature in Feature),
    *(f"counts {counts}" for counts in Counts),
    *(f"key {kind}" for kind in Type),
    *(f"{name} {truth}" for name in ("single", "caps", "frame", "partial", "spread", "domain", "unit", "max_rows",
                                     "max_groups") for truth in (True, False)),
    *FUNCTIONS.keys() - INEXACT,
}  # fmt: skip


@pytest.mark.long
def test_everything_is_asked_for() -> None:
    """Every node, function, type and limit is in at least three of all questions."""
    found = Counter(part for seed in ALL for part in list_parts(seed))
    assert {part for part in EVERYTHING if found[part] < 3} == set()


def test_much_is_asked_for_in_every_run() -> None:
    found = {part for seed in PART for part in list_parts(seed)}
    assert len(EVERYTHING & found) > 0.8 * len(EVERYTHING), sorted(EVERYTHING - found)


def test_answers_are_worth_comparing() -> None:
    """Most questions have groups; nothing is compared where all are empty."""
    assert sum(bool(ask_oracle(seed)[0]) for seed in PART) > len(PART) // 2


def plant_after(right: Callable[..., str], *given: Any) -> str:
    """A primitive whose result is wrong."""
    return f"(5 - {right(*given)})"


def plant_before(right: Callable[..., str], dialect: DuckDBDialect, value: str, *rest: Any) -> str:
    """A primitive that is given something else; so it stays an aggregate, also over a window."""
    return right(dialect, f"(5 - ({value}))", *rest)


@pytest.mark.parametrize(
    ("primitive", "plant"), [("steps", plant_after), ("wide_sum", plant_before), ("place_of_group", plant_after)]
)
def test_a_wrong_primitive_is_noticed(
    primitive: str, plant: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: an engine of which one primitive is wrong differs from the oracle."""
    right = getattr(DuckDBDialect, primitive)
    monkeypatch.setattr(DuckDBDialect, primitive, lambda *given: plant(right, *given))
    with pytest.raises(AssertionError):
        agree(DUCKDB, PART)
