"""The roles of those who have a token."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What the bearer of a token may do: an owner and an analyst ask, an auditor sees no answers."""

    OWNER = "owner"
    ANALYST = "analyst"
    AUDITOR = "auditor"

    @property
    def may_ask(self) -> bool:
        """Whether questions may be asked, and answers seen again."""
        return self is not Role.AUDITOR

    @property
    def sees_everybody(self) -> bool:
        """Whether the history shows the charges of all."""
        return self is not Role.ANALYST
