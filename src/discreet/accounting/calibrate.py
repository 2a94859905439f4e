"""Calibration: finds the noise for a target, for a whole plan at once.

``calibrate`` finds how much noise each query needs to stay within a budget, with the tightest account that is valid for
a plan fixed in advance. ``cost_of_error`` finds what a given error at 95 % costs. Both round to the safe side: noise is
rounded up where privacy is the target, and down where accuracy is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np

from discreet import parameters
from discreet.accounting import events as ev
from discreet.accounting.account import Account, compose
from discreet.accounting.gdp import GaussianNotion
from discreet.accounting.notions import KINDS
from discreet.accounting.pure import PureNotion
from discreet.accounting.zcdp import ZeroConcentratedNotion
from discreet.errors import ParameterError, UnknownLoss
from discreet.exact import Exact, Ln, decimal, float_down, lower, sqrt_upper, upper
from discreet.parameters import Number
from discreet.privacy import Budget, Neighbours, Notion, Unit

# Searched factors are found to this relative precision, always on the safe side.
_PRECISION = Fraction(1, 10**6)
_QUICK = tuple(kind for kind in KINDS if kind != "pld")


def calibrate(
    plan: Iterable[ev.Event], budget: Budget, *, weights: Sequence[Number] | None = None
) -> tuple[ev.Event, ...]:
    """The plan with the least noise for which it stays within the budget.

    The events of the plan are templates. Their noise is multiplied by one common factor, and divided by the event's
    weight: an event of weight 2 has half the noise of one of weight 1. Where an event has no noise but a loss (ε of
    randomized response, ρ), the loss shrinks instead. The δ of events stays as it is.

    Privacy: ``compose(result)`` is within the budget, in the budget's own notion; for (ε, δ) by the tightest of all.

    >>> [seven] = calibrate([ev.Laplace(sensitivity=1, scale=1, count=7)], Budget(epsilon=1))
    >>> seven.scale
    Fraction(7, 1)
    """
    templates = list(plan)
    compose(templates)  # refuses a plan that is empty or mixed, or that has other things than events
    if not isinstance(budget, Budget):
        raise ParameterError("budget", "must be a Budget", "Say Budget(epsilon=1, delta=1e-9), for example.")
    shares = _read_weights(weights, len(templates))

    def add_noise(factor: Fraction) -> tuple[ev.Event, ...]:
        return tuple(scale_event(event, factor / share) for event, share in zip(templates, shares))

    start = compose(add_noise(Fraction(1)))
    exact = _exact_factor(start, budget)
    if exact is not None and _is_within(add_noise(exact), budget):
        return add_noise(exact)
    return add_noise(_search_factor(add_noise, budget))


def _read_weights(weights: Sequence[Number] | None, count: int) -> list[Fraction]:
    if weights is None:
        return [Fraction(1)] * count
    shares = [parameters.read_positive(weight, "weights") for weight in weights]
    if len(shares) != count:
        raise ParameterError("weights", "must be as many as the events", "Give one weight for each event of the plan.")
    return shares


def scale_event(event: ev.Event, factor: Fraction) -> ev.Event:
    """The event with its noise multiplied by a factor, or its loss divided by it; rounded to more noise."""
    if factor == 1:
        return event
    match event:
        case ev.Laplace() | ev.DiscreteLaplace():
            return replace(event, scale=ev.to_exact(event.scale) * factor)
        case ev.Gaussian():
            return replace(event, sigma=ev.to_exact(event.sigma) * factor)
        case ev.DiscreteGaussian() | ev.RoundedGaussian():
            return replace(event, variance=ev.to_exact(event.variance) * factor**2)
        case ev.RandomizedResponse() | ev.Exponential() | ev.Pure() | ev.Approximate():
            return replace(event, epsilon=_read(event.epsilon) / factor)
        case ev.ZeroConcentrated():
            return replace(event, rho=ev.to_exact(event.rho) / factor**2)
        case ev.PoissonSampled():
            return replace(event, event=scale_event(event.event, factor))
        case _:
            raise UnknownLoss(f"{type(event).__name__} is no event whose noise can be scaled.")


def _read(epsilon: parameters.Epsilon) -> Fraction:
    return epsilon.lower if isinstance(epsilon, Ln) else ev.to_exact(epsilon)


def _exact_factor(start: Account, budget: Budget) -> Fraction | None:
    """The factor where the total is inversely proportional to it or to its square; it still has to be checked."""
    if not start.loss.has(budget.notion):
        return None
    amount = budget.amount()
    match start.loss.notion(budget.notion):
        case PureNotion(total):
            same = isinstance(total, Ln) and isinstance(amount, Ln) and total == amount
            return Fraction(1) if same else upper(total) / lower(amount)
        case ZeroConcentratedNotion(rho, slack) if not slack:
            return round_up(sqrt_upper(rho / lower(amount)))
        case GaussianNotion(mu_squared, slack) if not slack:
            return round_up(sqrt_upper(mu_squared) / lower(amount))
        case _:
            return None


def _is_within(events: tuple[ev.Event, ...], budget: Budget, kinds: Sequence[str] = KINDS) -> bool:
    """Whether these events are within a budget, judged by these notions only."""
    loss = compose(events).loss
    if budget.notion != "approx":
        return loss.has(budget.notion) and _fits(loss.notion(budget.notion), budget.amount())
    limit, delta = budget.amount(), float_down(budget.slack())
    known = (notion for notion in loss.notions if notion.kind in kinds)
    return any(_reads_within(notion.epsilon(delta), limit) for notion in known)


def _reads_within(epsilon: float, limit: Exact) -> bool:
    return math.isfinite(epsilon) and bool(decimal(epsilon) <= limit)


def _fits(notion: Notion, amount: Exact) -> bool:
    match notion:
        case PureNotion(total):
            return bool(total <= amount)
        case ZeroConcentratedNotion(rho, slack):
            return not slack and rho <= lower(amount)
        case GaussianNotion(mu_squared, slack):
            return not slack and mu_squared <= lower(amount) ** 2
        case _:
            return False


def _search_factor(add_noise: Callable[[Fraction], tuple[ev.Event, ...]], budget: Budget) -> Fraction:
    """The smallest factor found by bisection: first with the quick notions, then with the slow tight one below it."""

    def fits_quickly(factor: Fraction) -> bool:
        return _is_within(add_noise(factor), budget, _QUICK)

    loss = compose(add_noise(Fraction(1))).loss
    only_slow = budget.notion == "approx" and all(notion.kind not in _QUICK for notion in loss.notions)
    high = Fraction(1) if only_slow else _bisect(fits_quickly, Fraction(1))
    # If all events are Gaussian, the quick answer is exact; otherwise the distribution is tighter.
    all_gaussian = all(type(event) is ev.Gaussian for event in add_noise(Fraction(1)))
    if budget.notion != "approx" or all_gaussian or not loss.has("pld"):
        return high
    return _bisect(lambda factor: _is_within(add_noise(factor), budget), high)


def _bisect(within: Callable[[Fraction], bool], start: Fraction) -> Fraction:
    """A factor within the budget; a factor smaller by the precision was not found to be within it."""
    high, step = start, Fraction(2)
    while not _is_possible(within, high):
        high, step = high * step, step**2
        if high > 1 << 128:
            raise UnknownLoss(
                "No amount of noise brings this plan within the budget: its own δ, perhaps, is too large."
            )
    low, step = high * Fraction(7, 8), Fraction(7, 8)
    while _is_possible(within, low):
        high, step = low, step**2
        low = high * step
        if low < Fraction(1, 1 << 128):
            return high
    while high > low * (1 + _PRECISION):
        middle = round_up(sqrt_upper(low * high, bits=64))
        if not low < middle < high:
            break
        low, high = (low, middle) if _is_possible(within, middle) else (middle, high)
    return high


def _is_possible(within: Callable[[Fraction], bool], factor: Fraction) -> bool:
    """Whether a factor is within the budget. A factor so small that an event refuses it is not."""
    try:
        return within(factor)
    except ParameterError:
        return False


def round_up(x: Fraction, digits: int = 12) -> Fraction:
    """A number above zero, rounded up to this many significant decimal digits.

    >>> round_up(Fraction(1, 3), 2), round_up(Fraction(5, 2))
    (Fraction(17, 50), Fraction(5, 2))
    """
    return _round_digits(x, digits, up=True)


def _round_digits(x: Fraction, digits: int, *, up: bool) -> Fraction:
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return Fraction(context.divide(Decimal(x.numerator), Decimal(x.denominator)))


def cost_of_error(
    kind: type[ev.Event],
    error: Number,
    *,
    beta: Number = Fraction(1, 20),
    of: int = 1,
    sensitivity: Number = 1,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    unit: Unit | str | None = None,
) -> ev.Event:
    """The event with the most noise whose error is still at most ``error``, with probability 1 − beta.

    ``kind`` is events.Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian or RoundedGaussian; ``of`` is the number
    of answers whose errors must all be within it, with independent noise, and ``sensitivity`` is that of all of them
    together (L1 for Laplace, L2 for Gaussian). What it costs is then ``loss_of(event)``. The noise is rounded down, so
    the error holds.

    >>> cheap = cost_of_error(ev.Laplace, 12.3, of=10_000)
    >>> round(1 / float(cheap.scale), 2)
    0.99
    """
    wanted = parameters.read_positive(error, "error")
    each = _chance_for_each(parameters.read_probability(beta, "beta"), parameters.read_whole(of, "of"))
    shared = {"neighbours": neighbours, "unit": unit}
    if kind is ev.Laplace:
        scale = _find_most_noise(lambda b: math.exp(-float(wanted) / b) <= each, float(wanted))
        return ev.Laplace(sensitivity=sensitivity, scale=scale, **shared)  # type: ignore[arg-type]  # two known fields
    if kind is ev.Gaussian:
        sigma = _find_most_noise(lambda s: math.erfc(float(wanted) / (s * math.sqrt(2))) <= each, float(wanted))
        return ev.Gaussian(sensitivity=sensitivity, sigma=sigma, **shared)  # type: ignore[arg-type]  # two known fields
    steps = math.floor(wanted)
    if kind is ev.DiscreteLaplace:
        scale = _find_most_noise(lambda b: _discrete_laplace_tail(b, steps) <= each, float(wanted))
        whole = parameters.read_whole(sensitivity, "sensitivity", most=1 << 62)
        return ev.DiscreteLaplace(sensitivity=whole, scale=scale, **shared)  # type: ignore[arg-type]  # two known fields
    if kind is ev.DiscreteGaussian:
        sigma = _find_most_noise(lambda s: _discrete_gaussian_tail(s, steps) <= each, float(wanted))
        whole = _read_square(sensitivity)
        dimension = min(of, whole)
        return ev.DiscreteGaussian(
            squared_sensitivity=whole,
            variance=sigma**2,
            dimension=dimension,
            **shared,  # type: ignore[arg-type]  # as above
        )
    if kind is ev.RoundedGaussian:
        # |round(σZ)| is above a whole number where |σZ| is half a step above it.
        sigma = _find_most_noise(lambda s: math.erfc((steps + 0.5) / (s * math.sqrt(2))) <= each, steps + 0.5)
        return ev.RoundedGaussian(
            squared_sensitivity=_read_square(sensitivity),
            variance=sigma**2,
            **shared,  # type: ignore[arg-type]  # as above
        )
    fix = "Use events.Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian or RoundedGaussian."
    raise ParameterError("kind", "must be a kind of additive noise", fix)


def _read_square(sensitivity: Number) -> int:
    """The square of an L2 sensitivity of whole queries, which is whole itself."""
    squared = parameters.read_number(sensitivity, "sensitivity") ** 2
    if squared.denominator != 1:
        raise ParameterError("sensitivity", "must have a whole square here", "Whole queries change by whole steps.")
    return parameters.read_whole(int(squared), "sensitivity", most=ev.MOST_SQUARED)


def _chance_for_each(beta: Fraction, of: int) -> float:
    """The probability that each of k errors may exceed, so that all are within with 1 − beta; rounded down."""
    return -math.expm1(math.log1p(-float(beta)) / of) * (1 - 1e-12)


def _find_most_noise(holds: Callable[[float], bool], start: float) -> Fraction:
    """The largest noise found for which the error holds, rounded down to 12 digits."""
    low = start
    while not holds(low):
        low /= 2
        if low < 1e-300:
            raise ParameterError("error", "is too small for any noise", "Allow a larger error.")
    high = 2 * low
    while holds(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return _round_digits(Fraction(low), 12, up=False)


def _discrete_laplace_tail(scale: float, steps: int) -> float:
    """P(|X| > steps), exactly 2p^(steps+1)/(1+p) with p = e^(−1/scale)."""
    return 2 * math.exp(-(steps + 1) / scale) / (1 + math.exp(-1 / scale))


def _discrete_gaussian_tail(sigma: float, steps: int) -> float:
    """P(|X| > steps): a sum for small σ, otherwise the bound P(X ≥ m) ≤ P(N ≥ m − 1) (Canonne et al. 2020)."""
    if sigma > 1e4:
        return math.erfc(steps / (sigma * math.sqrt(2)))
    x = np.arange(0, steps + 2 + math.ceil(40 * sigma))
    weights = np.exp(-(x**2) / (2 * sigma**2))
    weights[1:] *= 2
    return float(weights[steps + 1 :].sum() / weights.sum())
