"""Responses that most routes give: a document, the rows of an answer, and the refusal of what is not there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.row_formats import to_json
from discreet.service.answer_forms import AnswerForm, encode_rows
from discreet.service.messages import ApiRequest, ApiResponse, RefusalCode, RequestRefused, refuse_body

if TYPE_CHECKING:
    from discreet.answer import Answer

LONGEST_PAGE = 1000
LAST_NUMBER = 1 << 62


def make_document(document: Any) -> ApiResponse:
    """A value as JSON."""
    return ApiResponse(status=200, body=to_json(document).encode())


def make_rows(key: str, answer: Answer, form: AnswerForm) -> ApiResponse:
    """The rows of an answer alone, with the receipt in a header."""
    receipt = {"request": key, "cost": answer.receipt["cost"], "remaining": answer.remaining}
    headers = {"Discreet-Receipt": json.dumps({**receipt, "replayed": answer.replayed})}
    return ApiResponse(status=200, body=encode_rows(answer.table, form), media=str(form), headers=headers)


def make_records(key: str, answers: Sequence[Answer], **more: Any) -> ApiResponse:
    """Answers as they go on record, with types, intervals, receipts and explanations: the remote client reads them."""
    records = [{**each.record(), "remaining": each.remaining, "replayed": each.replayed} for each in answers]
    body = to_json({"request": key, **more, "answers": records}).encode()
    return ApiResponse(status=200, body=body, media=str(AnswerForm.RECORD))


def make_not_found() -> RequestRefused:
    """One refusal for what does not exist and for what belongs to others."""
    return RequestRefused(RefusalCode.NOT_FOUND, "There is nothing here for this token.", "See GET datasets.")


def read_count(request: ApiRequest, name: str, default: int, *, most: int) -> int:
    """A whole number of the query."""
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise refuse_body(f"{name} must be a whole number of at most {most:,}.", f"Leave {name} out.", name)
    return int(text)
