"""The service as a function: a request in, a response out. Who asks is read here; everything else is the curator's."""

from __future__ import annotations

import json
import logging
from contextlib import ExitStack
from dataclasses import field, replace
from functools import partial

from discreet.errors import DiscreetError, DrawLost, EngineFailure
from discreet.late_dataclass import dataclass
from discreet.service import asking, auditing, owning, problems, searching
from discreet.service.access_log import AccessEvent, AccessKind
from discreet.service.api_routes import OWNING, ApiRoute, find_routes
from discreet.service.callers import Caller, make_caller
from discreet.service.documents import make_not_found
from discreet.service.messages import ApiRequest, ApiResponse, RefusalCode, RequestRefused
from discreet.service.request_limits import RequestLimits
from discreet.service.request_metrics import RequestMetrics
from discreet.service.running_requests import QuestionCancelled
from discreet.service.served_dataset import ServedDataset
from discreet.service.spending import SpendingThreads
from discreet.service.tokens import PREFIX

LOG = logging.getLogger("discreet.service")
TABLE = (*asking.ROUTES, *searching.ROUTES, *owning.ROUTES, *auditing.ROUTES)
SIGN_IN = "sign-in"
_FIRST_REFUSAL = 400
_SPENDING = tuple(f"/{route.path.rpartition('/')[2]}" for route in TABLE if route.spends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Datasets by name, and the limits of their tokens."""

    datasets: dict[str, ServedDataset]
    limits: RequestLimits = field(default_factory=RequestLimits)
    metrics: RequestMetrics = field(default_factory=RequestMetrics)
    threads: SpendingThreads = field(default_factory=SpendingThreads)

    def answer(self, request: ApiRequest) -> ApiResponse:
        """The response to a request; every refusal and every error is a problem document."""
        try:
            caller = self._find_caller(request)
        except RequestRefused as refused:
            return self._note(problems.refuse_request(refused), None)
        except Exception as error:
            return self._note(_answer_unforeseen(error, charged=False), None)
        return self.answer_caller(caller, request)

    def answer_caller(self, caller: Caller, request: ApiRequest) -> ApiResponse:
        """The response to a request of somebody who is known already: a page asks in the name of its session."""
        try:
            response = self._answer_within_limits(caller, request)
        except RequestRefused as refused:
            response = problems.refuse_request(refused)
        return self._note(replace(response, token=caller.token.id), caller)

    def _answer_within_limits(self, caller: Caller, request: ApiRequest) -> ApiResponse:
        """Hold a place of the token, and the codebook, until the request is done; also where nobody waits for it."""
        with ExitStack() as held:
            held.enter_context(self.limits.enter(caller.token.id))
            current = replace(caller, opened=held.enter_context(caller.dataset.hold()))
            try:
                route, argument = _find_route(current, request)
                _check_rights(current, route, request)
            except RequestRefused as refused:
                return problems.refuse_request(refused)
            if not route.spends:
                response = _call(route, current, request, argument)
                # A stream has places of its own: it lasts, and does no work.
                hold = partial(self.limits.enter, f"{caller.token.id} events")
                events = None if response.events is None else replace(response.events, hold=hold)
                return replace(response, events=events)
            work = partial(_call, route, request=request, argument=argument)
            return self.threads.spend(current, request, route, work, held)

    def _note(self, response: ApiResponse, caller: Caller | None) -> ApiResponse:
        """Count a response, and put refusals and what owners did into the log of access."""
        self.metrics.count(response.route, response.status)
        self.note_access(response, caller)
        return response

    def note_access(self, response: ApiResponse, caller: Caller | None) -> None:
        """A line in the log of access, where the response is a refusal, a sign-in or an owner's act."""
        refused, signed_in = response.status >= _FIRST_REFUSAL, response.route == SIGN_IN
        if not refused and not signed_in and (response.route, response.status) not in _ACTS:
            return
        if (response.route, response.status) == _MISTAKE:
            return
        event = AccessEvent(
            kind=AccessKind.REFUSED if refused else AccessKind.SIGNED_IN if signed_in else AccessKind.DONE,
            route=response.route,
            status=response.status,
            code=_read_code(response) if refused else "",
            token="" if caller is None else caller.token.id,
            name="" if caller is None else caller.token.name,
        )
        for dataset in self.datasets.values() if caller is None else [caller.dataset]:
            dataset.access.record(event)

    def _find_caller(self, request: ApiRequest) -> Caller:
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and secret.startswith(PREFIX):
            for dataset in self.datasets.values():
                token = dataset.tokens.find(secret)
                if token is not None:
                    return make_caller(token, dataset)
        raise RequestRefused(
            RefusalCode.UNAUTHORIZED,
            "There is no token, or it is not valid.",
            "Send Authorization: Bearer and the token that the owner gave you.",
            headers={"WWW-Authenticate": 'Bearer realm="discreet"'},
        )


# What owners alone do and what changes something.
_ACTS = {(route.path, 200) for route in TABLE if route.roles == OWNING and route.method == "POST"}


# What is not yet right while somebody types: the pages send a preview with every pause, and nothing is refused to them.
_MISTAKE = ("datasets/{dataset}/preview", 422)


def _read_code(response: ApiResponse) -> str:
    return str(json.loads(response.body)["code"]) if response.media == problems.MEDIA else ""


def _check_rights(caller: Caller, route: ApiRoute, request: ApiRequest) -> None:
    if request.method == "POST":
        _check_origin(request)
    if caller.token.role not in route.roles:
        raise RequestRefused(
            RefusalCode.FORBIDDEN, "The role of this token may not do that.", "Ask the owner for another token."
        )


def _call(route: ApiRoute, caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:
    """What a route answers; an error becomes its problem document."""
    try:
        response = route.handler(caller, request, argument)
    except RequestRefused as refused:
        response = problems.refuse_request(refused)
    except DiscreetError as error:
        # The charge that stands may be an earlier one for the same question, under another id.
        stands = isinstance(error, EngineFailure | DrawLost)
        response = problems.describe_error(error, charged=stands or _find_charged(caller, request))
    except QuestionCancelled:
        response = problems.describe_cancelled(charged=_find_charged(caller, request))
    except Exception as error:
        response = _answer_unforeseen(error, charged=_find_charged(caller, request))
    return replace(response, route=route.path)


def _answer_unforeseen(error: Exception, *, charged: bool | None) -> ApiResponse:
    """One constant document; the log has the kind of the error and not its words, which may hold anything."""
    LOG.error("An error that nobody foresaw: %s", type(error).__name__)
    return problems.describe_unforeseen(charged=charged)


def _find_charged(caller: Caller, request: ApiRequest) -> bool | None:
    """Whether a charge of this request is on record: its own, or one for the bounds that it buys."""
    key = request.headers.get("idempotency-key")
    if request.method != "POST" or key is None or not request.path.endswith(_SPENDING):
        return False
    ledger, analyst = caller.opened.curator.ledger, caller.token.name
    try:
        return any(ledger.find_request(analyst, each) is not None for each in (key, f"{key}-bounds-1"))
    except DiscreetError:
        return None


def _find_route(caller: Caller, request: ApiRequest) -> tuple[ApiRoute, str]:
    """The route of a request, and the argument in its path."""
    found = find_routes(TABLE, request.path, caller.opened.curator.name)
    if not found:
        raise make_not_found()
    if request.method not in found:
        allowed = ", ".join(sorted(found))
        raise RequestRefused(
            RefusalCode.METHOD_NOT_ALLOWED, "The route has no such method.", f"Use {allowed}.",
            headers={"Allow": allowed},
        )  # fmt: skip
    return found[request.method]


def _check_origin(request: ApiRequest) -> None:
    """Refuse what a browser sends for a page of another site."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise RequestRefused(
            RefusalCode.FORBIDDEN, "The request comes from a page of another site.", "Send it from your own program."
        )
