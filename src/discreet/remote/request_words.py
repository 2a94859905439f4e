"""What a caller says, as JSON: numbers exactly, public rows, and questions as text."""

from __future__ import annotations

import datetime as dt
import numbers
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from discreet.errors import ParameterError, UsageError
from discreet.exact import Ln
from discreet.frontends.chain.builder import TableBuilder
from discreet.frontends.chain.sql_text import write_question
from discreet.parameters import kind_of, read_number
from discreet.plan.relations import Values
from discreet.public_tables import read_public_values

_NUMBERS = ("epsilon", "rho", "share", "delta", "level", "group_size")


def write_question_words(question: Any, public: Mapping[str, Any] | None) -> tuple[str, dict[str, Any] | None]:
    """The text of a question, which is SQL or a chain, and the public tables that it brings."""
    if isinstance(question, str):
        return question, _write_public(public)
    if isinstance(question, TableBuilder):
        tables: dict[str, Any] = {values.name: values for values in question.public}
        return write_question(question), _write_public({**tables, **(public or {})})
    rule = f"must be SQL or a chain; got {kind_of(question)}"
    raise ParameterError("question", rule, 'Write ask("SELECT ...", share=0.1). Nothing was charged.')


def write_offer(offer: Mapping[str, Any]) -> dict[str, Any]:
    """The words of an offer that were said, with numbers exactly as they were typed."""
    said = {name: value for name, value in offer.items() if value is not None}
    for name in _NUMBERS:
        if name in said:
            said[name] = _write_number(said[name], name)
    if "error" in said:
        if not isinstance(said["error"], Mapping):
            raise ParameterError("error", "must be sizes by column", "Write error={'n': 12}. Nothing was charged.")
        said["error"] = {column: _write_number(size, "error") for column, size in said["error"].items()}
    if "weights" in said:
        said["weights"] = [_write_number(weight, "weights") for weight in said["weights"]]
    if "parameters" in said:
        said["parameters"] = {name: _write_value(value) for name, value in said["parameters"].items()}
    return said


def _write_number(value: object, name: str) -> int | str:
    """A number as text, exactly: a float is the decimal that it prints as, here as at home."""
    if isinstance(value, Ln):
        fix = "Give a number, such as 1.0986 for ln(3). Nothing was charged."
        raise ParameterError(name, "as a logarithm cannot be sent", fix)
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    return str(read_number(value, name))


def _write_value(value: Any) -> Any:
    """A parameter of a question. Days and times are texts, which the reader takes for what they are."""
    return value.isoformat() if isinstance(value, dt.date) else value


def _write_public(tables: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Public tables as rows. A text is the id of a request of one's own, whose answer is the table."""
    if not tables:
        return None
    return {name: table if isinstance(table, str) else _write_rows(name, table) for name, table in tables.items()}


def _write_rows(name: str, table: Any) -> list[dict[str, Any]]:
    values = table if isinstance(table, Values) else read_public_values({name: table})[name]
    if any(kind.is_time for _, kind in values.columns) or _holds(values, dt.date):
        raise UsageError(
            f"The public table {name!r} has days or times, which rows that are sent cannot hold. Name the request that "
            f"gave them, public={{{name!r}: answer.receipt['request']}}, or write them as texts. Nothing was charged."
        )
    names = [column for column, _ in values.columns]
    return [dict(zip(names, row)) for row in values.rows]


def _holds(values: Values, kind: type) -> bool:
    return any(isinstance(value, kind) for row in values.rows for value in row)
