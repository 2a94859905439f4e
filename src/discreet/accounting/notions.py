"""What each event costs, in every notion that is valid for it: one small function per kind of event.

``count`` is handled once, at the end, outside of the cases. An event that is not in the table is refused: an unknown
loss is not zero. Privacy-loss distributions are made for every event whose profile is known (``profiles.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from discreet.accounting import amplification, events, rdp
from discreet.accounting.approximate import Approximate
from discreet.accounting.events import Event, exact
from discreet.accounting.gdp import Gaussian
from discreet.accounting.pld import LossDistribution
from discreet.accounting.profiles import has_profile
from discreet.accounting.pure import Pure
from discreet.accounting.rdp import Renyi
from discreet.accounting.rounding import short
from discreet.accounting.zcdp import ZeroConcentrated
from discreet.errors import UnknownLoss
from discreet.exact import Exact, Ln, upper
from discreet.privacy import Loss, Neighbours, Notion, Unit

Notions: TypeAlias = tuple[Notion, ...]

# The order in which notions are shown.
KINDS = ("pure", "approx", "zcdp", "rdp", "gdp", "pld")

# Parameters between these have ratios and squares that floats can hold.
_LEAST, _MOST = Fraction(1, 10**75), Fraction(10**75)


@lru_cache(maxsize=1024)
def loss_of(event: Event) -> Loss:
    """What this event costs, its count included, in every valid notion.

    >>> loss = loss_of(events.Laplace(sensitivity=1, scale=2, count=3))
    >>> loss.epsilon(), [notion.kind for notion in loss.notions]
    (1.5, ['pure', 'approx', 'zcdp', 'rdp', 'pld'])
    """
    price = _PRICES.get(type(event))
    if price is None:
        raise UnknownLoss(f"{type(event).__name__} is no known event, so what it costs is unknown and it is refused.")
    notions = tuple(notion.repeat(event.count) for notion in price(event))
    if has_distribution(event):
        notions = (*notions, LossDistribution((event,)))
    return Loss(notions, Unit.read(event.unit), Neighbours.read(event.neighbours))


def has_distribution(event: Event) -> bool:
    """Whether the privacy-loss distribution of an event is known, and its parameters are within reach of floats."""
    return has_profile(event) and _within_reach(event)


def _within_reach(event: Event) -> bool:
    values = [getattr(event, field.name) for field in fields(event)]
    numbers = [value for value in values if isinstance(value, Fraction) and value]
    return all(_LEAST < value < _MOST for value in numbers) and all(
        _within_reach(value) for value in values if isinstance(value, Event)
    )


def _pure(epsilon: Exact, curve: Renyi | None = None, rho: Fraction | None = None) -> Notions:
    """Every ε-private release: also (ε, 0), ε²/2-zCDP (Bun & Steinke 2016, Prop. 1.4), and on the curve."""
    square = short(upper(epsilon) ** 2)
    return (
        Pure(epsilon),
        Approximate.of(epsilon, Fraction(0)),
        ZeroConcentrated(square / 2 if rho is None else rho),
        rdp.pure_curve(epsilon) if curve is None else curve,
    )


def _concentrated(rho: Fraction, slack: Fraction = Fraction(0)) -> Notions:
    """Every ρ-zCDP release, which has the curve αρ; with a slack δ the curve says nothing."""
    return (ZeroConcentrated(rho, slack),) if slack else (ZeroConcentrated(rho), Renyi.linear(rho))


def _laplace(event: events.Laplace) -> Notions:
    epsilon = exact(event.sensitivity) / exact(event.scale)
    return _pure(epsilon, rdp.laplace_curve(epsilon))


def _discrete_laplace(event: events.DiscreteLaplace) -> Notions:
    scale = exact(event.scale)
    return _pure(event.sensitivity / scale, rdp.discrete_laplace_curve(event.sensitivity, scale))


def _gaussian(event: events.Gaussian) -> Notions:
    mu_squared = (exact(event.sensitivity) / exact(event.sigma)) ** 2
    return (*_concentrated(mu_squared / 2), Gaussian(mu_squared))


def _discrete_gaussian(event: events.DiscreteGaussian) -> Notions:
    # In any dimension (Canonne, Kamath & Steinke 2020, Thm. 4 and Cor. 16); not Gaussian private: the tails differ.
    return _concentrated(event.squared_sensitivity / (2 * exact(event.variance)))


def _randomized_response(event: events.RandomizedResponse) -> Notions:
    epsilon = _epsilon(event.epsilon)
    return _pure(epsilon, rdp.response_curve(epsilon, event.categories))


def _exponential(event: events.Exponential) -> Notions:
    # Bounded range ε gives ε²/8-zCDP (Cesar & Rogers 2021, Lemma 3.2; Rogers & Steinke 2021).
    epsilon = _epsilon(event.epsilon)
    return _pure(epsilon, rdp.exponential_curve(epsilon), short(upper(epsilon) ** 2) / 8)


def _any_pure(event: events.Pure) -> Notions:
    return _pure(_epsilon(event.epsilon))


def _approximate(event: events.Approximate) -> Notions:
    epsilon, delta = _epsilon(event.epsilon), exact(event.delta)
    if not delta and epsilon:
        return _pure(epsilon)
    # Post-processing of randomized response that fails with probability δ, hence δ-approximately ε²/2-zCDP.
    return (Approximate.of(epsilon, delta), ZeroConcentrated(short(upper(epsilon) ** 2) / 2, delta))


def _zero_concentrated(event: events.ZeroConcentrated) -> Notions:
    return _concentrated(exact(event.rho), exact(event.delta))


def _poisson_sampled(event: events.PoissonSampled) -> Notions:
    inner, rate = loss_of(event.event), exact(event.rate)
    known: dict[str, Notion] = {notion.kind: notion for notion in inner.notions if notion.kind != "pld"}
    pure, approximate, gaussian = known.get("pure"), known.get("approx"), known.get("gdp")
    if isinstance(pure, Pure):
        known |= {notion.kind: notion for notion in _least(known, _pure(amplification.amplified(pure.amount, rate)))}
    elif isinstance(approximate, Approximate):
        epsilon, delta = approximate.basic()
        pair = Approximate.of(amplification.amplified(epsilon, rate), rate * delta)
        known["approx"] = pair
        known["zcdp"] = ZeroConcentrated(short(upper(pair.parts[0].epsilon) ** 2) / 2, rate * delta)
    if isinstance(gaussian, Gaussian):
        known["rdp"] = amplification.sampled_gaussian(gaussian.mu_squared, rate)
    return tuple(known[kind] for kind in KINDS if kind in known)


def _least(known: Mapping[str, Notion], other: Notions) -> Notions:
    """The better of two statements of each kind that both hold."""
    better: list[Notion] = []
    for notion in other:
        match notion, known.get(notion.kind):
            case ZeroConcentrated(), ZeroConcentrated() as before:
                better.append(min(notion, before, key=lambda n: n.rho))
            case Renyi(), Renyi() as before:
                better.append(notion.least(before))
            case _:
                better.append(notion)
    return tuple(better)


def _epsilon(value: Any) -> Exact:
    return value if isinstance(value, Ln) else exact(value)


_PRICES: Mapping[type[Event], Callable[[Any], Notions]] = {
    events.Laplace: _laplace,
    events.DiscreteLaplace: _discrete_laplace,
    events.Gaussian: _gaussian,
    events.DiscreteGaussian: _discrete_gaussian,
    events.RandomizedResponse: _randomized_response,
    events.Exponential: _exponential,
    events.Pure: _any_pure,
    events.Approximate: _approximate,
    events.ZeroConcentrated: _zero_concentrated,
    events.PoissonSampled: _poisson_sampled,
}
