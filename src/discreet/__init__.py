"""Differential privacy, whole and exact.

    curator = discreet.open("hospital.toml")
    curator.preview("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5)
    curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5)

Mechanisms are in ``discreet.mechanisms``, prices in ``discreet.accounting``, exact draws in ``discreet.samplers``.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Without a handler of the user's own, nothing is printed.
logging.getLogger("discreet").addHandler(logging.NullHandler())

if TYPE_CHECKING:
    from discreet.errors import DiscreetError
    from discreet.exact import ln
    from discreet.frontends.chain.aggregates import (
        correlation,
        count,
        count_distinct,
        count_units,
        covariance,
        intercept,
        mean,
        median,
        mode,
        quantile,
        slope,
        standard_error,
        stddev,
        variance,
        weighted_mean,
    )
    from discreet.frontends.chain.aggregates import max_ as max  # noqa: A004  # discreet.max reads as it should
    from discreet.frontends.chain.aggregates import min_ as min  # noqa: A004  # discreet.min reads as it should
    from discreet.frontends.chain.aggregates import sum_ as sum  # noqa: A004  # discreet.sum reads as it should
    from discreet.frontends.chain.operands import col, lit, when
    from discreet.opening import curate
    from discreet.opening import open_codebook as open  # noqa: A004  # discreet.open reads as it should
    from discreet.privacy import Budget, Loss, Neighbours, Unit
    from discreet.publish.publication import publish
    from discreet.remote.remote_curator import connect

__version__ = "0.2.0"
__all__ = [
    "Budget",
    "DiscreetError",
    "Loss",
    "Neighbours",
    "Unit",
    "col",
    "connect",
    "correlation",
    "count",
    "count_distinct",
    "count_units",
    "covariance",
    "curate",
    "intercept",
    "lit",
    "ln",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "open",
    "publish",
    "quantile",
    "slope",
    "standard_error",
    "stddev",
    "sum",
    "variance",
    "weighted_mean",
    "when",
]

# Every name is imported when it is first used, so that importing discreet stays quick.
_AGGREGATES = (
    "correlation", "count", "count_distinct", "count_units", "covariance", "intercept", "mean", "median", "mode",
    "quantile", "slope", "standard_error", "stddev", "variance", "weighted_mean",
)  # fmt: skip  # a list of words
_LATE = {
    "DiscreetError": ("discreet.errors", "DiscreetError"),
    "ln": ("discreet.exact", "ln"),
    **{name: ("discreet.privacy", name) for name in ("Budget", "Loss", "Neighbours", "Unit")},
    "connect": ("discreet.remote.remote_curator", "connect"),
    "curate": ("discreet.opening", "curate"),
    "load_ipython_extension": ("discreet.magic", "load_ipython_extension"),
    "open": ("discreet.opening", "open_codebook"),
    "publish": ("discreet.publish", ""),  # the package itself, which can be called and has preview, verify and others
    **{name: ("discreet.frontends.chain.operands", name) for name in ("col", "lit", "when")},
    **{name: ("discreet.frontends.chain.aggregates", f"{name}_") for name in ("max", "min", "sum")},
    **{name: ("discreet.frontends.chain.aggregates", name) for name in _AGGREGATES},
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    module, member = _LATE[name]
    return getattr(import_module(module), member) if member else import_module(module)


def __dir__() -> list[str]:
    return sorted(__all__)
