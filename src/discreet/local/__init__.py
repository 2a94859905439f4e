"""The local model: each person's device adds the noise, so nobody has to be trusted with the data.

A ``Task`` states the question and the integers of its protocol. ``encode`` makes a report on the device. An
``Aggregator`` adds reports up. ``estimate`` computes estimates with intervals. ``choose`` finds the protocol.
``Person`` remembers answers over time.

>>> task = choose(["never", "sometimes", "often"], epsilon=1, n=5000).task("how often")
>>> collected = Aggregator(task)
>>> collected.add_wire([encode(task, "often"), encode(task, "never"), b"rubbish"], batch="first")
True
>>> collected  # doctest: +ELLIPSIS
Aggregator(...: 2 reports, 1 set aside)
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from discreet.local.aggregate import Aggregator
from discreet.local.client import encode, encode_many
from discreet.local.domain import Domain
from discreet.local.estimation import Distribution, Frequencies, MeanEstimate, estimate, norm_sub
from discreet.local.heavy import HeavyHitters
from discreet.local.hierarchy import Hierarchy, Ranges
from discreet.local.person import Person
from discreet.local.planning import people_needed, simulate
from discreet.local.protocol_choice import Choice, Limits, choose
from discreet.local.reports import Reports, read_arrow, read_lines, read_wire
from discreet.local.shuffle import Shuffled, Shuffler
from discreet.local.survey import Survey, attributes
from discreet.local.task import Task

if TYPE_CHECKING:
    Mean = MeanEstimate
else:

    def __getattr__(name: str) -> object:
        """The deprecated name ``Mean``, which is now ``MeanEstimate``."""
        if name == "Mean":
            message = "discreet.local.Mean is deprecated and goes with 0.3.0. Use discreet.local.MeanEstimate."
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return MeanEstimate
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Aggregator",
    "Choice",
    "Distribution",
    "Domain",
    "Frequencies",
    "HeavyHitters",
    "Hierarchy",
    "Limits",
    "MeanEstimate",
    "Person",
    "Ranges",
    "Reports",
    "Shuffled",
    "Shuffler",
    "Survey",
    "Task",
    "attributes",
    "choose",
    "encode",
    "encode_many",
    "estimate",
    "norm_sub",
    "people_needed",
    "read_arrow",
    "read_lines",
    "read_wire",
    "simulate",
]
