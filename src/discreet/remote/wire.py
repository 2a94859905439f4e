"""Requests and responses of the remote client as values, and what carries them to a server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Protocol

from discreet.late_dataclass import dataclass

ROOT = "/api/v1/"
RECORD = "application/vnd.discreet.answer+json"
PROBLEM = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """One request below the root of the API. ``key`` names what may be charged, so that a retry is charged once."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def payload(self) -> bytes | None:
        """The body as bytes."""
        return None if self.body is None else json.dumps(self.body, allow_nan=False).encode()

    def list_headers(self) -> dict[str, str]:
        """All headers but the one that says who asks."""
        made = {"Accept": "application/json", **self.headers}
        made |= {} if self.body is None else {"Content-Type": "application/json"}
        return made | ({} if self.key is None else {"Idempotency-Key": self.key})


@dataclass(frozen=True, slots=True, kw_only=True)
class WireResponse:
    """What came back. Names of headers are in small letters."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def media(self) -> str:
        """The media type of the body."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def read(self) -> dict[str, Any]:
        """The body as a document; empty where it is none."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


class Wire(Protocol):
    """Carries requests in somebody's name. Members: ``HttpWire``, and a server's own for agents that it serves.

    What does not arrive is an OSError or an HTTPException.
    """

    def send(self, request: WireRequest) -> WireResponse:
        """The response to a request."""
        ...

    def follow(self, path: str) -> Iterator[dict[str, Any]]:
        """The words of a stream of server-sent events, each with its name as ``event``."""
        ...
