"""Batches before they are paid, plans, bounds and limits, over the service."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.service.served import WARDS, Hospital, read_problem


def test_what_is_free_charges_nothing(served: Hospital) -> None:
    """The preview of a batch and the plan of a question; both are those of the curator."""
    batch = {"questions": [WARDS, "SELECT SUM(cost) AS c FROM visits"], "share": "0.05"}
    shown = json.loads(served.send("ana", "POST", "datasets/hospital/preview-batch", batch).body)
    assert shown["fits"] and len(shown["questions"]) == 2
    plan = json.loads(served.send("ana", "POST", "datasets/hospital/explain", {"sql": WARDS, "share": "0.05"}).body)
    assert plan["explanation"] == served.dataset.curator.explain(WARDS, share=0.05)
    assert not served.dataset.curator.history()


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("bounds", {"table": "visits", "column": "cost", "epsilon": "0.05"}),
        ("contributions", {"table": "visits", "by": ["ward"], "epsilon": "0.05"}),
    ],
)
def test_what_is_bought_is_charged_once(served: Hospital, route: str, body: Any) -> None:
    """Under its key; the same key again gives the same, another body under it is refused, and so is no key at all."""
    path = f"datasets/hospital/{route}"
    first = served.send("ana", "POST", path, body, idempotency_key="b")
    assert first.status == 200 and json.loads(first.body)["codebook"]
    again = json.loads(served.send("ana", "POST", path, body, idempotency_key="b").body)
    assert again["replayed"] and again["words"] == json.loads(first.body)["words"]
    other = served.send("ana", "POST", path, {**body, "epsilon": "0.06"}, idempotency_key="b")
    read_problem(other, "request-conflict", 422, charged=True)
    read_problem(served.send("ana", "POST", path, body), "bad-request", 400)
    read_problem(served.send("audit", "POST", path, body, idempotency_key="b"), "forbidden", 403)
    assert len(served.dataset.curator.history()) == 1


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("bounds", {"table": "visits"}),
        ("bounds", {"table": "visits", "column": 3, "epsilon": 1}),
        ("contributions", {"table": "visits", "by": "ward", "epsilon": 1}),
        ("contributions", {"table": "visits", "by": [3], "epsilon": 1}),
        ("explain", {}),
        ("preview-batch", {"questions": []}),
    ],
)
def test_bodies_that_cannot_be_read(served: Hospital, route: str, body: Any) -> None:
    refused = served.send("ana", "POST", f"datasets/hospital/{route}", body, idempotency_key="k")
    read_problem(refused, "bad-request", 400)
    assert not served.dataset.curator.history()
