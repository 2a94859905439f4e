"""The values of a privacy guarantee: the unit, the neighbours, the loss and the budget.

- ``Unit`` says who is protected: one row (event level) or one person across rows (user level).
- ``Neighbours`` says which two datasets must look alike: one unit added or removed, or one unit replaced by another.
- ``Loss`` says what a release costs, in every notion that is valid for it.
- ``Budget`` says what may be spent, in the notion that the curator declares.

The notions themselves (pure, approximate, zCDP, Rényi, Gaussian, privacy-loss distribution) are in ``accounting``. A
``Loss`` asks its notions and takes the tightest answer. It refuses to add losses that have no notion in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias

from discreet import parameters
from discreet.errors import MixedGuarantees, ParameterError, UnknownLoss
from discreet.exact import Exact, Ln, float_down, float_up
from discreet.late_dataclass import dataclass
from discreet.odds import Odds, tail_epsilon
from discreet.parameters import Epsilon, Number


class Neighbours(StrEnum):
    """Which pairs of datasets a guarantee compares."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"

    @classmethod
    def read(cls, value: object) -> Neighbours:
        """A relation from its name, with the two names in the error."""
        try:
            return cls(value)  # type: ignore[arg-type]  # anything but a known name is refused below
        except ValueError:
            fix = "Use 'add-remove' (the number of units may vary) or 'replace' (it is fixed and public)."
            raise ParameterError("neighbours", "is not a known relation", fix) from None


@dataclass(frozen=True, slots=True)
class Unit:
    """Who is protected: one row, or everything that one value of a column owns.

    >>> print(Unit(), "/", Unit("patient_id"))
    one row / one patient_id
    """

    column: str | None = None

    def __post_init__(self) -> None:
        if self.column is not None and (not isinstance(self.column, str) or not self.column):
            raise ParameterError("unit", "must be a column name or None", "Unit() protects one row.")

    @classmethod
    def read(cls, value: object) -> Unit:
        """A unit from itself, a column name, or None for one row."""
        return value if isinstance(value, Unit) else cls(value)  # type: ignore[arg-type]  # __post_init__ checks

    @property
    def level(self) -> str:
        """``event`` when a row is protected, ``user`` when a person across rows is."""
        return "event" if self.column is None else "user"

    def __str__(self) -> str:
        return "one row" if self.column is None else f"one {self.column}"


class Notion(Protocol):
    """One way of stating a loss, as a frozen value. The members are in ``accounting``: ``PureNotion``,
    ``ApproximateNotion``, ``ZeroConcentratedNotion``, ``Renyi``, ``GaussianNotion`` and ``LossDistribution``.

    ``epsilon`` and ``delta`` give certified upper bounds, rounded up. They are infinity and 1 where none is known.
    """

    kind: ClassVar[str]

    def epsilon(self, delta: float) -> float:
        """The smallest ε known to hold at this δ."""
        ...

    def delta(self, epsilon: float) -> float:
        """The smallest δ known to hold at this ε."""
        ...

    def compose(self, other: Self) -> Self:
        """The loss of both releases together, where the second one may depend on the first."""
        ...

    def repeat(self, count: int) -> Self:
        """The loss of ``count`` such releases."""
        ...

    def for_group(self, size: int) -> Self | None:
        """The loss against ``size`` units at once, or None where no rule is known."""
        ...

    def words(self) -> str:
        """The parameters as text for people, such as ``ε = 1``."""
        ...


