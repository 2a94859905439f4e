"""Which charges drew something within a frame: an index of the log in memory, which grows as lines are read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

_DRAWN = '"kind":"drawn"'
_FRAMES = '"frames":['


class FrameIndex:
    """Numbers of reservations by the frames on the lines of their draws. It follows from the lines alone."""

    def __init__(self) -> None:
        self.next = 0  # the first line that was not read yet
        self._numbers: dict[str, list[int]] = {}

    def read_lines(self, lines: Iterable[tuple[int, str]]) -> None:
        """Take in the lines from ``next`` on."""
        for number, line in lines:
            if _DRAWN in line and _FRAMES in line:
                record = json.loads(line)
                for frame in record["frames"] if record["kind"] == "drawn" else ():
                    self._numbers.setdefault(frame, []).append(record["of"])
            self.next = number + 1

    def find(self, frame: str) -> Sequence[int]:
        """The reservations, in the order of their draws."""
        return tuple(dict.fromkeys(self._numbers.get(frame, ())))
