"""Connections that drop and servers that put off: tried again under the same key, some times, and charged once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from discreet import errors
from discreet.remote.patience import Patience
from discreet.remote.remote_curator import RemoteCurator
from discreet.remote.wire import PROBLEM, Wire, WireRequest, WireResponse
from tests.remote.remote_hospital import FaultyWire, count_charges, reach
from tests.service.served import WARDS, Hospital


def refuse(status: int, code: str | None, **headers: str) -> WireResponse:
    """A refusal of the service, or without a code of a proxy."""
    if code is None:
        return WireResponse(status=status, body=b"<html>", headers={"content-type": "text/html", **headers})
    body = json.dumps({"code": code, "detail": "Wait.", "charged": False, "status": status}).encode()
    return WireResponse(status=status, body=body, headers={"content-type": PROBLEM, **headers})


def make_faulty(served: Hospital, faults: list[Any]) -> tuple[RemoteCurator, FaultyWire]:
    made: list[FaultyWire] = []

    def wrap(wire: Wire) -> Wire:
        made.append(FaultyWire(wire, faults))
        return made[0]

    return reach(served, wire=wrap), made[0]


def test_a_question_survives_what_happens_on_the_way(served: Hospital) -> None:
    """The answer got lost, the request got lost, a proxy failed, too many at once: one charge, one answer."""
    faults = ["after", "before", refuse(502, None), refuse(429, "too-many-requests", **{"retry-after": "1"})]
    remote, wire = make_faulty(served, faults)
    with count_charges(served, 1):
        answer = remote.ask(WARDS, share=0.05)
    assert len(wire.sent) == 5 and len({request.key for request in wire.sent}) == 1
    (kept,) = served.dataset.curator.find_answers(wire.sent[0].key or "", analyst="ana") or ()
    assert answer.rows == kept.rows


@pytest.mark.parametrize("fault", ["after", "before", refuse(504, None)])
def test_tries_are_bounded(served: Hospital, fault: Any) -> None:
    """At the end the error names the key; the same key later goes on without a new charge."""
    remote, wire = make_faulty(served, [fault] * 5)
    with pytest.raises(errors.ServiceUnreachable) as failed:
        remote.ask(WARDS, share=0.05, request="mine")
    assert len(wire.sent) == 5 and "request='mine'" in str(failed.value) and failed.value.charged is None
    charged = 0 if fault == "after" else 1
    with count_charges(served, charged):
        assert len(remote.ask(WARDS, share=0.05, request="mine")) > 1


@pytest.mark.parametrize("code", ["forbidden", "budget-exceeded", "engine-failure", "ledger-stopped", "bad-request"])
def test_what_is_final_is_not_tried_again(served: Hospital, code: str) -> None:
    """Negative control: a refusal that says no is told at once."""
    remote, wire = make_faulty(served, [refuse(503, code)])
    with pytest.raises(errors.DiscreetError, match="Wait"):
        remote.ask(WARDS, share=0.05)
    assert len(wire.sent) == 1


def test_waits_grow_and_heed_the_server() -> None:
    """Twice as long each time, within a limit; what the server says comes first."""
    waits: list[float] = []

    class Closed:
        def send(self, _: WireRequest) -> WireResponse:
            return refuse(503, None, **({"retry-after": "3"} if len(waits) == 2 else {}))

        def follow(self, _: str) -> Any:
            raise AssertionError

    patience = Patience(tries=6, first_wait=1, longest_wait=4, sleep=waits.append)
    with pytest.raises(errors.ServiceUnreachable, match="Nothing was charged"):
        patience.send(Closed(), WireRequest(method="GET", path="datasets"))
    assert waits == [1, 2, 3, 4, 4]
