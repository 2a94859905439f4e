"""Automatic bounds: what a codebook leaves out, bought with a metered question and read off its noisy answer.

``column`` finds the range of a column, ``contributions`` how much one unit brings, ``automatic`` asks a question whose
bounds are missing. There is no privacy machinery here: each is an ordinary question on the ordinary road, charged and
recorded like any other, and everything after its answer is post-processing.
"""

from __future__ import annotations

from discreet.bound_search.bound_rule import NoisyRange, read_bounds, threshold
from discreet.bound_search.column_bounds import Bounds, BoundsPreview, buy_bounds, make_column_question, preview_bounds
from discreet.bound_search.missing_bounds import AutomaticPreview, add_bounds, find_unbounded
from discreet.bound_search.unit_limits import (
    Contributions,
    buy_contributions,
    make_contribution_question,
    preview_contributions,
)

__all__ = [
    "AutomaticPreview",
    "Bounds",
    "BoundsPreview",
    "Contributions",
    "NoisyRange",
    "add_bounds",
    "buy_bounds",
    "buy_contributions",
    "find_unbounded",
    "make_column_question",
    "make_contribution_question",
    "preview_bounds",
    "preview_contributions",
    "read_bounds",
    "threshold",
]
