"""Float bits: the last digits of naive noise reveal the number that it was added to.

The textbook draws a float u and adds b·ln(u). Only some floats are logarithms of such a u, and the sum with 1 gives
other floats. So many outputs are possible only for the count 0, or only for the count 1 (Mironov 2012). Whole-number
noise has no such digits.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.attacks.fiction import make_coins
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.entropy import SYSTEM
from discreet.exact import Flags, Floats
from discreet.mechanisms.laplace import Laplace

COUNTS = 4  # noisy counts that each person is part of, at a quarter of ε each
SCALE = float(COUNTS / EPSILON)
AROUND = np.arange(-6, 7)  # u's to try around the one that a rounded inverse gives
LESSON = (
    "Both noises have the same scale, and a rounded look shows the same curve. But most naive outputs are impossible "
    "for one of the two counts, so four of them nearly always settle it. discreet adds whole numbers, drawn exactly."
)


def run(*, people: int = 2000) -> Outcome:
    """Guess for each person whether they have the rare disease, from noisy counts that are 0 or 1 without noise."""
    ill = make_coins("rare disease", people)
    counts = np.repeat(ill[:, None], COUNTS, axis=1)
    naive = counts + draw_naive_laplace(SCALE, counts.shape)
    exact = np.asarray(Laplace(sensitivity=1, epsilon=Fraction(EPSILON, COUNTS)).release(counts.astype(np.int64)))
    by_size = Rate.agreement(_guess_likelier(naive), ill)
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
        facts={"naive outputs that betray their count": f"{100 * _revealing_share(naive):.0f} %"},
    )


def draw_naive_laplace(scale: float, shape: tuple[int, ...]) -> Floats:
    """Laplace noise as in the textbook, in floats: a sign times the scale times the logarithm of a uniform float.

    Do not use this. The random bits are good, but the float arithmetic reveals the count.
    """
    words = SYSTEM.words(int(np.prod(shape))).reshape(shape)
    uniform = ((words >> np.uint64(11)) + np.uint64(1)).astype(np.float64) * 2.0**-53
    sign = np.where(words & np.uint64(1), 1.0, -1.0)
    noise: Floats = sign * (scale * np.log(uniform))
    return noise


def is_possible(outputs: Floats, count: float) -> Flags:
    """Whether naive noise on this count can give these very floats.

    Compute u from the output, and try the values around it: one of them has to give the same float.
    """
    noise = outputs - count
    near = np.rint(np.exp(-np.abs(noise) / SCALE) * 2.0**53)
    tried = np.clip(near[..., None] + AROUND, 1, 2.0**53) * 2.0**-53
    forward = count + np.sign(noise)[..., None] * -(SCALE * np.log(tried))
    reached: Flags = (forward == outputs[..., None]).any(axis=-1)
    return reached


def _guess_likelier(outputs: Floats) -> Flags:
    """The likelier of the counts 0 and 1, by the sizes of the outputs alone."""
    guesses: Flags = (np.abs(outputs) - np.abs(outputs - 1)).sum(axis=-1) > 0
    return guesses


def _guess(outputs: Floats) -> Flags:
    """The count that is possible; the likelier count where both or none are possible."""
    no, yes = is_possible(outputs, 0.0).all(axis=-1), is_possible(outputs, 1.0).all(axis=-1)
    return np.where(no == yes, _guess_likelier(outputs), yes)


def _revealing_share(outputs: Floats) -> float:
    return float((is_possible(outputs, 0.0) != is_possible(outputs, 1.0)).mean())
