"""Bytes from the wire: a body that does not come is not waited for."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from discreet.service import app
from discreet.service.app import make_app
from discreet.service.pages.site import Site
from discreet.service.sessions import SessionStore
from tests.service.served import Hospital


@pytest.mark.parametrize("begun", [True, False])
def test_a_body_that_does_not_come_is_refused(served: Hospital, monkeypatch: pytest.MonkeyPatch, begun: bool) -> None:
    """Whether it never begins or stops in the middle; nobody else waits for it, because no thread is held."""
    monkeypatch.setattr(app, "_BODY_SECONDS", 0.05)
    site = Site(service=served.service, sessions=SessionStore(served.service.datasets))
    parts = [{"type": "http.request", "body": b"{", "more_body": True}] if begun else []
    sent: list[Any] = []

    async def receive() -> Any:
        if not parts:
            await anyio.sleep_forever()
        return parts.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": "/api/v1/datasets/hospital/ask", "raw_path": b"", "query_string": b"",
        "headers": [(b"content-length", b"100")], "http_version": "1.1", "scheme": "http", "server": ("x", 1),
        "client": ("x", 1), "root_path": "",
    }  # fmt: skip
    anyio.run(make_app(served.service, site), scope, receive, send)
    assert sent[0]["status"] == 400
    problem = json.loads(sent[1]["body"])
    assert problem["code"] == "bad-request" and problem["charged"] is False and "within a minute" in problem["detail"]
