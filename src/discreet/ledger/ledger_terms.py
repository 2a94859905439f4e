"""The terms of a ledger: one dataset, the protected unit and relation, the budget, and the policy."""

from __future__ import annotations

from typing import Any, NotRequired, Self, TypedDict

from discreet.errors import LedgerError
from discreet.late_dataclass import dataclass
from discreet.ledger.amount_text import dump_budget
from discreet.ledger.policy import Policy
from discreet.ledger.state import COUNTING, VERSION, Rules, State
from discreet.privacy import Budget, Neighbours, Unit

_AMEND = "`discreet ledger amend CODEBOOK --by NAME --reason WHY`. Nothing was charged."


class DeclaredTerms(TypedDict):
    """The terms of a ledger as a caller types them, in ``SQLiteLedger.open`` and ``PostgresLedger.open``.

    ``policy`` may be left out, or None: then the ledger keeps the policy that it has.
    """

    dataset: str
    budget: Budget
    unit: Unit | str | None
    neighbours: Neighbours | str
    policy: NotRequired[Policy | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTerms:
    """The terms that a codebook states. Without a policy the ledger keeps the policy that it has.

    ``ledger_id`` is the identity that the ledger gets when it is made, and must have later; None leaves it to chance.
    """

    dataset: str
    budget: Budget
    unit: Unit
    neighbours: Neighbours
    policy: Policy | None = None
    ledger_id: str | None = None

    @classmethod
    def read(
        cls,
        *,
        dataset: str,
        budget: Budget,
        unit: Unit | str | None,
        neighbours: Neighbours | str,
        policy: Policy | None = None,
    ) -> Self:
        """The terms from what a caller typed: a unit may be a column name, neighbours the name of a relation."""
        unit, neighbours = Unit.read(unit), Neighbours.read(neighbours)
        return cls(dataset=dataset, budget=budget, unit=unit, neighbours=neighbours, policy=policy)

    def make_opening(self, spare: str) -> dict[str, Any]:
        """The first line of a new ledger; refused where the terms cannot be counted.

        ``spare`` is its identity where the terms name none.
        """
        policy = Policy() if self.policy is None else self.policy
        Rules.of(self.budget, policy)
        return {
            "version": VERSION,
            "ledger": self.ledger_id or spare,
            "dataset": self.dataset,
            "unit": self.unit.column,
            "neighbours": str(self.neighbours),
            "budget": dump_budget(self.budget),
            "policy": policy.dump(),
            "counting": COUNTING,
        }

    def check(self, state: State) -> None:
        """Refuse a ledger that was made for something else."""
        self.check_people(state)
        self._check_limits(state)

    def check_people(self, state: State) -> None:
        """Refuse a ledger of another dataset, or one that protects another unit or relation."""
        if self.dataset != state.dataset:
            raise LedgerError(
                "This ledger is of another dataset. Give the dataset its old name, or its ledger a place of its own. "
                "Nothing was charged."
            )
        if self.ledger_id not in (None, state.ledger):
            raise LedgerError(
                "This is another ledger than the one that the codebook's ledger_id names. Put the right one in its "
                "place. Nothing was charged."
            )
        if (self.unit, self.neighbours) != (state.unit, state.neighbours):
            raise LedgerError(
                f"This ledger protects {state.unit} ({state.neighbours}); the codebook says {self.unit} "
                f"({self.neighbours}). Losses of the two cannot be added. Undo the change, or start a dataset of "
                "another name. Nothing was charged."
            )

    def _check_limits(self, state: State) -> None:
        rules = state.rules
        if dump_budget(self.budget) != dump_budget(rules.budget):
            raise LedgerError(
                f"The ledger has {rules.budget!r}, the codebook {self.budget!r}. Undo the change, or put it on record "
                f"with {_AMEND}"
            )
        if self.policy is not None and self.policy.dump() != rules.policy.dump():
            raise LedgerError(
                "The caps or names in the codebook differ from the ledger's. Undo the change, or put it on record with "
                f"{_AMEND}"
            )
