"""Differential privacy, whole and exact."""

from __future__ import annotations

from discreet.errors import DiscreetError
from discreet.exact import ln
from discreet.privacy import Budget, Loss, Neighbours, Unit

__all__ = ["Budget", "DiscreetError", "Loss", "Neighbours", "Unit", "ln"]
__version__ = "0.1.0"
