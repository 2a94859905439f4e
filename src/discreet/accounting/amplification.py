"""Amplification by Poisson sampling: computes what a release costs when each unit is sampled with probability q.

All statements are for add-remove neighbours. A bound without sampling also holds with it: given which other units were
drawn, the two outputs are either equally distributed or those of neighbours, and every notion here is quasi-convex
under such mixing. So an unamplified bound is always valid, and it is used where no better one is known.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet import parameters
from discreet.accounting.rdp import ORDERS, Renyi
from discreet.accounting.rounding import UNIT, to_float
from discreet.exact import Exact, Floats, Interval, Ln, ceil_div

# An amplified ε that is not an exact logarithm is rounded up to a multiple of 2^-128.
_GRID = 1 << 128
# The most points of one quadrature; beyond them the unamplified bound is used.
_MOST_POINTS = 1 << 16


def amplify(epsilon: Exact, rate: Fraction) -> Exact:
    """ln(1 + q(e^ε − 1)): exact for ε = ln(x), otherwise rounded up by less than 2^-127.

    Privacy: an ε-private release from a Poisson sample with rate q has this loss under add-remove, and an (ε, δ) one
    has it at qδ: the output is a mixture of which only the part of weight q saw the unit (Li, Qardaji & Su 2012;
    Balle, Barthe & Gaboardi 2018, Thm. 8).

    >>> amplify(Ln(Fraction(3)), Fraction(1, 2))
    ln(2)
    """
    if rate == 1:
        return epsilon
    if isinstance(epsilon, Ln):
        return Ln(1 + rate * (epsilon.of - 1))
    if not epsilon or epsilon > parameters.MAX_EPSILON:
        return epsilon  # zero, or so large that e^ε would fill the memory and protects nobody
    power = 1 / Interval.exp_minus(epsilon).low
    # e^ε to 160 significant bits; its rounding upwards only raises the result.
    bound = Ln(1 + rate * (power - 1)).upper
    return min(epsilon, Fraction(ceil_div(bound.numerator * _GRID, bound.denominator), _GRID))


def sampled_gaussian_curve(mu_squared: Fraction, rate: Fraction) -> Renyi:
    """The Rényi curve of Gaussian noise on a Poisson sample, at whole and fractional orders; rounded up.

    Privacy: with w the likelihood ratio of N(μ, 1) to N(0, 1) the worse direction is E[(1 − q + qw)^α] under N(0, 1)
    (Mironov, Talwar & Zhang 2019, Thm. 4 and 5). The expectation is a sum over an even grid. Its error is certified:
    the integrand is analytic in a strip around the real axis in which its size is at most e^(d²/2) times that on the
    axis, so the sum is off by at most 2·e^(d²/2)/(e^(2πd/h) − 1), relative (Trefethen & Weideman 2014, Thm. 5.1), and
    what lies beyond the grid is bounded by (1 − q + qw)^α ≤ 1 − q + q·w^α.
    """
    # The loss grows with q, so raising a tiny q is safe; for huge μ amplification has no effect worth computing.
    mu, q = math.sqrt(to_float(mu_squared)), max(to_float(rate), 1e-250)
    plain = Renyi.linear(mu_squared / 2)
    if q == 1 or mu > 1e3:
        return plain
    values = [_log_moment(order, mu, q) / (order - 1) for order in ORDERS]
    # A failed quadrature is infinite; the unamplified curve is used there.
    bounded = [min(value, 2 * to_float(mu_squared) * order) for value, order in zip(values, ORDERS)]
    return Renyi.of(lambda _: np.array(bounded)).take_least(plain)


def _log_moment(order: float, mu: float, q: float) -> float:
    """The logarithm of E[(1 − q + qw)^α] for w = e^(μz − μ²/2), z standard normal; infinite where not computed."""
    width = min(3.0, 3.0 / mu)  # half-width of the strip: 1 − q + qw has no zero for |Im z| < π/μ
    h = 2.0 ** math.floor(math.log2(width / 8))  # a power of two, so that grid points are exact
    spread = math.sqrt(2 * (45 + (order - 1) * -math.log(q)))
    first, last = math.floor(-spread / h), math.ceil((order * mu + spread) / h)
    peak = (order * order - order) * mu * mu / 2
    if last - first > _MOST_POINTS or peak > 600:
        return math.inf
    z = h * np.arange(first, last + 1, dtype=np.float64)
    excess, error = _excess(z, order, mu, q)
    # The mean of qw − q is 0, so E[(1+x)^α] − 1 = E[(1+x)^α − 1 − αx], whose integrand is never negative.
    scale = h / math.sqrt(2 * math.pi)
    tail = (1 + order) * math.erfc(spread / math.sqrt(2)) * (1 + q * math.exp(peak))
    strip = 2 * math.exp(width * width / 2) / math.expm1(2 * math.pi * width / h)
    total = scale * (excess + error)
    return math.log1p((total + tail + strip * (4 + 2 * order + total)) * (1 + 4 * UNIT)) * (1 + 4 * UNIT)


def _excess(z: Floats, order: float, mu: float, q: float) -> tuple[float, float]:
    """The sum of e^(−z²/2)·((1+x)^α − 1 − αx) for x = q(e^(μz − μ²/2) − 1), and a bound on its rounding error."""
    u = mu * z - mu * mu / 2
    # For larger u the ratio is computed in logarithms, which do not overflow.
    most = 30 - math.log(q)
    big = u > most
    x = q * np.expm1(np.minimum(u, most))
    weight = np.exp(-z * z / 2)
    body = order * np.where(big, np.logaddexp(math.log1p(-q), math.log(q) + u), np.log1p(x))
    plain = order * np.where(big, q * (np.exp(-((z - mu) ** 2) / 2) - weight), weight * x)
    small = np.abs(body) < 0.5
    growth = np.expm1(np.where(small, body, 0.0))
    power = np.where(small, 0.0, np.exp(body - z * z / 2))
    terms = np.where(small, weight * growth - plain, power - weight - plain)
    # Each factor is off by a few units in the last place, times the size of the exponents that entered it.
    errors = (weight * np.abs(growth) + np.abs(plain)) * (4 + np.abs(u) + z * z)
    errors += np.where(small, 0.0, power * (4 + np.abs(body) + z * z + order * np.minimum(1, x + q) * (1 + np.abs(u))))
    errors += np.where(small, 0.0, weight * (4 + z * z))
    return float(terms.sum()), UNIT * float(errors.sum())
