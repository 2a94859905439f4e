"""Checks that a question is made of the classes of ``plan``, tuples and plain values only, and is not too deep.

Front ends make only such questions, but a question is a plain value that anybody can write in Python. The question that
is checked must be the question that is run. So four things are refused: a value that can change after the check (a
list); a subclass, which could define its own equality; a text that no engine can store (half of a surrogate pair); and
a question so deep or large that it would exhaust the stack. This check comes before all others. It does not ask what
the question means; ``shape`` and ``stability`` do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from discreet.errors import UsageError
from discreet.plan.nodes import Question
from discreet.plan.relations import Values
from discreet.plan.types import Value

# How deep relations and expressions may be nested, and how many parts a question may have. Public rows are not counted.
MAX_DEPTH = 250
MAX_PARTS = 100_000


def check_structure(question: object) -> None:
    """Refuse a value that is not a question, or that has a part of a wrong class."""
    if type(question) is not Question:
        raise _make_error("this is no question")
    pending: list[tuple[Any, Any, int]] = [(question, Question, 0)]
    parts = 0
    while pending:
        value, hint, depth = pending.pop()
        parts += 1
        if depth > MAX_DEPTH or parts > MAX_PARTS:
            limits = f"more than {MAX_DEPTH} conditions, functions and relations within each other, or {MAX_PARTS:,}"
            raise _make_error(f"it has {limits} parts in all")
        pending += _parts_of(value, hint, depth)


def _parts_of(value: Any, hint: Any, depth: int) -> Iterator[tuple[Any, Any, int]]:
    """The parts of a value, each with the class that it should have and its depth. Classes are compared exactly."""
    kind: type = type(value)
    expected = next((one for own, one in _choices_of(hint) if kind is own), None)
    if expected is None:
        raise _make_error(f"something is of the kind {kind.__name__} where it cannot be")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, tuple):
        members = get_args(expected)
        if members[-1] is Ellipsis:
            members = members[:1] * len(value)
        if len(members) != len(value):
            raise _make_error("something has more or fewer parts than it should")
        yield from ((part, member, depth) for part, member in zip(value, members))
    elif isinstance(value, Values):
        yield value.name, str, depth
        yield value.columns, _hints_of(Values)["columns"], depth
        _check_rows(value.rows)
    elif is_dataclass(value):
        hints = _hints_of(kind)
        yield from ((getattr(value, part.name), hints[part.name], depth + 1) for part in fields(value))


@cache
def _hints_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _choices_of(hint: Any) -> tuple[tuple[Any, Any], ...]:
    """What may stand where a hint is: classes, each with the hint that says so."""
    choices = get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)
    return tuple((get_origin(one) or one, one) for one in choices)


def _check_rows(rows: object) -> None:
    """Refuse public rows that are not tuples of plain values. Rows may be many, so classes are compared in sets."""
    if type(rows) is not tuple or not {type(row) for row in rows} <= {tuple}:
        raise _make_error("public rows must be tuples in a tuple")
    if not {type(value) for row in rows for value in row} <= {kind for kind, _ in _choices_of(Value)}:
        raise _make_error("a public row holds something that is no value")
    for row in rows:
        for value in row:
            if isinstance(value, str):
                _check_text(value)


def _check_text(text: str) -> None:
    """Refuse half of a surrogate pair, which is a text in Python and nowhere else."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise _make_error("a text holds half a character (a lone surrogate)")


def _make_error(what: str) -> UsageError:
    return UsageError(f"This question is not well formed: {what}. Nothing was charged.")
