"""The service as a function: a request in, a response out. Who asks is read here; everything else is the curator's."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import field, replace

from discreet.errors import DiscreetError, DrawLost, EngineFailure
from discreet.late_dataclass import dataclass
from discreet.service import asking, auditing, owning, problems
from discreet.service.api_routes import ApiRoute, find_routes
from discreet.service.callers import Caller, ServedDataset
from discreet.service.documents import make_not_found
from discreet.service.messages import ApiRequest, ApiResponse, RefusalCode, RequestRefused
from discreet.service.request_limits import RequestLimits
from discreet.service.request_metrics import RequestMetrics
from discreet.service.tokens import PREFIX

LOG = logging.getLogger("discreet.service")
TABLE = (*asking.ROUTES, *owning.ROUTES, *auditing.ROUTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Datasets by name, and the limits of their tokens."""

    datasets: Mapping[str, ServedDataset]
    limits: RequestLimits = field(default_factory=RequestLimits)
    metrics: RequestMetrics = field(default_factory=RequestMetrics)

    def answer(self, request: ApiRequest) -> ApiResponse:
        """The response to a request; every refusal and every error is a problem document."""
        response = self._answer(request)
        self.metrics.count(response.route, response.status)
        return response

    def _answer(self, request: ApiRequest) -> ApiResponse:
        try:
            caller = self._find_caller(request)
        except RequestRefused as refused:
            return problems.refuse_request(refused)
        except Exception as error:
            return _answer_unforeseen(error, charged=False)
        return self._answer_caller(caller, request)

    def answer_caller(self, caller: Caller, request: ApiRequest) -> ApiResponse:
        """The response to a request of somebody who is known already: a page asks in the name of its session."""
        response = self._answer_caller(caller, request)
        self.metrics.count(response.route, response.status)
        return response

    def _answer_caller(self, caller: Caller, request: ApiRequest) -> ApiResponse:
        try:
            with self.limits.enter(caller.token.id):
                response = _answer_caller(caller, request)
        except RequestRefused as refused:
            response = problems.refuse_request(refused)
        return replace(response, token=caller.token.id)

    def _find_caller(self, request: ApiRequest) -> Caller:
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and secret.startswith(PREFIX):
            for dataset in self.datasets.values():
                token = dataset.tokens.find(secret)
                if token is not None:
                    return Caller(token=token, dataset=dataset)
        raise RequestRefused(
            RefusalCode.UNAUTHORIZED,
            "There is no token, or it is not valid.",
            "Send Authorization: Bearer and the token that the owner gave you.",
            headers={"WWW-Authenticate": 'Bearer realm="discreet"'},
        )


def _answer_caller(caller: Caller, request: ApiRequest) -> ApiResponse:
    name = ""
    try:
        route, argument = _find_route(caller, request)
        name = route.path
        if request.method == "POST":
            _check_origin(request)
        if caller.token.role not in route.roles:
            raise RequestRefused(
                RefusalCode.FORBIDDEN, "The role of this token may not do that.", "Ask the owner for another token."
            )
        response = route.handler(caller, request, argument)
    except RequestRefused as refused:
        response = problems.refuse_request(refused)
    except DiscreetError as error:
        # The charge that stands may be an earlier one for the same question, under another id.
        stands = isinstance(error, EngineFailure | DrawLost)
        response = problems.describe_error(error, charged=stands or _find_charged(caller, request))
    except Exception as error:
        response = _answer_unforeseen(error, charged=_find_charged(caller, request))
    return replace(response, route=name)


def _answer_unforeseen(error: Exception, *, charged: bool | None) -> ApiResponse:
    """One constant document; the log has the kind of the error and not its words, which may hold anything."""
    LOG.error("An error that nobody foresaw: %s", type(error).__name__)
    return problems.describe_unforeseen(charged=charged)


def _find_charged(caller: Caller, request: ApiRequest) -> bool | None:
    """Whether a charge of this request is on record: its own, or one for the bounds that it buys."""
    key = request.headers.get("idempotency-key")
    if request.method != "POST" or key is None or not request.path.endswith(("/ask", "/batch")):
        return False
    ledger, analyst = caller.dataset.curator.ledger, caller.token.name
    try:
        return any(ledger.find_request(analyst, each) is not None for each in (key, f"{key}-bounds-1"))
    except DiscreetError:
        return None


def _find_route(caller: Caller, request: ApiRequest) -> tuple[ApiRoute, str]:
    """The route of a request, and the argument in its path."""
    found = find_routes(TABLE, request.path, caller.dataset.curator.name)
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