@dataclass(frozen=True, slots=True)
class Loss:
    """What a release costs the protected unit, in every notion that is valid for it.

    Adding two losses composes them (adaptively: the second release may depend on the first answer).
    """

    notions: tuple[Notion, ...]
    unit: Unit
    neighbours: Neighbours

    def __post_init__(self) -> None:
        kinds = [notion.kind for notion in self.notions]
        if len(set(kinds)) != len(kinds) or not kinds:
            raise ParameterError("notions", "must be one of each kind, at least one", "Merge them with compose first.")

    def notion(self, kind: str) -> Notion:
        """The loss stated in one notion; refused where that notion is not valid for it."""
        for notion in self.notions:
            if notion.kind == kind:
                return notion
        valid = ", ".join(repr(notion.kind) for notion in self.notions)
        raise UnknownLoss(f"This loss has no valid bound in the notion {kind!r}; it has {valid}.")

    def has(self, kind: str) -> bool:
        """Whether this loss can be stated in a notion."""
        return any(notion.kind == kind for notion in self.notions)

    def _choose_notions(self, notion: str | None) -> Iterable[Notion]:
        return self.notions if notion is None else (self.notion(notion),)

    def epsilon(self, delta: Number = 0, *, notion: str | None = None) -> float:
        """The smallest ε that holds at this δ, over all valid notions; infinite where no notion has a bound."""
        target = float_down(parameters.read_delta(delta))
        return min(known.epsilon(target) for known in self._choose_notions(notion))

    def delta(self, epsilon: Epsilon, *, notion: str | None = None) -> float:
        """The smallest δ that holds at this ε, over all valid notions."""
        exact = epsilon if isinstance(epsilon, Ln) else parameters.read_nonnegative(epsilon, "epsilon")
        target = float_down(exact)
        return min(known.delta(target) for known in self._choose_notions(notion))

    def compose(self, other: Loss) -> Loss:
        """Both releases together; refused where they protect different units or neighbours."""
        if (self.unit, self.neighbours) != (other.unit, other.neighbours):
            raise MixedGuarantees(
                f"One loss protects {self.unit} under {self.neighbours}, the other {other.unit} under "
                f"{other.neighbours}. State both for the same unit and relation before adding them."
            )
        both = [known.compose(other.notion(known.kind)) for known in self.notions if other.has(known.kind)]
        if not both:
            raise UnknownLoss("The two losses share no notion in which they could be added.")
        return Loss(tuple(both), self.unit, self.neighbours)

    __add__ = compose

    def repeat(self, count: int) -> Loss:
        """The loss of ``count`` such releases."""
        count = parameters.read_whole(count, "count")
        return Loss(tuple(known.repeat(count) for known in self.notions), self.unit, self.neighbours)

    def for_group(self, size: int) -> Loss:
        """The loss against a group of ``size`` units that are added, removed or replaced together."""
        size = parameters.read_whole(size, "size")
        grouped = tuple(known for known in (notion.for_group(size) for notion in self.notions) if known is not None)
        if not grouped:
            raise UnknownLoss("No rule is known for what this loss means for a group.")
        return Loss(grouped, self.unit, self.neighbours)

    def odds(self, delta: Number = 0) -> Odds:
        """What this loss means for one protected unit, as numbers and as sentences.

        Without a δ the pure ε is used. Where there is none, δ = 10⁻⁹ is used, and the sentence says so.
        """
        at = float_down(parameters.read_delta(delta))
        if not at and math.isinf(self.epsilon(0)):
            at = 1e-9
        epsilon = tail_epsilon(self.epsilon, at)
        return Odds(advantage=self.delta(0), epsilon=epsilon, delta=at, profile=self.delta, about=str(self.unit))

    def __str__(self) -> str:
        lines = [f"{notion.kind:<7} {notion.words()}" for notion in self.notions]
        return f"Loss to {self.unit} ({self.neighbours})\n" + "\n".join(f"  {line}" for line in lines)

    __repr__ = __str__


BudgetNotion: TypeAlias = Literal["pure", "approx", "zcdp", "gdp"]


@dataclass(frozen=True, slots=True)
class BudgetKind:
    """How budgets in one notion are written, offered and shown.

    ``word`` is the parameter that states the amount, ``symbol`` its letter. ``offers`` are the words in which a
    question may offer a loss, the budget's own first.
    """

    word: str
    symbol: str
    offers: tuple[str, ...]


