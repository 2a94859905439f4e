"""The contract says nine things, and each names a test that exists in the conformance suite."""

from __future__ import annotations

import re

from discreet.engines import engine
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.engine import Capabilities, key_order
from discreet.engines.memory.engine import MemoryEngine
from discreet.plan.catalog import Catalog
from discreet.privacy import Neighbours
from tests.engines.conformance.test_suite import TESTS

NOTHING = Catalog(tables={}, neighbours=Neighbours.ADD_REMOVE)


def points_of(text: str) -> dict[int, list[str]]:
    """The numbered points of a docstring, with the tests that each names."""
    parts = re.split(r"^(\d+)\. ", text, flags=re.MULTILINE)[1:]
    return {int(number): re.findall(r"``(test_\w+)``", said) for number, said in zip(parts[::2], parts[1::2])}


def missing(text: str) -> list[int]:
    """The points that name no test, or one that does not exist."""
    known = {name.partition(".")[2] for name in TESTS}
    return [number for number, tests in points_of(text).items() if not tests or not set(tests) <= known]


def test_each_of_the_nine_points_names_a_test() -> None:
    text = engine.__doc__ or ""
    assert list(points_of(text)) == list(range(1, 10))
    assert missing(text) == []


def test_a_point_without_its_test_is_seen() -> None:
    """Negative control."""
    text = engine.__doc__ or ""
    assert missing(text.replace("test_groups_come_in_key_order", "test_of_nothing")) == [5]
    assert missing(text + "10. *Another point.* Nobody checks it.\n") == [10]


def test_keys_have_one_order() -> None:
    """Ascending, NULL last, value after value."""
    keys = [(True, "b"), (None, "a"), (False, None), (False, "ä"), (False, "z"), (None, None)]
    wanted = [(False, "z"), (False, "ä"), (False, None), (True, "b"), (None, "a"), (None, None)]
    assert sorted(keys, key=key_order) == wanted


def test_engines_say_what_they_can_do() -> None:
    """Nothing by default."""
    assert MemoryEngine({}, NOTHING).capabilities == Capabilities()
    found = DuckDBEngine({}, NOTHING)
    assert found.capabilities == Capabilities(prepares=True, reports_progress=True, spills=True)
    found.close()
