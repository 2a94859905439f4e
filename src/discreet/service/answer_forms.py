"""The forms of an answer on the wire, and the choice among them by the header Accept."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from discreet.row_formats import to_arrow_stream, to_csv, to_parquet
from discreet.service.messages import ApiRequest, RefusalCode, RequestRefused

if TYPE_CHECKING:
    import pyarrow


class AnswerForm(StrEnum):
    """Forms by their media types. JSON is the whole document, RECORD what a program makes an answer of again, the
    others are rows.
    """

    JSON = "application/json"
    CSV = "text/csv"
    ARROW = "application/vnd.apache.arrow.stream"
    PARQUET = "application/vnd.apache.parquet"
    RECORD = "application/vnd.discreet.answer+json"


ALL_FORMS = tuple(AnswerForm)


def choose_form(request: ApiRequest, offered: Sequence[AnswerForm] = ALL_FORMS) -> AnswerForm:
    """The offered form that the client likes best; of equals, the first one offered."""
    liked = _read_accept(request.headers.get("accept", "*/*"))
    likings = [(_find_liking(form, liked), -place, form) for place, form in enumerate(offered)]
    liking, _, form = max(likings)
    if liking <= 0:
        raise RequestRefused(
            RefusalCode.NOT_ACCEPTABLE,
            "The form that Accept asks for is not offered here.",
            f"Accept one of {', '.join(offered)}.",
        )
    return form


def encode_rows(rows: pyarrow.Table, form: AnswerForm) -> bytes:
    """Rows in one of the forms that hold rows alone."""
    match form:
        case AnswerForm.CSV:
            return to_csv(rows)
        case AnswerForm.ARROW:
            return to_arrow_stream(rows)
        case AnswerForm.PARQUET:
            return to_parquet(rows)
        case AnswerForm.JSON | AnswerForm.RECORD:
            raise AssertionError("These hold more than rows.")
        case _:
            assert_never(form)


def _read_accept(header: str) -> dict[str, float]:
    """Ranges of media types with their weights; what cannot be read has the weight zero."""
    liked: dict[str, float] = {}
    for part in header.split(",")[:50]:
        media, *parameters = (word.strip().lower() for word in part.split(";"))
        weights = [word[2:] for word in parameters if word.startswith("q=")]
        liked[media] = _read_weight(weights[0]) if weights else 1.0
    return liked


def _read_weight(text: str) -> float:
    whole, _, rest = text.partition(".")
    if whole in ("0", "1") and (not rest or rest.isdecimal()) and len(rest) <= 3:
        return min(float(text), 1.0)
    return 0.0


def _find_liking(form: AnswerForm, liked: dict[str, float]) -> float:
    """The weight of the most exact range that covers a form."""
    for media in (str(form), f"{form.partition('/')[0]}/*", "*/*"):
        if media in liked:
            return liked[media]
    return 0.0
