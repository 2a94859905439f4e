"""Differential privacy, whole and exact.

    curator = discreet.open("hospital.toml")
    curator.preview("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5)
    curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5)

Mechanisms are in ``discreet.mechanisms``, prices in ``discreet.accounting``, exact draws in ``discreet.samplers``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError
from discreet.exact import ln
from discreet.privacy import Budget, Loss, Neighbours, Unit

if TYPE_CHECKING:
    from discreet.doors import curate
    from discreet.doors import open_codebook as open  # noqa: A004  # discreet.open reads as it should
    from discreet.frontends.builder import col, count, count_units, lit, mean, stddev, variance, when
    from discreet.frontends.builder import sum_ as sum  # noqa: A004  # discreet.sum reads as it should

__version__ = "0.1.0"
__all__ = [
    "Budget",
    "DiscreetError",
    "Loss",
    "Neighbours",
    "Unit",
    "col",
    "count",
    "count_units",
    "curate",
    "lit",
    "ln",
    "mean",
    "open",
    "stddev",
    "sum",
    "variance",
    "when",
]

# Names that need an engine or a parser load it when they are first used, so that importing discreet stays quick.
_LATE = {
    "curate": ("discreet.doors", "curate"),
    "open": ("discreet.doors", "open_codebook"),
    "sum": ("discreet.frontends.builder", "sum_"),
    **{
        name: ("discreet.frontends.builder", name)
        for name in ("col", "count", "count_units", "lit", "mean", "stddev", "variance", "when")
    },
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    module, member = _LATE[name]
    return getattr(import_module(module), member)


def __dir__() -> list[str]:
    return sorted(__all__)
