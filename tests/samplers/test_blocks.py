"""The block tables: words are dealt exactly, the whole decision tree has the law, and rare paths are right too."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.entropy import SeededForTestsOnly
from discreet.exact import Interval, exp_minus_bounds
from discreet.samplers import block_table, lazy
from discreet.samplers.alias import make_alias_table
from discreet.samplers.block_table import STANDARD, BlockTable, TableLayout, make_block_table
from discreet.samplers.law import Law
from tests.samplers.sources import Fixed, SmallWords, Written, outcomes
from tests.statistical.chi_square import REJECT, counts, masses, p_value


def laplace(scale: Fraction | int) -> Law:
    return Law(linear=1 / Fraction(scale))


def gaussian(variance: Fraction | int) -> Law:
    return Law(square=1 / (2 * Fraction(variance)))


def geometric(scale: Fraction | int) -> Law:
    return Law(linear=1 / Fraction(scale), signed=False)


LAWS = [
    laplace(Fraction(1, 1000)),
    laplace(Fraction(2, 7)),
    laplace(1),
    laplace(Fraction(37, 10)),
    laplace(100),
    laplace(10**6),
    laplace((1 << 56) - 1),
    laplace(1 << 70),
    gaussian(Fraction(1, 1000)),
    gaussian(1),
    gaussian(Fraction(50, 3)),
    gaussian(10**12),
    gaussian(1 << 111),
    geometric(Fraction(1, 3)),
    geometric(5),
    geometric(10**9),
]


def word_counts(table: BlockTable) -> Counter[int]:
    """How many words lead to each cell, added up over the columns of the alias table."""
    tally: Counter[int] = Counter()
    column_words = 1 << table.shift
    for column, threshold in enumerate(table._thresholds.tolist()):
        own = threshold - column * column_words
        assert 0 <= own <= column_words
        tally[int(table._cells[2 * column])] += own
        tally[int(table._cells[2 * column + 1])] += column_words - own
    return tally


@given(st.lists(st.integers(0, 1 << 20), min_size=1, max_size=60))
@settings(deadline=None, max_examples=200)
def test_an_alias_table_gives_every_outcome_exactly_its_mass(masses: list[int]) -> None:
    column = 1 + sum(masses) // len(masses)
    masses = [*masses, column * (len(masses) + 1) - sum(masses)]
    thresholds, others = make_alias_table(masses, column)
    tally = [0] * len(masses)
    for c, threshold in enumerate(thresholds):
        tally[c] += threshold - c * column
        tally[others[c]] += (c + 1) * column - threshold
    assert tally == masses


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(
    "layout", [STANDARD, TableLayout(word_bits=20, tail_bits=6, fall=Fraction(1, 4))], ids=["64", "20"]
)
def test_words_are_dealt_exactly(law: Law, layout: TableLayout) -> None:
    """Each cell has ⌊s·w⌋ words, the fraction one per cell, the tail at least its envelope, and none are left over."""
    table = BlockTable(law, layout)
    tally = word_counts(table)
    assert sum(tally.values()) == 1 << layout.word_bits
    assert tally[table.cell_count] == table.cell_count
    assert tally[table.cell_count + 1] == table.tail_mass
    assert max(+tally) <= table.cell_count + 2
    for cell in {0, 1, 2, table.cell_count // 2, table.cell_count - 1} & set(range(table.cell_count)):
        block, side = (cell >> 1, cell & 1) if law.signed else (cell, 0)
        low, high = exp_minus_bounds(law.exponent((block << table.block_bits) + side), 400)
        assert table.multiplier * low >> 400 <= tally[cell] <= table.multiplier * high >> 400


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_tail_has_room_for_its_envelope_and_is_rare(law: Law) -> None:
    table = BlockTable(law)
    low, high = table._tail_bounds(64)
    assert 0 <= low <= high <= 1 << 64
    assert high - low <= 2
    assert table.tail_mass < 1 << 35
    assert table.cell_count < 6000
    tally = word_counts(table)
    assert tally[table.cell_count + 2] < 1 << 40  # the filler


# Blocks of one value need no comparison.
WIDE_LAWS = [law for law in LAWS if BlockTable(law).block_bits]


@pytest.mark.parametrize("law", WIDE_LAWS, ids=str)
def test_the_quick_comparison_is_below_every_acceptance_probability(law: Law) -> None:
    table = BlockTable(law)
    width = 1 << table.block_bits
    for block in (0, 1, table.blocks // 2, table.blocks - 1):
        for side in range(1 + law.signed):
            start = block * width + side
            worst = Interval.exp_minus(law.rise(start, start + width - 1))
            assert Fraction(table._quick, 1 << table._known) <= worst.high
    assert table._quick / 2.0**table._known > 0.96


# Blocks of more than one value come with a power of two of cells, which keeps the tree small.
TREES = [
    (laplace(1), TableLayout(word_bits=5, tail_bits=2, fall=Fraction(1))),
    (laplace(Fraction(1, 2)), TableLayout(word_bits=5, tail_bits=1, fall=Fraction(1))),
    (laplace(5), TableLayout(word_bits=4, tail_bits=1, fall=Fraction(1))),
    (gaussian(1), TableLayout(word_bits=5, tail_bits=2, fall=Fraction(1))),
    (gaussian(9), TableLayout(word_bits=4, tail_bits=1, fall=Fraction(1))),
    (geometric(Fraction(3, 2)), TableLayout(word_bits=5, tail_bits=2, fall=Fraction(1))),
    (geometric(5), TableLayout(word_bits=4, tail_bits=2, fall=Fraction(1))),
]
AGAIN = -(10**9)
FURTHEST = 10


def known_below(prefix: int, known: int, bounds: lazy.RealBounds, source: Written, *, step: int) -> bool:
    """In the place of ``lazy.is_below``, which has its own tests: an event with the probability that it should have."""
    low, high = (Fraction(bound, 1 << 200) * 2**known - prefix for bound in bounds(200))
    chance = Interval(min(max(low, Fraction(0)), Fraction(1)), min(max(high, Fraction(0)), Fraction(1)))
    return source.choose([Interval.of(1) - chance, chance]) == 1


@lru_cache
def geometric_chances(slope: Fraction) -> list[Interval]:
    stay = Interval.of(1) - Interval.exp_minus(slope)
    return [stay * Interval.exp_minus(slope * i) for i in range(FURTHEST)]


class KnownGeometric:
    """In the place of the geometric table that the tail asks: an event with the right probabilities."""

    def __init__(self, law: Law, _: TableLayout) -> None:
        assert law.linear > 0
        assert not law.square
        assert not law.signed
        self._chances = geometric_chances(law.linear)

    def draw(self, source: Written) -> int:
        return source.choose(self._chances)


def tree(run: Callable[[Written], int | None], layout: TableLayout) -> dict[int | None, Interval]:
    """The probability of every result, over all words that can come."""
    chances: dict[int | None, Interval] = {}
    for value, chance in outcomes(run, word_bits=layout.word_bits, least=1e-30):
        chances[value] = (chances.get(value, Interval.of(0)) + chance).trim()
    return chances


def agree(one: Interval, other: Interval) -> bool:
    gap = one - other
    return max(abs(gap.low), abs(gap.high)) < Fraction(1, 10**25)


@pytest.mark.parametrize(("law", "layout"), TREES, ids=str)
def test_the_whole_decision_tree_of_a_draw_has_exactly_the_law(
    law: Law, layout: TableLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All words are played through the real code: one attempt gives x with s·exp(−E(|x|))/(B·2^W), to 25 digits."""
    table = BlockTable(law, layout)
    monkeypatch.setattr(lazy, "is_below", known_below)
    monkeypatch.setattr(block_table, "make_block_table", KnownGeometric)
    chances = tree(table.attempt, layout)
    unit = Interval.of(Fraction(table.multiplier, 1 << table.block_bits + layout.word_bits))
    for x in range(-FURTHEST - 1 if law.signed else 0, FURTHEST):
        assert agree(chances[x], Interval.exp_minus(law.exponent(abs(x))) * unit), x


