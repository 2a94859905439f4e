"""Routes for what else the curator offers to those who ask: batches before they are paid, plans, bounds and limits.

Previews and explanations read no data and are free. Bounds and limits are metered questions like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.row_formats import to_json
from discreet.service import bodies
from discreet.service.answer_forms import AnswerForm, choose_form
from discreet.service.api_routes import ASKING, ApiRoute
from discreet.service.asking import read_question_words
from discreet.service.callers import Caller
from discreet.service.documents import make_document
from discreet.service.messages import ApiRequest, ApiResponse

if TYPE_CHECKING:
    from discreet.answer import Answer


def preview_batch(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """What several questions would cost together; free."""
    words = read_question_words(caller, request, bodies.BATCH)
    questions = words.pop("questions")
    return make_document(caller.curator.preview_batch(questions, **words, **caller.names).to_dict())


def explain(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """The plan of a question, its sensitivities and its noise, and why; free."""
    words = read_question_words(caller, request, bodies.EXPLANATION)
    return make_document({"explanation": caller.curator.explain(words.pop("sql"), **words)})


def buy_bounds(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Bounds of a column, as a metered question."""
    key, words = bodies.read_key(request), bodies.read_words(request, bodies.BOUNDS)
    form = choose_form(request, _FORMS)
    table, column = words.pop("table"), words.pop("column")
    found = caller.curator.bounds(table, column, **words, **_name_request(caller, key))
    return _make_found(key, form, found.to_dict(), found.answer, {"doubt": str(found.doubt)})


def buy_contributions(caller: Caller, request: ApiRequest, _argument: str) -> ApiResponse:
    """Limits on what one unit contributes, as a metered question."""
    key, words = bodies.read_key(request), bodies.read_words(request, bodies.CONTRIBUTIONS)
    form = choose_form(request, _FORMS)
    table, by = words.pop("table"), words.pop("by", [])
    found = caller.curator.contributions(table, by, **words, **_name_request(caller, key))
    exact = {"share": None if found.share is None else str(found.share), "above": found.above}
    return _make_found(key, form, found.to_dict(), found.answer, exact)


def _name_request(caller: Caller, key: str) -> dict[str, Any]:
    return {**caller.names, "request": key, "watch": caller.watch}


def _make_found(
    key: str, form: AnswerForm, document: dict[str, Any], answer: Answer, exact: dict[str, Any]
) -> ApiResponse:
    """What was found; for the remote client with exact numbers and the answer that it follows from."""
    if form is AnswerForm.JSON:
        return make_document({"request": key, **document})
    record = {**answer.record(), "remaining": answer.remaining, "replayed": answer.replayed}
    body = to_json({"request": key, **document, **exact, "answer": record}).encode()
    return ApiResponse(status=200, body=body, media=str(form))


_FORMS = (AnswerForm.JSON, AnswerForm.RECORD)
_BELOW = "datasets/{dataset}"
ROUTES = (
    ApiRoute(
        method="POST", path=f"{_BELOW}/preview-batch", about="Cost and error of several questions; free.",
        handler=preview_batch, roles=ASKING, body=bodies.BATCH,
    ),
    ApiRoute(
        method="POST", path=f"{_BELOW}/explain", about="The plan of a question, and why it is private; free.",
        handler=explain, roles=ASKING, body=bodies.EXPLANATION,
    ),
    ApiRoute(
        method="POST", path=f"{_BELOW}/bounds", about="Bounds of a column, charged.", handler=buy_bounds,
        roles=ASKING, body=bodies.BOUNDS, forms=_FORMS, spends=True,
    ),
    ApiRoute(
        method="POST", path=f"{_BELOW}/contributions", about="Limits on what one unit adds, charged.",
        handler=buy_contributions, roles=ASKING, body=bodies.CONTRIBUTIONS, forms=_FORMS, spends=True,
    ),
)  # fmt: skip
