"""Sums of independent losses by Fourier transform, with a bound on every error.

The masses of each part are first *tilted*: multiplied by e^(tilt·loss) and scaled to sum to one. Tilted laws convolve
to the tilted sum, and the tilt is chosen so that the losses that decide the answer lie in the middle. So the rounding
error of the transform, about 10^-14 of the largest mass, is tiny relative to the answer, however small δ is. Without
tilting it would be larger than every δ below 10^-12.

Privacy: ``TiltedSum.upper`` is at or above the true δ(ε) of the masses given, ``TiltedSum.lower`` at or below, because

- a transform of length n has an error of at most 8·log₂n roundings of the sum of its inputs at every frequency (each
  output is a sum over levels; Higham 2002, "Accuracy and stability of numerical algorithms", Thm 24.2), and what n-fold
  products make of that is bounded frequency by frequency;
- losses beyond the window wrap around and are counted at the wrong place; their mass is bounded by Chernoff's
  inequality, at the best of many tilts, and added (or taken off).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from discreet.accounting.pairs import ROUNDING, TINY
from discreet.exact import Floats, Integers
from discreet.late_dataclass import dataclass

# The largest transform: a few arrays of 2^21 complex numbers (32 MB each) exist at a time.
MAX_LENGTH = 1 << 21
# Tilts are taken from a geometric sequence, so that answers nearby share one convolution.
_RATIO = 1.06
# Distances, in tilts, at which the tails of the window are bounded; the best one counts.
_JUMPS = (1, 2, 4, 7, 12, 18, 26, 38, 60, 90, 140)
# How much of the tilted sum may lie beyond the window on either side: e^-17.
_BEYOND = 17.0
# Short parts are convolved this many at a time before they join the rest.
_GROUP = 32
# Parts with more points than this are thinned out where only moments are asked for.
_THIN = 4096

LossPart = tuple[int, Floats, int]
Spectrum = npt.NDArray[np.complex128]


@dataclass(frozen=True, eq=False, kw_only=True)
class LossSum:
    """A sum of independent losses on one grid, before anything is convolved.

    Part j has masses at (firsts[j] + i)·step and is taken counts[j] times. ``tilts`` are the smallest and the largest
    tilt worth trying. Cumulants are stored, because many questions use the same ones.
    """

    step: float
    parts: tuple[LossPart, ...]
    tilts: tuple[float, float]
    _known: dict[int, float] = field(default_factory=dict, repr=False)

    @cached_property
    def flat(self) -> FlatMasses:
        """All parts in one array."""
        return FlatMasses.of(self.step, self.parts)

    @cached_property
    def _thin(self) -> FlatMasses:
        """The same sum on a coarser grid. Mass is split so that means stay, which raises every moment e^(t·loss)."""
        by = -(-max(len(masses) for _, masses, _ in self.parts) // _THIN)
        return self.flat if by == 1 else FlatMasses.of(self.step * by, [_thin_out(part, by) for part in self.parts])

    @cached_property
    def size(self) -> int:
        """How many losses are added up."""
        return sum(count for _, _, count in self.parts)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest possible sum, in steps."""
        low = sum(first * count for first, _, count in self.parts)
        return low, low + sum((len(masses) - 1) * count for _, masses, count in self.parts)

    @cached_property
    def most(self) -> int:
        """The index of the largest tilt."""
        return 2 + math.ceil(math.log(self.tilts[1] / self.tilts[0]) / math.log(_RATIO))

    def tilt(self, k: int) -> float:
        """The k-th tilt; negative ones look at the left tail."""
        return 0.0 if k == 0 else math.copysign(self.tilts[0] * _RATIO ** (abs(k) - 1), k)

    def cumulant(self, k: int) -> float:
        """The cumulant ln E[e^(tilt·loss)] of the whole sum, at or above the true value, and near it."""
        if k not in self._known:
            tilt, thin = self.tilt(k), self._thin
            self._known[k] = thin.total(thin.logs(tilt)) + self.size * thin.doubt(tilt)
        return self._known[k]

    def tilt_for_epsilon(self, epsilon: float) -> int:
        """The tilt that puts this loss in the middle, where Chernoff's bound on it is best."""
        return _find_valley(lambda k: self.cumulant(k) - self.tilt(k) * epsilon, 0, self.most)

    def tilt_for_delta(self, delta: float) -> int:
        """The tilt at which moments give the smallest ε for this δ (Canonne, Kamath & Steinke 2020, Prop. 12)."""

        def epsilon(k: int) -> float:
            t = self.tilt(k)
            return (self.cumulant(k) - math.log(delta) - math.log1p(t)) / t - math.log1p(1 / t)

        return _find_valley(epsilon, 1, self.most)


