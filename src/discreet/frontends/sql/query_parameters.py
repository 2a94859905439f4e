"""Parameters of a text: @name, or $name in plain SQL, with values that are given beside it.

A value takes the place of its parameter among the words, as one constant, before anything is parsed. So it cannot
change what the text says around it, and the question is the one with the value written out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.frontends.sql.places import Places
from discreet.frontends.terms import constants
from discreet.frontends.terms.positions import refusal

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token


def bind_parameters(tokens: list[Token], places: Places, values: Mapping[str, Any]) -> list[Token]:
    """The words with values in place of parameters. A parameter without a value, or a value without one, is refused."""
    bound: list[Token] = []
    used: set[str] = set()
    at = 0
    while at < len(tokens):
        token = tokens[at]
        name = tokens[at + 1] if at + 1 < len(tokens) else None
        if token.token_type.name != "PARAMETER" or name is None or name.start != token.end + 1:
            bound.append(token)
            at += 1
            continue
        if name.text not in values:
            fix = f"Give it beside the question: parameters={{{name.text!r}: 1}}."
            raise refusal(places.of_token(name), f"There is no value for the parameter {name.text!r}.", fix)
        used.add(name.text)
        bound += _write_value(values[name.text], token)
        at += 2
    for left in values.keys() - used:
        raise refusal(None, f"There is no parameter {left!r} in the question.", "Leave its value out.")
    return bound


def _write_value(value: Any, token: Token) -> list[Token]:
    """A value as the words of a constant, all at the place of its parameter."""
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.tokenizer_core import Token, TokenType

    here = (token.line, token.col, token.start, token.end)
    known = constants.read_python_value(value)
    if isinstance(known, str):
        return [Token(TokenType.STRING, known, *here)]
    words = DuckDB().tokenize(_write_constant(known))
    return [Token(word.token_type, word.text, *here) for word in words]


def _write_constant(value: bool | float | dt.date | None) -> str:  # noqa: FBT001  # a value
    if value is None or isinstance(value, bool):
        return str(value).upper() if value is not None else "NULL"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return f"({value!r})" if value < 0 else repr(value)
