"""The demo's hospital as a service, and requests to it as values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.service.messages import ApiRequest, ApiResponse
from discreet.service.request_limits import RequestLimits
from discreet.service.roles import Role
from discreet.service.routes import Service
from discreet.service.served_dataset import ServedDataset

WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@dataclass(frozen=True)
class Hospital:
    """A service of one dataset with three tokens."""

    service: Service
    dataset: ServedDataset
    secrets: dict[str, str]

    def send(self, who: str, method: str, path: str, body: Any = None, **headers: str) -> ApiResponse:
        """A request in somebody's name; names of headers are written with underscores."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if who:
            sent.setdefault("authorization", f"Bearer {self.secrets[who]}")
        if body is not None:
            sent.setdefault("content-type", "application/json")
        payload = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        pairs = dict(pair.split("=") for pair in query.split("&") if pair)
        return self.service.answer(
            ApiRequest(method=method, path=f"/api/v1/{path}", query=pairs, headers=sent, body=payload)
        )

    def get(self, who: str, path: str) -> Any:
        """The document at a path, which must be there."""
        response = self.send(who, "GET", path)
        assert response.status == 200, response.body
        return json.loads(response.body)

    def ask(self, who: str, key: str, body: Any = None, **headers: str) -> ApiResponse:
        """Ask, by default for the wards at ε = 0.1."""
        asked = {"sql": WARDS, "epsilon": "0.1"} if body is None else body
        return self.send(who, "POST", "datasets/hospital/ask", asked, idempotency_key=key, **headers)


def serve_hospital(codebook: Path, **limits: Any) -> Hospital:
    """The service of a codebook, for ana and ben (analysts), olga (owner) and audit (auditor)."""
    dataset = ServedDataset(codebook)
    roles = {"ana": Role.ANALYST, "ben": Role.ANALYST, "olga": Role.OWNER, "audit": Role.AUDITOR}
    secrets = {name: dataset.tokens.create(name=name, role=role)[1] for name, role in roles.items()}
    return Hospital(Service(datasets={"hospital": dataset}, limits=RequestLimits(**limits)), dataset, secrets)


def read_problem(response: ApiResponse, code: str, status: int, charged: bool | None = False) -> dict[str, Any]:
    """A problem document with what every one must have."""
    assert (response.status, response.media) == (status, "application/problem+json"), response.body
    document: dict[str, Any] = json.loads(response.body)
    assert (document["code"], document["status"], document["charged"]) == (code, status, charged)
    assert document["type"] == f"urn:discreet:problem:{code}" and document["title"] and document["detail"]
    return document
