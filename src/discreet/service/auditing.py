"""The routes of auditors: verify the ledger, export it, keep and compare heads. No answer is in any of them."""

from __future__ import annotations

import json

from discreet.ledger import administration
from discreet.service import bodies
from discreet.service.api_routes import AUDITING, ApiRoute
from discreet.service.callers import Caller
from discreet.service.documents import make_document
from discreet.service.messages import ApiRequest, ApiResponse
from discreet.service.owning import read_ledger


def show_head(caller: Caller, _request: ApiRequest, _argument: str) -> ApiResponse:
    """How far the log is; to be kept elsewhere."""
    return make_document(json.loads(read_ledger(caller).head.to_json()))


def verify(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Check every entry, and that the log still holds the heads that were kept."""
    words = bodies.read_words(request, bodies.HEADS)
    report = administration.verify(read_ledger(caller), words.get("heads", ()))
    found = {name: getattr(report, name) for name in ("entries", "charges", "unanswered", "first", "last")}
    return make_document({"whole": True, **found, "head": json.loads(report.head.to_json())})


def export(caller: Caller, _request: ApiRequest, argument: str) -> ApiResponse:
    """The log itself, as a table, or as an entry for a register."""
    text = administration.export(read_ledger(caller), argument)
    media = {"jsonl": "application/x-ndjson", "csv": "text/csv"}.get(argument, "application/json")
    return ApiResponse(status=200, body=text.encode(), media=media)


_BELOW = "datasets/{dataset}/ledger"
ROUTES = (
    ApiRoute(method="GET", path=f"{_BELOW}/head", about="How far the log is.", handler=show_head, roles=AUDITING),
    ApiRoute(
        method="POST", path=f"{_BELOW}/verify", about="Check the whole log, and heads kept earlier.", handler=verify,
        roles=AUDITING, body=bodies.HEADS,
    ),
    ApiRoute(
        method="GET", path=f"{_BELOW}/export/{{form}}", about="The log as jsonl, csv or registry.", handler=export,
        roles=AUDITING,
    ),
)  # fmt: skip
