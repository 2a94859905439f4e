"""The description of the service is that of its routes, and a valid one."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema import Draft202012Validator

from discreet.service import bodies
from discreet.service.api_routes import ROOT, ApiRoute
from discreet.service.openapi import make_openapi
from discreet.service.routes import TABLE
from tests.service.served import Hospital

DOCUMENT = make_openapi(TABLE)


def test_every_route_is_described() -> None:
    """Method, path, roles, and an id that no other route has."""
    described = {(method.upper(), path) for path, found in DOCUMENT["paths"].items() for method in found}
    assert described == {(route.method, ROOT + route.path) for route in TABLE}
    names = [route.handler.__name__ for route in TABLE]
    assert len(names) == len(set(names)) and json.dumps(DOCUMENT)


def test_parameters_are_those_of_the_path() -> None:
    """Each part in braces has its parameter; only spending needs a key, and spending is never by GET."""
    for path, found in DOCUMENT["paths"].items():
        for method, operation in found.items():
            places = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert places == set(re.findall(r"{(\w+)}", path))
            keys = [each for each in operation["parameters"] if each["name"] == "Idempotency-Key"]
            assert bool(keys) == path.endswith(("/ask", "/batch", "/bounds", "/contributions")) and not (
                keys and method == "get"
            )


@pytest.mark.parametrize("route", [route for route in TABLE if route.body is not None], ids=lambda route: route.path)
def test_schemas_of_bodies_are_schemas(route: ApiRoute) -> None:
    """Words that the schema knows are those that are read."""
    schema = DOCUMENT["paths"][ROOT + route.path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == set(route.body or {})
    # What is not needed may be null, which says nothing; what is needed may not.
    for name, word in schema["properties"].items():
        assert Draft202012Validator(word).is_valid(None) == (name not in schema["required"])


def test_null_says_nothing(served: Hospital) -> None:
    """As the schema says; a word that is needed must be said."""
    body = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.1}
    assert served.ask("ana", "one", {**body, "public": None, "level": None}).status == 200
    assert served.ask("ana", "two", {**body, "sql": None}).status == 400
    assert served.ask("ana", "two", {**body, "level": "0" * 101 + ".9"}).status == 400


@pytest.mark.parametrize(
    "body",
    [
        {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.1},
        {"sql": "SELECT COUNT(*) AS n FROM visits", "share": "1/10", "level": 0.9},
        {"sql": "SELECT COUNT(*) AS n FROM visits", "error": {"n": 20}},
        {"sql": "SELECT MEDIAN(age) AS m FROM visits", "epsilon": 0.1, "ends": True},
        {"sql": "SELECT COUNT(*) AS n FROM visits WHERE age > @a", "epsilon": 0.1, "parameters": {"a": 40.5}},
    ],
)
def test_bodies_that_are_answered_are_valid(served: Hospital, body: object) -> None:
    """What the curator takes, the schema allows."""
    words = {name: dict(word.schema) for name, word in bodies.QUESTION.items()}
    Draft202012Validator({"type": "object", "additionalProperties": False, "properties": words}).validate(body)
    assert served.ask("ana", "one", body).status == 200
