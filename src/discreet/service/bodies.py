"""Reads the bodies of requests: JSON with exact numbers, known words, and nothing said twice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.late_dataclass import dataclass
from discreet.ledger.chain import Head
from discreet.service.messages import JSON, ApiRequest, RefusalCode, RequestRefused, refuse_body
from discreet.service.roles import Role

MAX_SQL = 100_000
_LONGEST_NUMBER = 101
_RATIO = re.compile(r"[0-9]{1,50}/[0-9]{1,50}")
_LONGEST_SENTENCE = 1000
_KEY = re.compile(r"[A-Za-z0-9._:-]{1,200}")


@dataclass(frozen=True, slots=True)
class BodyWord:
    """One word of a body: how it is read, and its JSON Schema."""

    read: Callable[[str, Any], Any]
    schema: Mapping[str, Any]
    needed: bool = False


BodyWords: TypeAlias = Mapping[str, BodyWord]


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


def read_words(request: ApiRequest, words: BodyWords) -> dict[str, Any]:
    """The words of a body, each as the curator takes it."""
    document = read_object(request)
    for name in document:
        if name not in words:
            raise refuse_body("The body has an unknown word.", f"Known are: {', '.join(sorted(words))}.")
    for name, word in words.items():
        if word.needed and document.get(name) is None:
            raise refuse_body(f"The body lacks {name}.", f"Give {name}.", name)
    return {name: words[name].read(name, value) for name, value in document.items() if value is not None}


def read_object(request: ApiRequest) -> dict[str, Any]:
    """The body as it was written: one JSON object, each word once."""
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


def _read_sentence(name: str, value: Any) -> str:
    text = _read_text(name, value).strip()
    if not text or len(text) > _LONGEST_SENTENCE or not text.isprintable():
        raise refuse_body(f"{name} must be one sentence.", "It stays on record, so say why.", name)
    return text


def _read_role(name: str, value: Any) -> Role:
    if value not in list(Role):
        raise refuse_body(f"{name} is not known.", f"Known are: {', '.join(Role)}.", name)
    return Role(value)


def _read_days(name: str, value: Any) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 3660:
        raise refuse_body(f"{name} must be a whole number of 1 to 3660.", "Write for example 90.", name)
    return timedelta(days=value)


def _read_heads(name: str, value: Any) -> list[Head]:
    """Heads that were kept earlier, as they were given out."""
    found = value if isinstance(value, list) else []
    if not isinstance(value, list) or len(value) > 100 or not all(isinstance(each, dict) for each in found):
        raise refuse_body(f"{name} must be a list of heads.", "Send them as they were given out.", name)
    return [Head.from_json(json.dumps(each, default=str)) for each in found]


def _read_questions(name: str, value: Any) -> list[str]:
    return [_read_sql(name, each) for each in _read_list(name, value)]


def _read_names(name: str, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise refuse_body(f"{name} must be a list of columns.", 'Write for example ["ward"].', name)
    return [_read_text(name, each) for each in value]


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
    if len(text) > _LONGEST_NUMBER:
        return None
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
    """Rows that the analyst brings, or the id of a request that was answered, by the name of their table."""
    import pyarrow as pa

    fix = 'Write for example {"wards": [{"ward": "north", "beds": 20}]}.'
    if not isinstance(value, dict):
        raise refuse_body(f"{name} must be an object of tables.", fix, name)
    found: dict[str, Any] = {}
    for table, rows in value.items():
        if isinstance(rows, str):  # an answer of the caller's own, by its request id
            found[table] = rows
            continue
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            raise refuse_body(f"{name} must have a list of rows for each table.", fix, name)
        plain = [{column: _to_plain(cell) for column, cell in row.items()} for row in rows]
        try:
            found[table] = pa.Table.from_pylist(plain)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            raise refuse_body(f"{name} has a column with values of several types.", fix, name) from None
    return found


def _read_parameters(name: str, value: Any) -> dict[str, Any]:
    """The values of @name in the text: numbers, texts, true, false and null."""
    plain = isinstance(value, dict) and not any(isinstance(each, dict | list) for each in value.values())
    if not plain:
        raise refuse_body(f"{name} must be an object of names and values.", 'Write for example {"least": 18}.', name)
    return {parameter: _to_plain(each) for parameter, each in value.items()}


def _to_plain(cell: Any) -> Any:
    return float(cell) if isinstance(cell, Decimal) else cell


_NUMBER = {"anyOf": [{"type": "number"}, {"type": "string", "maxLength": _LONGEST_NUMBER}], "examples": [0.1, "1/10"]}
_ROWS = {"anyOf": [{"type": "array", "minItems": 1, "items": {"type": "object"}}, {"type": "string"}]}
_SQL = {"type": "string", "maxLength": MAX_SQL}
_PLAIN = ["number", "string", "boolean", "null"]

_OFFER: dict[str, BodyWord] = {
    **{name: BodyWord(_read_number, _NUMBER) for name in ("epsilon", "rho", "share", "delta", "level")},
    "public": BodyWord(_read_public, {"type": "object", "additionalProperties": _ROWS}),
}
_ONE: dict[str, BodyWord] = {
    "sql": BodyWord(_read_sql, _SQL, needed=True),
    "error": BodyWord(_read_errors, {"type": "object", "additionalProperties": _NUMBER}),
    "group_size": BodyWord(_read_number, _NUMBER),
    "ends": BodyWord(_read_boolean, {"type": "boolean"}),
    "bounds": BodyWord(_read_text, {"type": "string", "enum": ["auto"]}),
    "parameters": BodyWord(_read_parameters, {"type": "object", "additionalProperties": {"type": _PLAIN}}),
}
_PRICED = ("epsilon", "rho", "share", "error", "delta", "level")
QUESTION: BodyWords = {**_ONE, **_OFFER}
PREVIEW: BodyWords = {**QUESTION, "curve": BodyWord(_read_boolean, {"type": "boolean"})}
BATCH: BodyWords = {
    "questions": BodyWord(_read_questions, {"type": "array", "minItems": 1, "items": _SQL}, needed=True),
    "weights": BodyWord(_read_numbers, {"type": "array", "minItems": 1, "items": _NUMBER}),
    "fixed": BodyWord(_read_boolean, {"type": "boolean"}),
    **_OFFER,
}
EXPLANATION: BodyWords = {name: QUESTION[name] for name in ("sql", "parameters", "public", *_PRICED)}
_NAME = {"type": "string", "minLength": 1, "maxLength": 1000}
_METERED: dict[str, BodyWord] = {name: QUESTION[name] for name in _PRICED if name != "error"}
BOUNDS: BodyWords = {
    "table": BodyWord(_read_text, _NAME, needed=True),
    "column": BodyWord(_read_text, _NAME, needed=True),
    **_METERED,
}
CONTRIBUTIONS: BodyWords = {
    "table": BodyWord(_read_text, _NAME, needed=True),
    "by": BodyWord(_read_names, {"type": "array", "items": _NAME}),
    **_METERED,
}
_SENTENCE = {"type": "string", "minLength": 1, "maxLength": _LONGEST_SENTENCE}
DECLARATION: BodyWords = {"reason": BodyWord(_read_sentence, _SENTENCE, needed=True)}
RENEWAL: BodyWords = {**DECLARATION, "other_people": BodyWord(_read_boolean, {"type": "boolean"}, needed=True)}
TOKEN: BodyWords = {
    "name": BodyWord(_read_text, {"type": "string", "minLength": 1, "maxLength": 100}, needed=True),
    "role": BodyWord(_read_role, {"type": "string", "enum": list(Role)}, needed=True),
    "project": BodyWord(_read_text, {"type": "string", "maxLength": 100}),
    "per_query": BodyWord(_read_number, _NUMBER),
    "days": BodyWord(_read_days, {"type": "integer", "minimum": 1, "maximum": 3660}),
}
HEADS: BodyWords = {"heads": BodyWord(_read_heads, {"type": "array", "items": {"type": "object"}, "maxItems": 100})}
