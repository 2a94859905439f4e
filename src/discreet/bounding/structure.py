"""Whether a question is made of what it says: exactly the classes of ``plan``, tuples and plain values, not too deep.

Front ends write only such questions; but a question is a plain value that anybody can write in Python. What is checked
must be what is run: so there is nothing in it that can change afterwards (a list), that decides for itself what it
equals (a subclass), that no engine could write down (half a character), or that is so deep or large that it would end
in the stack and not in an answer. This comes before everything else that looks at a question, and asks no question of
meaning; ``shape`` and ``stability`` do.
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

# How deep relations and expressions stand in each other, and of how many parts a question is. Public rows count apart.
MOST_DEEP = 250
MOST_PARTS = 100_000


def check_structure(question: object) -> None:
    """Refuse what is no question through and through."""
    if type(question) is not Question:
        raise _make_error("this is no question")
    left: list[tuple[Any, Any, int]] = [(question, Question, 0)]
    parts = 0
    while left:
        value, hint, depth = left.pop()
        parts += 1
        if depth > MOST_DEEP or parts > MOST_PARTS:
            limits = f"more than {MOST_DEEP} conditions, functions and relations within each other, or {MOST_PARTS:,}"
            raise _make_error(f"it has {limits} parts in all")
        left += _parts_of(value, hint, depth)


def _parts_of(value: Any, hint: Any, depth: int) -> Iterator[tuple[Any, Any, int]]:
    """The parts of a part, with what each should be. Classes are compared exactly."""
    wanted = next((one for one in _choices_of(hint) if type(value) is (get_origin(one) or one)), None)
    if wanted is None:
        raise _make_error(f"something is of the kind {type(value).__name__} where it cannot be")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, tuple):
        members = get_args(wanted)
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
        kind: type = type(value)
        hints = _hints_of(kind)
        yield from ((getattr(value, part.name), hints[part.name], depth + 1) for part in fields(value))


@cache
def _hints_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _choices_of(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)


def _check_rows(rows: object) -> None:
    """Public rows are many, so they are looked at together."""
    if type(rows) is not tuple or not {type(row) for row in rows} <= {tuple}:
        raise _make_error("public rows must be tuples in a tuple")
    if not {type(value) for row in rows for value in row} <= set(_choices_of(Value)):
        raise _make_error("a public row holds something that is no value")
    for row in rows:
        for value in row:
            if isinstance(value, str):
                _check_text(value)


def _check_text(text: str) -> None:
    """Half a character is a text in Python, and nowhere else."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise _make_error("a text holds half a character (a lone surrogate)")


def _make_error(what: str) -> UsageError:
    return UsageError(f"This question is not well formed: {what}. Nothing was charged.")
