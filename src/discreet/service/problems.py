"""Problem documents (RFC 9457): every refusal with its code, its place, its fix, and whether anything was charged."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from discreet import errors
from discreet.row_formats import to_json
from discreet.service.messages import ApiResponse, RefusalCode, RequestRefused

MEDIA = "application/problem+json"
_TYPE = "urn:discreet:problem:"

# The nearest class decides: an error has the status of its own class, or of the first parent that is listed.
_STATUS: dict[type[errors.DiscreetError], int] = {
    errors.UsageError: HTTPStatus.BAD_REQUEST,
    errors.CodebookError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ParameterError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.QuestionError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.LedgerError: HTTPStatus.CONFLICT,
    errors.RequestConflict: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.LedgerStopped: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.PrivacyError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.BudgetExceeded: HTTPStatus.FORBIDDEN,
    errors.LedgerDamaged: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.InternalError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.LedgerFailure: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.DiscreetError: HTTPStatus.INTERNAL_SERVER_ERROR,
}

UNFORESEEN = "Something went wrong on our side. Ask for the request by its id to see whether it was charged."


def refuse_request(refused: RequestRefused) -> ApiResponse:
    """The document of what the service itself refuses: nothing was charged."""
    place = None if refused.parameter is None else {"parameter": refused.parameter}
    return _make_problem(
        refused.code,
        refused.code.status,
        f"{refused} Nothing was charged.",
        fix=refused.fix,
        place=place,
        charged=False,
        headers=dict(refused.headers),
    )


def describe_cancelled(*, charged: bool | None) -> ApiResponse:
    """The document of a question that its analyst has ended."""
    code = RefusalCode.CANCELLED
    fix = "Ask under the same request id to go on without a new charge."
    return _make_problem(code, code.status, f"The question was ended. {fix}", fix=fix, place=None, charged=charged)


def describe_error(error: errors.DiscreetError, *, charged: bool | None) -> ApiResponse:
    """The document of an error of the curator."""
    status = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    fix = error.fix if isinstance(error, errors.ParameterError | errors.QuestionError) else None
    return _make_problem(error.code, status, str(error), fix=fix, place=_find_place(error), charged=charged)


def describe_unforeseen(*, charged: bool | None) -> ApiResponse:
    """The one document of everything that nobody foresaw: its words never vary."""
    code, status = errors.InternalError.code, HTTPStatus.INTERNAL_SERVER_ERROR
    return _make_problem(code, status, UNFORESEEN, fix=None, place=None, charged=charged)


def _find_place(error: errors.DiscreetError) -> dict[str, Any] | None:
    if isinstance(error, errors.ParameterError):
        return {"parameter": error.name}
    if isinstance(error, errors.QuestionError) and error.line is not None:
        return {"line": error.line, "column": error.column, "excerpt": error.excerpt}
    return None


def _make_problem(
    code: str,
    status: int,
    detail: str,
    *,
    fix: str | None,
    place: dict[str, Any] | None,
    charged: bool | None,
    headers: dict[str, str] | None = None,
) -> ApiResponse:
    document = {
        "type": _TYPE + code,
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "code": str(code),
        "detail": detail,
        "fix": fix,
        "place": place,
        "charged": charged,
    }
    kept = {name: value for name, value in document.items() if value is not None or name == "charged"}
    return ApiResponse(status=int(status), body=to_json(kept).encode(), media=MEDIA, headers=headers or {})
