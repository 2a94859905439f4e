"""Frozen counts: the private state of a series. What was counted in a period is never counted again.

Privacy: the bound of a series needs that each unit is in at most so many periods, so far apart, whatever happens to the
rows later on. So a period is counted once, from the rows that are there then, and what came out is kept, with the units
that were counted: rows that come later, or change, or go, change nothing. A unit is counted by what it did before, and
never by what it does later. The state is as private as the rows themselves: it stays in a folder that only its owner
can read, and nothing of it is ever in the ledger.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from discreet.draw_record import from_plain, to_plain
from discreet.entropy import SYSTEM
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.types import Type, Value


@dataclass(frozen=True, slots=True)
class FrozenCount:
    """What one period has: its count, and the units that are in it."""

    count: int
    units: tuple[Value, ...]


class FrozenCounts(Protocol):
    """Where frozen counts are kept. Members: ``MemoryCounts``, ``FolderCounts``."""

    def read(self, period: int) -> FrozenCount | None:
        """What was frozen for a period, if anything was."""
        ...

    def freeze(self, period: int, found: FrozenCount) -> FrozenCount:
        """Keep what was counted, durably; what was frozen before wins and is handed back."""
        ...


class MemoryCounts:
    """Counts that are gone when Python ends, as a ledger in memory is."""

    def __init__(self) -> None:
        self._kept: dict[int, FrozenCount] = {}

    def read(self, period: int) -> FrozenCount | None:
        return self._kept.get(period)

    def freeze(self, period: int, found: FrozenCount) -> FrozenCount:
        return self._kept.setdefault(period, found)


@dataclass(frozen=True)
class FolderCounts:
    """Counts in a private folder, a file for each period, which is made once and never changed."""

    folder: Path
    plan: str
    kind: Type | None

    def read(self, period: int) -> FrozenCount | None:
        path = self._find_path(period)
        if not path.exists():
            return None
        try:
            known: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            same, count = known["plan"] == self.plan, int(known["count"])
            kind = self.kind
            units = () if kind is None else tuple(from_plain(unit, kind) for unit in known["units"])
        except (OSError, ValueError, KeyError, TypeError):
            raise UsageError(
                f"{path} cannot be read, and a series cannot go on without what it counted before. Put the last "
                "backup of this folder back. Nothing was charged."
            ) from None
        if not same:
            raise UsageError(
                f"{path.parent} belongs to another series. Give each series a folder. Nothing was charged."
            )
        return FrozenCount(count, units)

    def freeze(self, period: int, found: FrozenCount) -> FrozenCount:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._find_path(period)
        draft = self.folder / f".{path.name}.{SYSTEM.bits(64):016x}"
        units = [to_plain(unit) for unit in found.units]
        text = json.dumps({"plan": self.plan, "count": str(found.count), "units": units})
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)  # fails where the file is there: the first to write it wins
        except FileExistsError:
            return self.read(period) or found
        finally:
            draft.unlink(missing_ok=True)
        _sync(self.folder)
        return found

    def _find_path(self, period: int) -> Path:
        return self.folder / f"{period:04d}.json"


def _sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def select_units(
    present: Mapping[Value, int], before: Mapping[Value, tuple[int, int]], period: int, limits: UnitLimits
) -> FrozenCount:
    """Who is counted in a period, and how many rows that makes. ``before``: in how many periods, and the last of them.

    Privacy: whether a unit is counted depends on its own earlier periods alone. A unit adds at most ``max_count`` to
    each of at most ``max_periods`` periods, any two of which are at least ``apart``.
    """
    counted: dict[Value, int] = {}
    for unit, rows in present.items():
        times, last = before.get(unit, (0, -limits.apart))
        if times < limits.max_periods and period - last >= limits.apart and rows > 0:
            counted[unit] = min(rows, limits.max_count)
    return FrozenCount(sum(counted.values()), tuple(counted))


@dataclass(frozen=True, slots=True)
class UnitLimits:
    """In how many periods a unit may be counted, how far apart, and with how many rows in each."""

    max_periods: int
    apart: int
    max_count: int
