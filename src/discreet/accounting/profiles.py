"""Privacy profiles of single events: δ(ε), the smallest δ for which one release is (ε,δ)-private, with its bounds.

``pair_of`` gives the dominating pair of an event, ``profile`` gives its δ(ε), as (lower, upper), at any ε. The count of
an event is ignored here; ``pld.py`` composes.

>>> from discreet.accounting import events
>>> low, high = profile(events.RandomizedResponse(epsilon=1), [0.0])
>>> round(float(high[0]), 6), bool(high[0] - low[0] < 1e-12)
(0.462117, True)
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.accounting import events as ev
from discreet.accounting.normal import discrete_gaussian_profile, gaussian_profile
from discreet.accounting.pairs import (
    ROUNDING,
    TINY,
    Atoms,
    Curve,
    Direction,
    DominatingPair,
    FloatsWithErrors,
    ProfileFunction,
    ceiling,
)
from discreet.accounting.subsampling import sample_pair
from discreet.errors import UnknownLoss
from discreet.exact import Exact, Floats, Interval, Ln, multiply, sqrt_upper, upper
from discreet.parameters import MAX_EPSILON, Epsilon

# Laws with more separate losses than this become curves.
_MAX_ATOMS = 4096
# Discrete Gaussians up to this standard deviation are summed term by term; for larger ones Euler–Maclaurin is exact.
_SUMMED_SIGMA = 4096
# The largest noise whose integers are exact as floats.
_LARGEST_SIGMA = 1 << 44


def has_profile(event: ev.Event) -> bool:
    """Whether the whole profile of this event is known; if not, it has no privacy-loss distribution.

    Concentrated losses bound moments only, and integer Gaussian noise on vectors is not rotation-invariant.
    """
    match event:
        case ev.ZeroConcentrated() | ev.FixedPlan():
            return False
        case ev.DiscreteGaussian():
            return event.dimension == 1 and ev.to_exact(event.variance) < _LARGEST_SIGMA**2
        case ev.PoissonSampled():
            return has_profile(event.event) and (
                event.event.count == 1 or isinstance(event.event, ev.Gaussian | ev.RoundedGaussian)
            )
        case ev.DiscreteLaplace():
            return event.sensitivity < _LARGEST_SIGMA
        case _:
            return type(event) in ev.KINDS.values()


def pair_of(event: ev.Event) -> DominatingPair:
    """The dominating pair of one event, whatever its count; refused where none is known."""
    return _make_pair(event if event.count == 1 else replace(event, count=1))


def directions(law: DominatingPair) -> tuple[Direction, ...]:
    """The directions to compute: one where both are the same."""
    return ("remove",) if law.symmetric else ("remove", "add")


def profile(event: ev.Event, epsilon: npt.ArrayLike, direction: Direction | None = None) -> tuple[Floats, Floats]:
    """Certified (lower, upper) bounds on δ(ε) of one event, at each ε, for one direction or the worse of both."""
    at, law = np.atleast_1d(np.asarray(epsilon, dtype=np.float64)), pair_of(event)
    wanted = directions(law) if direction is None else (direction,)
    bounds = [law.delta(at, towards) for towards in wanted]
    low = np.max([value - error for value, error in bounds], axis=0)
    high = np.max([value + error for value, error in bounds], axis=0)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


@lru_cache(maxsize=4096)
def _make_pair(event: ev.Event) -> DominatingPair:
    if not has_profile(event):
        raise UnknownLoss(f"{type(event).__name__} has no known privacy profile; ask for another notion.")
    match event:
        case ev.Laplace():
            return laplace_pair(ev.to_exact(event.sensitivity) / ev.to_exact(event.scale))
        case ev.Gaussian() | ev.RoundedGaussian():
            return gaussian_pair(ev.squared_mu(event))
        case ev.DiscreteLaplace():
            return discrete_laplace_pair(event.sensitivity, ev.to_exact(event.scale))
        case ev.DiscreteGaussian():
            return discrete_gaussian_pair(math.isqrt(event.squared_sensitivity), ev.to_exact(event.variance))
        case ev.RandomizedResponse():
            return randomized_response_pair(_to_exact(event.epsilon), event.categories)
        case ev.Exponential():
            return bounded_range_pair(_to_exact(event.epsilon))
        case ev.Pure():
            return randomized_response_pair(_to_exact(event.epsilon), 2)
        case ev.Approximate():
            return approximate_pair(_to_exact(event.epsilon), ev.to_exact(event.delta))
        case ev.PoissonSampled():
            return sample_pair(_pair_of_sample(event.event), ev.to_exact(event.rate))
    raise UnknownLoss(f"{type(event).__name__} is not an event whose profile is known here.")


def _pair_of_sample(event: ev.Event) -> DominatingPair:
    """The pair of all releases from one sample; here the inner count matters."""
    if isinstance(event, ev.Gaussian | ev.RoundedGaussian):
        return gaussian_pair(event.count * ev.squared_mu(event))
    return pair_of(event)


def _to_exact(epsilon: Epsilon) -> Exact:
    return epsilon if isinstance(epsilon, Ln) else ev.to_exact(epsilon)


def _make_symmetric(function: ProfileFunction, top: float) -> Curve:
    return Curve(remove=function, add=function, tops=(top, top))


def laplace_pair(epsilon: Fraction) -> Curve:
    """Laplace noise of scale sensitivity/ε.

    Privacy: δ(x) = 1 − e^((x − ε)/2) for |x| ≤ ε. Two Laplace laws at the full distance in one coordinate dominate all
    shifts of the same L1 norm. Rises with ε, which is rounded up. Reference: Zhu, Dong & Wang 2022, Table 1.
    """
    top = ceiling(epsilon)

    def curve(at: Floats) -> FloatsWithErrors:
        value = np.maximum(-np.expm1((at - top) / 2), 0.0)
        return value, 8 * ROUNDING * value

    # Half of the mass lies on the largest loss, so a grid point is put there.
    return Curve(remove=curve, add=curve, tops=(top, top), lattice=epsilon)


def gaussian_pair(squared_mu: Fraction) -> Curve:
    """Gaussian noise whose squared sensitivity over variance is ``squared_mu``; many compose to one by adding these.

    Privacy: two normals at distance μ (Balle & Wang 2018, Thm 8; Dong, Roth & Su 2022, Cor. 3.3 for sums).
    """
    return _make_symmetric(gaussian_profile(ceiling(sqrt_upper(squared_mu))), math.inf)


def bounded_range_pair(epsilon: Exact) -> Curve:
    """The exponential mechanism, or anything whose log-ratios span at most ε.

    Privacy: δ(x) = (1 − e^(−(ε − x)/2))²/(1 − e^−ε) for |x| ≤ ε, the worst over all pairs of bounded range. Rises with
    ε, which is rounded up. Proof: docs/proofs/bounded-range.md; bounded range: Durfee & Rogers 2019.
    """
    top = ceiling(epsilon)

    def curve(at: Floats) -> FloatsWithErrors:
        value = np.expm1(np.minimum(at - top, 0.0) / 2) ** 2 / -math.expm1(-top)
        return value, 16 * ROUNDING * value

    return _make_symmetric(curve, top)


def randomized_response_pair(epsilon: Exact, categories: int) -> Atoms:
    """Randomized response; with two categories the worst of all ε-private mechanisms.

    Privacy: the kept answer has loss ε, the other person's answer −ε, the rest 0. With two categories the pair
    dominates every ε-private mechanism (Kairouz, Oh & Viswanath 2015, "The composition theorem for differential
    privacy", Thm 3.1).
    """
    top = ceiling(epsilon)
    small = math.exp(-top)
    total = 1 + (categories - 1) * small
    rest = (categories - 2) * small
    losses, p = np.array([top, -top]), np.array([1.0, small]) / total
    if rest:
        losses, p = np.append(losses, 0.0), np.append(p, rest / total)
    # Masses are those of the rounded ε, which is a valid (larger) one; only their own roundings count.
    q = np.concatenate([p[[1, 0]], p[2:]])
    return Atoms(losses=losses, p=p, q=q, relative=np.full(len(p), 16 * ROUNDING), lattice=upper(epsilon))


def approximate_pair(epsilon: Exact, delta: Fraction) -> Atoms:
    """The worst of all (ε,δ)-private mechanisms: with probability δ it reveals all, otherwise randomized response.

    Reference: Kairouz, Oh & Viswanath 2015, Thm 3.2.
    """
    failure = ceiling(delta)
    base = randomized_response_pair(epsilon, 2) if epsilon > 0 else _empty_pair()
    keep = 1 - failure
    relative = base.relative + 4 * ROUNDING
    return replace(base, p=base.p * keep, q=base.q * keep, relative=relative, only_p=failure, only_q=failure)


def _empty_pair() -> Atoms:
    one = np.ones(1)
    return Atoms(losses=np.zeros(1), p=one, q=one, relative=np.zeros(1))


def discrete_laplace_pair(sensitivity: int, scale: Fraction) -> DominatingPair:
    """Integer Laplace noise on an integer query.

    Privacy: the loss at noise x is (|x − Δ| − |x|)/scale, one of −Δ, −Δ + 2, ..., Δ over the scale, with geometric
    masses. Log-concave noise is worst at the full shift, and for vectors in one coordinate. Symmetric.
    """
    if sensitivity > _MAX_ATOMS:
        return _make_symmetric(_wide_discrete_laplace_profile(sensitivity, scale), ceiling(sensitivity / scale))
    rate = float(1 / scale)
    whole = 1 + math.exp(-rate)
    noise = np.arange(1, sensitivity, dtype=np.float64)
    ends = np.array([1 / whole, math.exp(-rate * sensitivity) / whole])
    inner = np.exp(-rate * noise) * (-math.expm1(-rate) / whole)
    p = np.concatenate([ends[:1], inner, ends[1:]])
    losses = np.array([float((sensitivity - 2 * k) / scale) for k in range(sensitivity + 1)])
    relative = np.full(len(p), 16 * ROUNDING * (2 + rate * sensitivity))
    step = (2 - sensitivity % 2) / scale
    return Atoms(losses=losses, p=p, q=p[::-1].copy(), relative=relative, lattice=step)


def _wide_discrete_laplace_profile(sensitivity: int, scale: Fraction) -> ProfileFunction:
    """δ(ε) = P[X ≤ m] − e^ε·P[X ≤ m − Δ], where m is the largest noise whose loss is above ε; no term cancels."""
    rate, top = float(1 / scale), ceiling(sensitivity / scale)
    whole = 1 + math.exp(-rate)

    def curve(at: Floats) -> FloatsWithErrors:
        m = np.clip(np.ceil((sensitivity - at / rate) / 2) - 1, 0.0, float(sensitivity))
        first = -np.expm1(-rate * (m + 1))
        second = -math.exp(-rate) * np.expm1(at - rate * (sensitivity - m - 1))
        value = np.where(at < top, np.maximum(first + second, 0.0) / whole, 0.0)
        doubt = 16 * ROUNDING * (np.abs(first) + np.abs(second) + np.minimum(at, top) + top)
        return value, np.where(at < top * (1 + 8 * ROUNDING), doubt, 0.0)

    return curve


def discrete_gaussian_pair(shift: int, variance: Fraction) -> DominatingPair:
    """Integer Gaussian noise on one integer query that moves by at most ``shift``.

    Privacy: the loss at noise x is (shift² − 2·shift·x)/(2·variance), with the discrete law's own masses; narrow noise
    is *not* as private as the continuous formula says. Log-concave noise is worst at the full shift. Symmetric.
    Reference: Canonne, Kamath & Steinke 2020, "The discrete Gaussian for differential privacy", Thm 7.
    """
    if variance > _SUMMED_SIGMA**2:
        return _make_symmetric(discrete_gaussian_profile(shift, variance), math.inf)
    # Terms down to e^-700; the rest is below the constant for underflow. Both laws are covered whole: sampling mixes
    # them, and what Q has where P has nothing then counts.
    reach = math.isqrt(math.ceil(1400 * variance)) + 1
    apart = shift > 2 * reach
    x = np.arange(-reach, (reach if apart else reach + shift) + 1, dtype=np.float64)
    exponent = x * x / float(2 * variance)
    weights = np.exp(-exponent)
    losses = (shift * shift - 2 * shift * x) * float(1 / (2 * variance))
    total = weights.sum()
    # Under Q the same noise is shifted: Q's mass at x is P's at x − shift.
    other_exponent = (x - shift) ** 2 / float(2 * variance)
    # A weight beyond e^-750 is zero as a float, so its exponent adds no relative error.
    relative = 16 * ROUNDING * (2 + np.minimum(np.maximum(exponent, other_exponent), 750.0))
    return Atoms(
        losses=losses,
        p=weights / total,
        q=np.exp(-other_exponent) / total,
        relative=relative,
        only_p=TINY,
        # So far apart, all of Q lies where P has less than e^-700.
        only_q=1.0 if apart else TINY,
    )


def group_event(event: ev.Event, size: int) -> ev.Event | None:
    """The event as seen by a group of ``size`` units that change together; None where no rule is known.

    Privacy: additive noise sees ``size`` times the sensitivity (integer Gaussian noise on one number:
    docs/proofs/groups-discrete-gaussian.md). Log-ratios add along a chain of neighbours, so
    ε-private becomes (size·ε)-private and a range of ε becomes one of size·ε. For (ε,δ), δ grows to
    δ·(e^(size·ε) − 1)/(e^ε − 1) (Vadhan 2017, Lemma 2.2).
    """
    if size == 1:
        return event
    match event:
        case ev.Laplace() | ev.Gaussian():
            return replace(event, sensitivity=ev.to_exact(event.sensitivity) * size)
        case ev.DiscreteLaplace():
            return replace(event, sensitivity=event.sensitivity * size)
        case ev.RoundedGaussian() if event.squared_sensitivity * size * size <= ev.MOST_SQUARED:
            return replace(event, squared_sensitivity=event.squared_sensitivity * size * size)
        case ev.DiscreteGaussian() if event.dimension == 1:
            return replace(event, squared_sensitivity=(math.isqrt(event.squared_sensitivity) * size) ** 2)
        case ev.Exponential() | ev.Pure() | ev.RandomizedResponse():
            epsilon = multiply(_to_exact(event.epsilon), size)
            if epsilon > MAX_EPSILON:
                return None
            kind = ev.Exponential if isinstance(event, ev.Exponential) else ev.Pure
            return kind(epsilon=epsilon, count=event.count, neighbours=event.neighbours, unit=event.unit)
        case ev.Approximate():
            return _group_approximate(event, size)
    return None


def _group_approximate(event: ev.Approximate, size: int) -> ev.Event | None:
    epsilon, delta = upper(_to_exact(event.epsilon)), ev.to_exact(event.delta)
    if epsilon * size > 700:
        return None
    # Each step of the chain multiplies what came before by e^ε, rounded up: 1 + e^ε + ... + e^((size−1)·ε).
    growth = Fraction(ceiling(1 / Interval.exp_minus(epsilon).low)) if epsilon else Fraction(1)
    factor = Fraction(0)
    for _ in range(min(size, 1 << 16)):
        factor = Fraction(ceiling(factor * growth + 1))
    if size > 1 << 16 or factor * delta >= 1:
        return None
    return replace(event, epsilon=multiply(_to_exact(event.epsilon), size) if epsilon else 0, delta=factor * delta)
