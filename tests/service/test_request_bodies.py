"""One Idempotency-Key means one body, also where the record would answer another one for free."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from discreet.errors import UsageError
from discreet.service.request_bodies import RequestBodies, hash_body
from tests.service.served import WARDS, Hospital, read_problem


@pytest.mark.parametrize(
    "other",
    [
        {"sql": WARDS, "epsilon": "0.05"},
        {"sql": WARDS, "epsilon": "0.2"},
        {"sql": WARDS, "epsilon": "0.1", "level": "0.9"},
        {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1"},
    ],
)
def test_another_body_under_a_charged_key_is_refused(served: Hospital, other: object) -> None:
    """Whatever differs. The same words in another order are the same body."""
    assert served.ask("ana", "one").status == 200
    read_problem(served.ask("ana", "one", other), "request-conflict", 422, charged=True)
    assert served.ask("ana", "one", {"epsilon": "0.1", "sql": WARDS}).status == 200
    assert len(served.get("ana", "datasets/hospital/history")["charges"]) == 1


def test_a_key_of_a_refused_question_may_be_used_again(served: Hospital) -> None:
    """Nothing was charged under it."""
    read_problem(served.ask("ana", "one", {"sql": WARDS, "epsilon": 100}), "budget-exceeded", 403)
    assert served.ask("ana", "one").status == 200


def test_what_differs_has_another_hash() -> None:
    """Numbers by their value; the project and the route count."""
    first = hash_body("ask", "", {"a": [Decimal("1.50")], "b": None})
    assert first == hash_body("ask", "", {"b": None, "a": [Decimal("1.5")]})
    others = [
        hash_body("batch", "", {"a": [Decimal("1.50")], "b": None}),
        hash_body("ask", "flu", {"a": [Decimal("1.50")], "b": None}),
        hash_body("ask", "", {"a": [Decimal("1.51")], "b": None}),
        hash_body("ask", "", {"a": ["1.50"], "b": None}),
        hash_body("ask", "", {"a": [Decimal("1e999999999")], "b": None}),
        hash_body("ask", "", {"a": ["\ud800"], "b": None}),
    ]
    assert len({first, *others}) == 7


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    """Before anything is charged."""
    (tmp_path / "x.requests").write_bytes(b"something else " * 500)
    with pytest.raises(UsageError, match="Nothing was charged"):
        RequestBodies(tmp_path / "x.requests").keep("ana", "one", "hash")
