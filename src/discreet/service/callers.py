"""Who sent a request, and which dataset the token opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.late_dataclass import dataclass
from discreet.service.tokens import Token, TokenStore

if TYPE_CHECKING:
    from discreet.curator import Curator


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedDataset:
    """A dataset with its curator, its tokens, and the odds of its budget in words."""

    curator: Curator
    tokens: TokenStore
    odds: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sent a request: the token, and the one dataset that it opens."""

    token: Token
    dataset: ServedDataset

    @property
    def curator(self) -> Curator:
        """The curator, within the cap of the token."""
        curator, cap = self.dataset.curator, self.token.per_query
        return curator if cap is None else curator.limit(cap)

    @property
    def names(self) -> dict[str, Any]:
        """In whose name the curator is asked. It comes from the token and never from the request."""
        return {"analyst": self.token.name, "project": self.token.project}
