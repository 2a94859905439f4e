"""Poisson subsampling: the dominating pair of a release from a secret random sample.

Each unit is in the sample independently with probability ``rate``, and the inner mechanism sees only the sample.

Privacy: let (P, Q) dominate the inner mechanism, with and without the person. Given the rest of the sample, the law of
the output with the person is P with probability ``rate`` and Q otherwise; without the person it is Q. So the pair
((1 − rate)·Q + rate·P, Q) dominates the sampled mechanism, because the distance is jointly convex (Balle, Barthe &
Gaboardi 2018, "Privacy amplification by subsampling", Thm 8; Zhu, Dong & Wang 2022, Thm 11). Neighbours: add-remove
only. The two directions differ and are composed separately. A larger rate is never safer, so the rate is rounded up.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.accounting.pairs import (
    ROUNDING,
    TINY,
    Atoms,
    Curve,
    DominatingPair,
    FloatsWithErrors,
    ProfileFunction,
    ceiling,
)
from discreet.exact import Exact, Floats

# For larger ε, e^ε − 1 and e^ε are the same float, and logarithms are used.
_LARGE = 40.0


def sample_pair(law: DominatingPair, rate: Exact) -> DominatingPair:
    """The dominating pair of a release from a Poisson sample."""
    q = ceiling(rate)
    if q >= 1:
        return law
    return _sample_atoms(law, q) if isinstance(law, Atoms) else _sample_curve(law, q)


def _loss(losses: Floats, rate: float) -> Floats:
    """ln(1 − rate + rate·e^loss), without overflow."""
    exact = np.log1p(rate * np.expm1(np.minimum(losses, _LARGE)))
    large = losses + math.log(rate) + (1 - rate) / rate * np.exp(-np.maximum(losses, _LARGE))
    return np.where(losses > _LARGE, large, exact)


def _sample_atoms(law: Atoms, rate: float) -> Atoms:
    # Where P had nothing (a loss of minus infinity), the mixture has its share of Q.
    losses = np.append(_loss(law.losses, rate), math.log1p(-rate))
    p = np.append((1 - rate) * law.q + rate * law.p, (1 - rate) * law.only_q)
    relative = np.append(law.relative, 0.0) + 32 * ROUNDING
    only_p = rate * law.only_p * (1 + 4 * ROUNDING)
    return Atoms(losses=losses, p=p, q=np.append(law.q, law.only_q), relative=relative, only_p=only_p, symmetric=False)


def _sample_curve(law: Curve, rate: float) -> Curve:
    remove, add = law.tops
    tops = (
        float(_loss(np.array([remove]), rate)[0]) if math.isfinite(remove) else remove,
        -math.log1p(rate * math.expm1(-add)),
    )
    up = 1 + 16 * ROUNDING
    return Curve(
        remove=_removal_profile(law.remove, rate),
        add=_addition_profile(law.add, rate),
        tops=(tops[0] * up, tops[1] * up),
        symmetric=False,
    )


def _enclose(function: ProfileFunction, low: Floats, high: Floats) -> FloatsWithErrors:
    """δ at a point known to lie between two: δ falls, so its values at both ends enclose it."""
    (most, most_error), (least, least_error) = function(np.maximum(low, 0.0)), function(high)
    return (most + least) / 2, np.abs(most - least) / 2 + np.maximum(most_error, least_error)


def _removal_profile(inner: ProfileFunction, rate: float) -> ProfileFunction:
    """rate·δ(ε) with e^ε = 1 + (e^ε' − 1)/rate."""

    def profile(epsilon: Floats) -> FloatsWithErrors:
        exact = np.log1p(np.expm1(np.minimum(epsilon, _LARGE)) / rate)
        inner_epsilon = np.where(epsilon > _LARGE, epsilon - math.log(rate), exact)
        doubt = 16 * ROUNDING * (inner_epsilon + (epsilon > _LARGE))
        values, errors = _enclose(inner, inner_epsilon - doubt, inner_epsilon + doubt)
        return rate * values, rate * (errors + 2 * ROUNDING * values) + TINY

    return profile


def _addition_profile(inner: ProfileFunction, rate: float) -> ProfileFunction:
    """(1 − e^ε'·(1 − rate))·δ(ε) with e^−ε = 1 − (1 − e^−ε')/rate; nothing beyond ε' = −ln(1 − rate)."""

    def profile(epsilon: Floats) -> FloatsWithErrors:
        share = np.expm1(-epsilon) / rate  # −(1 − e^−ε')/rate, which is −1 at the end of the range
        doubt = 8 * ROUNDING * np.abs(share)
        near, far = np.maximum(share + doubt, -1 + ROUNDING), np.maximum(share - doubt, -1 + ROUNDING)
        values, errors = _enclose(inner, -np.log1p(near), -np.log1p(far))
        scale = rate * np.exp(np.minimum(epsilon, -math.log1p(-rate) + 1))
        factor = scale * np.maximum(1 + share, 0.0)
        factor_error = np.where(share > -1 - 32 * ROUNDING, scale * 16 * ROUNDING, 0.0)
        return factor * values, factor * errors + factor_error * (values + errors) + TINY

    return profile
