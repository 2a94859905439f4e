"""The service as a function: answers, rights, forms, problem documents, limits."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from discreet import errors
from discreet.curator import Curator
from discreet.engines.failure import tell_owner
from discreet.service import problems
from discreet.service.messages import RefusalCode
from discreet.service.roles import Role
from tests.service.served import WARDS, Hospital, read_problem, serve_hospital


def test_the_way_of_an_analyst(served: Hospital) -> None:
    """Look, preview, ask, ask again, look back."""
    known = {"name": "hospital", "role": "analyst", "analyst": "ana", "project": ""}
    assert served.get("ana", "datasets") == {"datasets": [known]}
    facts = served.get("ana", "datasets/hospital")
    assert {"visits"} <= {table["name"] for table in facts["tables"]}
    body = {"sql": WARDS, "epsilon": "0.1"}
    preview = json.loads(served.send("ana", "POST", "datasets/hospital/preview", body).body)
    assert preview["fits"] and not preview["already_answered"]
    before = served.get("ana", "datasets/hospital/budget")["left"]
    answer = json.loads(served.ask("ana", "one").body)
    assert answer["request"] == "one" and not answer["replayed"] and answer["rows"][0].keys() >= {"ward", "n", "n_low"}
    after = served.get("ana", "datasets/hospital/budget")["left"]
    assert after < before
    again = json.loads(served.ask("ana", "one").body)
    assert again["replayed"] and again["rows"] == answer["rows"]
    assert served.get("ana", "datasets/hospital/budget")["left"] == after
    assert served.get("ana", "datasets/hospital/budget")["share"] < 1
    (charge,) = served.get("ana", "datasets/hospital/history")["charges"]
    assert charge["request"] == "one" and charge["answered"] and charge["analyst"] == "ana"
    found = served.get("ana", "requests/one")
    assert found["answered"] and found["answers"][0]["rows"] == answer["rows"]


def test_a_batch_has_one_charge(served: Hospital) -> None:
    body = {"questions": [WARDS, "SELECT COUNT(*) AS n FROM visits"], "epsilon": 0.2, "weights": [1, "3"]}
    response = served.send("ana", "POST", "datasets/hospital/batch", body, idempotency_key="b")
    assert len(json.loads(response.body)["answers"]) == 2
    assert len(served.get("ana", "datasets/hospital/history")["charges"]) == 1
    assert len(served.get("ana", "requests/b")["answers"]) == 2
    read_problem(served.send("ana", "GET", "requests/b", accept="text/csv"), "not-acceptable", 406)


def test_forms_hold_the_same_rows(served: Hospital) -> None:
    rows = json.loads(served.ask("ana", "one").body)["rows"]
    readers: dict[str, Callable[[bytes], Any]] = {
        "application/vnd.apache.arrow.stream": lambda made: pa.ipc.open_stream(made).read_all().to_pylist(),
        "application/vnd.apache.parquet": lambda made: parquet.read_table(io.BytesIO(made)).to_pylist(),
        "text/csv": lambda made: csv.read_csv(io.BytesIO(made)).to_pylist(),
    }
    for media, read in readers.items():
        for response in (
            served.ask("ana", "one", accept=f"{media}, */*;q=0.1"),
            served.send("ana", "GET", "requests/one", accept=media),
        ):
            assert response.media == media and read(response.body) == rows
            receipt = response.headers["Discreet-Receipt"]
            assert receipt.isascii() and json.loads(receipt)["request"] == "one"


def test_a_form_that_is_not_offered_is_refused_before_the_charge(served: Hospital) -> None:
    for accept in ("text/html", "application/json;q=0", "text/csv;q=x", ""):
        read_problem(served.ask("ana", "one", accept=accept), "not-acceptable", 406)
    assert served.get("ana", "datasets/hospital/history")["charges"] == []


def test_unknown_ended_revoked_and_malformed_tokens_get_the_same_bytes(served: Hospital) -> None:
    made, revoked = served.dataset.tokens.create(name="eve", role=Role.OWNER)
    served.dataset.tokens.revoke(made.id)
    known = served.secrets["ana"]
    headers = ["", "Bearer", f"Bearer {revoked}", f"Bearer {known}x", f"Basic {known}", f"bearer  {known}", known]
    seen = {served.send("", "GET", "datasets", authorization=value).body for value in headers}
    seen |= {served.send("", "GET", "datasets").body, served.send("", "DELETE", "nowhere").body}
    assert len(seen) == 1
    response = served.send("", "POST", "datasets/hospital/ask", {"sql": WARDS})
    read_problem(response, "unauthorized", 401)
    assert response.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_revoked_token_is_refused_from_the_next_request_on(served: Hospital) -> None:
    assert served.ask("ana", "one").status == 200
    served.dataset.tokens.revoke("ana")
    for path in ("datasets", "datasets/hospital/history", "requests/one"):
        read_problem(served.send("ana", "GET", path), "unauthorized", 401)
    read_problem(served.ask("ana", "two"), "unauthorized", 401)


def test_two_analysts_do_not_see_each_other(served: Hospital) -> None:
    assert served.ask("ana", "one").status == 200
    assert served.get("ben", "datasets/hospital/history")["charges"] == []
    theirs = served.send("ben", "GET", "requests/one")
    never = served.send("ben", "GET", "requests/never")
    read_problem(theirs, "not-found", 404)
    assert theirs.body == never.body
    read_problem(served.send("olga", "GET", "requests/one"), "not-found", 404)
    # The same id of another analyst is another request, with a charge of its own.
    assert not json.loads(served.ask("ben", "one").body)["replayed"]
    for who in ("olga", "audit"):
        charges = served.get(who, "datasets/hospital/history")["charges"]
        assert [charge["analyst"] for charge in charges] == ["ana", "ben"]


def test_a_dataset_of_others_looks_like_none(served: Hospital) -> None:
    for path in ("datasets/other", "datasets/other/budget", "datasets/hospital/nothing", "nothing", "datasets/"):
        read_problem(served.send("ana", "GET", path), "not-found", 404)
    other = served.send("ana", "POST", "datasets/other/ask", {"sql": WARDS}, idempotency_key="x")
    assert other.body == served.send("ana", "GET", "nothing").body


def test_an_auditor_sees_charges_and_no_answers(served: Hospital) -> None:
    for path in ("preview", "ask", "batch"):
        response = served.send("audit", "POST", f"datasets/hospital/{path}", {"sql": WARDS}, idempotency_key="x")
        read_problem(response, "forbidden", 403)
    read_problem(served.send("audit", "GET", "requests/one"), "forbidden", 403)
    assert served.get("audit", "datasets/hospital/budget")["odds"].startswith("A guess about one patient_id")


def test_who_asks_is_said_by_the_token_alone(served: Hospital) -> None:
    """Words in the body and headers that name somebody else are refused or ignored."""
    for word in ("analyst", "project", "request", "watch"):
        read_problem(served.ask("ana", "one", {"sql": WARDS, "epsilon": 1, word: "ben"}), "bad-request", 400)
    served.ask("ana", "one", user_name="ben", x_forwarded_user="ben")
    (charge,) = served.get("olga", "datasets/hospital/history")["charges"]
    assert charge["analyst"] == "ana"


def test_a_token_has_a_cap_for_each_question(served: Hospital) -> None:
    _, served.secrets["small"] = served.dataset.tokens.create(name="sam", role=Role.ANALYST, per_query=Fraction(1, 20))
    refused = read_problem(served.ask("small", "one"), "budget-exceeded", 403)
    assert "at most ε 0.05" in refused["detail"] and "this one would cost 1/30 of the budget" in refused["detail"]
    assert served.ask("small", "two", {"sql": WARDS, "epsilon": "0.05"}).status == 200
    assert served.ask("ana", "one").status == 200


def test_spending_is_never_done_by_get_and_never_without_a_key(served: Hospital) -> None:
    for path in ("ask", "batch", "preview"):
        response = served.send("ana", "GET", f"datasets/hospital/{path}")
        read_problem(response, "method-not-allowed", 405)
        assert response.headers["Allow"] == "POST"
    for key in ("", "a b", "é", "a" * 201, "a\n"):
        problem = read_problem(served.ask("ana", key), "bad-request", 400)
        assert problem["place"] == {"parameter": "Idempotency-Key"}
    assert served.get("ana", "datasets/hospital/history")["charges"] == []


def test_pages_of_other_sites_cannot_spend(served: Hospital) -> None:
    for site in ("cross-site", "same-site"):
        read_problem(served.ask("ana", "one", sec_fetch_site=site), "forbidden", 403)
    for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        read_problem(served.ask("ana", "one", content_type=media), "unsupported-media-type", 415)
    assert served.ask("ana", "one", sec_fetch_site="same-origin").status == 200


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff", b'{"sql": "x", "sql": "y"}', b'{"epsilon": 1}', b'{"sql": 1}', b"[" * 100_000,
     b'{"sql": "x", "epsilon": NaN}', b'{"sql": "x", "epsilon": Infinity}', b'{"sql": "x", "epsilon": "NaN"}',
     b'{"sql": "x", "epsilon": true}', b'{"sql": "x", "epsilon": "1/0"}', b'{"sql": "x", "epsilon": [1]}',
     b'{"sql": "x", "error": 3}', b'{"sql": "x", "public": {"t": [{"a": 1}, {"a": "x"}]}}', b'{"sql": "x", "who": 1}',
     b'{"sql": "x", "epsilon": ' + b"9" * 5000 + b"}"],
)  # fmt: skip
def test_bodies_that_cannot_be_read_are_refused(served: Hospital, body: bytes) -> None:
    read_problem(served.ask("ana", "one", body), "bad-request", 400)


def test_numbers_are_read_exactly(served: Hospital) -> None:
    """0.1 is a tenth, as a number and as a text; a number of a size that nobody needs is refused, and quickly."""
    served.ask("ana", "one", {"sql": WARDS, "epsilon": "1/10"})
    for same in (b"0.1", b'"0.1"', b'"1/10"', b"1e-1"):
        response = served.ask("ana", "two", b'{"sql": "' + WARDS.encode() + b'", "epsilon": ' + same + b"}")
        assert json.loads(response.body)["replayed"]
    for huge in ("1e999999999", "1e-999999999"):
        response = served.ask(
            "ana", "three", b'{"sql": "SELECT COUNT(*) FROM visits", "epsilon": ' + huge.encode() + b"}"
        )
        read_problem(response, "parameter", 422)


def test_a_wrong_question_is_told_with_its_place_and_fix(served: Hospital) -> None:
    problem = read_problem(served.ask("ana", "one", {"sql": "SELECT *\nFROM visits", "epsilon": 1}), "question", 422)
    assert problem["place"]["line"] == 1 and problem["fix"]
    problem = read_problem(served.ask("ana", "one", {"sql": WARDS, "epsilon": -1}), "parameter", 422)
    assert problem["place"] == {"parameter": "epsilon"}
    read_problem(served.ask("ana", "one", {"sql": WARDS, "epsilon": 100}), "budget-exceeded", 403)


def test_another_question_under_the_same_key_is_refused(served: Hospital) -> None:
    served.ask("ana", "one")
    problem = served.ask("ana", "one", {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1"})
    read_problem(problem, "request-conflict", 422, charged=True)


def test_a_failure_after_the_charge_says_so_in_constant_words(
    served: Hospital, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator = served.dataset.curator

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("patient 4711")

    monkeypatch.setattr(curator._engine, "run", fail)
    first = served.ask("ana", "one")
    read_problem(first, "engine-failure", 500, charged=True)
    assert b"4711" not in first.body
    read_problem(served.ask("ana", "two"), "engine-failure", 500, charged=True)  # runs under the charge that stands
    other = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1"}
    read_problem(served.ask("ana", "three", other), "ledger-stopped", 503)
    assert served.get("ana", "requests/one") == {
        "request": "one", "sql": WARDS, "state": "unfinished", "charged": True, "answered": False, "answers": [],
    }  # fmt: skip


@pytest.mark.parametrize("at", ["run", "answer"])
def test_answers_and_failures_keep_to_the_raster(hospital: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """With ``answer_after`` a response comes on the raster, however soon the work failed or was done."""
    hospital.write_text(hospital.read_text().replace("[budget]", 'answer_after = "1s"\n[budget]', 1))
    held = serve_hospital(hospital)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    try:
        if at == "run":
            monkeypatch.setattr(held.dataset.curator._engine, "run", fail)
        begun = time.monotonic()
        response = held.ask("ana", "one")
        assert response.status == (500 if at == "run" else 200) and time.monotonic() - begun >= 1
    finally:
        held.dataset.close()


def test_why_a_source_cannot_be_opened_stays_on_the_server(served: Hospital, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own words are a note for whoever opens the source, and no part of the document."""

    def fail(*_: object, **__: object) -> None:
        refused = errors.UsageError("The source of the table 'visits' cannot be read. Nothing was charged.")
        tell_owner(refused, RuntimeError("patient 4711"))
        raise refused

    monkeypatch.setattr(Curator, "ask", fail)
    first = served.ask("ana", "one")
    read_problem(first, "usage", 400)
    assert b"4711" not in first.body and b"owner" not in first.body


