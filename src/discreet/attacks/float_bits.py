"""Float bits: the last digits of naive noise say what it was added to.

The textbook draws a float u and adds b·ln(u). Only some floats are logarithms of such a u, and adding 1 moves to
others: many an output is impossible unless the true count was 0, or unless it was 1 (Mironov 2012). Whole-number noise
has no such digits.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.attacks.fiction import Bits, coins
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.entropy import SYSTEM
from discreet.mechanisms.laplace import Laplace

Reals: TypeAlias = npt.NDArray[np.float64]

COUNTS = 4  # noisy counts that each person is part of, at a quarter of ε each
SCALE = float(COUNTS / EPSILON)
AROUND = np.arange(-6, 7)  # u's to try around the one that a rounded inverse gives
LESSON = (
    "Both noises have the same scale, and a rounded look shows the same curve. But most naive outputs are impossible "
    "for one of the two counts, so four of them nearly always settle it. discreet adds whole numbers, drawn exactly."
)


def run(*, people: int = 2000) -> Outcome:
    """Guess for each person whether they have the rare disease, from noisy counts that are 0 or 1 without noise."""
    ill = coins("rare disease", people)
    counts = np.repeat(ill[:, None], COUNTS, axis=1)
    naive = counts + naive_laplace(SCALE, counts.shape)
    exact = np.asarray(Laplace(sensitivity=1, epsilon=Fraction(EPSILON, COUNTS)).release(counts.astype(np.int64)))
    by_size = Rate.agreement(_likelier(naive), ill)
    raw = Rate.agreement(_guess(naive), ill)
    private = Rate.agreement(_guess(exact.astype(np.float64)), ill)
    return Outcome(
        name="float-bits",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(
            Bar(label="naive floats, sizes only", rate=by_size),
            Bar(label="naive floats, all bits", rate=raw),
            Bar(label="discreet, all bits", rate=private),
        ),
        facts={"naive outputs that betray their count": f"{100 * _betrayed(naive):.0f} %"},
    )


def naive_laplace(scale: float, shape: tuple[int, ...]) -> Reals:
    """Laplace noise as in the textbook, in floats: a sign times the scale times the logarithm of a uniform float.

    This is what not to do. The bits are good, the arithmetic gives them away.
    """
    words = SYSTEM.words(int(np.prod(shape))).reshape(shape)
    uniform = ((words >> np.uint64(11)) + np.uint64(1)).astype(np.float64) * 2.0**-53
    sign = np.where(words & np.uint64(1), 1.0, -1.0)
    noise: Reals = sign * (scale * np.log(uniform))
    return noise


def possible(outputs: Reals, count: float) -> Bits:
    """Whether naive noise on this count can give these very floats.

    Go back from the output to u, and try the u's around it: one of them has to lead forward to the same float.
    """
    noise = outputs - count
    near = np.rint(np.exp(-np.abs(noise) / SCALE) * 2.0**53)
    tried = np.clip(near[..., None] + AROUND, 1, 2.0**53) * 2.0**-53
    forward = count + np.sign(noise)[..., None] * -(SCALE * np.log(tried))
    reached: Bits = (forward == outputs[..., None]).any(axis=-1)
    return reached


def _likelier(outputs: Reals) -> Bits:
    """The likelier of the counts 0 and 1, by the sizes of the outputs alone."""
    guesses: Bits = (np.abs(outputs) - np.abs(outputs - 1)).sum(axis=-1) > 0
    return guesses


def _guess(outputs: Reals) -> Bits:
    """What is impossible rules a count out, unless both are; otherwise the likelier one."""
    no, yes = possible(outputs, 0.0).all(axis=-1), possible(outputs, 1.0).all(axis=-1)
    return np.where(no == yes, _likelier(outputs), yes)


def _betrayed(outputs: Reals) -> float:
    return float((possible(outputs, 0.0) != possible(outputs, 1.0)).mean())
