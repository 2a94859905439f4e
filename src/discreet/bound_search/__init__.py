"""Automatic bounds: the bounds and limits that a codebook leaves out are bought with questions of their own.

In reading order: ``curator_protocol`` says what is needed of a curator. ``bound_rule`` is the rule that reads bounds
off noisy counts, and ``far_end`` chooses how far they reach. ``column_bounds`` finds the range of a column.
``limit_rule`` reads limits off noisy counts of units, and ``unit_limits`` finds how much one unit should contribute.
``missing_bounds`` asks a question whose bounds are missing.

There is no privacy logic here. Each search is an ordinary question, charged and recorded like any other, and everything
after its answer is post-processing.
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
