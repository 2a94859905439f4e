"""Answers with very many public groups: what they may be, and that neither memory nor the record depends on data."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.errors import UsageError

SIDE = 400
SQL = "SELECT a, b, COUNT(*) AS n FROM t GROUP BY a, b"


def curate_square(side: int, **more: Any) -> discreet.Curator:
    frame = pa.table({"a": [1, 1, 2], "b": [3, 3, 399], "x": [1, 2, 3]})
    keys = {"a": range(side), "b": range(side)}
    budget = discreet.Budget(epsilon=100, delta=1e-6)
    return discreet.curate({"t": frame}, budget=budget, keys=keys, bounds={"x": (0, 10)}, **more)


def test_more_than_a_hundred_thousand_public_groups_are_answered() -> None:
    """All of them, in the order of their keys, those with rows among them; a second time from the record."""
    curator = curate_square(SIDE)
    answer = curator.ask(SQL, epsilon=20)
    assert len(answer) == SIDE**2
    counts = dict(zip(zip(answer["a"], answer["b"]), answer["n"]))
    assert len(counts) == SIDE**2
    assert 1 <= counts[1, 3] <= 3 and counts[2, 399] <= 2 and abs(counts[7, 7]) <= 2
    again = curator.ask(SQL, epsilon=20)
    assert again.replayed and again.rows == answer.rows
    other = curator.ask(f"{SQL} ORDER BY n DESC, a LIMIT 3", epsilon=20)
    assert other.replayed and other["n"] == sorted(answer["n"])[::-1][:3]


def test_the_record_of_a_draw_is_a_few_texts() -> None:
    """Public groups are not listed again, and the noisy integers of a measure are one text."""
    curator = curate_square(SIDE)
    curator.ask(SQL, epsilon=20, request="r")
    reservation = curator._ledger.find_request("analyst", "r")  # what is on record
    assert reservation is not None and reservation.draw is not None
    ((drawn,),) = reservation.draw["plans"]
    assert drawn["keys"] == "public" and len(drawn["measures"]["0"].split()) == SIDE**2
    assert len(json.dumps(drawn)) < 4 * SIDE**2


SUMS = ", ".join(f"SUM(x + {i}) AS s{i}" for i in range(6))


@pytest.mark.parametrize(
    ("side", "aggregates", "words"),
    [
        (1001, "COUNT(*) AS n", "at most 1,000,000 can be shown"),
        (400, "MEDIAN(x) AS m", "for at most 100,000"),
        (400, "COUNT(DISTINCT x) AS m", "for at most 100,000"),
        (999, SUMS, "at most 5,000,000 numbers"),
    ],
)
def test_more_than_an_answer_may_hold_is_refused(side: int, aggregates: str, words: str) -> None:
    """From public facts, before anything is charged."""
    with pytest.raises(UsageError, match=words):
        curate_square(side).preview(f"SELECT a, b, {aggregates} FROM t GROUP BY a, b", epsilon=1)
