"""ROLLUP, CUBE and GROUPING SETS against a slow definition, in SQL and in the chain, within their limit."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from discreet.errors import QuestionError
from discreet.frontends import read_sql
from discreet.frontends.chain.aggregates import count
from discreet.frontends.chain.builder import TableBuilder
from discreet.frontends.chain.operands import col
from discreet.frontends.terms import grouping_sets
from discreet.plan.nodes import Question
from tests.worlds.tables import CATALOG

VISITS = TableBuilder(CATALOG, "visits")
NAMES = ("ward", "smoker", "note", "day")


def read(group: str) -> Question:
    return read_sql.read(f"SELECT COUNT(*) AS n FROM visits GROUP BY {group}", CATALOG)


def chosen(question: Question) -> list[frozenset[str]]:
    """The sets of a question by the names of keys; all of them where there is one."""
    sets = question.sets if question.sets is not None else (tuple(range(len(question.keys))),)
    return [frozenset(str(question.keys[i]) for i in keys) for keys in sets]


class Element:
    """An element of GROUP BY: its text, and by definition the sets it stands for."""

    def __init__(self, source: random.Random, *, inner: bool = False) -> None:
        kind = source.choice(("key", "tuple", "rollup", "cube", "sets") if not inner else ("key", "tuple", "rollup"))
        names = [source.choice(NAMES) for _ in range(source.randint(1, 3))]
        listed = ", ".join(names)
        self.sets: list[frozenset[str]] = []
        match kind:
            case "key":
                self.text, self.sets = names[0], [frozenset(names[:1])]
            case "tuple":
                self.text, self.sets = f"({listed})", [frozenset(names)]
            case "rollup":
                self.text = f"ROLLUP({listed})"
                self.sets = [frozenset(names[:size]) for size in range(len(names) + 1)]
            case "cube":
                self.text = f"CUBE({listed})"
                self.sets = [
                    frozenset(name for name, taken in zip(names, bits) if taken)
                    for bits in product((0, 1), repeat=len(names))
                ]
            case _:
                parts = [Element(source, inner=True) for _ in range(source.randint(1, 3))]
                self.text = f"GROUPING SETS ({', '.join(part.text for part in parts)}, ())"
                self.sets = [keys for part in parts for keys in part.sets] + [frozenset()]


@pytest.mark.parametrize("seed", range(60))
def test_against_the_definition(seed: int) -> None:
    """Each choice of one set from each element, each set once."""
    source = random.Random(seed)  # noqa: S311  # random questions, not noise
    elements = [Element(source) for _ in range(source.randint(1, 3))]
    wanted = {frozenset().union(*sets) for sets in product(*(element.sets for element in elements))}
    size = 1
    for element in elements:
        size *= len(element.sets)
    text = ", ".join(element.text for element in elements)
    if size > grouping_sets.MAX_SETS:
        with pytest.raises(QuestionError, match="more than 64 groupings"):
            read(text)
        return
    found = chosen(read(text))
    assert len(found) == len(set(found)) and set(found) == wanted, text
    if wanted == {frozenset(map(str, read(text).keys))}:
        assert read(text).sets is None


def test_keys_come_in_the_order_of_appearance() -> None:
    """Keys stand as they are first met, whichever set they are in."""
    assert [str(key) for key in read("GROUPING SETS ((smoker), (ward, smoker), (note))").keys] == [
        "smoker", "ward", "note"
    ]  # fmt: skip  # a list


PAIRS: list[tuple[str, Any]] = [
    ("ROLLUP(ward, smoker)", lambda: VISITS.rollup("ward", "smoker")),
    ("CUBE(ward, smoker)", lambda: VISITS.cube("ward", "smoker")),
    ("ward, ROLLUP(smoker)", lambda: VISITS.group_by("ward").rollup("smoker")),
    ("GROUPING SETS ((ward, smoker), (ward), ())", lambda: VISITS.grouping_sets(["ward", "smoker"], ["ward"], [])),
    ("GROUPING SETS ((ward), (smoker))", lambda: VISITS.grouping_sets(["ward"], [col("smoker")])),
    ("ROLLUP(ward), CUBE(smoker)", lambda: VISITS.rollup("ward").cube("smoker")),
]


@pytest.mark.parametrize(("group", "chain"), PAIRS, ids=lambda part: part if isinstance(part, str) else "")
def test_sql_and_chain_agree(group: str, chain: Any) -> None:
    """The SQL and the chain are one plan."""
    asked = chain().agg(n=count()).question
    shown = ", ".join(output.name for output in asked.outputs[:-1])
    assert asked == read_sql.read(f"SELECT {shown}, COUNT(*) AS n FROM visits GROUP BY {group}", CATALOG)
    assert asked.sets is not None


def test_named_keys_in_the_chain() -> None:
    """A key can have a name, and stand in several sets under it."""
    asked = VISITS.grouping_sets(["m", "ward"], ["m"], m=col("day").part("month")).agg(n=count()).question
    text = "SELECT month(day) AS m, ward, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((m, ward), (m))"
    assert asked == read_sql.read(text, CATALOG)


def test_bad_sets_in_the_chain() -> None:
    """What is no list of keys is refused, and groups come before agg."""
    for wrong in ((), ("ward",), (3,), (["ward", 3],), ([count()],)):
        with pytest.raises(QuestionError):
            VISITS.grouping_sets(*wrong)
    with pytest.raises(QuestionError, match="before agg"):
        VISITS.agg(n=count()).rollup("ward")
    with pytest.raises(QuestionError, match="more than 64"):
        VISITS.cube(*(col("age") + i for i in range(7)))
    with pytest.raises(QuestionError, match="more than 64"):
        VISITS.rollup(*(col("age") + i for i in range(64)))


def test_contributions_in_the_chain() -> None:
    """Limits and the least number of units are part of the question, as in the GoogleSQL form."""
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=2, min_privacy_units_per_group=5) "
        "note, COUNT(*) AS n FROM visits GROUP BY note"
    )
    chain = VISITS.group_by("note").agg(n=count()).contributing(max_groups=2).with_units(5)
    assert chain.question == read_sql.read(text, CATALOG)
    for wrong in ({"max_groups": 0}, {"max_rows": True}, {"max_rows": 1, "max_groups": 1}, {"max_rows_per_group": "1"}):
        with pytest.raises(QuestionError, match="contributing"):
            VISITS.contributing(**wrong)
    with pytest.raises(QuestionError, match="with_units"):
        VISITS.with_units(0)
