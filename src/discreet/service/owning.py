"""The routes of owners: tokens, declarations in the ledger, and how the budget went down."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from discreet.codebook.checklist import make_checklist
from discreet.errors import LedgerError
from discreet.ledger import administration
from discreet.ledger import burndown as curve
from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.chain import Head
from discreet.ledger.state import EVERYONE
from discreet.service import bodies
from discreet.service.api_routes import OWNING, ApiRoute
from discreet.service.callers import Caller
from discreet.service.descriptions import describe_token
from discreet.service.documents import make_document
from discreet.service.messages import ApiRequest, ApiResponse
from discreet.service.tokens import Token


def list_tokens(caller: Caller, _request: ApiRequest, _argument: str) -> ApiResponse:
    """Every token that was made, without its secret."""
    return make_document({"tokens": [_describe(token) for token in caller.dataset.tokens.list_all()]})


def create_token(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """A new token, with its secret, which is shown this once."""
    words = bodies.read_words(request, bodies.TOKEN)
    if "days" in words:
        words["life"] = words.pop("days")
    made, secret = caller.dataset.tokens.create(**words)
    return make_document({**_describe(made), "secret": secret})


def revoke_token(caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:
    """From the next request on the token opens nothing."""
    bodies.read_words(request, {})
    return make_document({"revoked": [_describe(token) for token in caller.dataset.tokens.revoke(argument)]})


def show_burndown(caller: Caller, _request: ApiRequest, _argument: str) -> ApiResponse:
    """What was left over time, and what each analyst spent."""
    ledger = read_ledger(caller)
    points = [{**asdict(point), "time": point.time.isoformat()} for point in curve.read_curve(ledger)]
    return make_document({"curve": points, "analysts": [asdict(share) for share in administration.find_shares(ledger)]})


def resume(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Go on after a failure that the owner has looked at."""
    words = bodies.read_words(request, bodies.DECLARATION)
    return _describe_head(read_ledger(caller).allow(by=caller.token.name, reason=words["reason"]))


def renew(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Start the budget anew, because the data is about other people, which the owner declares."""
    words = bodies.read_words(request, bodies.RENEWAL)
    if not words["other_people"]:
        raise LedgerError(
            "A new version about the same people keeps the same budget. Say other_people only if nobody of the earlier "
            "data is in the new data. Nothing was changed."
        )
    return _describe_head(read_ledger(caller).renew(by=caller.token.name, reason=words["reason"]))


def amend(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Put the budget, caps and names of the changed codebook on record, and go on under them."""
    words = bodies.read_words(request, bodies.DECLARATION)
    return _describe_head(caller.dataset.amend(by=caller.token.name, reason=words["reason"]))


def reload(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Read the changed codebook. Questions that run finish under the old one."""
    bodies.read_words(request, {})
    return make_document({"dataset": caller.dataset.reload().curator.name, "reloaded": True})


def check_codebook(caller: Caller, _request: ApiRequest, _argument: str) -> ApiResponse:
    """The checklist of the codebook in force, the caps on record, and who waits for a look after a failure."""
    lines = [asdict(line) for line in make_checklist(caller.opened.book)]
    state = read_ledger(caller).state
    waiting = sorted("everybody" if who == EVERYONE else who for who in state.stopped)
    policy = state.rules.policy
    named = {"caps": [str(cap) for cap in policy.caps], "analysts": policy.analysts, "projects": policy.projects}
    graded = [{**line, "grade": str(line["grade"])} for line in lines]
    return make_document({"lines": graded, "waiting": waiting, **named})


def read_ledger(caller: Caller) -> BaseLedger:
    """The ledger with its record; every ledger that is served keeps one."""
    ledger = caller.opened.curator.ledger
    if not isinstance(ledger, BaseLedger):
        raise LedgerError("This ledger keeps no record that could be read. Nothing was changed.")
    return ledger


def _describe(token: Token) -> dict[str, Any]:
    return describe_token(token, datetime.now(UTC))


def _describe_head(head: Head) -> ApiResponse:
    return make_document({"entry": head.number, "hash": head.hash})


_BELOW = "datasets/{dataset}"
ROUTES = (
    ApiRoute(
        method="GET", path=f"{_BELOW}/tokens", about="All tokens, without their secrets.", handler=list_tokens,
        roles=OWNING,
    ),
    ApiRoute(
        method="POST", path=f"{_BELOW}/tokens", about="A new token; its secret is shown this once.",
        handler=create_token, roles=OWNING, body=bodies.TOKEN,
    ),
    ApiRoute(
        method="POST", path=f"{_BELOW}/tokens/{{id}}/revoke", about="A token opens nothing any more.",
        handler=revoke_token, roles=OWNING, body={},
    ),
    ApiRoute(
        method="GET", path=f"{_BELOW}/burndown", about="What was left over time, and who spent it.",
        handler=show_burndown, roles=OWNING,
    ),
    ApiRoute(
        method="POST", path=f"{_BELOW}/resume", about="Go on after a failure.", handler=resume, roles=OWNING,
        body=bodies.DECLARATION,
    ),
    ApiRoute(
        method="POST", path=f"{_BELOW}/renew", about="Start the budget anew for other people.", handler=renew,
        roles=OWNING, body=bodies.RENEWAL,
    ),
    ApiRoute(
        method="POST", path=f"{_BELOW}/amend", about="Put the terms of the changed codebook on record.", handler=amend,
        roles=OWNING, body=bodies.DECLARATION,
    ),
    ApiRoute(
        method="POST", path=f"{_BELOW}/reload", about="Read the changed codebook.", handler=reload, roles=OWNING,
        body={},
    ),
    ApiRoute(
        method="GET", path=f"{_BELOW}/checklist", about="What the choices of the codebook mean, and what waits.",
        handler=check_codebook, roles=OWNING,
    ),
)  # fmt: skip
