"""The local model: privacy before the data leaves the person.

A ``Task`` says what is asked and by which integers; ``encode`` makes a report on the device; an ``Aggregator`` adds
reports up; ``estimate`` says what they mean, with intervals. ``choose`` finds the protocol. ``Person`` remembers
answers over time. Nobody has to be trusted with the data.

>>> task = choose(["never", "sometimes", "often"], epsilon=1, n=5000).task("how often")
>>> collected = Aggregator(task)
>>> collected.add_wire([encode(task, "often"), encode(task, "never"), b"rubbish"], batch="first")
True
>>> collected  # doctest: +ELLIPSIS
Aggregator(...: 2 reports, 1 set aside)
"""

from __future__ import annotations

import warnings

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


def __getattr__(name: str) -> type[MeanEstimate]:
    """The name of an earlier version, with a warning; see docs/stability.md."""
    if name != "Mean":
        raise AttributeError(f"module 'discreet.local' has no attribute {name!r}")
    warnings.warn("discreet.local.Mean is now MeanEstimate; the old name goes with 0.3.0", DeprecationWarning, 2)
    return MeanEstimate