def _find_valley(function: Callable[[int], float], low: int, high: int) -> int:
    """The index where a function with one minimum is smallest, by thirds. Any index would give a valid bound."""
    while high - low > 2:
        left, right = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, right) if function(left) <= function(right) else (left, high)
    return min(range(low, high + 1), key=function)


def _thin_out(part: LossPart, by: int) -> LossPart:
    first, masses, count = part
    place = first + np.arange(len(masses))
    block = place // by
    share = (place - block * by) / by
    index = block - block[0]
    size = int(index[-1]) + 2
    thin: Floats = np.zeros(size)
    thin += np.bincount(index, masses * (1 - share), size)
    thin += np.bincount(index + 1, masses * share, size)
    return int(block[0]), thin, count


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatMasses:
    """The masses of all parts in one array, so that all parts are tilted at once."""

    counts: Floats
    edges: Integers
    owners: Integers
    masses: Floats
    losses: Floats

    @classmethod
    def of(cls, step: float, parts: Sequence[LossPart]) -> FlatMasses:
        """Put the parts side by side."""
        lengths = [len(masses) for _, masses, _ in parts]
        return cls(
            counts=np.array([count for _, _, count in parts], dtype=np.float64),
            edges=np.cumsum([0, *lengths]),
            owners=np.repeat(np.arange(len(parts)), lengths),
            masses=np.concatenate([masses for _, masses, _ in parts]),
            losses=np.concatenate([np.arange(first, first + len(masses)) * step for first, masses, _ in parts]),
        )

    @cached_property
    def widest(self) -> float:
        """The largest loss of any part, in either direction."""
        return float(np.max(np.abs(self.losses)))

    def _apply_tilt(self, tilt: float) -> tuple[Floats, Floats | float]:
        """Masses times e^(tilt·loss), and the logarithm of what they were divided by to stay within floats."""
        if self.widest * abs(tilt) < 300:
            return self.masses * np.exp(tilt * self.losses), 0.0
        with np.errstate(divide="ignore"):
            exponents = np.log(self.masses) + tilt * self.losses
        peaks = np.maximum.reduceat(exponents, self.edges[:-1])
        return np.exp(exponents - peaks[self.owners]), peaks

    def logs(self, tilt: float) -> Floats:
        """The cumulant ln E[e^(tilt·loss)] of each part."""
        masses, peaks = self._apply_tilt(tilt)
        logs: Floats = np.log(np.add.reduceat(masses, self.edges[:-1])) + peaks
        return logs

    def tilt_masses(self, tilt: float) -> tuple[Floats, Floats]:
        """Each part's tilted masses, summing to one, and the logarithm of what they were divided by."""
        masses, peaks = self._apply_tilt(tilt)
        sums = np.add.reduceat(masses, self.edges[:-1])
        return masses / sums[self.owners], np.log(sums) + peaks

    def total(self, logs: Floats) -> float:
        """The sum of one number for each part, as often as the part is taken."""
        return math.fsum((self.counts * logs).tolist())

    def doubt(self, tilt: float) -> float:
        """The relative error of one tilted mass: roundings of its exponent, which is a logarithm plus tilt·loss."""
        wide = self.widest * abs(tilt)
        return 8 * ROUNDING * (wide + (0 if wide < 300 else 720) + math.log2(len(self.masses) + 1) + 4)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LossWindow:
    """The range on which the tilted sum is computed. Nearly all of its mass lies here.

    ``above`` bounds the untilted mass beyond the upper end, ``wrapped`` the tilted mass beyond both.
    """

    first: int
    length: int
    above: float
    wrapped: float


