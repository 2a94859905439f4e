"""Profiles of Gaussian noise, continuous and discrete, from Mills' ratio.

Both profiles have the form φ(a)·(R(a) − c·R(b)), where φ is the normal density and R(x) = (1 − Φ(x))/φ(x) is Mills'
ratio, which ``mills_ratio`` gives with full relative accuracy in the tails, where differences of Φ have none.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet.accounting.mills_ratio import LEAST, RELATIVE_ERROR, mills_ratio
from discreet.accounting.pairs import ROUNDING, TINY, FloatsWithErrors, ProfileFunction
from discreet.exact import Floats

# Below this point the ratio of the nearer tail is too large to subtract; there the tail itself is almost one.
_FAR = LEAST
# A generous bound on the relative error of Mills' ratio and of exp.
_SPECIAL = RELATIVE_ERROR + 8 * ROUNDING


def _phi(x: Floats) -> Floats:
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def gaussian_profile(mu: float) -> ProfileFunction:
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), for ε ≥ 0, where μ is sensitivity over standard deviation.

    Privacy: two normals at distance μ dominate the Gaussian mechanism of any dimension, for each relation that the
    sensitivity was stated for (Balle & Wang 2018, "Improving the Gaussian mechanism", Thm 8). The profile rises
    with μ, so μ is rounded up by the caller. It is the same in both directions.
    """

    def profile(epsilon: Floats) -> FloatsWithErrors:
        a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        zero = np.zeros_like(a)
        return _gap(a, b, np.ones_like(a), zero, zero)

    return profile


def _gap(a: Floats, b: Floats, c: Floats, more_a: Floats, more_b: Floats) -> FloatsWithErrors:
    """φ(a)·(R(a) + more_a − c·(R(b) + more_b)) with its error, where a and b hold to 2 roundings of |b|."""
    near = np.maximum(a, _FAR)
    ratio_a, ratio_b = mills_ratio(near) + more_a, mills_ratio(np.maximum(b, _FAR)) + more_b
    phi, size = _phi(a), np.abs(b) + np.abs(a)
    value = phi * (ratio_a - c * ratio_b)
    # Errors of the ratios themselves, of their arguments (|R'| ≤ 1 + |x|·R), and of the common factor.
    error = phi * (
        _SPECIAL * (ratio_a + ratio_b) + 4 * ROUNDING * size * (2 + np.abs(a) * ratio_a + np.abs(b) * ratio_b)
    )
    error += np.abs(value) * (_SPECIAL + 8 * ROUNDING * (np.abs(a) + 1) * (size + 1))
    far = a < _FAR
    if far.any():
        tail = 1 - _phi(-a[far]) * (mills_ratio(-a[far]) - more_a[far])
        value[far] = tail - phi[far] * c[far] * ratio_b[far]
        error[far] = 64 * ROUNDING + 2e-6 * size[far] * ROUNDING
    return np.maximum(value, 0.0), error + TINY


def discrete_gaussian_profile(shift: int, variance: Fraction) -> ProfileFunction:
    """The profile of wide integer Gaussian noise (σ ≥ 4096) on an integer query that moves by ``shift``.

    The loss falls with the noise x, so the worst event is "x ≤ m", and δ(ε) = P[X ≤ m] − e^ε·P[X ≤ m − shift]
    (Canonne, Kamath & Steinke 2020, Thm 7). The sums are integrals up to m + 1/2 plus two Euler–Maclaurin terms; the
    remainder after them is below 10^-4·|H₅|·φ/σ⁶ (H₅ the fifth Hermite polynomial), below one rounding here.
    """
    sigma, step = math.sqrt(variance), float(Fraction(shift) / variance)

    def profile(epsilon: Floats) -> FloatsWithErrors:
        edge = np.ceil(shift / 2 - epsilon / step) - 0.5
        # The loss at the edge is ε up to half a step; what is left over enters as the ratio c.
        c = np.exp(epsilon - step * (shift / 2 - edge))
        a, b = -edge / sigma, (shift - edge) / sigma
        value, error = _gap(a, b, c, _sum_correction(a, sigma), _sum_correction(b, sigma))
        # Rounding of the edge, of c, and of the sum in place of the integral.
        near = np.maximum(a, _FAR)
        error += (
            _phi(near) * mills_ratio(np.maximum(b, _FAR)) * 8 * ROUNDING * (np.abs(epsilon) + step * np.abs(edge) + 4)
        )
        return value, error + _phi(a) * 1e-4 * (np.abs(a) ** 5 + 60) / sigma**6

    return profile


def _sum_correction(x: Floats, sigma: float) -> Floats:
    """The correction of Mills' ratio for a sum over integers beyond an edge (lower tail, −x standard deviations)."""
    return -x / (24 * sigma**2) + 7 / 5760 * (x**3 - 3 * x) / sigma**4
