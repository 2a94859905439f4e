"""Events: records that a mechanism ran, as pure data.

The contract between the code that writes events and the code that prices them:

- An event states mathematically *what happened*: the mechanism's law, its parameters, the sensitivity **and** the
  neighbouring relation of the sensitivity (one has no meaning without the other), the protected unit, and how often
  it ran.
- It carries no data, no code and no price. ``notions.py`` and ``pld.py`` decide what it costs.
- A field never changes its meaning. A new meaning needs a new event or a new ``VERSION``.
- Code that prices events refuses an event that it does not know; it never ignores one. ``count`` is handled once, by
  the code that composes, outside the cases.

Parameters are exact: a float means the decimal that it prints as, and an ε may be a logarithm such as ``ln(3)``.

>>> Laplace(sensitivity=1, scale=0.5, count=3)
Laplace(sensitivity=1, scale=1/2, count=3, neighbours='add-remove', unit='one row')
>>> load(dump(RandomizedResponse(epsilon=1, categories=2))) == RandomizedResponse(epsilon=1, categories=2)
True
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, Self

from discreet import parameters
from discreet.errors import ParameterError, UnknownLoss
from discreet.exact import Exact, Ln
from discreet.late_dataclass import dataclass
from discreet.parameters import Epsilon, Number
from discreet.privacy import Neighbours, Unit

VERSION = 1
# The largest squared sensitivity of a whole query: that of numbers of 62 bits.
MOST_SQUARED = 1 << 124


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Event:
    """The base of all events: how often the event happened, the neighbouring relation, and the protected unit.

    It is not an event by itself; the classes below are.
    """

    count: int = 1
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    unit: Unit | str | None = None

    def __post_init__(self) -> None:
        self._settle("count", parameters.read_whole(self.count, "count", most=1 << 62))
        self._settle("neighbours", Neighbours.read(self.neighbours))
        self._settle("unit", Unit.read(self.unit))

    def _settle(self, name: str, value: object) -> None:
        """Set the exact form of a parameter, once, while the event is being made."""
        object.__setattr__(self, name, value)

    def times(self, count: int) -> Self:
        """The same event, ``count`` times as often."""
        return replace(self, count=self.count * parameters.read_whole(count, "count", most=1 << 62))

    def __repr__(self) -> str:
        own = [f.name for f in fields(self) if f.name not in {"count", "neighbours", "unit"}]
        shown = [f"{name}={_show(getattr(self, name))}" for name in (*own, "count", "neighbours", "unit")]
        return f"{type(self).__name__}({', '.join(shown)})"


def to_exact(value: Epsilon) -> Fraction:
    """A parameter of an event as the exact number that the event made of it."""
    return value if isinstance(value, Fraction) else parameters.read_number(value, "parameter")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Laplace(Event):
    """Continuous Laplace noise, density ∝ exp(−|x|/scale), on a query of this L1 sensitivity."""

    sensitivity: Number
    scale: Number

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        self._settle("sensitivity", parameters.read_positive(self.sensitivity, "sensitivity"))
        self._settle("scale", parameters.read_positive(self.scale, "scale"))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiscreteLaplace(Event):
    """Integer noise, P(x) ∝ exp(−|x|/scale), on an integer query of this whole L1 sensitivity.

    It also describes vectors with independent noise in each coordinate: in the worst case the whole distance is in one
    coordinate, as docs/proofs/laplace-vectors.md proves.
    """

    sensitivity: int
    scale: Number

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        self._settle("sensitivity", parameters.read_whole(self.sensitivity, "sensitivity", most=1 << 62))
        self._settle("scale", parameters.read_positive(self.scale, "scale"))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Gaussian(Event):
    """Continuous Gaussian noise of standard deviation sigma on a query of this L2 sensitivity."""

    sensitivity: Number
    sigma: Number

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        self._settle("sensitivity", parameters.read_positive(self.sensitivity, "sensitivity"))
        self._settle("sigma", parameters.read_positive(self.sigma, "sigma"))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiscreteGaussian(Event):
    """Integer noise, P(x) ∝ exp(−x²/(2·variance)), on integer queries of this *squared* L2 sensitivity.

    ``dimension`` is the number of coordinates that one unit can change: with 1 the exact law prices it; with more
    the law is not rotation-invariant, and only the concentrated notions (ρ = Δ²/(2·variance)) are used.
    """

    squared_sensitivity: int
    variance: Number
    dimension: int = 1

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        self._settle(
            "squared_sensitivity",
            parameters.read_whole(self.squared_sensitivity, "squared_sensitivity", most=MOST_SQUARED),
        )
        self._settle("variance", parameters.read_positive(self.variance, "variance"))
        self._settle("dimension", parameters.read_whole(self.dimension, "dimension", most=None))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RoundedGaussian(Event):
    """Normal noise, rounded to whole numbers, on integer queries of this *squared* L2 sensitivity; σ² is ``variance``.

    For whole x, x + round(σZ) = round(x + σZ): continuous Gaussian noise and then a function of the noisy answer
    alone. So it costs what ``Gaussian`` costs, μ = Δ/σ, for any number of coordinates.
    """

    squared_sensitivity: int
    variance: Number

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        self._settle(
            "squared_sensitivity",
            parameters.read_whole(self.squared_sensitivity, "squared_sensitivity", most=MOST_SQUARED),
        )
        self._settle("variance", parameters.read_positive(self.variance, "variance"))


def squared_mu(event: Gaussian | RoundedGaussian) -> Fraction:
    """The exact μ² of one Gaussian release: squared sensitivity over variance.

    >>> squared_mu(RoundedGaussian(squared_sensitivity=2, variance=8))
    Fraction(1, 4)
    """
    if isinstance(event, RoundedGaussian):
        return event.squared_sensitivity / to_exact(event.variance)
    return (to_exact(event.sensitivity) / to_exact(event.sigma)) ** 2


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RandomizedResponse(Event):
    """One answer out of ``categories`` kept with e^ε/(e^ε + categories − 1), otherwise another one, uniformly.

    The number of respondents is public. Under ``add-remove``, an absent person counts as one who answered a fixed
    category; the loss is the same.
    """

    epsilon: Epsilon
    categories: int = 2

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        self._settle("epsilon", parameters.read_epsilon(self.epsilon))
        self._settle("categories", parameters.read_whole(self.categories, "categories", least=2))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Exponential(Event):
    """The exponential mechanism with loss ε: its log-ratios span a range of at most ε (bounded range)."""

    epsilon: Epsilon

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        self._settle("epsilon", parameters.read_epsilon(self.epsilon))


def _read_epsilon_or_zero(epsilon: Epsilon) -> Epsilon:
    none = isinstance(epsilon, int | float | Fraction) and epsilon == 0
    return Fraction(0) if none else parameters.read_epsilon(epsilon)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Pure(Event):
    """Any mechanism that is ε-private. With ε = 0 it says the same whatever the data are."""

    epsilon: Epsilon

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        self._settle("epsilon", _read_epsilon_or_zero(self.epsilon))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Approximate(Event):
    """Any mechanism that is (ε, δ)-private; ε may be 0."""

    epsilon: Epsilon
    delta: Number

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        self._settle("epsilon", _read_epsilon_or_zero(self.epsilon))
        self._settle("delta", parameters.read_delta(self.delta))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ZeroConcentrated(Event):
    """Any mechanism that is δ-approximately ρ-zCDP; δ is 0 by default."""

    rho: Number
    delta: Number = Fraction(0)

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        self._settle("rho", parameters.read_positive(self.rho, "rho"))
        self._settle("delta", parameters.read_delta(self.delta))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FixedPlan(Event):
    """Releases that were all settled before any of them ran, and are together (ε, δ)-private.

    Both are stated: what they are together, and what each of them is. So they are priced in every form that either has.
    """

    epsilon: Epsilon
    delta: Number
    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        self._settle("epsilon", parameters.read_epsilon(self.epsilon))
        self._settle("delta", parameters.read_delta(self.delta))
        self._settle("events", tuple(self.events))
        if not self.events or not all(isinstance(event, Event) for event in self.events):
            raise ParameterError("events", "must be events, at least one", "Give what the plan releases.")
        if any((event.unit, event.neighbours) != (self.unit, self.neighbours) for event in self.events):
            raise ParameterError("events", "must be of the same unit and relation", "State all of them alike.")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PoissonSampled(Event):
    """``event`` run on a sample that contains each unit independently with probability ``rate``; add-remove only.

    The count of the inner event is the number of releases from one sample; the outer count is the number of samples.
    """

    event: Event
    rate: Number

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        if not isinstance(self.event, Event):
            raise ParameterError(
                "event", "must be an event", "Give for example events.Gaussian(sensitivity=1, sigma=2)."
            )
        rate = parameters.read_positive(self.rate, "rate", fix="Give the sampling probability, for example rate=0.01.")
        if rate > 1:
            raise parameters.refuse("rate", "at most 1", self.rate, "Give a probability, for example rate=0.01.")
        self._settle("rate", rate)
        if self.neighbours != Neighbours.ADD_REMOVE or self.event.neighbours != Neighbours.ADD_REMOVE:
            fix = "State the inner sensitivity for add-remove; amplification under replace is not known here."
            raise ParameterError("neighbours", "of a Poisson sample must be add-remove", fix)
        if self.unit != self.event.unit:
            raise ParameterError("unit", "must be the inner event's unit", "Give both the same unit.")


KINDS: Mapping[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        Laplace,
        DiscreteLaplace,
        Gaussian,
        DiscreteGaussian,
        RoundedGaussian,
        RandomizedResponse,
        Exponential,
        Pure,
        Approximate,
        ZeroConcentrated,
        FixedPlan,
        PoissonSampled,
    )
}


def _show(value: object) -> str:
    return repr(str(value)) if isinstance(value, Neighbours | Unit) else str(value)


def _dump_value(value: object) -> Any:
    match value:
        case Event():
            return dump(value)
        case tuple():
            return [dump(event) for event in value]
        case Unit():
            return value.column
        case Neighbours():
            return str(value)
        case Fraction() | Ln():
            return str(value)
        case _:
            return value


def dump(event: Event) -> dict[str, Any]:
    """An event as plain JSON values; numbers are exact, as text ("1/10", "ln(3)")."""
    return {"kind": type(event).__name__, "version": VERSION} | {
        f.name: _dump_value(getattr(event, f.name)) for f in fields(event)
    }


def load(record: Mapping[str, Any]) -> Event:
    """The event that ``dump`` wrote; anything unknown, missing or left over is refused."""
    if not isinstance(record, Mapping):
        raise ParameterError("record", "must be a mapping", "Give what events.dump returned.")
    if record.get("version") != VERSION:
        raise UnknownLoss(f"This event record is not of version {VERSION}; it cannot be priced. Upgrade discreet.")
    kind = KINDS.get(str(record.get("kind")))
    if kind is None:
        raise UnknownLoss("This event record names no known event, so its loss is unknown. Upgrade discreet.")
    names = {f.name for f in fields(kind)}
    if set(record) != names | {"kind", "version"}:
        raise ParameterError("record", "has missing or unknown fields", f"{kind.__name__} has {sorted(names)}.")
    return kind(**{name: _load_value(name, record[name]) for name in names})


_LN = re.compile(r"ln\((\d+(?:/\d+)?)\)")
_FRACTION = re.compile(r"\d+(?:/[1-9]\d*)?")


def _load_value(name: str, value: Any) -> Any:
    if name == "event":
        return load(value)
    if name == "events":
        return tuple(map(load, value))
    if name in {"unit", "neighbours"} or not isinstance(value, str):
        return value
    return _read_exact(name, value)


def _read_exact(name: str, text: str) -> Exact:
    if match := _LN.fullmatch(text):
        return Ln(Fraction(match[1]))
    if _FRACTION.fullmatch(text):
        return Fraction(text)
    raise ParameterError(name, "is not an exact number", "Write it like 1/10 or ln(3).")
