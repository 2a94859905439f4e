"""Automatic bounds: what a codebook leaves out, bought with a metered question and read off its noisy answer.

``column`` finds the range of a column, ``contributions`` how much one unit brings, ``automatic`` asks a question whose
bounds are missing. There is no privacy machinery here: each is an ordinary question on the ordinary road, charged and
recorded like any other, and everything after its answer is post-processing.
"""

from __future__ import annotations

from discreet.bounds.automatic import AutomaticPreview, missing, with_bounds
from discreet.bounds.column import Bounds, BoundsPreview, bounds, column_question, preview_bounds
from discreet.bounds.contributions import (
    Contributions,
    contribution_question,
    contributions,
    preview_contributions,
)
from discreet.bounds.reading import Reading, needed, read_bounds

__all__ = [
    "AutomaticPreview",
    "Bounds",
    "BoundsPreview",
    "Contributions",
    "Reading",
    "bounds",
    "column_question",
    "contribution_question",
    "contributions",
    "missing",
    "needed",
    "preview_bounds",
    "preview_contributions",
    "read_bounds",
    "with_bounds",
]
