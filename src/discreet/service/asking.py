"""The routes of those who ask: public facts, previews, questions, and what they asked before."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from discreet.service import bodies, descriptions
from discreet.service.answer_forms import AnswerForm, choose_form
from discreet.service.api_routes import ASKING, ApiRoute
from discreet.service.callers import Caller
from discreet.service.documents import (
    LAST_NUMBER,
    LONGEST_PAGE,
    make_document,
    make_not_found,
    make_records,
    make_rows,
    read_count,
)
from discreet.service.messages import ApiRequest, ApiResponse, EventStream, RefusalCode, refuse_body
from discreet.service.releases import find_releases
from discreet.service.running_requests import RunningRequest, write_event, write_refusal

_PAGE = 100
ZIP = "application/zip"
# Forms that hold everything of an answer, and so also several answers.
WHOLE = (AnswerForm.JSON, AnswerForm.RECORD)


def list_datasets(caller: Caller, _request: ApiRequest, _argument: str) -> ApiResponse:
    """The dataset that the token opens."""
    token = caller.token
    known = {"name": caller.curator.name, "role": str(token.role), "analyst": token.name, "project": token.project}
    return make_document({"datasets": [known]})


def show_dataset(caller: Caller, _request: ApiRequest, _argument: str) -> ApiResponse:
    """Tables, columns and their public facts."""
    return make_document(descriptions.describe_dataset(caller.curator, caller.opened.book.document.description))


def show_budget(caller: Caller, _request: ApiRequest, _argument: str) -> ApiResponse:
    """What is left, in numbers and words."""
    return make_document(descriptions.describe_budget(caller.curator, caller.opened.odds))


def show_history(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Charges in their order, a page at a time: an analyst's own; of everybody for those who may see them."""
    after = read_count(request, "after", 0, most=LAST_NUMBER)
    limit = read_count(request, "limit", _PAGE, most=LONGEST_PAGE)
    curator, token = caller.curator, caller.token
    found = [
        entry
        for entry in curator.history()
        if entry.number > after and (caller.sees_everybody or entry.charge.analyst == token.name)
    ]
    typed = caller.dataset.bodies.find_text
    shown = [
        {**descriptions.describe_entry(curator, entry), "sql": typed(entry.charge.analyst, entry.charge.request)}
        for entry in found[:limit]
    ]
    return make_document({"charges": shown, "more": len(found) > limit})


def list_releases(caller: Caller, _request: ApiRequest, _argument: str) -> ApiResponse:
    """What was published of the dataset and can be downloaded."""
    found = find_releases(caller.dataset.releases, caller.opened.curator)
    return make_document({"releases": [each.about for each in found]})


def send_release(caller: Caller, _request: ApiRequest, argument: str) -> ApiResponse:
    """A release as one file."""
    for each in find_releases(caller.dataset.releases, caller.opened.curator):
        if str(each.number) == argument and (packed := each.pack()) is not None:
            file = {"Content-Disposition": f'attachment; filename="release-{each.number}.zip"'}
            return ApiResponse(status=200, body=packed, media=ZIP, headers=file)
    raise make_not_found()


