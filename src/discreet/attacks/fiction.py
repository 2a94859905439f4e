"""Fictional people, the same on every machine. Nobody in these data exists.

The numbers come from a hash of fixed words. They are repeatable, so they are useless as privacy noise, which comes from
``entropy.py`` alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.exact import Flags, Integers
from discreet.late_dataclass import dataclass


def make_numbers(word: str, count: int, below: int = 1 << 30) -> Integers:
    """Whole numbers from 0 to ``below`` − 1 (at most 2^30 of them) from a hash of a word."""
    raw = hashlib.shake_256(f"fictional people: {word}".encode()).digest(4 * count)
    numbers: Integers = (np.frombuffer(raw, dtype="<u4") >> 2).astype(np.int64) * below >> 30
    return numbers


def make_coins(word: str, count: int) -> Flags:
    """Secrets of people who do not exist: heads for one half of them, so that half of all blind guesses are right."""
    heads: Flags = np.argsort(np.argsort(make_numbers(word, count), kind="stable"), kind="stable") < count // 2
    return heads


def make_frame(columns: Mapping[str, Any]) -> Any:
    """Columns as an Arrow table, for a curator."""
    import pyarrow as pa

    return pa.table({name: pa.array(values) for name, values in columns.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """Debtors of many towns. Each town has one mayor, and whether the mayor is on the list is the secret.

    The attacker knows everybody else on the list: ``others`` of them in each town.
    """

    town: Integers
    mayor: Flags
    born: Integers
    listed: Flags
    others: Integers

    @classmethod
    def of(cls, towns: int, word: str = "debtors") -> Register:
        """A register of so many towns, with 20 to 60 debtors who are not the mayor in each."""
        listed = make_coins(f"{word}: mayors", towns)
        others = 20 + make_numbers(f"{word}: size", towns, 41)
        town = np.concatenate([np.repeat(np.arange(towns), others), np.flatnonzero(listed)])
        mayor = np.arange(len(town)) >= others.sum()
        born = 1930 + make_numbers(f"{word}: born", len(town), 70)
        return cls(town=town, mayor=mayor, born=born, listed=listed, others=others)

    @property
    def towns(self) -> int:
        """How many towns there are; each has one secret."""
        return len(self.listed)

    @property
    def counts(self) -> Integers:
        """The true number of debtors in each town."""
        return self.others + self.listed

    def to_frame(self) -> Any:
        """The register as a table with one row for each debtor."""
        return make_frame(
            {"person": np.arange(len(self.town)), "town": self.town, "mayor": self.mayor, "born": self.born}
        )
