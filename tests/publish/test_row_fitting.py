"""Tests of rows by gradual updating: they fit tables, keep constraints, and follow from the public seed."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from discreet.exact import Flags, Floats, Integers
from discreet.publish.chance import PublicChance
from discreet.publish.row_fitting import RowFitter, begin_rows
from discreet.publish.workload import Attributes

SIZES = (4, 6, 3, 2)
ROWS = 4_000


def make_targets() -> tuple[dict[Attributes, Floats], list[Floats]]:
    """The pairs of a table in which all columns hang together."""
    weights = np.random.default_rng(1).gamma(0.3, size=SIZES)
    cube = weights / weights.sum() * ROWS
    pairs: dict[Attributes, Floats] = {
        p: cube.sum(axis=tuple(a for a in range(4) if a not in p)) for p in combinations(range(4), 2)
    }
    return pairs, [cube.sum(axis=tuple(a for a in range(4) if a != c)) for c in range(4)]


def find_distance(rows: Integers, pairs: dict[Attributes, Floats]) -> float:
    """The mean total variation distance over the pairs."""
    found = []
    for (a, b), table in pairs.items():
        counts = np.bincount(rows[a] * SIZES[b] + rows[b], minlength=table.size).reshape(table.shape)
        found.append(np.abs(counts - table).sum() / 2 / ROWS)
    return float(np.mean(found))


def test_rows_fit_their_tables() -> None:
    pairs, ones = make_targets()
    chance = PublicChance(b"seed")
    start = begin_rows(ones, ROWS, chance)
    before = find_distance(start, pairs)
    after = find_distance(RowFitter(start, SIZES, pairs, chance).run(20), pairs)
    assert after < 0.02
    assert before > 0.15


def test_the_same_seed_makes_the_same_rows() -> None:
    pairs, ones = make_targets()

    def make(seed: bytes) -> Integers:
        chance = PublicChance(seed)
        return RowFitter(begin_rows(ones, ROWS, chance), SIZES, pairs, chance).run(3)

    assert (make(b"a") == make(b"a")).all()
    assert (make(b"a") != make(b"b")).any()


def test_only_allowed_rows_come_in() -> None:
    """From rows that keep a constraint, every later row keeps it."""
    pairs, ones = make_targets()
    chance = PublicChance(b"seed")

    def allowed(rows: Integers) -> Flags:
        return np.asarray(rows[0] <= rows[1])

    start = begin_rows(ones, ROWS, chance)
    start[1] = np.maximum(start[0], start[1])
    found = RowFitter(start, SIZES, pairs, chance, allowed).run(20)
    assert allowed(found).all()


def test_dealing_keeps_shares() -> None:
    dealt = PublicChance(b"x").deal(np.array([1.0, 0.0, 3.0]), 400)
    assert np.bincount(dealt, minlength=3).tolist() == [100, 0, 300]


def test_rounding_by_chance_has_the_right_mean() -> None:
    found = PublicChance(b"y").round(np.full(100_000, 1.3))
    assert set(found.tolist()) == {1, 2}
    assert abs(found.mean() - 1.3) < 0.01
