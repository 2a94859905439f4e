"""Quantiles and modes from histograms of many groups: loss over all small cases, exact draws, one law everywhere."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from discreet.accounting import events
from discreet.entropy import EntropySource, SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import Interval
from discreet.mechanisms.quantiles import cells as cells_module
from discreet.mechanisms.quantiles import lazy_rows, segments
from discreet.mechanisms.quantiles.cells import CellMode, CellQuantiles
from discreet.mechanisms.quantiles.column_quantiles import Quantile
from discreet.mechanisms.quantiles.lazy_rows import LazyRows, Side, draw_quantiles
from discreet.mechanisms.quantiles.ranks import CellCounts, runs_of_counts
from discreet.samplers import lazy
from tests.mechanisms.quantiles.test_column_quantiles import rank_error
from tests.mechanisms.selecting import Untouched, log_ratio

Rows = tuple[int, ...]
Law = dict[Rows, float]
GRID = range(4)
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
Make = Callable[..., CellQuantiles | CellMode]


def histogram(rows: Sequence[int]) -> CellCounts:
    cells, counts = np.unique(np.array(rows, dtype=np.int64), return_counts=True)
    return cells, counts


def small(most: int) -> list[Rows]:
    return [rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(GRID, n)]


def median(**more: Any) -> CellQuantiles:
    return CellQuantiles(qs=[HALF], first=0, last=3, **more)


def quarter(**more: Any) -> CellQuantiles:
    return CellQuantiles(qs=[QUARTER], first=0, last=3, **more)


def mode(**more: Any) -> CellMode:
    return CellMode(first=0, last=3, **more)


class Laws:
    """The exact laws of one group under a mechanism, kept."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule
        self.known: dict[Rows, list[Interval]] = {}

    def of(self, rows: Sequence[int]) -> list[Interval]:
        key = tuple(sorted(rows))
        if key not in self.known:
            self.known[key] = [self.rule.probability(v, histogram(key)) for v in GRID]
        return self.known[key]

    def spread(self, one: Sequence[int], other: Sequence[int]) -> tuple[float, float]:
        """The least and the largest log-ratio."""
        ends = [log_ratio(p, q) for p, q in zip(self.of(one), self.of(other))]
        return min(low for low, _ in ends), max(high for _, high in ends)


def changes(rows: Rows, come: int, go: int) -> Iterator[Rows]:
    """All ways in which so many rows come, and so many others go."""
    for gone in set(itertools.combinations(rows, go)):
        left = Counter(rows) - Counter(gone)
        for new in itertools.combinations_with_replacement(GRID, come):
            yield tuple(sorted((*left.elements(), *new)))


