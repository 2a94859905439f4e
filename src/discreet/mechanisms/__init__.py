"""Mechanisms: randomised answers whose loss is known before they are drawn.

Each mechanism is a frozen value in a file of its own. ``.privacy`` is what a release costs, ``.error`` is how far it
may be off, and ``.release`` draws it; where outputs are discrete, ``.probability`` is exact. A file is loaded when one
of its names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.mechanisms.composition import adaptive, compose, post_process, query
    from discreet.mechanisms.count import Count
    from discreet.mechanisms.exponential import Exponential
    from discreet.mechanisms.gaussian import Gaussian
    from discreet.mechanisms.histogram import Histogram
    from discreet.mechanisms.laplace import Laplace
    from discreet.mechanisms.mean import Mean
    from discreet.mechanisms.noisy_max import NoisyMax, TopK
    from discreet.mechanisms.permute_and_flip import PermuteAndFlip
    from discreet.mechanisms.quantiles.cells import CellMode, CellQuantiles
    from discreet.mechanisms.quantiles.column_quantiles import Quantile, Quantiles
    from discreet.mechanisms.quantiles.ends import CellEnds
    from discreet.mechanisms.randomized_response import RandomizedResponse
    from discreet.mechanisms.rounded_gaussian import RoundedGaussian
    from discreet.mechanisms.sparse_vector import SparseVector
    from discreet.mechanisms.sum import Sum
    from discreet.mechanisms.threshold import GaussianThreshold, KeySelection, LaplaceThreshold
    from discreet.mechanisms.variance import Variance
    from discreet.mechanisms.weighted_selection import WeightedSelection, better_selection

# The module of each name, so that the first use of a mechanism loads one file only.
_HOMES = {
    "CellEnds": "quantiles.ends",
    "CellMode": "quantiles.cells",
    "CellQuantiles": "quantiles.cells",
    "Count": "count",
    "Exponential": "exponential",
    "Gaussian": "gaussian",
    "GaussianThreshold": "threshold",
    "Histogram": "histogram",
    "KeySelection": "threshold",
    "Laplace": "laplace",
    "LaplaceThreshold": "threshold",
    "Mean": "mean",
    "NoisyMax": "noisy_max",
    "PermuteAndFlip": "permute_and_flip",
    "Quantile": "quantiles.column_quantiles",
    "Quantiles": "quantiles.column_quantiles",
    "RandomizedResponse": "randomized_response",
    "RoundedGaussian": "rounded_gaussian",
    "SparseVector": "sparse_vector",
    "Sum": "sum",
    "TopK": "noisy_max",
    "Variance": "variance",
    "WeightedSelection": "weighted_selection",
    "adaptive": "composition",
    "better_selection": "weighted_selection",
    "compose": "composition",
    "post_process": "composition",
    "query": "composition",
}

__all__ = [
    "CellEnds",
    "CellMode",
    "CellQuantiles",
    "Count",
    "Exponential",
    "Gaussian",
    "GaussianThreshold",
    "Histogram",
    "KeySelection",
    "Laplace",
    "LaplaceThreshold",
    "Mean",
    "NoisyMax",
    "PermuteAndFlip",
    "Quantile",
    "Quantiles",
    "RandomizedResponse",
    "RoundedGaussian",
    "SparseVector",
    "Sum",
    "TopK",
    "Variance",
    "WeightedSelection",
    "adaptive",
    "better_selection",
    "compose",
    "post_process",
    "query",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
