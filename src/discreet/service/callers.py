"""Who sends a request, and the dataset that is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.late_dataclass import dataclass
from discreet.service.served_dataset import OpenedCodebook, ServedDataset
from discreet.service.tokens import Token

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.engines.engine import ProgressCallback


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sent a request: the token, and the one dataset that it opens, as it was when the request began."""

    token: Token
    dataset: ServedDataset
    opened: OpenedCodebook
    watch: ProgressCallback | None = None

    @property
    def curator(self) -> Curator:
        """The curator, within the cap of the token."""
        curator, cap = self.opened.curator, self.token.per_query
        return curator if cap is None else curator.limit(cap)

    @property
    def names(self) -> dict[str, Any]:
        """In whose name the curator is asked. It comes from the token and never from the request."""
        return {"analyst": self.token.name, "project": self.token.project}

    @property
    def sees_everybody(self) -> bool:
        """Whether the charges of all are shown: to owners and auditors, and to analysts where the owner says so."""
        return self.token.role.sees_everybody or self.opened.shared


def make_caller(token: Token, dataset: ServedDataset) -> Caller:
    """The bearer of a token."""
    return Caller(token=token, dataset=dataset, opened=dataset.opened)
