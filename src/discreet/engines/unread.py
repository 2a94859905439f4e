"""What of a table cannot be read, by column and reason. The numbers are exact: they are for the owner of the data."""

from __future__ import annotations

from discreet.late_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Unread:
    """So many values of a column, or lines where it is None, are missing for one reason."""

    column: str | None
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class ValueReport:
    """The rows that were read, and what is missing in them or beside them."""

    rows: int
    unread: tuple[Unread, ...]
