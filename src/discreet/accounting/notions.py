"""Prices each event in every notion that is valid for it: one small function per kind of event.

``count`` is handled once, at the end, outside of the cases. An event that is not in the table is refused, because an
unknown loss is not zero. Every event whose profile is known (``profiles.py``) also has a privacy-loss distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, TypeAlias

from discreet.accounting import amplification, events, rdp
from discreet.accounting.approximate import ApproximateNotion
from discreet.accounting.events import Event, to_exact
from discreet.accounting.gdp import GaussianNotion, mu_squared_of
from discreet.accounting.pld import LossDistribution
from discreet.accounting.profiles import has_profile
from discreet.accounting.pure import PureNotion
from discreet.accounting.rdp import Renyi
from discreet.accounting.rounding import shorten
from discreet.accounting.zcdp import ZeroConcentratedNotion
from discreet.errors import UnknownLoss
from discreet.exact import Exact, Ln, upper
from discreet.privacy import Loss, Neighbours, Notion, Unit

Notions: TypeAlias = tuple[Notion, ...]

# The order in which notions are shown.
KINDS = ("pure", "approx", "zcdp", "rdp", "gdp", "pld")

# Ratios and squares of parameters between these are within the range of floats.
_LEAST, _MOST = Fraction(1, 10**75), Fraction(10**75)


@lru_cache(maxsize=1024)
def loss_of(event: Event) -> Loss:
    """What this event costs, its count included, in every valid notion.

    >>> loss = loss_of(events.Laplace(sensitivity=1, scale=2, count=3))
    >>> loss.epsilon(), [notion.kind for notion in loss.notions]
    (1.5, ['pure', 'approx', 'zcdp', 'rdp', 'gdp', 'pld'])
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
    return has_profile(event) and _is_within_reach(event)


def _is_within_reach(event: Event) -> bool:
    values = [getattr(event, field.name) for field in fields(event)]
    numbers = [value for value in values if isinstance(value, Fraction) and value]
    return all(_LEAST < value < _MOST for value in numbers) and all(
        _is_within_reach(value) for value in values if isinstance(value, Event)
    )


def _price_epsilon(
    epsilon: Exact, curve: Renyi | None = None, rho: Fraction | None = None, span: Exact | None = None
) -> Notions:
    """The notions of an ε-private release: also (ε, 0), ε²/2-zCDP (Bun & Steinke 2016, Prop. 1.4), the curve, and μ.

    ``span`` is the width of the range that its log-ratios lie in: 2ε, unless less is known.
    """
    square = shorten(upper(epsilon) ** 2)
    return (
        PureNotion(epsilon),
        ApproximateNotion.of(epsilon, Fraction(0)),
        ZeroConcentratedNotion(square / 2 if rho is None else rho),
        rdp.pure_curve(epsilon) if curve is None else curve,
        GaussianNotion(mu_squared_of(2 * upper(epsilon) if span is None else span)),
    )


def _price_rho(rho: Fraction, slack: Fraction = Fraction(0)) -> Notions:
    """The notions of a ρ-zCDP release, which has the curve αρ."""
    return ZeroConcentratedNotion(rho, slack), replace(Renyi.linear(rho), slack=slack)


def _price_laplace(event: events.Laplace) -> Notions:
    epsilon = to_exact(event.sensitivity) / to_exact(event.scale)
    return _price_epsilon(epsilon, rdp.laplace_curve(epsilon))


def _price_discrete_laplace(event: events.DiscreteLaplace) -> Notions:
    scale = to_exact(event.scale)
    return _price_epsilon(event.sensitivity / scale, rdp.discrete_laplace_curve(event.sensitivity, scale))


def _price_gaussian(event: events.Gaussian | events.RoundedGaussian) -> Notions:
    # Rounding is post-processing, so both kinds have the same μ.
    mu_squared = events.squared_mu(event)
    return (*_price_rho(mu_squared / 2), GaussianNotion(mu_squared))


def _price_discrete_gaussian(event: events.DiscreteGaussian) -> Notions:
    # In any dimension (Canonne, Kamath & Steinke 2020, Thm. 4 and Cor. 16). The tails differ from those of a normal
    # law, so it has no μ.
    return _price_rho(event.squared_sensitivity / (2 * to_exact(event.variance)))


def _price_randomized_response(event: events.RandomizedResponse) -> Notions:
    epsilon = _read_epsilon(event.epsilon)
    return _price_epsilon(epsilon, rdp.response_curve(epsilon, event.categories))


def _price_exponential(event: events.Exponential) -> Notions:
    # Bounded range ε gives ε²/8-zCDP (Cesar & Rogers 2021, Lemma 3.2; Rogers & Steinke 2021).
    epsilon = _read_epsilon(event.epsilon)
    return _price_epsilon(epsilon, rdp.exponential_curve(epsilon), shorten(upper(epsilon) ** 2) / 8, epsilon)


