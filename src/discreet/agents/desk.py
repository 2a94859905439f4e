"""The desk at which an agent asks: it says what is there and what it costs, and never spends more than was said.

Privacy: the desk only calls a curator, which charges and draws as for everybody else. What it adds can refuse, and
nothing more. A question is asked at an explicit share of the budget, so its charge is no more than ``at_most``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.accounting.cost_words import describe_cost
from discreet.agents import agent_words
from discreet.agents.agent_words import describe_price
from discreet.agents.at_most import describe_share, find_share, read_at_most
from discreet.agents.confirmations import Confirmations
from discreet.errors import BudgetExceeded, ParameterError, UsageError
from discreet.late_dataclass import dataclass
from discreet.parameters import read_number

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.ledger.ledger import Entry
    from discreet.preview import Preview
    from discreet.remote.remote_curator import RemoteCurator

CONFIRM_ABOVE = Fraction(1, 10)
# What is added where a price is asked as a share, so that a rounding does not make it too small; far below any error.
_ROUNDING = Fraction(1, 10**9)
_CLAUSE = "DIFFERENTIAL_PRIVACY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A curator for one agent. ``names`` say in whose name it asks, where no token does; ``who`` tells agents apart."""

    curator: Curator | RemoteCurator
    names: Mapping[str, Any] = field(default_factory=dict)
    who: str = ""
    confirm_above: Fraction = CONFIRM_ABOVE
    confirmations: Confirmations = field(default_factory=Confirmations)

    def describe(self) -> str:
        """Tables, columns, who is protected, what is left."""
        curator = self.curator
        return agent_words.describe_dataset(curator.name, curator.catalog, curator.remaining)

    def preview(self, sql: str, at_most: str, error: Mapping[str, float] | None = None) -> str:
        """What a question would cost and how far off it would be; free."""
        shown, share = self._price(sql, read_at_most(at_most, self.curator.budget), error)
        return agent_words.describe_preview(shown, share)

    def ask(
        self,
        sql: str,
        at_most: str,
        error: Mapping[str, float] | None = None,
        *,
        confirm: str = "",
        request: str | None = None,
    ) -> str:
        """Answer a question that costs no more than ``at_most``; a dear one needs the value that confirms it."""
        most = read_at_most(at_most, self.curator.budget)
        shown, share = self._price(sql, most, error)
        offer: dict[str, Any] = {}
        if share is not None:
            self._check_price(shown, share, most)
            self._check_confirmed(sql, shown, share, confirm)
            offer = {} if _states_price(sql) else {"share": min(most, share + _ROUNDING)}
        elif not _states_price(sql):
            offer = {"share": most} if error is None else {"error": _read_errors(error)}
        answer = self.curator.ask(sql, **offer, **self.names, request=request)
        return agent_words.describe_answer(answer)

    def history(self) -> str:
        """What this agent was charged."""
        entries = self._list_entries()
        costs = (describe_cost(self.curator.budget, entry.charge.loss) for entry in entries)
        return agent_words.describe_history(entries, costs)

    def budget(self) -> str:
        """What is left, what this agent spent, and from where on a question has to be confirmed."""
        budget = self.curator.budget
        spent = sum((find_share(budget, entry.charge.loss) for entry in self._list_entries()), Fraction(0))
        return (
            f"Left: {self.curator.remaining}. Your questions cost {describe_share(spent)} so far. "
            f"A question above {describe_share(self.confirm_above)} has to be confirmed. "
            "The budget is shared and does not come back."
        )

    def _list_entries(self) -> list[Entry]:
        who = self.names.get("analyst") or getattr(self.curator, "analyst", "")
        return [entry for entry in self.curator.history() if entry.charge.analyst == who]

    def _price(self, sql: str, most: Fraction, error: Mapping[str, float] | None) -> tuple[Preview, Fraction | None]:
        """What a question would cost, as a preview and as a share; None for the share where it is free."""
        if not isinstance(sql, str) or not sql.strip():
            raise UsageError("The question is empty. Write one SELECT. Nothing was charged.")
        if error is not None and _states_price(sql):
            raise ParameterError("error", "goes with SQL that states no epsilon", "Leave one of them out.")
        offer: dict[str, Any] = {} if _states_price(sql) else {"share": most}
        if error is not None:
            offer = {"error": _read_errors(error)}
        shown = self.curator.preview(sql, **offer, **self.names)
        free = shown.answered or shown.to_dict()["loss"] is None
        return shown, None if free else find_share(self.curator.budget, shown.loss)

    def _check_price(self, shown: Preview, share: Fraction, most: Fraction) -> None:
        if share > most * (1 + _ROUNDING):
            raise BudgetExceeded(
                f"This question would cost {describe_price(shown.cost, share)}: more than at_most allows. "
                "Ask for a larger error, for fewer columns, or allow more. Nothing was charged."
            )

    def _check_confirmed(self, sql: str, shown: Preview, share: Fraction, confirm: str) -> None:
        if share <= self.confirm_above:
            return
        asked = (self.who, sql, str(share))
        if self.confirmations.check(confirm, *asked):
            return
        raise UsageError(
            f"This question would cost {describe_price(shown.cost, share)}: more than "
            f"{describe_share(self.confirm_above)}, so it has to be confirmed. Tell the person what it is for and what "
            f"it costs; if they agree, call ask again with confirm={self.confirmations.make(*asked)!r}. Or ask for "
            "less. Nothing was charged."
        )


def _states_price(sql: str) -> bool:
    """Whether the text seems to state its own price, as the GoogleSQL form does."""
    return _CLAUSE in sql.upper() and "EPSILON" in sql.upper()


def _read_errors(error: Mapping[str, float]) -> dict[str, Fraction]:
    return {column: read_number(size, "error") for column, size in error.items()}
