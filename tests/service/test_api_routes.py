"""Routes are found by path and method; a dataset that the token does not open is as if it were not there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.service.api_routes import ROOT, ApiRoute, find_routes
from discreet.service.roles import Role
from discreet.service.routes import TABLE
from tests.service.served import WARDS, Hospital, serve_hospital


def test_arguments_are_read_from_the_path() -> None:
    """The part in braces, and nothing else."""
    found = find_routes(TABLE, f"{ROOT}datasets/hospital/tokens/a.b/revoke", "hospital")
    assert found["POST"][1] == "a.b"
    both = find_routes(TABLE, f"{ROOT}datasets/hospital/tokens", "hospital")
    assert both.keys() == {"GET", "POST"}


@pytest.mark.parametrize(
    "path",
    ["", "/", ROOT, f"{ROOT}datasets/other", f"{ROOT}datasets/hospital/", f"{ROOT}datasets/hospital/ask/",
     "/api/v2/datasets", f"{ROOT}datasets/hospital/ask/../ask", f"{ROOT}requests"],
)  # fmt: skip
def test_other_paths_are_nothing(path: str) -> None:
    """Neither another dataset nor a longer path nor another version."""
    assert find_routes(TABLE, path, "hospital") == {}


# A body that each route can read, and what stands for the argument in its path.
BODIES: dict[str, object] = {
    "preview": {"sql": WARDS, "epsilon": "0.01"},
    "ask": {"sql": WARDS, "epsilon": "0.01"},
    "batch": {"questions": [WARDS], "epsilon": "0.01"},
    "tokens": {"name": "eva", "role": "analyst"},
    "resume": {"reason": "looked"},
    "renew": {"reason": "others", "other_people": True},
    "amend": {"reason": "more"},
}


@pytest.fixture(scope="module")
def walked(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hospital]:
    """One service for the walk over all routes and roles."""
    codebook = Path(shutil.copytree(files, tmp_path_factory.mktemp("walk") / "hospital")) / "hospital.toml"
    made = serve_hospital(codebook)
    yield made
    made.dataset.close()


@pytest.mark.parametrize("route", TABLE, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_keeps_to_its_roles(walked: Hospital, route: ApiRoute) -> None:
    """Who may, gets in; who may not, is refused alike; without a token, with a revoked one, or for another dataset,
    nobody gets in; and no route spends by GET."""
    body = BODIES.get(route.path.rpartition("/")[2], {}) if route.method == "POST" else None
    path = route.path.replace("{dataset}", "hospital").replace("{id}", "x").replace("{form}", "csv")
    people = {Role.ANALYST: "ana", Role.AUDITOR: "audit", Role.OWNER: "olga"}
    walked.service.limits._recent.clear()
    for role, who in people.items():
        made = walked.send(who, route.method, path, body, idempotency_key=f"walk-{route.handler.__name__}-{who}")
        assert (made.status == 403 and b'"forbidden"' in made.body) == (role not in route.roles), (role, made.body)
        assert made.status < 500
        if "{dataset}" in route.path:
            foreign = walked.send(who, route.method, path.replace("hospital", "other"), body, idempotency_key="x")
            assert foreign.status == 404
    for secret in ("", "Bearer discreet_x", f"Basic {walked.secrets['olga']}"):
        assert walked.send("", route.method, path, body, authorization=secret).status == 401
    assert not (route.spends and route.method == "GET")
    assert route.method in ("GET", "POST")