def _price_pure(event: events.Pure) -> Notions:
    return _price_epsilon(_read_epsilon(event.epsilon))


def _price_approximate(event: events.Approximate) -> Notions:
    epsilon, delta = _read_epsilon(event.epsilon), to_exact(event.delta)
    if not delta and epsilon:
        return _price_epsilon(epsilon)
    # Post-processing of randomized response that fails with probability δ; outside of failures it is ε-private.
    return _add_failure(epsilon, delta)


def _add_failure(epsilon: Exact, delta: Fraction) -> Notions:
    """The notions of a release that is ε-private outside of one failure of probability δ, the same in all of them."""
    return (
        ApproximateNotion.of(epsilon, delta),
        ZeroConcentratedNotion(shorten(upper(epsilon) ** 2) / 2, delta),
        replace(rdp.pure_curve(epsilon), slack=delta),
        GaussianNotion(mu_squared_of(2 * upper(epsilon)), delta),
    )


def _price_zero_concentrated(event: events.ZeroConcentrated) -> Notions:
    return _price_rho(to_exact(event.rho), to_exact(event.delta))


def _price_fixed_plan(event: events.FixedPlan) -> Notions:
    """The better of two statements in each notion: (ε, δ) for all, and the composition of its events.

    The first holds outside of a failure of δ, the second outside of those of the events. So all of it is stated outside
    of both failures (docs/proofs/filter-over-classes.md).
    """
    inner = reduce(Loss.compose, map(loss_of, event.events))
    known: dict[str, Notion] = {notion.kind: notion for notion in inner.notions if notion.kind != "pld"}
    zcdp = known.get("zcdp")
    failures = to_exact(event.delta) + (zcdp.slack if isinstance(zcdp, ZeroConcentratedNotion) else 0)
    better = {n.kind: n for n in _take_least(known, _add_failure(_read_epsilon(event.epsilon), failures))}
    return tuple(_set_slack(better[kind], failures) for kind in KINDS if kind in better)


def _set_slack(notion: Notion, slack: Fraction) -> Notion:
    match notion:
        case ZeroConcentratedNotion() | Renyi() | GaussianNotion():
            return replace(notion, slack=slack)
        case _:
            return notion


def _price_poisson_sample(event: events.PoissonSampled) -> Notions:
    inner, rate = loss_of(event.event), to_exact(event.rate)
    known: dict[str, Notion] = {notion.kind: notion for notion in inner.notions if notion.kind != "pld"}
    pure, approximate, gaussian = known.get("pure"), known.get("approx"), known.get("gdp")
    if isinstance(pure, PureNotion):
        known |= {
            notion.kind: notion
            for notion in _take_least(known, _price_epsilon(amplification.amplify(pure.amount, rate)))
        }
    elif isinstance(approximate, ApproximateNotion):
        epsilon, delta = approximate.basic_total()
        amplified = amplification.amplify(epsilon, rate)
        known |= {notion.kind: notion for notion in _add_failure(amplified, rate * delta)}
    elif isinstance(gaussian, GaussianNotion):
        known["rdp"] = amplification.sampled_gaussian_curve(gaussian.mu_squared, rate)
    return tuple(known[kind] for kind in KINDS if kind in known)


def _take_least(known: Mapping[str, Notion], other: Notions) -> Notions:
    """The better of two statements of each kind that both hold."""
    better: list[Notion] = []
    for notion in other:
        match notion, known.get(notion.kind):
            case ZeroConcentratedNotion(), ZeroConcentratedNotion() as before:
                better.append(min(notion, before, key=lambda n: n.rho))
            case Renyi(), Renyi() as before:
                better.append(notion.take_least(before))
            case GaussianNotion(), GaussianNotion() as before:
                better.append(min(notion, before, key=lambda n: n.mu_squared))
            case _:
                better.append(notion)
    return tuple(better)


def _read_epsilon(value: Any) -> Exact:
    return value if isinstance(value, Ln) else to_exact(value)


_PRICES: Mapping[type[Event], Callable[[Any], Notions]] = {
    events.Laplace: _price_laplace,
    events.DiscreteLaplace: _price_discrete_laplace,
    events.Gaussian: _price_gaussian,
    events.DiscreteGaussian: _price_discrete_gaussian,
    events.RoundedGaussian: _price_gaussian,
    events.RandomizedResponse: _price_randomized_response,
    events.Exponential: _price_exponential,
    events.Pure: _price_pure,
    events.Approximate: _price_approximate,
    events.ZeroConcentrated: _price_zero_concentrated,
    events.FixedPlan: _price_fixed_plan,
    events.PoissonSampled: _price_poisson_sample,
}
