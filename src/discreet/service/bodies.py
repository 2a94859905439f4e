"""Reads the bodies of requests: JSON with exact numbers, known words, and nothing said twice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from discreet.service.messages import JSON, ApiRequest, RefusalCode, RequestRefused, refuse_body

MAX_SQL = 100_000
_RATIO = re.compile(r"[0-9]{1,50}/[0-9]{1,50}")
_KEY = re.compile(r"[A-Za-z0-9._:-]{1,200}")

Reader = Callable[[str, Any], Any]


def read_key(request: ApiRequest) -> str:
    """The request id: a charge has a name, so that a retry is not charged again."""
    key = request.headers.get("idempotency-key", "")
    if not _KEY.fullmatch(key):
        raise refuse_body(
            "Spending needs a header Idempotency-Key of 1 to 200 letters, digits and ._:- signs.",
            "Send a new one for each question, and the same one for a retry.",
            "Idempotency-Key",
        )
    return key


def read_question(request: ApiRequest) -> dict[str, Any]:
    """The words of a question for the curator."""
    return _read(request, {"sql": _read_sql, "error": _read_errors, "bounds": _read_text, **_OFFER}, {"sql"})


def read_preview(request: ApiRequest) -> dict[str, Any]:
    """The words of a preview: those of a question, and whether a curve is wanted."""
    words = {"sql": _read_sql, "error": _read_errors, "bounds": _read_text, "curve": _read_boolean, **_OFFER}
    return _read(request, words, {"sql"})


def read_batch(request: ApiRequest) -> dict[str, Any]:
    """The words of a batch."""
    words = {"questions": _read_questions, "weights": _read_numbers, "fixed": _read_boolean, **_OFFER}
    return _read(request, words, {"questions"})


def _read(request: ApiRequest, words: Mapping[str, Reader], needed: set[str]) -> dict[str, Any]:
    document = _read_object(request)
    for name in document:
        if name not in words:
            raise refuse_body("The body has an unknown word.", f"Known are: {', '.join(sorted(words))}.")
    for name in sorted(needed - document.keys()):
        raise refuse_body(f"The body lacks {name}.", f"Give {name}.", name)
    return {name: words[name](name, value) for name, value in document.items() if value is not None}


def _read_object(request: ApiRequest) -> dict[str, Any]:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != JSON:
        raise RequestRefused(
            RefusalCode.UNSUPPORTED_MEDIA_TYPE, f"The body must be {JSON}.", f"Send Content-Type: {JSON}."
        )
    try:
        document = json.loads(
            request.body.decode("utf-8"),
            parse_float=Decimal,
            parse_constant=_refuse_constant,
            object_pairs_hook=_make_object,
        )
    except (ValueError, RecursionError, InvalidOperation):
        raise refuse_body("The body is not JSON, or says a word twice.", "Send one JSON object in UTF-8.") from None
    if not isinstance(document, dict):
        raise refuse_body("The body is not a JSON object.", 'Send for example {"sql": "...", "epsilon": "0.5"}.')
    return document


def _refuse_constant(word: str) -> None:
    raise ValueError(word)


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError
    return made


def _read_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise refuse_body(f"{name} must be a text.", "Put it in quotes.", name)
    return value


def _read_sql(name: str, value: Any) -> str:
    text = _read_text(name, value)
    if len(text) > MAX_SQL:
        raise refuse_body(f"{name} has more than {MAX_SQL:,} signs.", "Ask a shorter question.", name)
    return text


def _read_questions(name: str, value: Any) -> list[str]:
    return [_read_sql(name, each) for each in _read_list(name, value)]


def _read_boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise refuse_body(f"{name} must be true or false.", "Write it without quotes.", name)
    return value


def _read_number(name: str, value: Any) -> int | Decimal | Fraction:
    """A number exactly as it was written: JSON's own, or a text such as "0.1" or "1/10"."""
    read = _parse_number(value) if isinstance(value, str) else value
    if isinstance(read, bool) or not isinstance(read, int | Decimal | Fraction):
        raise refuse_body(f"{name} must be a number.", 'Write it like 0.5, "1e-6" or "1/10".', name)
    return read


def _parse_number(text: str) -> Decimal | Fraction | None:
    """The number that a text says, or None."""
    try:
        read = Fraction(text) if _RATIO.fullmatch(text) else Decimal(text)
    except (InvalidOperation, ZeroDivisionError):
        return None
    return read if isinstance(read, Fraction) or read.is_finite() else None


def _read_numbers(name: str, value: Any) -> list[int | Decimal | Fraction]:
    return [_read_number(name, each) for each in _read_list(name, value)]


def _read_errors(name: str, value: Any) -> dict[str, int | Decimal | Fraction]:
    if not isinstance(value, dict):
        raise refuse_body(f"{name} must be an object of columns and sizes.", 'Write for example {"n": 12}.', name)
    return {column: _read_number(name, size) for column, size in value.items()}


def _read_list(name: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list) or not value:
        raise refuse_body(f"{name} must be a list that is not empty.", "Write it in square brackets.", name)
    return value


def _read_public(name: str, value: Any) -> dict[str, Any]:
    """Rows that the analyst brings, by the name of their table."""
    import pyarrow as pa

    fix = 'Write for example {"wards": [{"ward": "north", "beds": 20}]}.'
    if not isinstance(value, dict):
        raise refuse_body(f"{name} must be an object of tables.", fix, name)
    found = {}
    for table, rows in value.items():
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            raise refuse_body(f"{name} must have a list of rows for each table.", fix, name)
        plain = [{column: _to_plain(cell) for column, cell in row.items()} for row in rows]
        try:
            found[table] = pa.Table.from_pylist(plain)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            raise refuse_body(f"{name} has a column with values of several types.", fix, name) from None
    return found


def _to_plain(cell: Any) -> Any:
    return float(cell) if isinstance(cell, Decimal) else cell


_OFFER: dict[str, Reader] = {
    **dict.fromkeys(("epsilon", "rho", "share", "delta", "level"), _read_number),
    "public": _read_public,
}
