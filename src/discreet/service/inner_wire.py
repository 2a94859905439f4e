"""Carries requests to the service that runs in this very process: for agents that it serves, and for tests.

They pass the same doors as those from the network: the token, the role, the limits, one body under one key, the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote

from discreet.late_dataclass import dataclass
from discreet.remote.wire import ROOT, WireRequest, WireResponse
from discreet.service.messages import ApiRequest
from discreet.service.routes import Service


@dataclass(frozen=True, slots=True, repr=False)
class InnerWire:
    """Requests in the name of the bearer of a token, which is in no text that this makes."""

    service: Service
    authorization: str

    def send(self, request: WireRequest) -> WireResponse:
        """The response of the service."""
        path, _, query = request.path.partition("?")
        headers = {name.lower(): value for name, value in request.list_headers().items()}
        answered = self.service.answer(
            ApiRequest(
                method=request.method,
                path=ROOT + unquote(path),
                query=dict(parse_qsl(query)),
                headers={**headers, "authorization": self.authorization},
                body=request.payload or b"",
            )
        )
        given = {name.lower(): value for name, value in answered.headers.items()}
        return WireResponse(
            status=answered.status, body=answered.body, headers={**given, "content-type": answered.media}
        )

    def follow(self, path: str) -> Iterator[dict[str, Any]]:
        """The present word about a request: who waits asks again."""
        response = self.service.answer(
            ApiRequest(method="GET", path=ROOT + path, headers={"authorization": self.authorization})
        )
        if response.events is not None:
            word, _ = response.events.tell()
            name, _, data = word.strip().partition("\n")
            yield {**json.loads(data.removeprefix("data: ")), "event": name.removeprefix("event: ")}
