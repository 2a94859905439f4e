"""What owners do over the service: tokens, declarations, the curve of the budget; and nobody else."""

from __future__ import annotations

import json

import pytest

from discreet.service.roles import Role
from tests.service.served import Hospital, read_problem

TOKENS = "datasets/hospital/tokens"


def test_a_token_is_made_used_and_revoked(served: Hospital) -> None:
    """The secret is shown once, opens the dataset in its role, and opens nothing after it was revoked."""
    body = {"name": "eva", "role": "analyst", "project": "flu", "per_query": "1/10", "days": 3}
    made = json.loads(served.send("olga", "POST", TOKENS, body).body)
    assert made["secret"].startswith("discreet_") and made["per_query"] == "1/10" and made["state"] == "valid"
    served.secrets["eva"] = made["secret"]
    assert served.get("eva", "datasets")["datasets"][0]["role"] == "analyst"
    listed = served.get("olga", TOKENS)["tokens"]
    assert made["id"] in {token["id"] for token in listed} and made["secret"] not in json.dumps(listed)
    revoked = json.loads(served.send("olga", "POST", f"{TOKENS}/{made['id']}/revoke", {}).body)["revoked"]
    assert [token["state"] for token in revoked] == ["valid"] or revoked[0]["id"] == made["id"]
    read_problem(served.send("eva", "GET", "datasets"), "unauthorized", 401)
    states = {token["id"]: token["state"] for token in served.get("olga", TOKENS)["tokens"]}
    assert states[made["id"]] == "revoked"


@pytest.mark.parametrize(
    "body",
    [
        {"name": "eva"},
        {"name": "", "role": "analyst"},
        {"name": "eva", "role": "king"},
        {"name": "eva", "role": ["owner"]},
        {"name": "eva", "role": "analyst", "days": 0},
        {"name": "eva", "role": "analyst", "days": True},
        {"name": "eva", "role": "analyst", "per_query": 0},
        {"name": "eva", "role": "analyst", "secret": "mine"},
    ],
)
def test_wrong_tokens_are_refused(served: Hospital, body: object) -> None:
    """Nothing is made."""
    before = served.get("olga", TOKENS)
    assert served.send("olga", "POST", TOKENS, body).status in (400, 422)
    assert served.get("olga", TOKENS) == before


def test_the_budget_over_time(served: Hospital) -> None:
    """Points of the curve and what each analyst spent."""
    served.ask("ana", "one")
    found = served.get("olga", "datasets/hospital/burndown")
    assert found["curve"][-1]["left"] < found["curve"][0]["left"] and found["analysts"][0]["analyst"] == "ana"


def test_declarations_name_the_owner_and_the_reason(served: Hospital) -> None:
    """Renewing needs the owner's word about the people; both stay on record in the owner's name."""
    path = "datasets/hospital/renew"
    read_problem(served.send("olga", "POST", path, {"reason": "new"}), "bad-request", 400)
    refused = served.send("olga", "POST", path, {"reason": "new", "other_people": False})
    assert refused.status == 409
    served.ask("ana", "one")
    made = json.loads(served.send("olga", "POST", path, {"reason": "other people", "other_people": True}).body)
    record = json.loads(served.dataset.curator.ledger.read_line(made["entry"]))  # type: ignore[attr-defined]
    assert (record["kind"], record["by"], record["reason"]) == ("renewed", "olga", "other people")


@pytest.mark.parametrize("who", ["ana", "audit"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", TOKENS, None),
        ("POST", TOKENS, {"name": "eva", "role": str(Role.OWNER)}),
        ("POST", f"{TOKENS}/olga/revoke", {}),
        ("GET", "datasets/hospital/burndown", None),
        ("POST", "datasets/hospital/resume", {"reason": "looked"}),
        ("POST", "datasets/hospital/renew", {"reason": "x", "other_people": True}),
    ],
)
def test_nobody_else_may(served: Hospital, who: str, method: str, path: str, body: object) -> None:
    """Analysts and auditors are refused, and nothing changes."""
    before = served.dataset.curator.ledger.head  # type: ignore[attr-defined]
    read_problem(served.send(who, method, path, body), "forbidden", 403)
    assert served.dataset.curator.ledger.head == before  # type: ignore[attr-defined]
