"""The exceptions of the database standard, and which of them an error of ours is.

The error itself stays reachable as the cause, with its code, place and fix. Where nothing was charged, it says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from discreet import errors
from discreet.errors import DiscreetError


class DatabaseWarning(Exception):
    """Something worth knowing that is no error; the standard calls it Warning."""


class DbapiError(Exception):
    """The root of the standard's errors; the standard calls it Error."""

    code = ""
    charged: bool | None = None


class InterfaceError(DbapiError):
    """The connection or the cursor was used wrongly, such as after it was closed."""


class DatabaseError(DbapiError):
    """The root of what the curator refuses."""


class DataError(DatabaseError):
    """A value is of the wrong kind or outside of its range."""


class OperationalError(DatabaseError):
    """The budget, the ledger or the server does not allow it now."""


class IntegrityError(DatabaseError):
    """Never raised: nothing can be written."""


class InternalDatabaseError(DatabaseError):
    """A fault of ours; the standard calls it InternalError."""


class ProgrammingError(DatabaseError):
    """The question or the call is wrong."""


class NotSupportedError(DatabaseError):
    """Privacy, or the nature of the thing, forbids it: rows, writing, many sets of parameters."""


# The nearest class decides.
_KINDS: dict[type[DiscreetError], type[DbapiError]] = {
    errors.ParameterError: DataError,
    errors.QuestionError: ProgrammingError,
    errors.LedgerError: OperationalError,
    errors.ServiceRefused: OperationalError,
    errors.ServiceUnreachable: OperationalError,
    errors.CodebookError: OperationalError,
    errors.UsageError: ProgrammingError,
    errors.BudgetExceeded: OperationalError,
    errors.LedgerDamaged: OperationalError,
    errors.PrivacyError: NotSupportedError,
    errors.InternalError: InternalDatabaseError,
    errors.DiscreetError: DatabaseError,
}


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise what the standard has for an error of ours."""
    try:
        yield
    except DiscreetError as error:
        kind = next(_KINDS[each] for each in type(error).__mro__ if each in _KINDS)
        made = kind(str(error))
        made.code, made.charged = error.code, error.charged
        raise made from error
