"""Chance from a public seed: for rows and shuffles that follow from a release. It is never noise.

Whoever has the bundle has the seed, and can make the same rows again. Nothing private is hidden by these numbers.
"""

from __future__ import annotations

import hashlib

import numpy as np

from discreet.exact import Floats, Integers


class PublicChance:
    """Numbers that follow from a seed, the same everywhere."""

    def __init__(self, seed: bytes) -> None:
        self._seed = hashlib.sha256(b"discreet rows " + seed).digest()
        self._block = 0

    def uniform(self, count: int) -> Floats:
        """Numbers in [0, 1), in steps of 2^-32."""
        self._block += 1
        stream = hashlib.shake_128(self._seed + self._block.to_bytes(8, "little")).digest(4 * count)
        return np.frombuffer(stream, dtype="<u4").astype(np.float64) / 2**32

    def below(self, end: int) -> int:
        """One whole number below ``end``."""
        return int(self.uniform(1)[0] * end)

    def shuffle(self, count: int) -> Integers:
        """An order of so many things."""
        return np.argsort(self.uniform(count), kind="stable")

    def round(self, amounts: Floats) -> Integers:
        """Whole numbers whose mean is the amounts: up or down by chance."""
        whole = np.floor(amounts)
        return (whole + (self.uniform(amounts.size).reshape(amounts.shape) < amounts - whole)).astype(np.int64)

    def deal(self, weights: Floats, count: int) -> Integers:
        """So many positions, each as often as its weight says, up to rounding, in a random order."""
        shares = np.cumsum(weights) / weights.sum() * count
        ends = np.round(shares).astype(np.int64)
        counts = np.diff(ends, prepend=0)
        return np.repeat(np.arange(weights.size), counts)[self.shuffle(count)]
