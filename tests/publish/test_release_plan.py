"""Tests of plans: TOML and Python say the same, and wrong words are refused with the right ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from discreet.errors import DiscreetError
from discreet.publish.design import design
from discreet.publish.release_plan import ReleasePlan
from tests.publish.releases import make_plan, open_clinic

TOML = """
name = "visits"
codebook = "clinic.toml"
table = "visits"
where = "age >= 18"
epsilon = 1.5
ways = 2
rows = 6000

[columns.ward]
[columns.age]
bins = 10
high = 99.5

[[constraints]]
forbid = { ward = "A", age = 3 }
"""


def test_a_plan_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(TOML)
    plan = ReleasePlan.load(tmp_path / "plan.toml")
    assert plan.codebook == tmp_path / "clinic.toml"
    assert list(plan.columns) == ["ward", "age"]
    assert plan.columns["age"].high == 99.5
    assert plan.offer.alone, "a stated ε is a guarantee"
    assert plan.digest == ReleasePlan.load(tmp_path / "plan.toml").digest


def test_every_word_is_part_of_the_digest() -> None:
    words: dict[str, Any] = {"name": "a", "table": "t", "columns": ["x"], "share": 0.1}
    digests = {ReleasePlan.from_dict(words | more).digest for more in (
        {}, {"name": "b"}, {"table": "u"}, {"columns": ["y"]}, {"share": 0.2}, {"where": "x > 1"}, {"ways": 1},
        {"max_rows": 2}, {"rows": 5}, {"synthetic": False}, {"level": 0.9}, {"columns": {"x": {"bins": 3}}},
        {"supersedes": "z"}, {"marginals": [["x"]]},
    )}  # fmt: skip
    assert len(digests) == 14


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"colums": []}, "columns"),
        ({"columns": {"x": {"bin": 3}}}, "bins"),
        ({"columns": ["x", "x"]}, "twice"),
        ({"columns": 3}, "list of names"),
        ({"columns": []}, "needs columns"),
        ({"name": " "}, "name of its own"),
        ({"from": "t"}, "once"),
        ({"ways": 4}, "ways"),
        ({"epsilon": 1}, "exactly one form"),
        ({"marginals": [["z"]]}, "marginal"),
        ({"marginals": [["x", "x"]]}, "marginal"),
        ({"rows": 0}, "rows"),
        ({"constraints": [{"order": ["x", "z"]}]}, "not published"),
        ({"constraints": [{"order": ["x", "x"]}]}, "two columns"),
        ({"constraints": [{}]}, "one thing"),
        ({"constraints": ["x < y"]}, "forbid"),
    ],
)
def test_wrong_words_are_refused(more: dict[str, Any], what: str) -> None:
    words: dict[str, Any] = {"name": "a", "table": "t", "columns": ["x"], "share": 0.1}
    with pytest.raises(DiscreetError, match=what):
        ReleasePlan.from_dict(words | more)


def test_a_file_that_is_no_plan(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("name = ")
    with pytest.raises(DiscreetError, match="cannot be read as a plan"):
        ReleasePlan.load(tmp_path / "plan.toml")


def test_marginals_may_have_weights() -> None:
    columns: dict[str, Any] = {"ward": {}, "sex": {}}
    told = [["ward"], {"columns": ["ward", "sex"], "weight": 5}]
    plan = ReleasePlan.from_dict(make_plan(columns=columns, marginals=told))
    assert plan.marginals == (("ward",), ("ward", "sex"))
    weights = design(plan, open_clinic().catalog).workload.weights
    assert weights[(0, 1)] == 5 and weights[(0,)] == 1
    for wrong in ({"columns": ["ward"], "weight": 0}, {"columns": ["ward"], "wait": 1}, {"columns": ["town"]}):
        with pytest.raises(DiscreetError, match=r"Nothing was charged|weight"):
            ReleasePlan.from_dict(make_plan(columns=columns, marginals=[wrong]))
