"""What a statement is: a question, EXPLAIN of one, or SET of what questions may cost; and :name as @name.

A text is split into what is code and what is not: texts, quoted names and comments stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.dbapi.exceptions import ProgrammingError

_PARTS = re.compile(
    r"""'(?:[^']|'')*'        # a text
      | "(?:[^"]|"")*"        # a name in quotes
      | `[^`]*`               # a name of the GoogleSQL form
      | --[^\n]*              # a comment to the end of the line
      | /\*.*?\*/             # a comment
      | ::                    # a cast
      | :([A-Za-z_]\w*)       # a parameter
    """,
    re.S | re.X,
)
_SET = re.compile(
    r"\s*SET\s+discreet\.(epsilon|rho|share|delta|level)\s*(?:=|\sTO\s)\s*'?([0-9.eE+-]+(?:/[0-9]+)?|DEFAULT)'?\s*;?\s*",
    re.I,
)
_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?=SELECT\b|WITH\b)", re.I)
_EXCLUSIVE = ("epsilon", "rho", "share", "error")


def bind_names(sql: str, parameters: Mapping[str, Any]) -> str:
    """The text with @name for each :name that has a value; one without a value is refused.

    >>> bind_names("SELECT COUNT(*) FROM v WHERE a > :low AND b = ':no' -- :no", {"low": 3})
    "SELECT COUNT(*) FROM v WHERE a > @low AND b = ':no' -- :no"
    """

    def replace(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return found[0]
        if name not in parameters:
            raise ProgrammingError(f"The statement has no value for :{name}. Give it by name. Nothing was charged.")
        return f"@{name}"

    return _PARTS.sub(replace, sql)


def states_price(sql: str) -> bool:
    """Whether the text of a question states its own price, as the GoogleSQL form does."""
    words = sql.upper()
    return "DIFFERENTIAL_PRIVACY" in words and "EPSILON" in words


def cut_explain(sql: str) -> str | None:
    """The question that is to be explained, or None."""
    found = _EXPLAIN.match(sql)
    return None if found is None else sql[found.end() :]


def read_set(sql: str, offer: Mapping[str, Any]) -> dict[str, Any] | None:
    """The offer after a SET, or None where it is none. Of ε, ρ, share and error only the last one said holds."""
    found = _SET.fullmatch(sql)
    if found is None:
        return None
    name, text = found[1].lower(), found[2]
    kept = {word: value for word, value in offer.items() if word != name}
    if text.upper() == "DEFAULT":
        return kept
    if name in _EXCLUSIVE:
        kept = {word: value for word, value in kept.items() if word not in _EXCLUSIVE}
    try:
        return {**kept, name: Fraction(text)}
    except (ValueError, ZeroDivisionError):
        raise ProgrammingError(f"SET discreet.{name} takes a number. Nothing was changed.") from None
