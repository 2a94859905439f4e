"""Questions that nobody waits for: accepted, followed, ended, found again; and all under the limits of their token."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from discreet.service.messages import ApiRequest, ApiResponse
from discreet.service.spending import LONGEST_WAIT, read_patience
from tests.service.served import WARDS, Hospital, read_problem

ASYNC = "respond-async"


class SlowEngine:
    """The engine of a curator that goes on when it is told, and tells how far it is."""

    def __init__(self, engine: Any) -> None:
        self._run: Callable[..., Any] = engine.run
        self.go_on, self.started = threading.Event(), threading.Event()

    def run(self, *arguments: Any, watch: Any = None, **words: Any) -> Any:
        self.started.set()
        while not self.go_on.wait(0.01):
            if watch is not None:
                watch(0.4)
        return self._run(*arguments, watch=watch, **words)


@pytest.fixture
def slow(served: Hospital, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowEngine]:
    engine = SlowEngine(served.dataset.curator._engine)
    monkeypatch.setattr(served.dataset.curator._engine, "run", engine.run)
    yield engine
    engine.go_on.set()
    served.service.threads.wait(60)


def wait_for(served: Hospital, key: str, *states: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while True:
        found: dict[str, Any] = served.get("ana", f"requests/{key}")
        if found["state"] in states:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.01)


def listen(response: ApiResponse) -> tuple[str, bool]:
    assert response.events is not None
    return response.events.tell()


def test_a_question_runs_on_while_nobody_waits(served: Hospital, slow: SlowEngine) -> None:
    """202 with its address, its progress, the answer with its receipt; the same key joins and is charged once."""
    made = served.ask("ana", "one", prefer=ASYNC)
    assert made.status == 202 and made.headers["Location"] == "/api/v1/requests/one"
    assert made.headers["Preference-Applied"] == ASYNC
    assert slow.started.wait(60)
    assert wait_for(served, "one", "running")["answered"] is False
    followed = served.send("ana", "GET", "requests/one/events")
    assert followed.media == "text/event-stream" and listen(followed)[0].startswith("event: progress")
    assert served.ask("ana", "one", prefer=f"{ASYNC}, wait=0").status == 202
    other = {"sql": WARDS, "epsilon": "0.2"}
    assert served.ask("ana", "one", other, prefer=ASYNC).status == 422
    read_problem(served.send("ben", "GET", "requests/one/events"), "not-found", 404)
    read_problem(served.send("ben", "POST", "requests/one/cancel", {}), "not-found", 404)
    slow.go_on.set()
    found = wait_for(served, "one", "answered")
    assert found["charged"] and found["answers"][0]["receipt"]["request"] == "one"
    served.service.threads.wait(60)  # the record has the answer a moment before the request has ended
    word, last = listen(followed)
    assert last and word.startswith("event: done")
    assert len(served.get("ana", "datasets/hospital/history")["charges"]) == 1
    assert listen(served.send("ana", "GET", "requests/one/events"))[1]


def test_a_stream_ends_with_its_token(served: Hospital, slow: SlowEngine) -> None:
    """A revocation holds for what is followed already; the question itself was taken before, and is charged once."""
    served.ask("ana", "one", prefer=ASYNC)
    assert slow.started.wait(60)
    followed = served.send("ana", "GET", "requests/one/events")
    assert listen(followed)[0].startswith("event: progress")
    served.dataset.tokens.revoke("ana")
    assert listen(followed) == ('event: refused\ndata: {"code": "unauthorized"}\n\n', True)
    read_problem(served.send("ana", "GET", "requests/one"), "unauthorized", 401)
    slow.go_on.set()
    served.service.threads.wait(60)
    (charge,) = served.get("olga", "datasets/hospital/history")["charges"]
    assert charge["request"] == "one" and charge["answered"]


def test_a_question_is_ended_and_goes_on_under_its_charge(served: Hospital, slow: SlowEngine) -> None:
    """Ended, it stays charged, does not stop the dataset, and the same id gives the answer without a new charge."""
    served.ask("ana", "one", prefer=ASYNC)
    assert slow.started.wait(60)
    assert served.send("ana", "POST", "requests/one/cancel", {}).status == 200
    ended = wait_for(served, "one", "failed")
    assert ended["problem"]["code"] == "cancelled" and ended["problem"]["charged"] and not ended["answered"]
    read_problem(served.send("ana", "POST", "requests/one/cancel", {}), "not-found", 404)
    slow.go_on.set()
    assert served.ask("ana", "one").status == 200
    assert served.get("ana", "requests/one")["state"] == "answered"
    charges = served.get("ana", "datasets/hospital/history")["charges"]
    assert [charge["answered"] for charge in charges] == [True]
    assert served.get("olga", "datasets/hospital/checklist")["waiting"] == []


def test_an_asynchronous_question_holds_a_place_of_its_token(served: Hospital, slow: SlowEngine) -> None:
    """Four at once, whoever waits for them."""
    for number in range(4):
        body = {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE age > {number}", "epsilon": "0.01"}
        assert served.ask("ana", f"r{number}", body, prefer=ASYNC).status == 202
    read_problem(served.ask("ana", "fifth", prefer=ASYNC), "too-many-requests", 429)
    slow.go_on.set()
    served.service.threads.wait(60)
    assert served.ask("ana", "fifth", prefer=f"{ASYNC}, wait=60").status == 200
    assert not served.service.limits._running


def test_refusals_come_at_once_or_are_kept(served: Hospital) -> None:
    """A body that cannot be read is refused at once; what the curator refuses is found under the id."""
    read_problem(served.ask("ana", "one", b"{", prefer=ASYNC), "bad-request", 400)
    read_problem(served.ask("ana", "", prefer=ASYNC), "bad-request", 400)
    wrong = {"sql": "SELECT wrd FROM visits", "epsilon": 1}
    assert served.ask("ana", "one", wrong, prefer=f"{ASYNC}, wait=60").status == 422
    served.ask("ana", "two", wrong, prefer=ASYNC)
    problem = wait_for(served, "two", "failed")["problem"]
    assert problem["code"] == "question" and problem["charged"] is False


def test_an_answer_from_the_record_is_found_under_its_id(served: Hospital) -> None:
    """It has no charge of its own, and is kept for a while."""
    rows = json.loads(served.ask("ana", "one").body)["rows"]
    served.ask("ana", "two", prefer=f"{ASYNC}, wait=60")
    found = served.get("ana", "requests/two")
    assert found["charged"] is False and found["answers"][0]["rows"] == rows


def test_an_answer_is_a_table_of_the_next_question(served: Hospital) -> None:
    """By its request id; that of somebody else is as if it were not there."""
    served.ask("ana", "one")
    body = {
        "sql": "SELECT v.ward, COUNT(*) AS m FROM visits v JOIN earlier e ON v.ward = e.ward GROUP BY v.ward",
        "epsilon": "0.1",
        "public": {"earlier": "one"},
    }
    preview = served.send("ana", "POST", "datasets/hospital/preview", body)
    assert preview.status == 200, preview.body
    read_problem(served.send("ben", "POST", "datasets/hospital/preview", body), "bad-request", 400)


@pytest.mark.parametrize(
    ("header", "patience"),
    [
        ("", None),
        ("wait=5", None),
        ("respond-async", 0),
        ("Respond-Async; wait=3", 3),
        ("respond-async, wait=9999", LONGEST_WAIT),
        ("respond-async, wait=x", 0),
        ("return=minimal, respond-async", 0),
    ],
)
def test_patience(header: str, patience: float | None) -> None:
    assert read_patience(ApiRequest(method="POST", path="/", headers={"prefer": header})) == patience