@pytest.mark.parametrize(("law", "layout"), TREES, ids=str)
def test_the_whole_decision_tree_of_a_lane_has_exactly_the_law(
    law: Law, layout: TableLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for arrays, with one lane: each x of a cell gets (words of the cell)·exp(−(E(|x|) − E(|a|)))/(B·2^W).

    Rare words lead to the code of single draws; here it is enough that they all do, however the lane was placed.
    """
    table = BlockTable(law, layout)
    monkeypatch.setattr(lazy, "is_below", known_below)
    monkeypatch.setattr(table, "_draw_rare", lambda cell, _: 1000 + cell)

    def lane(source: Written) -> int | None:
        out = np.zeros(1, dtype=np.int64)
        lost = table._fill_chunk(out, source)
        return None if lost.size else int(out[0])

    chances, words = tree(lane, layout), word_counts(table)
    width = 1 << table.block_bits
    for cell in range(table.cell_count):
        block, side = (cell >> 1, cell & 1) if law.signed else (cell, 0)
        for place in range(width):
            size = block * width + side + place
            keep = Interval.exp_minus(law.rise(size - place, size))
            part = Interval.of(Fraction(words[cell], width << layout.word_bits))
            found = chances.get(-size if side else size, Interval.of(0))
            assert agree(found, part * keep), (cell, place)
    for cell in range(table.cell_count, table.cell_count + 3):
        found = chances.get(1000 + cell, Interval.of(0))
        assert agree(found, Interval.of(Fraction(words[cell], 1 << layout.word_bits))), cell


RARE = ("_draw_fraction", "_draw_tail", "_keeps", "_draw_rare")


def rare_calls(table: BlockTable, monkeypatch: pytest.MonkeyPatch, *names: str) -> Counter[str]:
    calls: Counter[str] = Counter()

    def count(name: str) -> None:
        original = getattr(table, name)

        def counted(*args: Any) -> Any:
            calls[name] += 1
            return original(*args)

        monkeypatch.setattr(table, name, counted)

    for name in names or RARE:
        count(name)
    return calls


SMALL = [
    (laplace(Fraction(7, 3)), TableLayout(word_bits=8, tail_bits=3, fall=Fraction(1, 4))),
    (laplace(21), TableLayout(word_bits=6, tail_bits=3, fall=Fraction(1, 4))),
    (gaussian(Fraction(29, 2)), TableLayout(word_bits=8, tail_bits=3, fall=Fraction(1, 2))),
    (gaussian(900), TableLayout(word_bits=6, tail_bits=3, fall=Fraction(1, 2))),
    (geometric(Fraction(25, 2)), TableLayout(word_bits=7, tail_bits=2, fall=Fraction(1, 2))),
]


def exact_range(law: Law) -> tuple[int, int]:
    high = law.find_reach(Fraction(12))
    return (-high if law.signed else 0), high


@pytest.mark.parametrize(("law", "layout"), SMALL, ids=str)
@pytest.mark.parametrize("arrays", [False, True], ids=["one by one", "arrays"])
def test_small_words_force_the_rare_paths_and_the_law_stays(
    law: Law, layout: TableLayout, arrays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = BlockTable(law, layout)
    calls = rare_calls(table, monkeypatch)
    source = SmallWords(11, layout.word_bits)
    out = np.empty(6_000, dtype=np.int64)
    if arrays:
        table.fill(out, source)
    else:
        out[:] = [table.draw(source) for _ in range(out.size)]
    low, high = exact_range(law)
    assert p_value(counts(out, low, high), masses(lambda x: law.exponent(abs(x)), low, high)) > REJECT
    assert calls["_draw_fraction"] > 100
    assert calls["_draw_tail"] > 100
    assert calls["_draw_rare"] > calls["_draw_fraction"] + calls["_draw_tail"]  # the filler
    if table.block_bits:
        assert calls["_keeps"] > 0


@pytest.mark.parametrize("law", [laplace(10), laplace(300), gaussian(100), gaussian(10**6), geometric(50)], ids=str)
@pytest.mark.parametrize("arrays", [False, True], ids=["one by one", "arrays"])
def test_full_words_have_the_law_and_a_scale_two_percent_off_is_noticed(law: Law, arrays: bool) -> None:
    table = make_block_table(law)
    source = SeededForTestsOnly(5)
    out = np.empty(1_000_000 if arrays else 40_000, dtype=np.int64)
    if arrays:
        table.fill(out, source)
    else:
        out[:] = [table.draw(source) for _ in range(out.size)]
    high = law.find_reach(Fraction(8))
    width = max(1, high // 40)
    low, high = (-high // width if law.signed else 0), high // width
    inside = out // width
    seen = counts(inside[(inside >= low) & (inside <= high)], low, high)

    def binned(wrong: Fraction) -> list[float]:
        fine = masses(lambda x: law.exponent(abs(x)) / wrong, low * width, (high + 1) * width - 1)
        return [sum(fine[start : start + width]) for start in range(0, len(fine), width)]

    assert p_value(seen, binned(Fraction(1))) > REJECT
    if arrays:
        assert p_value(seen, binned(Fraction(102, 100) ** (2 if law.square else 1))) < REJECT


def test_floats_are_far_inside_the_guard_band() -> None:
    """The float exponent and numpy's exp together stay 2^-48 close to certified values, against a band of 2^-40."""
    rng = np.random.default_rng(3)
    for law in (laplace(Fraction(10**6, 7)), laplace((1 << 56) - 1), gaussian(10**12), gaussian((1 << 112) - 1)):
        table = make_block_table(law)
        starts = (rng.integers(0, table.blocks, 300) << table.block_bits) + rng.integers(0, 2, 300)
        places = rng.integers(0, 1 << table.block_bits, 300)
        floats = np.exp(-table._rises(starts.astype(np.float64), places.astype(np.float64)))
        for start, place, value in zip(starts.tolist(), places.tolist(), floats.tolist()):
            exact = Interval.exp_minus(law.rise(start, start + place))
            assert max(exact.high - Fraction(value), Fraction(value) - exact.low) < Fraction(1, 1 << 48)


def test_exp_of_numpy_is_good_enough_on_its_whole_range() -> None:
    xs = np.concatenate([np.linspace(0, 40, 2001), np.array([2.0**-60, 100.0, 700.0, 745.0])])
    for x, value in zip(xs.tolist(), np.exp(-xs).tolist()):
        low, high = exp_minus_bounds(Fraction(x), 80)
        assert low - (1 << 32) <= Fraction(value) * 2**80 <= high + (1 << 32)
    assert block_table.GUARD == 2.0**-40


def test_lanes_inside_the_guard_band_are_decided_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a band as wide as everything every comparison is made exactly, and the same words give the same values."""
    table = BlockTable(gaussian(10**8))
    usual, exact = np.empty(2000, dtype=np.int64), np.empty(2000, dtype=np.int64)
    table.fill(usual, SeededForTestsOnly(1))
    calls = rare_calls(table, monkeypatch)
    monkeypatch.setattr(block_table, "GUARD", 2.0)
    table.fill(exact, SeededForTestsOnly(1))
    assert calls["_keeps"] > 20
    assert (usual == exact).all()


@pytest.mark.parametrize("law", [laplace(10**6), gaussian(10**12), gaussian((1 << 112) - 1)], ids=str)
def test_lanes_just_beside_a_tie_go_the_right_way(law: Law) -> None:
    """Uniforms 2^-36, 2^-43 and 2^-60 beside the acceptance probability, by floats and exactly: the answer is right."""
    table = BlockTable(law)
    rng = np.random.default_rng(5)
    bits = 2 * 64 - table.block_bits
    for _ in range(20):
        cell, place = int(rng.integers(table.cell_count)), int(rng.integers(1 << table.block_bits))
        base = ~(cell >> 1 << table.block_bits) if cell & 1 else cell >> 1 << table.block_bits
        border, _high = exp_minus_bounds(law.rise(abs(base), abs(base ^ place)), bits)
        for apart in (36, 43, 60):
            for sign, kept in ((-1, True), (1, False)):
                prefix = border + sign * (1 << bits - apart)
                if not 0 <= prefix < 1 << bits:
                    continue
                top, more = prefix >> 64, prefix & ((1 << 64) - 1)
                word = np.array([top << table.block_bits | place], dtype=np.uint64)
                found = table._keeps_each(np.array([base]), word, Fixed(more))
                assert found.tolist() == [kept]
                assert table._keeps_one(base, base ^ place, top, Fixed(more)) is kept


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=1 << 40, max_denominator=1000),
    st.sampled_from([laplace, gaussian, geometric]),
)
@settings(deadline=None, max_examples=25)
def test_any_rational_makes_a_table_of_bounded_size(parameter: Fraction, kind: Any) -> None:
    table = BlockTable(kind(parameter))
    assert table.cell_count < 6000
    assert sum(word_counts(table).values()) == 1 << 64
    assert math.isfinite(table.draw(SeededForTestsOnly(2)))


def test_reaches_is_the_first_magnitude_at_a_level() -> None:
    for law in LAWS:
        first = law.find_reach(Fraction(22))
        assert law.exponent(first) >= 22
        assert first == 1 or law.exponent(first - 1) < 22
