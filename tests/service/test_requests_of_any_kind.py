"""Requests of any kind, made from the description of the service: no 5xx and no foreign text."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.service.api_routes import ROOT, ApiRoute
from discreet.service.messages import ApiRequest
from discreet.service.openapi import make_openapi
from discreet.service.routes import TABLE
from tests.service.served import Hospital, serve_hospital

DOCUMENT = make_openapi(TABLE)
# A mark that no message may repeat outside the place of a question, and that no library's own words contain.
PROBE = "zzprobezz"
EXAMPLES = int(os.environ.get("DISCREET_EXAMPLES", "15"))


@pytest.fixture(scope="module")
def walked(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hospital]:
    """One service for all requests, with limits that do not get in the way."""
    codebook = Path(shutil.copytree(files, tmp_path_factory.mktemp("any") / "hospital")) / "hospital.toml"
    made = serve_hospital(codebook, per_minute=10**9)
    yield made
    made.dataset.close()


def make_values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a JSON Schema of ours allows."""
    if "anyOf" in schema:
        return st.one_of([make_values(each) for each in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema.get("type", "object")
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "string":
            texts = st.one_of(st.text(max_size=20), st.just(PROBE), st.sampled_from(QUESTIONS))
            return texts.filter(lambda text: len(text) >= schema.get("minLength", 0))
        case "integer":
            return st.integers(schema.get("minimum", -5), schema.get("maximum", 10**9))
        case "number":
            return st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-3, 3))
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            items = make_values(schema.get("items", {}))
            return st.lists(items, min_size=schema.get("minItems", 0), max_size=3)
        case _:
            return make_object(schema)


def make_object(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    words = schema.get("properties", {})
    needed = {name: make_values(words[name]) for name in schema.get("required", ())}
    rest = {name: make_values(each) for name, each in words.items() if name not in needed}
    if words:
        return st.fixed_dictionaries(needed, optional=rest)
    more = schema.get("additionalProperties")
    cells = make_values(more) if isinstance(more, dict) else st.one_of(st.none(), st.integers(), st.text(max_size=9))
    return st.dictionaries(st.text(min_size=1, max_size=9), cells, max_size=2)


QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT ward, AVG(age) AS a FROM visits GROUP BY ward",
    f"SELECT {PROBE} FROM visits",
    "SELECT * FROM visits; DROP TABLE visits",
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=9), inner, max_size=3)),
    max_leaves=6,
)


def make_bodies(route: ApiRoute) -> st.SearchStrategy[bytes]:
    """Bodies that the description allows, others, and bytes that are no JSON."""
    operation = DOCUMENT["paths"][ROOT + route.path][route.method.lower()]
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    told = make_object(schema).map(json.dumps)
    return st.one_of(told, told, ANYTHING.map(json.dumps)).map(str.encode) | st.binary(max_size=20)


@pytest.mark.parametrize("route", TABLE, ids=lambda route: f"{route.method} {route.path}")
def test_no_request_breaks_the_service(walked: Hospital, route: ApiRoute) -> None:
    """Whatever is sent, the answer is ours: a document, or a problem document without foreign text."""

    @settings(
        max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
    )
    @given(
        body=make_bodies(route),
        argument=st.one_of(st.text(min_size=1, max_size=9), st.sampled_from([PROBE, "1", "csv"])),
        key=st.one_of(st.text(max_size=9), st.from_regex(r"[A-Za-z0-9._:-]{1,20}", fullmatch=True)),
        accept=st.sampled_from(["*/*", "application/json", "text/csv", PROBE, ""]),
        prefer=st.sampled_from(["", "respond-async, wait=60"]),
        query=st.dictionaries(st.sampled_from(["after", "limit", "x"]), st.text(max_size=9), max_size=2),
        who=st.sampled_from(["ana", "olga", "audit"]),
    )
    def send(**sent: Any) -> None:
        named = route.path.replace("{dataset}", "hospital")
        path = "/".join(sent["argument"] if part.startswith("{") else part for part in named.split("/"))
        headers = {
            "authorization": f"Bearer {walked.secrets[sent['who']]}", "content-type": "application/json",
            "idempotency-key": sent["key"], "accept": sent["accept"], "prefer": sent["prefer"],
        }  # fmt: skip
        made = walked.service.answer(
            ApiRequest(
                method=route.method,
                path=ROOT + path,
                query=sent["query"],
                headers=headers,
                body=sent["body"] if route.method == "POST" else b"",
            )
        )
        assert made.status < 500, made.body
        if made.status >= 400:
            problem = json.loads(made.body)
            assert made.media == "application/problem+json" and problem["detail"] and problem["charged"] is not None
            assert not any(word in made.body.decode() for word in ("Traceback", "duckdb", "pyarrow", "site-packages"))

    if route.handler.__name__ in ("revoke_token",):
        walked.dataset.tokens.create(name=PROBE, role=walked.dataset.tokens.list_all()[0].role)
    send()
