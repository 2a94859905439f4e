"""What of a table cannot be read, by column and reason. The numbers are exact: they are for the owner of the data."""

from __future__ import annotations

from discreet.late_dataclass import dataclass

# What programs write where there is no value. In columns that are not text such words are no faults.
MISSING_WORDS = ("na", "n/a", "nan", "null", "none", "nil", "nat", "<na>", "#n/a", "\\n", "-", "--", ".", "?")


@dataclass(frozen=True, slots=True)
class Unread:
    """So many values of a column, or lines where it is None, are missing for one reason.

    ``example`` is one of the values. ``meant`` is true where the value says itself that it is missing, such as NA.
    """

    column: str | None
    reason: str
    count: int
    example: str | None = None
    meant: bool = False


@dataclass(frozen=True, slots=True)
class ValueReport:
    """The rows that were read, what is missing in them or beside them, and how many units they name, if asked for."""

    rows: int
    unread: tuple[Unread, ...]
    units: int | None = None