BUDGET_KINDS: Mapping[BudgetNotion, BudgetKind] = {
    "pure": BudgetKind("epsilon", "ε", ("epsilon",)),
    "approx": BudgetKind("epsilon", "ε", ("epsilon", "rho")),
    "zcdp": BudgetKind("rho", "ρ", ("rho",)),
    "gdp": BudgetKind("mu", "μ", ("rho",)),
}
"""The one table of budgets, by the notion they are counted in."""

PAYABLE = tuple(dict.fromkeys(kind.word for kind in BUDGET_KINDS.values()))
"""The words in which a codebook may declare a budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that may be spent: ``epsilon``, ``epsilon`` with ``delta``, ``rho`` (zCDP), or ``mu`` (Gaussian).

    There is no default, because the curator decides how much privacy to give.

    >>> Budget(epsilon=3, delta=1e-6)
    Budget(ε = 3 at δ = 1e-06)
    >>> Budget(rho=0.5).notion
    'zcdp'
    """

    epsilon: Epsilon | None = None
    delta: Number | None = None
    rho: Number | None = None
    mu: Number | None = None

    def __post_init__(self) -> None:
        forms = [form is not None for form in (self.epsilon, self.rho, self.mu)]
        fix = "Say Budget(epsilon=1), Budget(epsilon=1, delta=1e-9), Budget(rho=0.1) or Budget(mu=0.5)."
        if sum(forms) != 1:
            raise ParameterError("budget", "must be given in exactly one form", fix)
        if self.delta is not None and self.epsilon is None:
            raise ParameterError("delta", "goes with epsilon only", fix)
        if self.epsilon is not None:
            parameters.read_epsilon(self.epsilon)
        if self.delta is not None:
            parameters.read_delta(self.delta)
        for name in ("rho", "mu"):
            value = getattr(self, name)
            if value is not None:
                parameters.read_positive(value, name)

    @property
    def notion(self) -> BudgetNotion:
        """The kind of notion this budget is counted in: the name of a row of ``BUDGET_KINDS``."""
        if self.epsilon is not None:
            return "approx" if self.delta else "pure"
        return "zcdp" if self.rho is not None else "gdp"

    @property
    def kind(self) -> BudgetKind:
        """How budgets in this notion are written, offered and shown."""
        return BUDGET_KINDS[self.notion]

    @property
    def symbol(self) -> str:
        """The Greek letter of the amount: ε, ρ or μ."""
        return self.kind.symbol

    def amount(self) -> Exact:
        """The declared ε, ρ or μ, exactly."""
        if self.epsilon is not None:
            return parameters.read_epsilon(self.epsilon)
        return parameters.read_positive(getattr(self, self.kind.word), self.kind.word)

    def slack(self) -> Fraction:
        """The declared δ, exactly; zero where there is none."""
        return parameters.read_delta(self.delta or 0)

    def with_amount(self, amount: Exact) -> Budget:
        """A budget of the same kind and δ, of another amount."""
        values: dict[str, Any] = {self.kind.word: amount, "delta": self.delta}
        return Budget(**values)

    def describe(self, amount: Exact) -> str:
        """An amount in this budget's own form: ``ε 0.5``."""
        return f"{self.symbol} {float_down(amount):.4g}"

    def describe_left(self, left: Exact) -> str:
        """What is left of the whole, for people: ``ε 2.5 of 3 at δ 1e-06``."""
        at = f" at δ {float(self.slack()):.2g}" if self.slack() else ""
        return f"{self.describe(left)} of {float_up(self.amount()):.4g}{at}"

    def loss_to_dict(self, loss: Loss) -> dict[str, Any]:
        """A loss as plain values: every notion in words, and the ε at this budget's δ, None where none follows."""
        delta = float(self.slack())
        epsilon = loss.epsilon(delta)
        return {
            "notions": {notion.kind: notion.words() for notion in loss.notions if notion.kind != "pld"},
            "epsilon": None if math.isinf(epsilon) else epsilon,
            "delta": delta,
        }

    def __repr__(self) -> str:
        at = f" at δ = {float(self.slack()):g}" if self.delta else ""
        return f"Budget({self.symbol} = {float_up(self.amount()):g}{at})"
