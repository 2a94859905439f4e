"""Estimates: tables that could be counts of rows, made from noisy residuals alone. Post-processing: it costs nothing.

A pair of columns is estimated as the product of its one-way tables plus a residual that is shrunk towards zero: of a
noisy matrix the singular values that noise would have by itself are cut, and the others are lowered (Gavish & Donoho
2017); where a side has fewer than three dimensions, or a table more than two columns, the whole residual is lowered by
James & Stein's factor. Then negative cells are taken out (the nearest table with the same total), and three rounds of
proportional fitting give every table the same one-way tables. That has a bias, towards independence and away from zero
counts; ``Measurements.table`` has none. Where there is a public prior (``priors``), it takes the place of the product.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.exact import Floats
from discreet.publish.measurements import Measurements
from discreet.publish.residuals import center
from discreet.publish.workload import Attributes

_FITTING_ROUNDS = 3
# How often a prior is fitted to the private sides, and how much of it is taken to be wrong.
_PRIOR_ROUNDS = 10
_DOUBT = 0.01
_TRACE = 1e-9


def estimate_total(measured: Measurements) -> float:
    """The number of rows, at least one."""
    return max(1.0, measured.total)


def estimate_one_way(measured: Measurements, column: int) -> Floats:
    """The table of one column, with no negative cells."""
    return to_simplex(measured.table((column,)), estimate_total(measured))


def estimate_table(measured: Measurements, attributes: Attributes) -> Floats:
    """A table of the closure that could be counts; products of its parts where nothing more was measured."""
    if not attributes:
        return np.array(estimate_total(measured))
    total = estimate_total(measured)
    sides = [estimate_one_way(measured, column) for column in attributes]
    if len(attributes) == 1:
        return sides[0]
    independent = _multiply(sides, total)
    guess = _guess(measured, attributes, independent, sides)
    if not measured.allocation.covers(attributes):
        return guess
    beyond = measured.residuals[attributes] - center(guess)
    found = guess + _shrink(beyond, measured.allocation.residual_variance(attributes))
    # A trace of independence, so that no line of the table is empty where its side is not.
    return fit(to_simplex(found, total) + _TRACE * independent, sides)


def _guess(measured: Measurements, attributes: Attributes, independent: Floats, sides: list[Floats]) -> Floats:
    """What a table would be without its own residual: a public prior with the private sides, or smaller tables."""
    prior = measured.priors.get(attributes)
    if prior is not None:
        # A part of independence, so that what the prior does not know is not impossible.
        mixed = (1 - _DOUBT) * prior * float(independent.sum()) + _DOUBT * independent
        return fit(mixed, sides, _PRIOR_ROUNDS)
    if len(attributes) == 2 or not measured.allocation.covers(attributes):
        return independent
    return _add_pairs(measured, attributes, independent)


def _add_pairs(measured: Measurements, attributes: Attributes, independent: Floats) -> Floats:
    """Independence, and what the measured tables of fewer columns say beyond it."""
    found = independent
    for skipped in range(len(attributes)):
        part = attributes[:skipped] + attributes[skipped + 1 :]
        if not measured.allocation.covers(part):
            continue
        axis_total = independent.sum(axis=skipped)
        ratio = np.divide(
            estimate_table(measured, part), axis_total, out=np.ones_like(axis_total), where=axis_total > 0
        )
        found = found * np.expand_dims(ratio, skipped)
    return found


def _multiply(sides: list[Floats], total: float) -> Floats:
    found: Floats = np.array(total)
    for side in sides:
        found = np.multiply.outer(found, side / total)
    return found


def _shrink(residual: Floats, variance: float) -> Floats:
    """A centred table of signal and noise with the noise mostly taken out."""
    dimensions = [size - 1 for size in residual.shape]
    if len(dimensions) == 2 and min(dimensions) >= 3:
        return _shrink_singular_values(residual, math.sqrt(variance), (dimensions[0], dimensions[1]))
    freedom, energy = math.prod(dimensions), float((residual * residual).sum())
    if freedom <= 2 or energy <= 0:
        return residual
    return np.asarray(residual * max(0.0, 1 - (freedom - 2) * variance / energy))


def _shrink_singular_values(residual: Floats, deviation: float, dimensions: tuple[int, int]) -> Floats:
    small, large = sorted(dimensions)
    ratio = small / large
    left, values, right = np.linalg.svd(residual, full_matrices=False)
    scaled = values / (deviation * math.sqrt(large))
    signal = scaled > 1 + math.sqrt(ratio)
    kept = scaled[signal]
    lowered = np.sqrt(np.maximum((kept * kept - ratio - 1) ** 2 - 4 * ratio, 0)) / kept
    return np.asarray((left[:, signal] * (lowered * deviation * math.sqrt(large))) @ right[signal])


def to_simplex(table: Floats, total: float) -> Floats:
    """The nearest table without negative cells that sums to the total."""
    flat = np.sort(table.reshape(-1))[::-1]
    excess = (np.cumsum(flat) - total) / np.arange(1, flat.size + 1)
    last = np.nonzero(flat > excess)[0][-1]
    return np.asarray(np.maximum(table - excess[last], 0.0))


def fit(table: Floats, sides: list[Floats], rounds: int = _FITTING_ROUNDS) -> Floats:
    """Proportional fitting: the table is scaled along each column until its sums are those of the sides."""
    for _ in range(rounds):
        for axis, side in enumerate(sides):
            sums = table.sum(axis=tuple(other for other in range(table.ndim) if other != axis))
            factors = np.divide(side, sums, out=np.zeros_like(side), where=sums > 0)
            table = table * factors.reshape([-1 if other == axis else 1 for other in range(table.ndim)])
    return table
