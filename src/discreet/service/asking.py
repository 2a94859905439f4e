"""The routes of those who ask: public facts, previews, questions, and what they asked before."""

from __future__ import annotations

from discreet.service import bodies, descriptions
from discreet.service.answer_forms import AnswerForm, choose_form
from discreet.service.api_routes import ASKING, ApiRoute
from discreet.service.callers import Caller
from discreet.service.documents import make_document, make_not_found, make_rows, read_count
from discreet.service.messages import ApiRequest, ApiResponse

_PAGE = 100
_LONGEST_PAGE = 1000
_LAST_NUMBER = 1 << 62


def list_datasets(caller: Caller, _request: ApiRequest, _argument: str) -> ApiResponse:
    """The dataset that the token opens."""
    return make_document({"datasets": [{"name": caller.curator.name, "role": str(caller.token.role)}]})


def show_dataset(caller: Caller, _request: ApiRequest, _argument: str) -> ApiResponse:
    """Tables, columns and their public facts."""
    return make_document(descriptions.describe_dataset(caller.curator))


def show_budget(caller: Caller, _request: ApiRequest, _argument: str) -> ApiResponse:
    """What is left, in numbers and words."""
    return make_document(descriptions.describe_budget(caller.curator, caller.dataset.odds))


def show_history(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Charges in their order, a page at a time: an analyst's own, of everybody for owners and auditors."""
    after = read_count(request, "after", 0, most=_LAST_NUMBER)
    limit = read_count(request, "limit", _PAGE, most=_LONGEST_PAGE)
    curator, token = caller.curator, caller.token
    found = [
        entry
        for entry in curator.history()
        if entry.number > after and (token.role.sees_everybody or entry.charge.analyst == token.name)
    ]
    shown = [descriptions.describe_entry(curator, entry) for entry in found[:limit]]
    return make_document({"charges": shown, "more": len(found) > limit})


def preview(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """What a question would cost and how exact it would be; free."""
    words = bodies.read_words(request, bodies.PREVIEW)
    choose_form(request, [AnswerForm.JSON])
    return make_document(caller.curator.preview(words.pop("sql"), **words, **caller.names).to_dict())


def ask(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Answer a question, and charge it under the key of the request."""
    key, words, form = bodies.read_key(request), bodies.read_words(request, bodies.QUESTION), choose_form(request)
    answer = caller.curator.ask(words.pop("sql"), **words, **caller.names, request=key)
    if form is AnswerForm.JSON:
        return make_document({"request": key, **answer.to_dict()})
    return make_rows(key, answer, form)


def ask_batch(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Answer several questions under one charge."""
    key, words = bodies.read_key(request), bodies.read_words(request, bodies.BATCH)
    choose_form(request, [AnswerForm.JSON])
    answers = caller.curator.ask_batch(words.pop("questions"), **words, **caller.names, request=key)
    return make_document({"request": key, "answers": [answer.to_dict() for answer in answers]})


def show_request(caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:
    """A request of the caller's own: not even an owner sees the answers of others here."""
    answers = caller.curator.find_answers(argument, analyst=caller.token.name)
    if answers is None:
        raise make_not_found()
    form = choose_form(request, tuple(AnswerForm) if len(answers) == 1 else (AnswerForm.JSON,))
    if form is not AnswerForm.JSON:
        return make_rows(argument, answers[0], form)
    document = {"request": argument, "charged": True, "answered": bool(answers)}
    return make_document({**document, "answers": [answer.to_dict() for answer in answers]})


_BELOW = "datasets/{dataset}"
_FORMS = tuple(AnswerForm)
ROUTES = (
    ApiRoute(method="GET", path="datasets", about="The datasets that the token opens.", handler=list_datasets),
    ApiRoute(method="GET", path=_BELOW, about="Tables, columns and their public facts.", handler=show_dataset),
    ApiRoute(method="GET", path=f"{_BELOW}/budget", about="What is left of the budget.", handler=show_budget),
    ApiRoute(
        method="GET", path=f"{_BELOW}/history", about="The charges, in their order.", handler=show_history,
        query={"after": _LAST_NUMBER, "limit": _LONGEST_PAGE},
    ),
    ApiRoute(
        method="POST", path=f"{_BELOW}/preview", about="Cost and error of a question; free.", handler=preview,
        roles=ASKING, body=bodies.PREVIEW,
    ),
    ApiRoute(
        method="POST", path=f"{_BELOW}/ask", about="Answer a question, and charge it.", handler=ask,
        roles=ASKING, body=bodies.QUESTION, forms=_FORMS, spends=True,
    ),
    ApiRoute(
        method="POST", path=f"{_BELOW}/batch", about="Answer several questions under one charge.", handler=ask_batch,
        roles=ASKING, body=bodies.BATCH, spends=True,
    ),
    ApiRoute(
        method="GET", path="requests/{id}", about="A request of your own: whether it was charged, and its answers.",
        handler=show_request, roles=ASKING, forms=_FORMS,
    ),
)  # fmt: skip
