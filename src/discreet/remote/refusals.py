"""Problem documents of a server as our own errors: the same classes, words, places and fixes as at home.

``charged`` of such an error is what the server said: whether a charge for the request is on record and stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from discreet import errors
from discreet.errors import DiscreetError, InternalError, ParameterError, QuestionError, ServiceRefused

_ENDING = " Nothing was charged."


def make_error(problem: Mapping[str, Any]) -> DiscreetError:
    """The error that a problem document describes."""
    code, detail = str(problem.get("code", "")), str(problem.get("detail", "The server gave no reason."))
    fix, place = str(problem.get("fix") or ""), problem.get("place") or {}
    kind = _KINDS.get(code)
    if kind is None:
        made: DiscreetError = ServiceRefused(detail, code, fix)
    elif kind is ParameterError:
        name = str(place.get("parameter", ""))
        made = ParameterError(name, detail.removeprefix(f"{name} ").removesuffix(fix).rstrip(" ."), fix)
    elif kind is QuestionError:
        made = _make_question_error(detail, fix, place)
    else:
        made = kind.__new__(kind)
        Exception.__init__(made, detail)  # the words of the server, whatever the class would say by itself
    charged = problem.get("charged")
    made.charged = charged if isinstance(charged, bool) else None
    return made


def _make_question_error(detail: str, fix: str, place: Mapping[str, Any]) -> QuestionError:
    """The rule is what stands between the place and the fix."""
    line, column, excerpt = place.get("line"), place.get("column"), str(place.get("excerpt") or "")
    rule = detail.removesuffix(_ENDING).removesuffix(fix).strip()
    if line is not None:
        rule = rule.removeprefix(f"line {line}, column {column}: ")
    return QuestionError(rule.removesuffix(excerpt).strip(), fix, line, column, excerpt)


def _list_kinds(root: type[DiscreetError]) -> Iterator[type[DiscreetError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _list_kinds(kind)


# What this machine alone can say is not made from a server's words.
_HERE = {ServiceRefused, errors.ServiceUnreachable}
_KINDS = {
    kind.code: kind for kind in _list_kinds(DiscreetError) if kind.__module__ == errors.__name__ and kind not in _HERE
}


def is_passing(status: int, problem: Mapping[str, Any]) -> bool:
    """Whether a refusal may go away by itself, so that the same request is worth another try.

    Our own refusals are final, but those that say wait; what has no problem document comes from a proxy.
    """
    code = problem.get("code")
    if code is None:
        return status >= _FIRST_FAILURE
    return code in ("too-many-requests", "request-in-flight", InternalError.code)


_FIRST_FAILURE = 500
