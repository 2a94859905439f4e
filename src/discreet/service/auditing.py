"""The routes of auditors: verify the ledger, export it, keep and compare heads. No answer is in any of them."""

from __future__ import annotations

import json

from discreet.ledger import administration
from discreet.service import bodies
from discreet.service.api_routes import AUDITING, ApiRoute
from discreet.service.callers import Caller
from discreet.service.descriptions import describe_entry
from discreet.service.documents import LAST_NUMBER, LONGEST_PAGE, make_document, make_not_found, read_count
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


def show_receipt(caller: Caller, _request: ApiRequest, argument: str) -> ApiResponse:
    """The receipts of one charge, by its number: what was asked and drawn of whom, and its place in the log."""
    curator = caller.opened.curator
    found = [entry for entry in curator.history() if str(entry.number) == argument]
    if not found:
        raise make_not_found()
    answers = curator.find_answers(found[0].charge.request, analyst=found[0].charge.analyst) or ()
    receipts = [dict(answer.receipt) for answer in answers]
    return make_document({**describe_entry(curator, found[0]), "receipts": receipts})


def show_access(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Lines of the log of access in their order, a page at a time, and its head."""
    after = read_count(request, "after", -1, most=LAST_NUMBER)
    limit = read_count(request, "limit", 100, most=LONGEST_PAGE)
    access = caller.dataset.access
    found, head = access.read(after, limit + 1), access.find_head()
    kept = None if head is None else json.loads(head.to_json())
    return make_document({"lines": found[:limit], "more": len(found) > limit, "head": kept})


def verify_access(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Check every line of the log of access, and that it still holds the heads that were kept."""
    words = bodies.read_words(request, bodies.HEADS)
    return make_document({"whole": True, "lines": caller.dataset.access.verify(words.get("heads", ()))})


_BELOW = "datasets/{dataset}/ledger"
ROUTES = (
    ApiRoute(method="GET", path=f"{_BELOW}/head", about="How far the log is.", handler=show_head, roles=AUDITING),
    ApiRoute(
        method="POST", path=f"{_BELOW}/verify", about="Check the whole log, and heads kept earlier.", handler=verify,
        roles=AUDITING, body=bodies.HEADS,
    ),
    ApiRoute(
        method="GET", path=f"{_BELOW}/export/{{form}}", about="The log as jsonl, csv or registry.", handler=export,
        roles=AUDITING, media=("application/json", "application/x-ndjson", "text/csv"),
    ),
    ApiRoute(
        method="GET", path="datasets/{dataset}/receipts/{number}", about="The receipts of one charge; no answer.",
        handler=show_receipt, roles=AUDITING,
    ),
    ApiRoute(
        method="GET", path="datasets/{dataset}/access", about="The log of access: refusals, sign-ins, what owners did.",
        handler=show_access, roles=AUDITING, query={"after": LAST_NUMBER, "limit": LONGEST_PAGE},
    ),
    ApiRoute(
        method="POST", path="datasets/{dataset}/access/verify", about="Check the log of access, and heads of it.",
        handler=verify_access, roles=AUDITING, body=bodies.HEADS,
    ),
)  # fmt: skip
