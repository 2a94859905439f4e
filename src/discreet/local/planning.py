"""Planning: how many people a task needs, and a simulation of its estimates.

The simulation draws the *counts* of an aggregator and not the reports: the number of reports that support a value is
Binomial(people with the value, p) + Binomial(others, q), whatever the number of people. The law of each value is exact
(to the precision of floats); for unary reports the joint law is exact too.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Floats, Integers
from discreet.local.estimation import Frequencies, estimate_from_supports, z_score
from discreet.local.hashing import LocalHashing
from discreet.local.number import NumberProtocol
from discreet.local.protocol import FrequencyProtocol
from discreet.local.task import Task


def people_needed(task: Task, half_width: float, *, level: float = 0.95, of: int = 1, frequency: float = 0.0) -> int:
    """How many people make the interval of a share this narrow, for ``of`` values at once.

    For a task about numbers the half-width is in its own units, at the worst answer.
    """
    width = float(parameters.read_positive(half_width, "half_width"))
    sure = float(parameters.read_probability(level, "level"))
    reach = z_score(1 - (1 - sure) / parameters.read_whole(of, "of"))
    protocol = task.protocol
    if isinstance(protocol, FrequencyProtocol | LocalHashing):
        variance = protocol.unit_variance(frequency)
    elif isinstance(protocol, NumberProtocol):
        low, high = task.domain.ends
        variance = max(protocol.unit_variance(answer) for answer in (0.0, 1.0)) * ((high - low) / 2) ** 2
    else:
        raise ParameterError("task", "has no variance known in advance", "Plan with a frequency or a mean task.")
    return math.ceil((reach / width) ** 2 * variance)


def simulate(task: Task, counts: npt.ArrayLike, *, level: float = 0.95, source: EntropySource = SYSTEM) -> Frequencies:
    """The estimates that a collection from people with these true counts would give."""
    protocol = task.protocol
    if not isinstance(protocol, FrequencyProtocol | LocalHashing) or not task.domain.closed:
        raise ParameterError("task", "must count the values of a closed domain", "Use a frequency protocol.")
    true = parameters.read_integers(counts, "counts")
    if true.shape != (task.domain.count,) or (true < 0).any():
        raise ParameterError("counts", "must be one number of people for each value", "Give a list as long as d.")
    people = int(true.sum())
    p, q = float(protocol.p), float(protocol.q)
    supports = draw_binomial(true, p, source) + draw_binomial(people - true, q, source)
    return estimate_from_supports(supports, people, p, q, names=task.domain.names(), level=level)


_INVERT_BELOW = 10.0


def draw_binomial(trials: Integers, chance: float, source: EntropySource) -> Integers:
    """Binomial counts for many numbers of trials at once.

    It is for planning only, because the arithmetic is in floats. Privacy noise never comes from here.
    """
    if chance > 0.5:
        return trials - draw_binomial(trials, 1 - chance, source)
    out = np.zeros(trials.shape, dtype=np.int64)
    small = trials * chance < _INVERT_BELOW
    out[small] = _draw_by_inversion(trials[small], chance, source)
    out[~small] = _draw_by_rejection(trials[~small], chance, source)
    return out


def _draw_uniform(count: int, source: EntropySource) -> Floats:
    """Uniform floats strictly between 0 and 1."""
    return ((source.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _draw_by_inversion(trials: Integers, chance: float, source: EntropySource) -> Integers:
    """Inversion: add up probabilities until they exceed a uniform number; for small expectations."""
    uniform = _draw_uniform(trials.size, source)
    mass = np.exp(trials * math.log1p(-chance)) if chance < 1 else np.zeros(trials.size)
    total, found = mass.copy(), np.zeros(trials.size, dtype=np.int64)
    for step in range(1, 200):
        going = (uniform > total) & (found < trials)
        if not going.any():
            break
        found += going
        mass = mass * np.maximum(trials - step + 1, 0) / step * (chance / (1 - chance))
        total += mass * going
    return found


def _draw_by_rejection(trials: Integers, chance: float, source: EntropySource) -> Integers:
    """Transformed rejection (Hörmann 1993, algorithm BTRS), for expectations of 10 or more."""
    out = np.zeros(trials.size, dtype=np.int64)
    waiting = np.arange(trials.size)
    while waiting.size:
        n = trials[waiting].astype(np.float64)
        spread = np.sqrt(n * chance * (1 - chance))
        b = 1.15 + 2.53 * spread
        a = -0.0873 + 0.0248 * b + 0.01 * chance
        alpha = (2.83 + 5.1 / b) * spread
        u, v = _draw_uniform(waiting.size, source) - 0.5, _draw_uniform(waiting.size, source)
        edge = 0.5 - np.abs(u)
        k = np.floor((2 * a / edge + b) * u + n * chance + 0.5)
        sure = (edge >= 0.07) & (v <= 0.92 - 4.2 / b)
        inside = (k >= 0) & (k <= n)
        at = np.clip(k, 0, n)
        mode = np.floor((n + 1) * chance)
        odds = chance / (1 - chance)
        bound = (
            (mode + 0.5) * np.log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * np.log((n - mode + 1) / (n - at + 1))
            + (at + 0.5) * np.log(odds * (n - at + 1) / (at + 1))
            + _stirling(mode)
            + _stirling(n - mode)
            - _stirling(at)
            - _stirling(n - at)
        )
        accepted = inside & (sure | (np.log(v * alpha / (a / edge**2 + b)) <= bound))
        out[waiting[accepted]] = k[accepted].astype(np.int64)
        waiting = waiting[~accepted]
    return out


_TAIL = np.array(
    [math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi)) for k in range(16)]
)


def _stirling(k: Floats) -> Floats:
    """The error of Stirling's formula for ln k!, around k + 1."""
    x = k + 1
    series = (1 / 12 - (1 / 360 - 1 / 1260 / x**2) / x**2) / x
    return np.where(k < _TAIL.size, _TAIL[np.minimum(k, _TAIL.size - 1).astype(np.int64)], series)
