"""A subject of an audit: how to draw many outputs of a mechanism, and how likely each is.

The exact check (is the stated law private?), the fit (is this the law that is drawn?) and the black box (does the claim
hold without any knowledge of the law?) use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from discreet.exact import Interval
from discreet.late_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A mechanism, two neighbouring inputs, and how to check it.

    ``draw(given, n)`` makes n outputs. ``probability(output, given)`` is their law. ``outputs`` are those that are
    checked exactly; with ``whole`` they are all outputs. A ``slow`` subject needs a call for each output, so fewer are
    drawn. ``fit`` is the number of outputs that are compared with the law, ``runs`` those of the quick black box.
    """

    mechanism: Any
    x: Any
    y: Any
    draw: Callable[[Any, int], Any]
    probability: Callable[[Any, Any], Interval] | None = None
    outputs: Iterable[Any] = ()
    whole: bool = False
    slow: bool = False
    varying: bool = False
    fit: int = 50_000
    runs: int = 40_000
    label: str = ""

    @property
    def name(self) -> str:
        """The name of the mechanism, with the label of this subject."""
        return type(self.mechanism).__name__ + (f" ({self.label})" if self.label else "")


def make_joint_probability(each: Callable[[Any, Any], Interval]) -> Callable[[Any, Any], Interval]:
    """The joint probability of groups or keys that are independent."""

    def probability(output: Any, given: Any) -> Interval:
        found = Interval.of(1)
        for one, private in zip(np.atleast_1d(output).tolist(), given):
            found *= each(one, private)
        return found

    return probability