def _length(least: int) -> int:
    """The next length that transforms quickly: a power of two times 1, 3 or 5."""
    power = 1 << max(4, (least - 1).bit_length())
    return next(size for size in (power * 5 // 8, power * 3 // 4, power) if size >= least)


def _find_window(total: LossSum, k: int) -> LossWindow:
    tilt, flat = total.tilt(k), total.flat
    exact = flat.total(flat.logs(tilt)) - total.size * flat.doubt(tilt)
    right = [(total.tilt(k + jump), total.cumulant(k + jump)) for jump in _JUMPS]
    left = [(total.tilt(k - jump), total.cumulant(k - jump)) for jump in _JUMPS]
    lowest, highest = total.ends
    low = max((exact - at - _BEYOND) / (tilt - t) for t, at in left)
    high = min((at - exact + _BEYOND) / (t - tilt) for t, at in right)
    first = min(max(lowest, math.floor(low / total.step)), highest)
    last = max(min(highest, math.ceil(high / total.step)), first)
    length = _length(last - first + 2)
    if length > highest - lowest:
        first = lowest
    start, end = first * total.step, (first + length) * total.step
    above = min(math.exp(min(at - t * end, 0.0)) for t, at in right)
    beyond = min(math.exp(min(at - exact - (t - tilt) * end, 0.0)) for t, at in right)
    before = min(math.exp(min(at - exact - (t - tilt) * start, 0.0)) for t, at in left)
    if first + length > highest:
        above = beyond = 0.0
    return LossWindow(first=first, length=length, above=above, wrapped=beyond + (before if first > lowest else 0.0))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TiltedSum:
    """The tilted sum on a window of losses.

    ``over`` and ``over_q`` are sums from the right of mass·e^(−tilt·(loss − middle)) and of the same times
    e^−(loss − middle), at every grid point. ``scale`` is the logarithm of what the masses were divided by, ``noise``
    bounds the root of the summed squares of their errors, ``relative`` the logarithm of what multiplies everything.
    """

    tilt: float
    start: float
    middle: float
    step: float
    over: Floats
    over_q: Floats
    scale: float
    noise: float
    relative: float
    window: LossWindow

    @property
    def end(self) -> float:
        """The last loss in the window."""
        return self.start + self.step * (len(self.over) - 2)

    def _excess(self, epsilon: float) -> tuple[float, float]:
        """The sum over all losses above ε of mass·e^(−tilt·(loss − middle))·(1 − e^(ε − loss)), and its rounding."""
        at = min(max(0, math.ceil((epsilon - self.start) / self.step)), len(self.over) - 1)
        over, over_q = float(self.over[at]), float(self.over_q[at]) * math.exp(min(epsilon - self.middle, 600.0))
        return max(0.0, over - over_q), (len(self.over) + 16) * ROUNDING * (over + over_q) + TINY

    def _noise(self) -> float:
        """The noise times the root of the summed squares of its weights, e^(−tilt·x)·(1 − e^−x) with x = loss − ε."""
        t, width = self.tilt, self.step * len(self.over)
        squares = min(width, 1 / (2 * t) - 2 / (2 * t + 1) + 1 / (2 * t + 2)) if t > 1e-3 else width
        return self.noise * math.sqrt(squares / self.step + 1)

    def upper(self, epsilon: float) -> float:
        """At or above the mass of finite losses that exceeds e^ε; 1 below the window."""
        if epsilon < self.start:
            return 1.0
        value, error = self._excess(epsilon)
        return min(
            1.0,
            self._untilt(value + error, self.middle, 1) + self._untilt(self._noise(), epsilon, 1) + self.window.above,
        )

    def lower(self, epsilon: float) -> float:
        """At or below that mass."""
        at = max(epsilon, self.start)
        if at - self.middle > 600:  # beyond what the sums can resolve
            return 0.0
        value, error = self._excess(at)
        most = math.exp(-self.tilt * math.log1p(1 / self.tilt)) / (1 + self.tilt) if self.tilt else 1.0
        doubt = self._untilt(self._noise() + self.window.wrapped * most, at, 1)
        return max(0.0, self._untilt(max(value - error, 0.0), self.middle, -1) - doubt)

    def _untilt(self, value: float, at: float, sign: int) -> float:
        """value·e^(scale − tilt·at), rounded up or down."""
        if value <= 0:
            return 0.0
        return math.exp(min(self.scale - self.tilt * at + math.log(value) + sign * (self.relative + 1e-13), 1.0))


@lru_cache(maxsize=8)
def compute_tilted_sum(total: LossSum, k: int) -> TiltedSum | None:
    """The sum under the k-th tilt, or a smaller tilt where that needs too much memory; None where all do."""
    window = _find_window(total, k)
    while window.length > MAX_LENGTH and k:
        k = k * 3 // 4
        window = _find_window(total, k)
    if window.length > MAX_LENGTH:
        return None
    tilt, flat, length = total.tilt(k), total.flat, window.length
    masses, logs = flat.tilt_masses(tilt)
    spectrum, error = _multiply_transforms(total, masses, length)
    levels = math.log2(length)
    # Parseval: errors at the frequencies, and those of the way back.
    noise = math.sqrt(2 * float(error @ error) / length)
    noise += 8 * levels * ROUNDING * 2 * float(np.abs(spectrum).sum()) / math.sqrt(length)
    relative = total.size * flat.doubt(tilt) + 16 * ROUNDING * (float(np.abs(flat.counts * logs).sum()) + levels + 1)
    relative += 16 * ROUNDING * (1 + tilt) * total.step * (abs(window.first) + length)
    sums = np.maximum(np.roll(np.fft.irfft(spectrum, length), -(window.first % length)), 0.0)
    # Exponents are kept within what floats can hold; what underflows at the far end is counted as an error.
    middle = min(total.step * int(np.argmax(sums)), 300 / (1 + tilt))
    beyond = total.step * np.arange(length) - middle
    sums *= np.exp(-tilt * beyond)
    return TiltedSum(
        tilt=tilt,
        start=window.first * total.step,
        middle=window.first * total.step + middle,
        step=total.step,
        over=_sum_from_right(sums),
        over_q=_sum_from_right(sums * np.exp(-beyond)),
        scale=flat.total(logs),
        noise=noise,
        relative=relative,
        window=window,
    )


def _sum_from_right(values: Floats) -> Floats:
    sums = np.zeros(len(values) + 1)
    np.cumsum(values[::-1], out=sums[:-1][::-1])
    return sums


def _multiply_transforms(total: LossSum, masses: Floats, length: int) -> tuple[Spectrum, Floats]:
    """The product of all transforms, and a bound on its error at each frequency.

    With |true − seen| ≤ e for one factor, products differ by at most Π(|seen| + e) − Π|seen|.
    """
    each = 8 * math.log2(length) * ROUNDING + 1e-290
    product = np.ones(length // 2 + 1, dtype=np.complex128)
    bound = np.ones(length // 2 + 1)
    for first, part, count, error in _group_parts(total, masses, length):
        seen = np.fft.rfft(_fold(part, first, length))
        bound *= (np.abs(seen) + (each + error)) ** count
        product *= _power(seen, count)
    rounding = 8 * ROUNDING * (total.size + 1)
    gap: Floats = bound * (1 + rounding) - np.abs(product) * (1 - 2 * rounding)
    return product, np.maximum(gap, 0.0) + 1e-290


def _group_parts(total: LossSum, masses: Floats, length: int) -> Iterator[tuple[int, Floats, int, float]]:
    """The parts as (first, masses, count, error): short ones that occur once are convolved in short groups before."""
    edges = total.flat.edges.tolist()
    waiting: list[tuple[int, Floats]] = []
    room = reach = length // 8
    for j, (first, _, count) in enumerate(total.parts):
        part = masses[edges[j] : edges[j + 1]]
        if count > 1 or len(part) > reach // 4:
            yield first, part, count, 0.0
            continue
        if len(part) > room or len(waiting) == _GROUP:
            yield _convolve_short(waiting)
            waiting, room = [], reach
        waiting.append((first, part))
        room -= len(part)
    if waiting:
        yield _convolve_short(waiting)


def _convolve_short(parts: list[tuple[int, Floats]]) -> tuple[int, Floats, int, float]:
    """The convolution of a few short parts, whole, and a bound on the sum of its errors."""
    if len(parts) == 1:
        return (*parts[0], 1, 0.0)
    size = sum(len(part) - 1 for _, part in parts) + 1
    length = _length(size)
    product = np.fft.rfft(parts[0][1], length)
    for _, part in parts[1:]:
        product *= np.fft.rfft(part, length)
    sums = np.maximum(np.fft.irfft(product, length)[:size], 0.0)
    # Every factor is at most one: the error at a frequency is that of all factors together, and that of the way back
    # is no larger. Between root mean square and sum lies the root of the length.
    error = math.sqrt(length) * 2 * math.expm1((len(parts) + 1) * 12 * math.log2(length) * ROUNDING)
    return sum(first for first, _ in parts), sums, 1, error


def _power(base: Spectrum, count: int) -> Spectrum:
    """base^count by squaring: the relative error grows with the count only."""
    result: Spectrum | None = None
    while True:
        if count & 1:
            result = base if result is None else result * base
        count >>= 1
        if not count:
            break
        base = base * base
    return base if result is None else result


def _fold(masses: Floats, first: int, length: int) -> Floats:
    """The masses on a circle of this length."""
    start = first % length
    rows = -(-(start + len(masses)) // length)
    circle = np.zeros(rows * length)
    circle[start : start + len(masses)] = masses
    folded: Floats = circle.reshape(rows, length).sum(axis=0) if rows > 1 else circle
    return folded