def preview(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """What a question would cost and how exact it would be; free."""
    words = read_question_words(caller, request, bodies.PREVIEW)
    choose_form(request, [AnswerForm.JSON])
    return make_document(caller.curator.preview(words.pop("sql"), **words, **caller.names).to_dict())


def ask(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Answer a question, and charge it under the key of the request."""
    key, words, form = (
        bodies.read_key(request),
        read_question_words(caller, request, bodies.QUESTION),
        choose_form(request),
    )
    answer = caller.curator.ask(words.pop("sql"), **words, **caller.names, request=key, watch=caller.watch)
    if form is AnswerForm.RECORD:
        return make_records(key, [answer])
    if form is AnswerForm.JSON:
        return make_document({"request": key, **answer.to_dict()})
    return make_rows(key, answer, form)


def ask_batch(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Answer several questions under one charge."""
    key, words = bodies.read_key(request), read_question_words(caller, request, bodies.BATCH)
    form = choose_form(request, WHOLE)
    questions = words.pop("questions")
    answers = caller.curator.ask_batch(questions, **words, **caller.names, request=key, watch=caller.watch)
    if form is AnswerForm.RECORD:
        return make_records(key, answers)
    return make_document({"request": key, "answers": [answer.to_dict() for answer in answers]})


def show_request(caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:
    """A request of the caller's own: not even an owner sees the answers of others here."""
    answers = caller.curator.find_answers(argument, analyst=caller.token.name)
    known = caller.dataset.running.find(caller.token.name, argument)
    if answers is None and known is None:
        raise make_not_found()
    sql = caller.dataset.bodies.find_text(caller.token.name, argument)
    if not answers and known is not None:
        return _show_running(argument, known, sql, charged=answers is not None)
    answers = answers or ()
    form = choose_form(request, tuple(AnswerForm) if len(answers) == 1 else WHOLE)
    if form not in WHOLE:
        return make_rows(argument, answers[0], form)
    state = {"state": "answered" if answers else "unfinished", "charged": True, "answered": bool(answers)}
    if form is AnswerForm.RECORD:
        return make_records(argument, answers, **state)
    told = {"request": argument, "sql": sql, **state}
    return make_document({**told, "answers": [answer.to_dict() for answer in answers]})


def _show_running(key: str, known: RunningRequest, sql: str | None, *, charged: bool) -> ApiResponse:
    """A request that runs, that failed, or that the record answered without a charge."""
    response, found = known.response, known.describe()
    free = json.loads(response.body) if response is not None and response.media in WHOLE else {}
    answers = free.get("answers", [{name: each for name, each in free.items() if name != "request"}] if free else [])
    told = {"request": key, "sql": sql, **found, "charged": charged}
    return make_document({**told, "answered": bool(answers), "answers": answers})


def follow_request(caller: Caller, _request: ApiRequest, argument: str) -> ApiResponse:
    """How far a request of the caller's own is, as events: ``progress`` while it runs, and ``done`` at its end."""
    known = caller.dataset.running.find(caller.token.name, argument)
    if known is not None:
        return _follow(partial(_tell_bearer, caller, known))
    answers = caller.curator.find_answers(argument, analyst=caller.token.name)
    if answers is None:
        raise make_not_found()
    word = write_event({"state": "answered" if answers else "unfinished"}, last=True)
    return _follow(lambda: (word, True))


def _tell_bearer(caller: Caller, known: RunningRequest) -> tuple[str, bool]:
    """What is said to those who follow, for as long as their token is valid: a stream lasts, and a revocation holds."""
    if caller.dataset.tokens.find_id(caller.token.id) is None:
        return write_refusal(RefusalCode.UNAUTHORIZED), True
    return known.tell()


def _follow(tell: Callable[[], tuple[str, bool]]) -> ApiResponse:
    return ApiResponse(status=200, body=b"", media="text/event-stream", events=EventStream(tell=tell))


def cancel_request(caller: Caller, request: ApiRequest, argument: str) -> ApiResponse:
    """End a request of the caller's own that runs. What was charged stays charged, and the same id goes on under it."""
    bodies.read_words(request, {})
    known = caller.dataset.running.find(caller.token.name, argument)
    if known is None or known.response is not None:
        raise make_not_found()
    known.cancel()
    return make_document({"request": argument, **known.describe()})


def read_question_words(caller: Caller, request: ApiRequest, known: bodies.BodyWords) -> dict[str, Any]:
    """The words of a body. A public table that is a request id is the answer that the caller had under it."""
    words = bodies.read_words(request, known)
    for table, rows in words.get("public", {}).items():
        if isinstance(rows, str):
            answers = caller.curator.find_answers(rows, analyst=caller.token.name)
            if answers is None or len(answers) != 1:
                rule = "public names a request that has no answer of its own."
                raise refuse_body(rule, "Name a request of yours that was answered, and no batch.", "public")
            words["public"][table] = answers[0]
    return words


_BELOW = "datasets/{dataset}"
_FORMS = tuple(AnswerForm)
ROUTES = (
    ApiRoute(method="GET", path="datasets", about="The datasets that the token opens.", handler=list_datasets),
    ApiRoute(method="GET", path=_BELOW, about="Tables, columns and their public facts.", handler=show_dataset),
    ApiRoute(method="GET", path=f"{_BELOW}/budget", about="What is left of the budget.", handler=show_budget),
    ApiRoute(
        method="GET", path=f"{_BELOW}/history", about="The charges, in their order.", handler=show_history,
        query={"after": LAST_NUMBER, "limit": LONGEST_PAGE},
    ),
    ApiRoute(
        method="GET", path=f"{_BELOW}/releases", about="What was published and can be downloaded.",
        handler=list_releases,
    ),
    ApiRoute(
        method="GET", path=f"{_BELOW}/releases/{{number}}", about="A release with all its files.",
        handler=send_release, media=(ZIP,),
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
        roles=ASKING, body=bodies.BATCH, forms=WHOLE, spends=True,
    ),
    ApiRoute(
        method="GET", path="requests/{id}", about="A request of your own: whether it was charged, and its answers.",
        handler=show_request, roles=ASKING, forms=_FORMS,
    ),
    ApiRoute(
        method="GET", path="requests/{id}/events", about="How far a request of your own is, as server-sent events.",
        handler=follow_request, roles=ASKING, media=("text/event-stream",),
    ),
    ApiRoute(
        method="POST", path="requests/{id}/cancel", about="End a request of your own; its charge stands.",
        handler=cancel_request, roles=ASKING, body={},
    ),
)  # fmt: skip
