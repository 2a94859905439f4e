"""The base classes of all mechanisms: frozen values that know their loss before they draw anything.

The loss is computed from events (pure data about the law that is really used) and never written by hand. So the claim,
the charge and the draw all use the same exact numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from fractions import Fraction
from typing import Any, Protocol

from discreet.accounting.account import compose
from discreet.accounting.events import Event
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.late_dataclass import dataclass
from discreet.privacy import Loss, Neighbours, Unit


class Mechanism(Protocol):
    """A randomised answer with a known loss. The members, one file each:

    - noise: ``Laplace``, ``Gaussian``, ``RoundedGaussian``, ``Histogram``, ``Count``, ``Sum``, ``Mean``, ``Variance``;
    - local answers: ``RandomizedResponse``;
    - selection: ``Exponential``, ``PermuteAndFlip``, ``NoisyMax``, ``TopK``, ``SparseVector``, ``LaplaceThreshold``,
      ``GaussianThreshold``, ``KeySelection``, ``WeightedSelection``, ``Quantile``, ``Quantiles``, and in many groups
      ``CellQuantiles``, ``CellEnds`` and ``CellMode``;
    - built from others: ``Composition``, ``AdaptiveComposition``, ``PostProcessing``, ``Query``.

    Most of them also have ``error(beta, of=1)``, the bound that holds for all outputs together with probability
    1 − beta, and ``probability(output, given)``, the exact probability of an output.
    """

    @property
    def privacy(self) -> Loss:
        """What one release costs, known before anything is drawn."""
        ...

    def release(self, data: Any, /, *, source: EntropySource = SYSTEM) -> Any:
        """Draw the answer. Every call is a new release and costs ``privacy`` again."""
        ...


@dataclass(frozen=True, kw_only=True, repr=False)
class EventMechanism(ABC):
    """The base of every mechanism that knows its events. It states the neighbours and the protected unit.

    It is not a mechanism by itself: subclasses say which ``events`` describe one release.
    """

    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    unit: Unit | str | None = None

    def __post_init__(self) -> None:
        settle(self, neighbours=Neighbours.read(self.neighbours), unit=Unit.read(self.unit))

    @property
    @abstractmethod
    def events(self) -> tuple[Event, ...]:
        """The events that describe one release."""

    @property
    def privacy(self) -> Loss:
        """What one release costs, known before anything is drawn."""
        return compose(self.events).loss

    def __repr__(self) -> str:
        common = ("neighbours", "unit")
        own = [f.name for f in fields(self) if f.init and f.name not in common]
        shown = [(name, getattr(self, name)) for name in (*own, *common)]
        return f"{type(self).__name__}({', '.join(f'{name}={_show(v)}' for name, v in shown if v is not None)})"


@dataclass(frozen=True, kw_only=True, repr=False)
class OneEventMechanism(EventMechanism):
    """The base of every mechanism that one event describes. It is not a mechanism by itself."""

    @property
    @abstractmethod
    def event(self) -> Event:
        """The event that describes one release."""

    @property
    def events(self) -> tuple[Event, ...]:
        return (self.event,)


def settle(mechanism: object, **values: object) -> None:
    """Set the exact forms of parameters, once, while a frozen mechanism is being made."""
    for name, value in values.items():
        object.__setattr__(mechanism, name, value)


def find_form(forms: dict[str, object], fix: str) -> str:
    """The name of the only form that was given. None or several forms are refused."""
    given = [name for name, value in forms.items() if value is not None]
    if len(given) != 1:
        problem = "must be given in one form" if not given else "are given together; one of them decides"
        raise ParameterError(" and ".join(given or forms), problem, fix)
    return given[0]


def _show(value: object) -> str:
    if isinstance(value, Neighbours | Unit):
        return repr(str(value))
    if isinstance(value, Fraction) and value.denominator > 1 << 32:
        return f"{float(value):.12g}"  # for people; the value itself stays exact
    return str(value) if isinstance(value, Fraction) else repr(value)
