"""The service as a function: a request in, a response out. Who asks is read here; everything else is the curator's."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError, DrawLost, EngineFailure
from discreet.late_dataclass import dataclass
from discreet.row_formats import to_json
from discreet.service import bodies, descriptions, problems
from discreet.service.answer_forms import AnswerForm, choose_form, encode_rows
from discreet.service.messages import ApiRequest, ApiResponse, RefusalCode, RequestRefused, refuse_body
from discreet.service.request_limits import RequestLimits
from discreet.service.tokens import PREFIX, Token, TokenStore

if TYPE_CHECKING:
    from discreet.answer import Answer
    from discreet.curator import Curator

LOG = logging.getLogger("discreet.service")
ROOT = "/api/v1/"
_PAGE = 100
_LONGEST_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedDataset:
    """A dataset with its curator, its tokens, and the odds of its budget in words."""

    curator: Curator
    tokens: TokenStore
    odds: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sent a request: the token, and the one dataset that it opens."""

    token: Token
    dataset: ServedDataset

    @property
    def curator(self) -> Curator:
        """The curator, within the cap of the token."""
        curator, cap = self.dataset.curator, self.token.per_query
        return curator if cap is None else curator.limit(cap)

    @property
    def names(self) -> dict[str, Any]:
        """In whose name the curator is asked. It comes from the token and never from the request."""
        return {"analyst": self.token.name, "project": self.token.project}


Handler = Callable[[Caller, ApiRequest, str], ApiResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Datasets by name, and the limits of their tokens."""

    datasets: Mapping[str, ServedDataset]
    limits: RequestLimits = field(default_factory=RequestLimits)

    def answer(self, request: ApiRequest) -> ApiResponse:
        """The response to a request; every refusal and every error is a problem document."""
        try:
            caller = self._find_caller(request)
        except RequestRefused as refused:
            return problems.refuse_request(refused)
        except Exception as error:
            return _answer_unforeseen(error, charged=False)
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
        name, handlers, argument = _find_route(caller, request.path)
        if request.method not in handlers:
            allowed = ", ".join(sorted(handlers))
            raise RequestRefused(
                RefusalCode.METHOD_NOT_ALLOWED, "The route has no such method.", f"Use {allowed}.",
                headers={"Allow": allowed},
            )  # fmt: skip
        if request.method == "POST":
            _check_origin(request)
            _check_role(caller)
        response = handlers[request.method](caller, request, argument)
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


def _find_route(caller: Caller, path: str) -> tuple[str, Mapping[str, Handler], str]:
    """The route of a path, with its handlers by method, and the argument in the path."""
    match path.removeprefix(ROOT).split("/") if path.startswith(ROOT) else []:
        case ["datasets"]:
            return "datasets", {"GET": _list_datasets}, ""
        case ["datasets", name, *rest] if name == caller.dataset.curator.name:
            route = "/".join(rest)
            if route in _BELOW_DATASET:
                return f"datasets/{{d}}/{route}".rstrip("/"), _BELOW_DATASET[route], name
        case ["requests", request]:
            return "requests/{id}", {"GET": _show_request}, request
    raise _make_not_found()


def _make_not_found() -> RequestRefused:
    """One refusal for what does not exist and for what belongs to others."""
    return RequestRefused(RefusalCode.NOT_FOUND, "There is nothing here for this token.", "See GET datasets.")


def _check_origin(request: ApiRequest) -> None:
    """Refuse what a browser sends for a page of another site."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise RequestRefused(
            RefusalCode.FORBIDDEN, "The request comes from a page of another site.", "Send it from your own program."
        )


def _check_role(caller: Caller) -> None:
    if not caller.token.role.may_ask:
        raise RequestRefused(
            RefusalCode.FORBIDDEN, "The role of this token sees no answers.", "Ask the owner for another token."
        )


def _list_datasets(caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:  # noqa: ARG001  # the shape of handlers
    return _make_document({"datasets": [{"name": caller.curator.name, "role": str(caller.token.role)}]})


def _show_dataset(caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:  # noqa: ARG001  # the shape of handlers
    return _make_document(descriptions.describe_dataset(caller.curator))


def _show_budget(caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:  # noqa: ARG001  # the shape of handlers
    return _make_document(descriptions.describe_budget(caller.curator, caller.dataset.odds))


def _show_history(caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:  # noqa: ARG001  # the shape of handlers
    after = _read_count(request, "after", 0, most=1 << 62)
    limit = _read_count(request, "limit", _PAGE, most=_LONGEST_PAGE)
    curator, token = caller.curator, caller.token
    found = [
        entry
        for entry in curator.history()
        if entry.number > after and (token.role.sees_everybody or entry.charge.analyst == token.name)
    ]
    shown = [descriptions.describe_entry(curator, entry) for entry in found[:limit]]
    return _make_document({"charges": shown, "more": len(found) > limit})


def _read_count(request: ApiRequest, name: str, default: int, *, most: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise refuse_body(f"{name} must be a whole number of at most {most:,}.", f"Leave {name} out.", name)
    return int(text)


def _preview(caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:  # noqa: ARG001  # the shape of handlers
    words = bodies.read_preview(request)
    choose_form(request, [AnswerForm.JSON])
    return _make_document(caller.curator.preview(words.pop("sql"), **words, **caller.names).to_dict())


def _ask(caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:  # noqa: ARG001  # the shape of handlers
    key, words, form = bodies.read_key(request), bodies.read_question(request), choose_form(request)
    answer = caller.curator.ask(words.pop("sql"), **words, **caller.names, request=key)
    if form is AnswerForm.JSON:
        return _make_document({"request": key, **answer.to_dict()})
    return _make_rows(key, answer, form)


def _ask_batch(caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:  # noqa: ARG001  # the shape of handlers
    key, words = bodies.read_key(request), bodies.read_batch(request)
    choose_form(request, [AnswerForm.JSON])
    answers = caller.curator.ask_batch(words.pop("questions"), **words, **caller.names, request=key)
    return _make_document({"request": key, "answers": [answer.to_dict() for answer in answers]})


def _show_request(caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:
    """A request of the caller's own: not even an owner sees the answers of others here."""
    _check_role(caller)
    answers = caller.curator.find_answers(argument, analyst=caller.token.name)
    if answers is None:
        raise _make_not_found()
    form = choose_form(request, tuple(AnswerForm) if len(answers) == 1 else (AnswerForm.JSON,))
    if form is not AnswerForm.JSON:
        return _make_rows(argument, answers[0], form)
    document = {"request": argument, "charged": True, "answered": bool(answers)}
    return _make_document({**document, "answers": [answer.to_dict() for answer in answers]})


def _make_rows(key: str, answer: Answer, form: AnswerForm) -> ApiResponse:
    """The rows of an answer alone, with the receipt in a header."""
    receipt = {"request": key, "cost": answer.receipt["cost"], "remaining": answer.remaining}
    headers = {"Discreet-Receipt": json.dumps({**receipt, "replayed": answer.replayed})}
    return ApiResponse(status=200, body=encode_rows(answer.table, form), media=str(form), headers=headers)


def _make_document(document: Any) -> ApiResponse:
    return ApiResponse(status=200, body=to_json(document).encode())


_BELOW_DATASET: dict[str, dict[str, Handler]] = {
    "": {"GET": _show_dataset},
    "preview": {"POST": _preview},
    "ask": {"POST": _ask},
    "batch": {"POST": _ask_batch},
    "budget": {"GET": _show_budget},
    "history": {"GET": _show_history},
}
