"""Exact random draws: every probability is exactly that of the formula, not a float near it.

Scales, probabilities and factors are rationals; a float is read as the dyadic rational that it is. All samplers take
``size`` (None for one value, a length, or a tuple of lengths) and a ``source`` of random words, by default the
operating system's.
"""

from __future__ import annotations

from discreet.samplers.bernoulli import bernoulli, bernoulli_exp, bernoulli_exp_each, bernoulli_real
from discreet.samplers.categorical import categorical, categorical_exp
from discreet.samplers.discrete_gaussian import discrete_gaussian
from discreet.samplers.discrete_laplace import discrete_laplace
from discreet.samplers.geometric import geometric
from discreet.samplers.rounded_gaussian import rounded_gaussian
from discreet.samplers.uniform import uniform_below

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "bernoulli_exp_each",
    "bernoulli_real",
    "categorical",
    "categorical_exp",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "rounded_gaussian",
    "uniform_below",
]
