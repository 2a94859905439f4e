"""What auditors do: verify, export, compare heads; no answer is in what they see."""

from __future__ import annotations

import json

import pytest

from tests.service.served import Hospital, read_problem

LEDGER = "datasets/hospital/ledger"


def test_a_head_is_kept_and_found_again(served: Hospital) -> None:
    """A head from before is still in the log; one of another log is not."""
    head = served.get("audit", f"{LEDGER}/head")
    served.ask("ana", "one")
    report = json.loads(served.send("audit", "POST", f"{LEDGER}/verify", {"heads": [head]}).body)
    assert report["whole"] and report["charges"] == 1 and report["head"] != head
    other = {**head, "hash": "0" * 64}
    assert served.send("audit", "POST", f"{LEDGER}/verify", {"heads": [other]}).status in (409, 503)
    malformed: tuple[object, ...] = ("x", [1], [{}], [{"number": "a"}])
    for wrong in malformed:
        assert served.send("audit", "POST", f"{LEDGER}/verify", {"heads": wrong}).status in (400, 409)


@pytest.mark.parametrize("form", ["jsonl", "csv", "registry"])
def test_exports_hold_no_answer(served: Hospital, form: str) -> None:
    """Question and price, but none of the released numbers."""
    rows = json.loads(served.ask("ana", "one").body)["rows"]
    response = served.send("audit", "GET", f"{LEDGER}/export/{form}")
    text = response.body.decode()
    assert (response.status == 200 and "ana" in text) or form == "registry"
    assert not any(str(row["n"]) in text.replace("0", " ") for row in rows if row["n"] > 99_999)
    assert '"rows"' not in text
    read_problem(served.send("ana", "GET", f"{LEDGER}/export/{form}"), "forbidden", 403)


def test_an_unknown_form_is_refused(served: Hospital) -> None:
    """With the forms that there are."""
    assert served.send("audit", "GET", f"{LEDGER}/export/xml").status == 409


def test_an_auditor_asks_nothing(served: Hospital) -> None:
    """Neither a preview nor a question nor somebody's answer."""
    body = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.1}
    for path in ("preview", "ask"):
        response = served.send("audit", "POST", f"datasets/hospital/{path}", body, idempotency_key="x")
        read_problem(response, "forbidden", 403)
    read_problem(served.send("audit", "GET", "requests/one"), "forbidden", 403)


def test_receipts_hold_no_answer(served: Hospital) -> None:
    """An auditor reads what was drawn of whom at which price; released numbers and other charges stay unseen."""
    rows = json.loads(served.ask("ana", "one").body)["rows"]
    (charge,) = served.get("audit", "datasets/hospital/history")["charges"]
    found = served.get("audit", f"datasets/hospital/receipts/{charge['number']}")
    (receipt,) = found["receipts"]
    assert receipt["mechanisms"] and receipt["ledger"]["number"] == charge["number"] and "rows" not in receipt
    text = json.dumps(found)
    assert not any(f" {row[name]}," in text or f" {row[name]}}}" in text for row in rows for name in ("n", "n_low"))
    for number in ("0", "99", "x", "-1"):
        read_problem(served.send("audit", "GET", f"datasets/hospital/receipts/{number}"), "not-found", 404)
    read_problem(served.send("ana", "GET", f"datasets/hospital/receipts/{charge['number']}"), "forbidden", 403)