def test_what_nobody_foresaw_has_one_document(
    served: Hospital, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("patient 4711")

    monkeypatch.setattr(Curator, "ask", fail)
    problem = read_problem(served.ask("ana", "one"), "internal", 500)
    assert problem["detail"] == problems.UNFORESEEN
    assert "RuntimeError" in caplog.text and "4711" not in caplog.text


def test_public_rows_come_with_the_question(served: Hospital) -> None:
    sql = "SELECT b.big, COUNT(*) AS n FROM visits v JOIN beds b ON v.ward = b.ward GROUP BY b.big"
    body = {
        "sql": sql,
        "epsilon": "0.1",
        "public": {"beds": [{"ward": "north", "big": True}, {"ward": "east", "big": False}]},
    }
    response = served.send("ana", "POST", "datasets/hospital/preview", body)
    assert response.status == 200, response.body


def test_history_has_pages(served: Hospital) -> None:
    for number in range(3):
        served.ask(
            "ana", f"r{number}", {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE age > {number}", "epsilon": "0.01"}
        )
    page = served.get("ana", "datasets/hospital/history?limit=2")
    assert [charge["request"] for charge in page["charges"]] == ["r0", "r1"] and page["more"]
    rest = served.get("ana", f"datasets/hospital/history?after={page['charges'][-1]['number']}")
    assert [charge["request"] for charge in rest["charges"]] == ["r2"] and not rest["more"]
    for wrong in ("-1", "x", "²", "9" * 30, "1001"):
        read_problem(served.send("ana", "GET", f"datasets/hospital/history?limit={wrong}"), "bad-request", 400)


def test_a_token_has_so_many_requests_at_once_and_in_a_minute(hospital: Path) -> None:
    now = [0.0]
    served = serve_hospital(hospital, per_minute=2, at_once=1, clock=lambda: now[0])
    limits, ana = served.service.limits, served.dataset.tokens.find(served.secrets["ana"])
    assert ana is not None
    with limits.enter(ana.id):
        read_problem(served.send("ana", "GET", "datasets"), "too-many-requests", 429)
        assert served.send("ben", "GET", "datasets").status == 200
    assert served.send("ana", "GET", "datasets").status == 200
    refused = served.ask("ana", "one")
    read_problem(refused, "too-many-requests", 429)
    assert refused.headers["Retry-After"] == "1"
    now[0] = 60.0
    assert served.send("ana", "GET", "datasets").status == 200
    served.dataset.close()


def test_every_error_has_a_status_and_every_code_a_line_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    for code in RefusalCode:
        assert f"| `{code}` | {code.status} |" in page
    assert problems.describe_error(errors.DrawLost(), charged=True).status == 409
    assert problems.describe_error(errors.UnitLost("x"), charged=False).status == 422
