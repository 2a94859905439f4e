"""Refusals as ERROR messages: SQLSTATE, words, hint, place, and whether anything was charged."""

from __future__ import annotations

from discreet import errors
from discreet.service.messages import RefusalCode, RequestRefused
from discreet.wire.backend_messages import Severity, WireNotice

PROTOCOL_VIOLATION = "08P01"
FEATURE_NOT_SUPPORTED = "0A000"
INVALID_PASSWORD = "28P01"  # noqa: S105  # the name of a state
INVALID_AUTHORIZATION = "28000"
UNDEFINED_DATABASE = "3D000"
UNDEFINED_STATEMENT, UNDEFINED_PORTAL = "26000", "34000"
DUPLICATE_STATEMENT, DUPLICATE_PORTAL = "42P05", "42P03"
UNDEFINED_TABLE, UNDEFINED_FUNCTION, UNDEFINED_OBJECT = "42P01", "42883", "42704"
SYNTAX_ERROR = "42601"
FAILED_TRANSACTION = "25P02"
READ_ONLY = "25006"
INVALID_VALUE = "22023"
INVALID_PARAMETER = "22P02"
NOT_ALLOWED = "42501"
TOO_MANY_CONNECTIONS = "53300"
LIMIT_EXCEEDED = "54000"
QUERY_CANCELED = "57014"
SHUT_DOWN, IDLE_TOO_LONG = "57P01", "57P05"
INTERNAL = "XX000"

_CHARGED = {
    False: "Nothing was charged.",
    True: "The charge stands: the same question is answered under it.",
    None: "Whether it was charged is not known: the history says so.",
}

# The nearest class decides.
_STATES: dict[type[errors.DiscreetError], str] = {
    errors.QuestionError: SYNTAX_ERROR,
    errors.ParameterError: INVALID_VALUE,
    errors.UsageError: "42000",
    errors.CodebookError: "F0000",
    errors.LedgerError: "55000",
    errors.RequestInFlight: "55P03",
    errors.BudgetExceeded: "53400",
    errors.LedgerDamaged: "XX001",
    errors.PrivacyError: NOT_ALLOWED,
    errors.LedgerFailure: "58030",
    errors.DiscreetError: INTERNAL,
}
_CODES = {
    RefusalCode.TOO_MANY_REQUESTS: TOO_MANY_CONNECTIONS,
    RefusalCode.FORBIDDEN: NOT_ALLOWED,
    RefusalCode.UNAUTHORIZED: INVALID_PASSWORD,
    RefusalCode.TOO_LARGE: LIMIT_EXCEEDED,
    RefusalCode.CANCELLED: QUERY_CANCELED,
}
STATE_COST = (
    "Say what it may cost: SET discreet.epsilon = 0.1 (or discreet.rho, discreet.share, discreet.error), "
    "options=-c discreet.epsilon=0.1 in the connection string, or WITH DP(epsilon=0.1) SELECT. "
    "EXPLAIN SELECT shows for free what an offer buys."
)


class WireRefused(Exception):
    """A statement that the door refuses. ``place`` counts characters of its own text from 0."""

    def __init__(
        self, code: str, message: str, hint: str = "", *, place: int | None = None, fatal: bool = False
    ) -> None:
        self.code, self.message, self.hint, self.place, self.fatal = code, message, hint, place, fatal
        super().__init__(message)


def describe_refusal(refused: WireRefused, offset: int) -> WireNotice:
    """The message of a refusal. Nothing was charged."""
    return WireNotice(
        severity=Severity.FATAL if refused.fatal else Severity.ERROR,
        code=refused.code,
        message=_end(refused.message, charged=False),
        hint=refused.hint,
        position=None if refused.place is None else offset + refused.place + 1,
    )


def describe_error(error: errors.DiscreetError, text: str, offset: int, *, charged: bool | None) -> WireNotice:
    """The message of an error of the curator; its place in the client's whole text."""
    code = next(_STATES[kind] for kind in type(error).__mro__ if kind in _STATES)
    message, hint, position = str(error), "", None
    if isinstance(error, errors.QuestionError):
        message, hint = error.rule, error.fix
        if error.line is not None and error.column is not None:
            position = offset + find_place(text, error.line, error.column) + 1
    elif isinstance(error, errors.ParameterError):
        message = f"{error.name} {error.problem}."
        hint = error.fix
        if error.name == "cost" and error.problem.startswith("must be given"):
            message, hint = "This question states no cost, and none is assumed.", STATE_COST
    hint = hint.replace(" Nothing was charged.", "")
    return WireNotice(
        severity=Severity.ERROR, code=code, message=_end(message, charged=charged), hint=hint, position=position
    )


def describe_request_refusal(refused: RequestRefused) -> WireNotice:
    """The message of what the service itself refuses."""
    code = _CODES.get(refused.code, SYNTAX_ERROR)
    message = _end(refused.rule, charged=False)
    return WireNotice(severity=Severity.ERROR, code=code, message=message, hint=refused.fix)


def describe_unforeseen(*, charged: bool | None) -> WireNotice:
    """The one message of everything that nobody foresaw: its words never vary with what went wrong."""
    message = _end("Something went wrong on our side.", charged=charged)
    return WireNotice(severity=Severity.ERROR, code=INTERNAL, message=message)


def describe_cancelled(*, charged: bool | None) -> WireNotice:
    """The message of a question that its analyst has ended."""
    message = _end("The question was ended.", charged=charged)
    return WireNotice(severity=Severity.ERROR, code=QUERY_CANCELED, message=message, hint="Ask again to go on.")


def find_place(text: str, line: int, column: int) -> int:
    r"""Where a line and a column are in a text, from 0.

    >>> find_place("SELECT\n wrd", 2, 2)
    8
    """
    lines = text.split("\n")
    return sum(len(each) + 1 for each in lines[: line - 1]) + column - 1


def _end(message: str, *, charged: bool | None) -> str:
    """A message that says at its end whether anything was charged, once."""
    said = _CHARGED[charged]
    known = said in message or (charged is True and "charge stands" in message)
    return message if known else f"{message} {said}"
