"""Requests that run: found by their analyst, ended by a word, and forgotten after a while."""

from __future__ import annotations

import pytest

from discreet.errors import RequestConflict
from discreet.service import running_requests
from discreet.service.messages import ApiResponse
from discreet.service.running_requests import KEPT_SECONDS, QuestionCancelled, RunningRequests

DONE = ApiResponse(status=200, body=b"{}")


def test_a_request_runs_once_and_is_its_analysts_own() -> None:
    """The same body joins it; another body is refused; the same id of somebody else is another request."""
    requests = RunningRequests()
    first, new = requests.begin("ana", "one", "hash")
    assert new and requests.begin("ana", "one", "hash") == (first, False)
    with pytest.raises(RequestConflict):
        requests.begin("ana", "one", "other")
    assert requests.begin("ben", "one", "other")[0] is not first
    assert requests.find("eve", "one") is None


def test_progress_only_grows_and_a_cancelled_run_ends() -> None:
    """The word is heard at the next report of the engine."""
    request, _ = RunningRequests().begin("ana", "one", "hash")
    for share in (0.25, 0.1, 7.0):
        request.watch(share)
    assert request.describe() == {"state": "running", "progress": 1.0}
    request.cancel()
    assert request.describe()["state"] == "cancelling"
    with pytest.raises(QuestionCancelled):
        request.watch(0.5)
    assert not issubclass(QuestionCancelled, Exception)


def test_what_ended_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, and when there are too many; what somebody waited for is not kept at all."""
    now = [0.0]
    requests = RunningRequests(clock=lambda: now[0])
    for key in ("waited", "alone"):
        requests.begin("ana", key, "hash")
        requests.end("ana", key, DONE, keep=key == "alone")
    assert requests.find("ana", "waited") is None and requests.find("ana", "alone") is not None
    now[0] = KEPT_SECONDS
    requests.begin("ana", "next", "hash")
    requests.end("ana", "next", DONE, keep=True)
    assert requests.find("ana", "alone") is None and requests.find("ana", "next") is not None
    monkeypatch.setattr(running_requests, "MOST_KEPT", 1)
    requests.begin("ana", "last", "hash")
    requests.end("ana", "last", DONE, keep=True)
    assert requests.find("ana", "next") is None
