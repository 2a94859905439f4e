"""Features of outputs: each feature puts outputs into cells, and an event is a set of cells.

A feature is fitted on training outputs of both datasets and then applied to other outputs. So more features cannot
raise the rate of false alarms; they can only find more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np

from discreet.audit.output_encoding import Outputs, widen
from discreet.exact import Floats, Integers
from discreet.late_dataclass import dataclass

Scalar: TypeAlias = Callable[[Outputs], Floats]

_CELLS = 64
_DISTINCT = 400  # up to this many different values, each is a cell of its own
_ALONE = 16  # the numbers of an output that have a feature of their own
_PAIRS = 6  # among the first numbers up to this one, every difference of two is a feature
_LABELS = 4096
_ROUGH = 24


@dataclass(frozen=True, slots=True)
class OutputFeature:
    """A named way to put outputs into cells; ``describe`` says in words what a set of cells is."""

    name: str
    cells: Callable[[Outputs], Integers]
    size: int
    describe: Callable[[Sequence[int]], str]


def make_features(first: Outputs, second: Outputs) -> Iterator[OutputFeature]:
    """Every feature, fitted to outputs on two datasets."""
    yield _make_label_feature("output", lambda o: o.prints, first, second)
    yield _make_label_feature("shape", lambda o: o.shapes, first, second)
    for name, scalar in _list_scalars(first, second):
        feature = _make_scalar_feature(name, scalar, first, second)
        if feature is not None:
            yield feature


def _list_scalars(first: Outputs, second: Outputs) -> Iterator[tuple[str, Scalar]]:
    width = max(first.leaves.shape[1], second.leaves.shape[1])
    for i in range(min(width, _ALONE)):
        yield f"number {i + 1}", _make_leaf(i)
        yield f"lowest bit of number {i + 1}", _make_lowest_bit(i)
    yield "how many numbers", lambda o: np.isfinite(o.leaves).sum(axis=1).astype(np.float64)
    yield "pattern of NaN, infinity and -0.0", _code_specials
    if width > 1:
        yield "sum", lambda o: _replace_infinite(o).sum(axis=1)
        yield "largest", lambda o: _replace_infinite(o, -np.inf).max(axis=1)
        yield "smallest", lambda o: _replace_infinite(o, np.inf).min(axis=1)
        yield "place of the largest", lambda o: _replace_infinite(o, -np.inf).argmax(axis=1).astype(np.float64)
        yield "spread", lambda o: _replace_infinite(o).std(axis=1)
        yield "how many are equal", _count_repeats
        for i, j in combinations(range(min(width, _PAIRS)), 2):
            yield f"number {i + 1} minus number {j + 1}", _make_difference(i, j)
        yield "likelihood ratio, number by number", _fit_likelihood(first, second, width)
        yield "linear score", _fit_linear(first, second, width)
    if first.seconds is not None:
        yield "time", lambda o: o.seconds if o.seconds is not None else np.zeros(len(o))


def _column_of(outputs: Outputs, i: int) -> Floats:
    if i >= outputs.leaves.shape[1]:
        return np.full(len(outputs), np.nan)
    return outputs.leaves[:, i]


def _make_leaf(i: int) -> Scalar:
    return lambda outputs: _column_of(outputs, i)


def _make_difference(i: int, j: int) -> Scalar:
    def scalar(outputs: Outputs) -> Floats:
        with np.errstate(invalid="ignore"):
            return _column_of(outputs, i) - _column_of(outputs, j)

    return scalar


def _make_lowest_bit(i: int) -> Scalar:
    """The exponent of the lowest bit that is set: 0 for odd numbers, −53 and below for what the naive sampler leaves.

    Reference: Mironov 2012; the test "not a multiple of 2^-53" is Haney et al. 2022.
    """

    def scalar(outputs: Outputs) -> Floats:
        values = _column_of(outputs, i)
        known = np.isfinite(values) & (values != 0)
        mantissa, exponent = np.frexp(np.where(known, values, 1.0))
        whole = np.abs(mantissa * 2.0**53).astype(np.int64)
        lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
        return np.where(known, lowest + exponent - 53, 2000.0)

    return scalar


def _replace_infinite(outputs: Outputs, instead: float = 0.0) -> Floats:
    return np.where(np.isfinite(outputs.leaves), outputs.leaves, instead)


def _code_specials(outputs: Outputs) -> Floats:
    leaves = outputs.leaves[:, :20]
    minus_zero = (leaves == 0) & np.signbit(leaves)
    code = np.isnan(leaves) + 2 * np.isposinf(leaves) + 3 * np.isneginf(leaves) + 4 * minus_zero
    total: Floats = (code * 5.0 ** np.arange(leaves.shape[1])).sum(axis=1)
    return total


def _count_repeats(outputs: Outputs) -> Floats:
    ordered = np.sort(_replace_infinite(outputs), axis=1)
    repeats: Floats = (np.diff(ordered, axis=1) == 0).sum(axis=1).astype(np.float64)
    return repeats


def _find_edges(pooled: Floats, cells: int) -> tuple[Floats, bool]:
    """The edges of the cells, and whether every edge is a cell of its own."""
    known = pooled[~np.isnan(pooled)]
    if not known.size:
        return np.empty(0), True
    sample = known if known.size <= 200_000 else known[:: known.size // 200_000 + 1]
    distinct = np.unique(sample)
    if distinct.size <= _DISTINCT:
        return distinct, True
    return np.unique(np.quantile(sample, np.linspace(0, 1, cells + 1)[1:-1], method="nearest")), False


def _make_scalar_feature(name: str, scalar: Scalar, first: Outputs, second: Outputs) -> OutputFeature | None:
    """A number of each output, cut into cells at the quantiles of both datasets together."""
    pooled = np.concatenate([scalar(first), scalar(second)])
    edges, exact = _find_edges(pooled, _CELLS)
    unknown = 2 * len(edges) + 1

    def cells(outputs: Outputs) -> Integers:
        return _cut(scalar(outputs), edges)

    if edges.size == 0 or (edges.size == 1 and exact and not np.isnan(pooled).any()):
        return None  # always the same

    def describe(chosen: Sequence[int]) -> str:
        return f"{name} {_describe_ranges(sorted(chosen), edges, unknown, step=1 if exact else 2)}"

    return OutputFeature(name, cells, unknown + 1, describe)


def _cut(values: Floats, edges: Floats) -> Integers:
    """Cell 2i for values between edges i − 1 and i, cell 2i + 1 for edge i itself; the last for NaN."""
    at = np.searchsorted(edges, values)
    inside = np.minimum(at, len(edges) - 1)
    found: Integers = (2 * at + ((at < len(edges)) & (edges[inside] == values))).astype(np.int64)
    found[np.isnan(values)] = 2 * len(edges) + 1
    return found


def _describe_ranges(cells: Sequence[int], edges: Floats, unknown: int, step: int) -> str:
    """Neighbouring cells as ranges; the first few as text."""
    runs: list[tuple[int, int]] = []
    for cell in cells:
        if runs and cell <= runs[-1][1] + step and cell != unknown:  # between quantiles, the edges have no mass
            runs[-1] = (runs[-1][0], cell)
        else:
            runs.append((cell, cell))
    words = ["unknown" if low == unknown else _describe_range(low, high, edges) for low, high in runs]
    more = f" (and {len(words) - 4} more ranges)" if len(words) > 4 else ""
    return "in " + ", ".join(words[:4]) + more


def _describe_range(low: int, high: int, edges: Floats) -> str:
    if low == high and low % 2:
        return f"{{{edges[low // 2]:.6g}}}"
    left = "(-∞" if low == 0 else f"{'[' if low % 2 else '('}{edges[(low - 1) // 2 if low % 2 == 0 else low // 2]:.6g}"
    right = "∞)" if high == 2 * len(edges) else f"{edges[high // 2]:.6g}{']' if high % 2 else ')'}"
    return f"{left}, {right}"


def _make_label_feature(
    name: str, label: Callable[[Outputs], Integers], first: Outputs, second: Outputs
) -> OutputFeature:
    """Whole outputs as cells: those that were seen most often, and everything else as one."""
    values, counts = np.unique(np.concatenate([label(first), label(second)]), return_counts=True)
    kept = values[np.argsort(-counts, kind="stable")[:_LABELS]]
    kept.sort()
    texts = first.texts | second.texts

    def cells(outputs: Outputs) -> Integers:
        codes = label(outputs)
        at = np.minimum(np.searchsorted(kept, codes), len(kept) - 1)
        return np.where(kept[at] == codes, at, len(kept)).astype(np.int64)

    def describe(chosen: Sequence[int]) -> str:
        named = [texts[int(kept[c])] for c in chosen if c < len(kept) and int(kept[c]) in texts][:3]
        named += ["one that is rare"] if len(kept) in chosen or not named else []
        more = f" or one of {len(chosen) - len(named)} more" if len(chosen) > len(named) else ""
        return f"{name} is {' or '.join(named)}{more}"

    return OutputFeature(name, cells, len(kept) + 1, describe)


def _fit_likelihood(first: Outputs, second: Outputs, width: int) -> Scalar:
    """The log-likelihood ratio, as if the numbers of an output were independent."""
    cuts, tables = [], []
    for i in range(width):
        edges, _ = _find_edges(np.concatenate([_column_of(first, i), _column_of(second, i)]), _ROUGH)
        size = 2 * len(edges) + 2
        here, there = (
            np.bincount(_cut(_column_of(o, i), edges), minlength=size) + 0.5 if edges.size else np.ones(size)
            for o in (first, second)
        )
        cuts.append(edges)
        tables.append(np.log(here / here.sum()) - np.log(there / there.sum()))

    def scalar(outputs: Outputs) -> Floats:
        total = np.zeros(len(outputs))
        for i, (edges, table) in enumerate(zip(cuts, tables)):
            if edges.size:
                total += table[_cut(_column_of(outputs, i), edges)]
        return np.round(total, 9)

    return scalar


def _fit_linear(first: Outputs, second: Outputs, width: int) -> Scalar:
    """Fisher's direction. It also finds numbers that share their noise, because their difference has no spread."""
    both = [widen(o.leaves, width) for o in (first, second)]
    pooled = np.concatenate(both)
    known = np.where(np.isfinite(pooled), pooled, np.nan)
    filled = np.where(np.isnan(known), 0.0, known)
    low, high = np.quantile(filled, [0.001, 0.999], axis=0)

    def clamp(leaves: Floats) -> Floats:
        return np.clip(np.where(np.isfinite(leaves), leaves, 0.0), low, high)

    x, y = (clamp(leaves) for leaves in both)
    scale = np.maximum((high - low) / 2, 1e-12)
    spread = np.cov(np.concatenate([x - x.mean(axis=0), y - y.mean(axis=0)]) / scale, rowvar=False)
    gap = (x.mean(axis=0) - y.mean(axis=0)) / scale
    weights = np.linalg.lstsq(np.atleast_2d(spread) + 1e-9 * np.eye(width), gap, rcond=None)[0] / scale

    def scalar(outputs: Outputs) -> Floats:
        score: Floats = clamp(widen(outputs.leaves, width)) @ weights
        return score

    return scalar
