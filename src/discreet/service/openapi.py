"""The description of the service by OpenAPI 3.1, made from the table of routes."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from discreet.service.api_routes import ROOT, ApiRoute
from discreet.service.bodies import BodyWords
from discreet.service.messages import JSON, RefusalCode
from discreet.service.problems import MEDIA

_PROBLEM = {"$ref": "#/components/schemas/Problem"}


def make_openapi(table: Iterable[ApiRoute]) -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        paths.setdefault(ROOT + route.path, {})[route.method.lower()] = _describe(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "discreet",
            "version": version("discreet"),
            "description": "Private questions under a budget. Spending is by POST with an Idempotency-Key alone.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _describe_problem()},
        },
    }


def _describe(route: ApiRoute) -> dict[str, Any]:
    made: dict[str, Any] = {
        "summary": route.about,
        "description": f"For: {', '.join(sorted(route.roles))}.",
        "operationId": route.handler.__name__,
        "parameters": _list_parameters(route),
        "responses": {
            "200": {
                "description": "Done.",
                "content": {media: {} for media in route.media or map(str, route.forms)},
            },
            **({"202": {"description": "It runs; look at the address in Location."}} if route.spends else {}),
            "default": {"description": "A problem document.", "content": {MEDIA: {"schema": _PROBLEM}}},
        },
    }
    if route.body is not None:
        made["requestBody"] = {"required": True, "content": {JSON: {"schema": _describe_body(route.body)}}}
    return made


def _list_parameters(route: ApiRoute) -> list[dict[str, Any]]:
    places = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}} for name in places
    ]
    for name, most in route.query.items():
        found.append({"name": name, "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": most}})
    if route.spends:
        schema = {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,200}$"}
        found.append({"name": "Idempotency-Key", "in": "header", "required": True, "schema": schema})
        found.append({"name": "Prefer", "in": "header", "schema": {"type": "string", "examples": ["respond-async"]}})
    return found


def _describe_body(words: BodyWords) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [name for name, word in words.items() if word.needed],
        # null says nothing, as if the word were not there.
        "properties": {
            name: dict(word.schema) if word.needed else {"anyOf": [dict(word.schema), {"type": "null"}]}
            for name, word in words.items()
        },
    }


def _describe_problem() -> dict[str, Any]:
    return {
        "type": "object",
        "description": f"RFC 9457. Codes of the service itself: {', '.join(RefusalCode)}; others are the curator's.",
        "required": ["type", "title", "status", "code", "detail", "charged"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "code": {"type": "string"},
            "detail": {"type": "string"},
            "fix": {"type": "string"},
            "place": {"type": "object"},
            "charged": {"type": ["boolean", "null"]},
        },
    }
