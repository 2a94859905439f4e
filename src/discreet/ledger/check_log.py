"""Checks the exported log of a ledger, with Python's standard library and nothing else.

    python check_log.py log.jsonl [head.json ...]

It reads what ``discreet ledger export`` wrote and checks that every line holds the hash of the line before, that
numbers and times do not go back, that every answer belongs to a reservation and comes once, that no request id was
charged twice, and that no price is negative. It prints the number of charges, the exact sums of their prices, and the
head. Give it heads that were kept elsewhere: the log must still hold each of them. It ends with 0 where all is well
and with 1 where it is not.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from fractions import Fraction
from pathlib import Path

NUMBER = re.compile(r"\d+(/[1-9]\d*)?")


class LogError(Exception):
    """The log is wrong; the message says where and how."""


def read_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON in which no name occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise LogError("has a name twice")
    return found


class LogCheck:
    """The state of the check after some lines."""

    def __init__(self) -> None:
        self.previous, self.number, self.time, self.ledger = "0" * 64, -1, "", ""
        self.hashes: list[str] = []
        self.requests: set[tuple[object, object]] = set()
        self.answered: dict[int, bool] = {}
        self.sums: list[Fraction | None] = []

    def take_line(self, text: str) -> None:
        """Take in the next line."""
        record = json.loads(text, object_pairs_hook=read_object)
        if record["number"] != self.number + 1 or record["previous"] != self.previous:
            raise LogError("does not follow from the line before")
        if record["time"] < self.time:
            raise LogError("is earlier than the line before")
        self.number, self.time = record["number"], record["time"]
        self.previous = hashlib.sha256(text.encode()).hexdigest()
        self.hashes.append(self.previous)
        self.check_record(record)

    def check_record(self, record: dict) -> None:  # type: ignore[type-arg]  # plain JSON
        """Check what a line says."""
        kind = record["kind"]
        if (kind == "opened") != (self.number == 0):
            raise LogError("opens the log in the wrong place")
        if kind == "opened":
            self.ledger = record["ledger"]
        elif kind == "reserved":
            name = (record["analyst"], record["request"])
            if name in self.requests:
                raise LogError("charges a request twice")
            self.requests.add(name)
            self.answered[self.number] = False
            self.add_price(record["price"])
        elif kind in ("answered", "resumed"):
            if self.answered.get(record["of"]) is not False:
                raise LogError("answers what was not asked, or was answered before")
            self.answered[record["of"]] = kind == "answered"
        elif kind == "renewed":
            self.sums = []
        elif kind not in ("amended", "restored"):
            raise LogError("is of a kind that this program does not know")

    def add_price(self, price: list[str | None]) -> None:
        """Add a price to the sums; a part that is not known makes its sum unknown."""
        if not all(part is None or NUMBER.fullmatch(part) for part in price):
            raise LogError("has a price that is not an exact number")
        parts = [None if part is None else Fraction(part) for part in price]
        before = self.sums or [Fraction(0)] * len(parts)
        self.sums = [None if a is None or b is None else a + b for a, b in zip(before, parts)]

    def check_head(self, head: dict) -> None:  # type: ignore[type-arg]  # plain JSON
        """Check that the log still holds a line."""
        number = head["number"]
        if head["ledger"] != self.ledger or not 0 <= number <= self.number or self.hashes[number] != head["hash"]:
            raise LogError(
                f"The log does not hold the line of head {number}: it was cut back, forked, or is another one."
            )


def check(lines: list[str], heads: list[dict]) -> LogCheck:  # type: ignore[type-arg]  # plain JSON
    """Check a log against heads; LogError says what is wrong."""
    found = LogCheck()
    for at, text in enumerate(lines):
        try:
            found.take_line(text)
        except (LogError, ValueError, KeyError, TypeError) as error:
            raise LogError(f"Line {at + 1} {error if isinstance(error, LogError) else 'cannot be read'}.") from None
    if not lines:
        raise LogError("The log is empty.")
    for head in heads:
        found.check_head(head)
    return found


def main(arguments: list[str]) -> int:
    """Run the program, and return its exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(__doc__ or "")
        return 2
    try:
        text = Path(arguments[0]).read_text(encoding="ascii")
        if text and not text.endswith("\n"):
            raise LogError("The last line is not whole.")
        heads = [json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments[1:]]
        found = check(text.split("\n")[:-1], heads)
    except (LogError, OSError, ValueError, KeyError, TypeError) as error:
        sys.stdout.write(f"WRONG: {error}\n")
        return 1
    open_ = sum(not done for done in found.answered.values())
    sums = " ".join("?" if part is None else str(part) for part in found.sums)
    head = json.dumps({"ledger": found.ledger, "number": found.number, "hash": found.previous})
    sys.stdout.write(f"whole: {found.number + 1} lines, {len(found.answered)} charges, {open_} unanswered\n")
    sys.stdout.write(f"sums of prices (ε, ρ or μ², as the budget counts): {sums or 'nothing'}\nhead: {head}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
