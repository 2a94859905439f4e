"""What an engine is: something that runs a bounded question exactly, and knows nothing about noise.

Members: ``memory.MemoryEngine`` (slow, obvious Python over rows: the oracle for every other one) and
``duckdb.DuckDBEngine`` (embedded, for real data).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from discreet.bounding.contributions import BoundedPlan
from discreet.exact import Integers
from discreet.plan.types import Type, Value

ProgressCallback: TypeAlias = Callable[[float], None]
"""Called now and then with the share of the work done, between 0 and 1. A public estimate, never a row count."""

GroupHistogram: TypeAlias = tuple[Integers, Integers]
"""Cells in ascending order, and how many rows each holds (at least one)."""

EMPTY: GroupHistogram = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Groups:
    """Exact, private integers: for each observed group its key tuple, for each measure one integer a group, and for
    each spread one histogram a group.

    Only the curator sees this, and only to add noise. Groups appear in no particular order; a group that no row fell
    into may be missing. Without keys there is exactly one group, ``()``.
    """

    keys: tuple[tuple[Value, ...], ...]
    values: tuple[tuple[int, ...], ...]
    spreads: tuple[tuple[GroupHistogram, ...], ...] = ()


class Engine(Protocol):
    """Runs bounded questions over the declared tables of one dataset."""

    def schema(self, table: str) -> Mapping[str, Type | None]:
        """The columns a source really has, and the plan type each would get (None: a type without one). No values."""
        ...

    def version(self, table: str) -> str:
        """A text that changes whenever the data may have changed; equal texts allow an answer to be replayed."""
        ...

    def prepare(self, table: str) -> None:
        """Make a table ready once, where that makes later questions faster; answers stay the same."""
        ...

    def run(self, bounded: BoundedPlan, *, salt: bytes, watch: ProgressCallback | None = None) -> Groups:
        """The exact integers of ``contributions.py``. ``salt`` (16 secret bytes) orders a unit's groups."""
        ...

    def close(self) -> None:
        """Let go of files and memory."""
        ...
