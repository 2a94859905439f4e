"""Which rows and values are taken, and what they add up to, against the obvious loops."""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from discreet.engines.duckdb.blocks import block_run, kernel, samples, tallies


def test_reals_as_integers_keep_their_order() -> None:
    reals = np.array([-1e300, -2.5, -5e-324, 0.0, 5e-324, 1.0, 1.5, 1e300])
    whole = block_run._to_integers(reals)
    assert (np.diff(whole) > 0).all()
    assert len(set(whole.tolist())) == reals.size


@pytest.mark.parametrize("seed", range(30))
def test_evenly_spaced_ranks_against_the_formula(seed: int) -> None:
    """As many as are allowed, at the ranks that the contract names; pairs that are not kept give nothing."""
    rng = random.Random(seed)
    rows = [rng.randrange(1, 12) for _ in range(rng.randrange(1, 20))]
    gone = [rng.randrange(size + 1) if rng.random() < 0.4 else 0 for size in rows]
    allowed = [rng.randrange(size + 1) for size in rows]
    starts = np.cumsum([0, *rows[:-1]])
    missing = np.concatenate([[False] * (size - no) + [True] * no for size, no in zip(rows, gone)])
    wanted = []
    for start, size, no, most in zip(starts.tolist(), rows, gone, allowed):
        n = size - no
        for rank in range(1, n + 1):
            if most and (n <= most or _round(rank * most, n) > _round((rank - 1) * most, n)):
                wanted.append(start + rank - 1)  # noqa: PERF401  # a loop says it plainly
        assert sum(start <= w < start + size for w in wanted) == (min(n, most) if most else 0)
    assert samples.pick_evenly(missing, starts, np.array(rows), np.array(allowed)).tolist() == wanted


def _round(top: int, bottom: int) -> int:
    return int(Fraction(top, bottom) + Fraction(1, 2))


@pytest.mark.parametrize("seed", range(30))
def test_first_values_against_plain_python(seed: int) -> None:
    """Of each pair's distinct values those that come first, ties by value; NULL is never taken."""
    rng = random.Random(seed)
    rows = [rng.randrange(1, 12) for _ in range(rng.randrange(1, 20))]
    allowed = [rng.randrange(size + 1) for size in rows]
    starts = np.cumsum([0, *rows[:-1]])
    values, order, wanted = [], [], set()
    for pair, (size, most) in enumerate(zip(rows, allowed)):
        own = [rng.choice((None, -(2**63), 0, 1, 2, 3, 2**63 - 1)) for _ in range(size)]
        places = {value: rng.randrange(3) for value in own}
        values += [value or 0 for value in own]
        order += [-1 if value is None else places[value] for value in own]
        ranked = sorted({v for v in own if v is not None}, key=lambda v, places=places: (places[v], v))  # type: ignore[misc]  # the default binds the loop's own
        wanted |= {(pair, value) for value in ranked[:most]}
    taken = samples.pick_first_values(
        np.array(values, dtype=np.int64), np.array(order), starts, np.array(rows), np.array(allowed)
    )
    pairs = np.repeat(np.arange(len(rows)), rows)
    assert {(int(pairs[i]), values[i]) for i in taken} == wanted


def test_sums_beyond_64_bits_are_clamped_right() -> None:
    """Steps of 61 bits summed over many rows: the clamp is exact on both sides, and in between."""
    top = 2**61 - 1
    values = np.array([top] * 8 + [-top] * 8 + [top, -top, 5] + [-1] * 3 + [2**50, -(2**50), -7], dtype=np.int64)
    starts = np.array([0, 8, 16, 19, 22])
    assert kernel._clamp_sums(values, starts, (-(2**50), 2**50)).tolist() == [2**50, -(2**50), 5, -3, -7]
    assert kernel._clamp_sums(values, starts, (-2, 3)).tolist() == [3, -2, 3, -2, -2]


@pytest.mark.parametrize("dense", [True, False])
def test_counts_by_cell_add_up(dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small parts, in one array or sorted now and then: the same counts as a counter's."""
    monkeypatch.setattr(tallies, "GATHERED", 7)
    if not dense:
        monkeypatch.setattr(tallies, "MOST_CELLS", 0)
    rng = random.Random(3)
    first, size, groups = -4, 9, 5
    cells = tallies._CellTally(first, size, groups)
    wanted: Counter[tuple[int, int]] = Counter()
    for _ in range(40):
        rows = [(rng.randrange(groups - 1), rng.randrange(first, first + size)) for _ in range(rng.randrange(6))]
        wanted.update(rows)
        cells.add([np.array([group * size + cell - first for group, cell in rows], dtype=np.int64)])
    for group, (where, counts) in enumerate(cells.make_histograms()):
        assert dict(zip(where.tolist(), counts.tolist())) == {c: n for (g, c), n in wanted.items() if g == group}
        assert (np.diff(where) > 0).all()


def test_cells_within_pairs_are_sorted_in_any_width() -> None:
    """Missing ones come last, whether cells and pairs share one integer or not."""
    rng = random.Random(4)
    rows = np.array([rng.randrange(1, 6) for _ in range(20)])
    for last in (3, 2**61):
        cells = np.array([rng.choice((-2, 0, last)) for _ in range(int(rows.sum()))])
        missing = np.array([rng.random() < 0.3 for _ in cells])
        found, gone = samples.sort_within(np.where(missing, 0, cells), missing, rows, (-2, last))
        for start, end in zip(np.cumsum(rows) - rows, np.cumsum(rows)):
            present = [cell for cell, no in zip(cells[start:end].tolist(), missing[start:end]) if not no]
            assert found[start:end][~gone[start:end]].tolist() == sorted(present)
            assert gone[start:end].tolist() == sorted(missing[start:end].tolist())