@pytest.mark.parametrize("make", [median, quarter, mode], ids=["median", "quarter", "mode"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_range_of_a_choice_grows_with_the_rows_that_change(make: Make, neighbours: str) -> None:
    """c rows that come or go, in any mix, have a range of at most ε₀·c/M: over all small histograms. Nearly reached."""
    rule = make(epsilon=2, max_rows=2, neighbours=neighbours)
    changed = 2 if neighbours == "add-remove" else 4
    laws, best = Laws(rule), 0.0
    for rows in small(4):
        for come, go in ((1, 0), (2, 0), (1, 1), (0, 2), (2, 2)):
            if come + go > changed or go > len(rows):
                continue
            for near in changes(rows, come, go):
                low, high = laws.spread(rows, near)
                allowed = 2 * (come + go) / changed
                assert high - low <= allowed + 1e-12
                assert max(-low, high) <= allowed + 1e-12
                best = max(best, (high - low) / allowed)
    assert best > 0.99


def test_replaced_in_place_is_cheaper_and_holds() -> None:
    """One group only: pairs of rows move a rank error by one, so all quantiles but the median gain."""
    away = quarter(epsilon=2, neighbours="replace")
    stays = quarter(epsilon=2, neighbours="replace", in_place=True)
    assert stays._factor(QUARTER) == 1 == away._factor(QUARTER) * Fraction(3, 2)
    assert median(epsilon=1, neighbours="replace", in_place=True)._factor(HALF) == HALF
    assert median(epsilon=1, neighbours="replace")._factor(HALF) == HALF
    laws, best = Laws(stays), 0.0
    for rows in small(6):
        for come, go in ((1, 0), (0, 1), (1, 1)):
            for near in changes(rows, come, go) if go <= len(rows) else ():
                low, high = laws.spread(rows, near)
                best = max(best, high - low)
    assert 1.7 < best <= 2 + 1e-12


@pytest.mark.parametrize("make", [median, quarter, mode], ids=["median", "quarter", "mode"])
def test_replaced_unit_in_two_groups(make: Make) -> None:
    """A row that moves within a group or to another one: the ranges of both add up to at most ε₀, and get near."""
    rule = make(epsilon=2, neighbours="replace")
    careless = Laws(make(epsilon=2))  # calibrated for rows that only come or only go
    laws, best, worst = Laws(rule), 0.0, 0.0
    for here, there in itertools.product(small(2), repeat=2):
        for old, new in itertools.product(GRID, repeat=2):
            within = laws.spread((*here, old), (*here, new))
            across = [laws.spread((*here, old), here), laws.spread(there, (*there, new))]
            bad = [careless.spread((*here, old), here), careless.spread(there, (*there, new))]
            best = max(best, within[1] - within[0], sum(high - low for low, high in across))
            worst = max(worst, sum(high - low for low, high in bad))
    assert 1.6 < best <= 2 + 1e-12
    assert worst > 3.3  # negative control


@pytest.mark.parametrize("make", [median, mode], ids=["median", "mode"])
def test_groups_share_the_budget(make: Make) -> None:
    """A unit in three groups: the pure loss of all of them together is at most ε; without ``groups`` it is not."""
    both, ignored = (Laws(make(epsilon=2, groups=g)) for g in (3, 1))

    def loss(laws: Laws) -> float:
        pairs = ((laws.of(rows), laws.of((*rows, new))) for rows in small(3) for new in GRID)
        return 3 * max(abs(end) for p, q in pairs for one in zip(p, q) for end in log_ratio(*one))

    assert loss(both) <= 2 + 1e-12
    assert loss(ignored) > 3


def test_events_count_levels_and_groups() -> None:
    """What is charged: one bounded range for each level and bundle; ρ is solved downwards."""
    many = CellQuantiles(qs=[0.1, 0.5, 0.9], first=0, last=9, groups=5, max_rows=7, epsilon=1, neighbours="replace")
    assert many.event == events.Exponential(epsilon=Fraction(1, 10), count=10, neighbours="replace")
    assert many.privacy.epsilon() == 1
    assert mode(rho=0.5, groups=4).event == events.Exponential(epsilon=1, count=4)
    assert median(epsilon=3).events == (events.Exponential(epsilon=3),)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_loss_of_two_levels_with_rows_on_both_sides(neighbours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Units with up to two rows, on one side of the split or on both: exact joint law on a tiny grid, at most ε.

    Also the statement behind it: given the first result, the second draws of both sides have ranges that add up to ε₀.
    """
    monkeypatch.setattr(cells_module, "_PART_BITS", 0)
    shares = [QUARTER, HALF, Fraction(3, 4)]
    rule = CellQuantiles(qs=shares, first=0, last=3, max_rows=2, epsilon=2, neighbours=neighbours)

    @cache
    def law(rows: Rows, q: Fraction, low: int, high: int) -> list[float]:
        weights = [math.exp(-float(rule._factor(q) * rank_error(rows, q, v))) for v in range(low, high + 1)]
        return [w / math.fsum(weights) for w in weights]

    def joint(rows: Rows) -> dict[Rows, float]:
        found: Law = {}
        for v, p in enumerate(law(rows, HALF, 0, 3)):
            left = law(tuple(x for x in rows if x < v), HALF, 0, v)
            right = law(tuple(x for x in rows if x > v), HALF, v, 3)
            for (u, a), (w, b) in itertools.product(enumerate(left), enumerate(right, v)):
                found[u, v, w] = p * a * b
        return found

    laws = {rows: joint(rows) for rows in small(5)}
    level, worst = 0.0, 0.0
    for rows in small(3):
        lost = () if neighbours == "add-remove" else (1, 2)
        gone = [(), *(out for n in lost for out in itertools.combinations(rows, n))]
        for out in gone:
            left = tuple((Counter(rows) - Counter(out)).elements())
            for new in itertools.chain(itertools.product(GRID, repeat=1), itertools.product(GRID, repeat=2)):
                other = laws[tuple(sorted((*left, *new)))]
                worst = max(worst, *(abs(math.log(p / other[o])) for o, p in laws[rows].items()))
                for v in GRID:
                    both = 0.0
                    for a, b in ((0, v), (v, 3)):
                        inside = [tuple(x for x in d if (x < v if b == v else x > v)) for d in (rows, (*left, *new))]
                        logs = [math.log(p / q) for p, q in zip(*(law(d, HALF, a, b) for d in inside))]
                        both += max(logs) - min(logs)
                    level = max(level, both)
    assert 0.7 < worst <= 2 + 1e-9
    assert 0.6 < level <= 1 + 1e-9  # ε₀ of one level
    # The oracle is the law that is drawn, by both ways to draw it.
    data = (0, 1, 1, 3)
    for few in (0, 10):
        monkeypatch.setattr(cells_module, "_FEW", few)
        drawn = Counter(rule.release_all([histogram(data)] * 2_000, source=SeededForTestsOnly(5)))
        assert fits(drawn, laws[data])


def fits(drawn: Counter[Any], law: dict[Any, float]) -> bool:
    """χ² of draws against a law; outcomes that are expected fewer than five times are one."""
    n = drawn.total()
    common = [o for o, p in law.items() if p * n >= 5]
    counts = [drawn[o] for o in common] + [n - sum(drawn[o] for o in common)]
    mass = [law[o] for o in common] + [max(0.0, 1 - sum(law[o] for o in common))]
    if mass[-1] * n < 1:
        if counts[-1] > 8:
            return False
        counts, mass = counts[:-1], mass[:-1]
    return bool(chisquare(counts, np.array(mass) / sum(mass) * sum(counts)).pvalue > 1e-4)


# --- Draws -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("few", [0, 1024], ids=["by pieces", "together"])
@pytest.mark.parametrize("make", [median, quarter, mode], ids=["median", "quarter", "mode"])
def test_draws_follow_the_exact_probabilities(make: Make, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of several groups, one of them empty, follows its own law; the law of a larger ε does not fit."""
    monkeypatch.setattr(cells_module, "_FEW", few)
    rule, wrong = make(epsilon=1), make(epsilon=3)
    groups: list[Rows] = [(1, 1, 2, 3), (), (0, 0, 0, 3, 3), (2,)]
    drawn = rule.release_all([histogram(g) for g in groups] * 2_500, source=SeededForTestsOnly(3))
    for i, rows in enumerate(groups):
        counts = Counter(cell for (cell,) in drawn[i::4])
        assert fits(counts, {v: float(p) for v, p in enumerate(Laws(rule).of(rows))})
        assert not fits(counts, {v: float(p) for v, p in enumerate(Laws(wrong).of(rows))}) or len(rows) < 3


def test_single_quantile_is_that_of_the_slow_one() -> None:
    """``CellQuantiles`` of counts and ``Quantile`` of rows have the same exact law, at the same loss."""
    rows = (1, 1, 2, 3, 3, 3)
    for q in (HALF, QUARTER, Fraction(9, 10)):
        fast = CellQuantiles(qs=[q], first=0, last=5, epsilon=2, max_rows=3)
        slow = Quantile(q=q, bounds=(0, 5), epsilon=2, max_rows=3)
        assert [fast.probability(v, histogram(rows)) for v in range(6)] == [slow.probability(v, rows) for v in range(6)]


def places_of(rows: Rows, bits: int) -> Rows:
    """Oracle: the place of each row, by the rule: of k rows in a part, ⌊k/2⌋ are in its lower half."""

    def spread(k: int, start: int, width: int) -> list[int]:
        if width == 1 or not k:
            return [start] * k
        return [*spread(k // 2, start, width // 2), *spread(k - k // 2, start + width // 2, width // 2)]

    return tuple(p for cell, k in sorted(Counter(rows).items()) for p in spread(k, cell << bits, 1 << bits))


def test_one_more_row_adds_places_and_moves_none() -> None:
    """What the privacy of several quantiles rests on: with more rows in a cell, no place has fewer of them."""
    for bits in (1, 2, 4):
        for k, more in itertools.product(range(40), (1, 2, 7)):
            fewer, many = (Counter(places_of((0,) * n, bits)) for n in (k, k + more))
            assert fewer <= many and (many - fewer).total() == more


def test_floors_of_the_whole_count_would_move_rows() -> None:
    """Negative control: differences of ⌊k·s/w⌋ at fixed places s take a row from one place and give it to another."""

    def floors(k: int) -> Counter[int]:
        return Counter({s: k * (s + 1) // 8 - k * s // 8 for s in range(8)})

    assert any(not floors(k) <= floors(k + 1) for k in range(20))


def law_of_cells(rows: Rows, shares: list[Fraction], bits: int, factor: Callable[[Fraction], Fraction]) -> Law:
    """Oracle: the law of the chosen cells, by going through all results."""

    def law(fine: Rows, part: list[Fraction], low: int, high: int) -> Law:
        if not part:
            return {(): 1.0}
        middle, found = len(part) // 2, defaultdict[Rows, float](float)
        q = part[middle]
        weights = {v: math.exp(-float(factor(q) * rank_error(fine, q, v))) for v in range(low, high + 1)}
        for v, w in weights.items():
            under = law(tuple(x for x in fine if x < v), [s / q for s in part[:middle]], low, v)
            over = law(tuple(x for x in fine if x > v), [(s - q) / (1 - q) for s in part[middle + 1 :]], v, high)
            for (a, pa), (b, pb) in itertools.product(under.items(), over.items()):
                found[*a, v, *b] += w / math.fsum(weights.values()) * pa * pb
        return found

    total = defaultdict[Rows, float](float)
    for outcome, p in law(places_of(rows, bits), shares, 0, (2 << bits) - 1).items():
        total[tuple(v >> bits for v in outcome)] += p
    return total


@pytest.mark.parametrize("few", [0, 1024], ids=["by pieces", "together"])
@pytest.mark.parametrize("shares", [[Fraction(1, 3), Fraction(2, 3)], [QUARTER, HALF, Fraction(3, 4)]], ids=len)
def test_places_that_are_found_have_the_law_of_all_places(
    shares: list[Fraction], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two bits of places: the law of the results, computed by brute force."""
    monkeypatch.setattr(cells_module, "_PART_BITS", 2)
    monkeypatch.setattr(cells_module, "_FEW", few)
    rule = CellQuantiles(qs=shares, first=0, last=1, epsilon=6)
    rows = (0, 0, 0, 1, 1)
    law = law_of_cells(rows, shares, 2, rule._factor)
    drawn = Counter(rule.release_all([histogram(rows)] * 2_500, source=SeededForTestsOnly(4)))
    assert fits(drawn, law)
    assert not fits(drawn, law_of_cells((0, 0, 1, 1, 1), shares, 2, rule._factor))


def test_the_cover_need_not_be_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces decide only how often a proposal is refused: with none halved, or all, the law is the same."""
    rule = CellQuantiles(qs=[HALF], first=0, last=5, epsilon=3)
    rows = (0, 2, 2, 2, 5)
    monkeypatch.setattr(cells_module, "_FEW", 0)
    law = {(v,): float(rule.probability(v, histogram(rows))) for v in range(6)}
    for loose, most in ((0.0, 4096), (1.0, 0)):
        monkeypatch.setattr(lazy_rows, "_LOOSE", loose)
        monkeypatch.setattr(lazy_rows, "_WASTE", 0.0)
        monkeypatch.setattr(lazy_rows, "_MOST", most)
        drawn = Counter(rule.release_all([histogram(rows)] * 2_000, source=SeededForTestsOnly(int(loose) + 6)))
        assert fits(drawn, law)


@given(
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    looks=st.lists(st.integers(0, 79), max_size=12),
)
@settings(deadline=None, max_examples=60)
def test_what_is_known_of_a_column_stays_true(counts: list[int], looks: list[int]) -> None:
    """Ranks never contradict one another, cells keep their rows, and a cut is where the range can be divided."""
    cells = np.arange(len(counts)) * 2
    column = LazyRows(cells, np.array(counts), 3)
    seen = {place: column.look(place) for place in looks}
    total = sum(counts)
    low, high, below, inside = 0, 79, 0, total
    while inside and high > low:
        cut, rank = column.cut(low, high)
        assert low < cut <= high
        assert below <= rank <= below + inside
        seen[cut] = column.look(cut)
        assert seen[cut][0] == rank
        low, below, inside = cut, rank, inside - (rank - below)
    for place, found in seen.items():
        assert column.look(place) == found  # nothing that was known changes
    ordered = sorted(seen.items())
    for (_, (below_a, at_a)), (_, (below_b, _)) in itertools.pairwise(ordered):
        assert below_a + at_a <= below_b <= total
    for cell, count in zip(cells.tolist(), counts):
        start, end = column.look(cell << 3)[0], column.look((cell + 1) << 3)[0]
        assert end - start == count
        each = [column.look((cell << 3) + i) for i in range(8)]
        assert sum(at for _, at in each) == count


def test_no_row_is_touched() -> None:
    """A trillion rows in one cell, or a million in each of many: nothing is expanded, results are right."""
    source = SeededForTestsOnly(1)
    huge = np.array([5]), np.array([1 << 40])
    assert median(epsilon=1).release(np.array([2]), np.array([1 << 50]), source=source) == (2,)
    assert CellMode(first=0, last=9, epsilon=1).release(*huge, source=source) == (5,)
    wide = CellQuantiles(qs=[0.25, 0.5, 0.75], first=-1000, last=1000, epsilon=1)
    cells = np.arange(-1000, 1001)
    assert wide.release(cells, np.full(2001, 10_000), source=source) == (-500, 0, 500)
    fine = CellQuantiles(qs=[Fraction(1, 1 << 30)], first=0, last=9, epsilon=1)  # ranks beyond 64 bits
    assert fine.release(np.array([3, 7]), np.array([1 << 40, 1 << 40]), source=source) == (3,)


def test_large_groups_are_near_their_quantiles() -> None:
    """Rank errors of all quantiles stay within the stated bound; results never decrease."""
    qs = [Fraction(i, 10) for i in range(1, 10)]
    rule = CellQuantiles(qs=qs, first=0, last=99, epsilon=4)
    data = np.repeat([5, 30, 31, 90], [4000, 1000, 1000, 4000])
    bound = rule.error(1e-6)
    for found in rule.release_all([histogram(data.tolist())] * 5, source=SeededForTestsOnly(9)):
        assert list(found) == sorted(found)
        for q, value in zip(qs, found):
            below, above = (data < value).sum(), (data > value).sum()
            assert max(below - q * 10_000, above - (1 - q) * 10_000) <= bound
    assert bound < 400


def test_error_bounds_hold_exactly() -> None:
    """The chance of an error at or above the bound is at most β, on data where it is hardest."""
    one, top = CellQuantiles(qs=[HALF], first=0, last=50, epsilon=2), CellMode(first=0, last=50, epsilon=2)
    rows = [25] * 40
    far = [v for v in range(51) if rank_error(tuple(rows), HALF, v) >= one.error(0.1)]
    assert sum((one.probability(v, histogram(rows)).high for v in far), Fraction(0)) <= Fraction(1, 10)
    few = [v for v in range(51) if v != 25 and top.error(0.1) <= 40]
    assert sum((top.probability(v, histogram(rows)).high for v in few), Fraction(0)) <= Fraction(1, 10)
    assert far and few
    assert one.error(0.1, of=10) > one.error(0.1)


def test_empty_groups_are_uniform() -> None:
    """No rows: every cell is equally likely, for a mode, a quantile and several."""
    empty = histogram([])
    assert {float(rule.probability(v, empty)) for rule in (median(epsilon=1), mode(epsilon=1)) for v in GRID} == {0.25}
    source = SeededForTestsOnly(5)
    for rule in (median(epsilon=9), mode(epsilon=9)):
        assert fits(Counter(c for (c,) in rule.release_all([empty] * 2_000, source=source)), dict.fromkeys(GRID, 0.25))
    three = CellQuantiles(qs=[QUARTER, HALF, Fraction(3, 4)], first=0, last=3, epsilon=9)
    middle = Counter(cells[1] for cells in three.release_all([empty] * 2_000, source=source))
    assert fits(middle, dict.fromkeys(GRID, 0.25))
    assert median(epsilon=1).release_all([]) == mode(epsilon=1).release_all([]) == []


def test_mode_names_the_right_empty_cell() -> None:
    """The cells without rows, between and beside those with rows, are numbered without a gap."""
    rule = CellMode(first=-2, last=5, epsilon=1)
    cells = np.array([-2, 1, 2, 5])
    assert [rule._find_empty(cells, place) for place in range(4)] == [-1, 0, 3, 4]
    full = CellMode(first=0, last=1, epsilon=Fraction(1, 10))
    assert {c for (c,) in full.release_all([histogram([0, 1])] * 50)} == {0, 1}  # no empty cell at all


@pytest.mark.parametrize("few", [0, 1024], ids=["by pieces", "together"])
def test_groups_are_independent_of_their_neighbours_in_the_list(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group's law does not depend on which other groups are drawn with it, also where floats differ wildly."""
    monkeypatch.setattr(cells_module, "_FEW", few)
    rule = median(epsilon=2)
    rows = (1, 1, 2)
    others = [(np.array([3]), np.array([1 << 45])), histogram([]), histogram([0] * 900 + [3] * 900)]
    drawn = rule.release_all([*others, histogram(rows)] * 2_000, source=SeededForTestsOnly(7))[3::4]
    assert fits(Counter(c for (c,) in drawn), {v: float(p) for v, p in enumerate(Laws(rule).of(rows))})


def test_batches_do_not_change_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small and large groups mixed, in several batches: each result belongs to its group."""
    monkeypatch.setattr(cells_module, "_FEW", 2)
    monkeypatch.setattr(cells_module, "_BATCH", 5)
    wanted = [i % 7 for i in range(60)]
    groups = [histogram([v] * 500 if i % 3 else [v] * 500 + [8, 9, 10]) for i, v in enumerate(wanted)]
    for rule in (
        CellQuantiles(qs=[HALF], first=0, last=10, epsilon=3),
        CellMode(first=0, last=10, epsilon=3),
        CellQuantiles(qs=[QUARTER, HALF], first=0, last=10, epsilon=9),
    ):
        found = rule.release_all(groups, source=SeededForTestsOnly(4))
        assert [cells[0] for cells in found] == wanted


# --- The parts of a draw ---------------------------------------------------------------------------------------------


def test_runs_of_many_groups_are_those_of_each() -> None:
    """Flat runs are the runs of the single groups, one after the other."""
    groups = [histogram(g) for g in [(1, 1, 3), (), (0,), (3, 3), (0, 1, 2, 3)]]
    flat = runs_of_counts(groups, QUARTER, 0, 3)
    for i, group in enumerate(groups):
        alone, part = runs_of_counts([group], QUARTER, 0, 3), slice(flat.offsets[i], flat.offsets[i + 1])
        for name in ("starts", "lengths", "errors"):
            assert getattr(alone, name).tolist() == getattr(flat, name)[part].tolist()


def test_uniform_numbers_below_each_limit() -> None:
    """Each is below its own limit and uniform, also for limits near 2^63."""
    limits = np.tile(np.array([1, 2, 3, (1 << 63) - 25], dtype=np.uint64), 6_000)
    found = segments.draw_below_each(limits, SeededForTestsOnly(6))
    assert (found < limits).all()
    assert fits(Counter(found[2::4].tolist()), dict.fromkeys(range(3), 1 / 3))
    assert abs(float(found[3::4].mean()) / 2.0**62 - 1) < 0.05
    large = segments.draw_below_each(np.full(6_000, 3 << 62, dtype=np.uint64), SeededForTestsOnly(2))
    assert abs(float(large.astype(np.float64).mean()) / 2.0**62 - 1.5) < 0.06  # no remainders


class Fixed:
    """A source whose words are given, to steer a draw to where floats do not decide."""

    def __init__(self, words: list[int]) -> None:
        self._left = words

    def words(self, count: int) -> Any:
        return np.array([self.word() for _ in range(count)], dtype=np.uint64)

    def word(self) -> int:
        return self._left.pop(0) if self._left else 0

    def bits(self, count: int) -> int:
        return self.word() >> (64 - count) if count <= 64 else self.word()


@pytest.mark.parametrize("few", [0, 1024], ids=["by pieces", "together"])
def test_close_calls_are_decided_exactly(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A uniform just at the chance of a proposal goes to exact arithmetic, in both ways to draw."""
    monkeypatch.setattr(cells_module, "_FEW", few)
    asked: list[int] = []
    exact = lazy.is_below

    def spy(prefix: int, known: int, bounds: Any, source: EntropySource, **more: Any) -> bool:
        low, high = bounds(known)
        assert 0 <= low <= high <= (1 << 64) + 2
        assert high - low <= 3
        asked.append(prefix)
        return exact(prefix, known, bounds, source, **more)

    monkeypatch.setattr(lazy, "is_below", spy)
    close = (1 << 64) - (1 << 28)  # the chance is above 1 − 2^-35
    for word in (close, (1 << 64) - 1):
        words = [0, word] if few else [0, 0, word]
        median(epsilon=1).release(np.array([2]), np.array([3]), source=Fixed(words))
    assert len(asked) == 2


# --- Bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 1, "first": 2, "last": 1},
        {"epsilon": 1, "first": 0, "last": 1.5},
        {"epsilon": 1, "first": 0, "last": 1 << 61},
        {"epsilon": 1, "groups": 0},
        {"epsilon": 1, "max_rows": 0},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {},
        {"rho": -1},
        {"epsilon": 1, "neighbours": "friends"},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    """For both mechanisms, when they are made."""
    for kind, more in ((CellMode, {}), (CellQuantiles, {"qs": [0.5]})):
        with pytest.raises(ParameterError):
            kind(**({"first": 0, "last": 9} | bad | more))


@pytest.mark.parametrize(
    "bad",
    [
        {"qs": []},
        {"qs": "0.5"},
        {"qs": [0.5, 0.5]},
        {"qs": [0]},
        {"qs": [Fraction(1, 1 << 20), Fraction(1, 3**15)]},
        {"qs": [0.25, 0.5], "last": 1 << 45},
        {"qs": [0.5], "in_place": 1},
    ],
    ids=str,
)
def test_bad_quantiles_are_refused(bad: dict[str, Any]) -> None:
    """Shares that do not increase, are no shares, or do not fit the grid."""
    with pytest.raises(ParameterError):
        CellQuantiles(**({"first": 0, "last": 9, "epsilon": 1} | bad))


@pytest.mark.parametrize(
    "bad",
    [
        ([1, 2], [1]),
        ([2, 1], [1, 1]),
        ([1, 1], [1, 1]),
        ([-1], [1]),
        ([4], [1]),
        ([1], [0]),
        ([1], [-3]),
        ([1], [0.5]),
        (["a"], [1]),
        ([[1]], [[1]]),
        ([1, 2], [1 << 60, 1 << 60]),
    ],
    ids=str,
)
def test_bad_histograms_are_refused_before_anything_is_drawn(bad: Any) -> None:
    """Cells must ascend within the declared ones, and counts be whole and positive."""
    for rule in (median(epsilon=1), mode(epsilon=1), CellQuantiles(qs=[0.25, 0.5], first=0, last=3, epsilon=1)):
        with pytest.raises(ParameterError):
            rule.release_all([histogram([1]), bad], source=Untouched())


def test_probabilities_are_for_one_quantile_within_the_cells() -> None:
    """Outside the cells there is nothing to ask about, and several quantiles have no simple law."""
    for output in (-1, 4, 0.5, True):
        with pytest.raises(ParameterError):
            median(epsilon=1).probability(output, histogram([1]))  # type: ignore[arg-type]  # bad on purpose
        with pytest.raises(ParameterError):
            mode(epsilon=1).probability(output, histogram([1]))  # type: ignore[arg-type]  # bad on purpose
    with pytest.raises(ParameterError):
        CellQuantiles(qs=[0.25, 0.5], first=0, last=3, epsilon=1).probability(1, histogram([1]))


@given(rows=st.lists(st.integers(0, 6), max_size=9), epsilon=st.fractions(Fraction(1, 10), 8))
@settings(deadline=None, max_examples=30)
def test_probabilities_sum_to_one(rows: list[int], epsilon: Fraction) -> None:
    """All cells together have probability one."""
    for rule in (CellMode(first=0, last=6, epsilon=epsilon), CellQuantiles(qs=[0.3], first=0, last=6, epsilon=epsilon)):
        found = [rule.probability(v, histogram(rows)) for v in range(7)]
        assert sum(p.low for p in found) <= 1 <= sum(p.high for p in found)


def test_recursion_matches_sides_in_words() -> None:
    """The rows of a column that lie beyond taken ends are counted in no side."""
    column = LazyRows(np.array([0, 2]), np.array([6, 2]), 0)
    side = Side(0, 2, 6, 2, low_taken=True)
    assert side.make_pieces() == [(0, 0, 6, 0), (1, 2, 6, 2)]
    assert Side(1, 1, 6, 0, low_taken=True, high_taken=True).make_pieces() == [(1, 1, 6, 0)]
    assert draw_quantiles(column, [HALF], side, lambda _: Fraction(1000), SeededForTestsOnly(1)) == [2]
