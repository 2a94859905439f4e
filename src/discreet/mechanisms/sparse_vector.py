"""The sparse vector technique: says which of many questions have a large answer, and charges only for those."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.accounting.events import Event, Pure
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import BudgetExceeded, ParameterError, UsageError
from discreet.exact import Exact, Integers, Interval, add, float_up, lower
from discreet.late_dataclass import dataclass
from discreet.mechanisms.exponential import check_monotone, shorten_down
from discreet.mechanisms.laws import DiscreteLaplaceLaw, noise_bound
from discreet.mechanisms.mechanism import EventMechanism, OneEventMechanism, settle
from discreet.mechanisms.scores import LIMIT
from discreet.mechanisms.winner import UNIT, TwoSidedNoise, chances, chances_under, multiply, reach
from discreet.parameters import Epsilon, Number
from discreet.samplers import discrete_laplace


@dataclass(frozen=True, kw_only=True, repr=False)
class SparseVector(OneEventMechanism):
    """Say for each question whether its whole answer is at least ``threshold``; stop after ``answers`` yeses.

    Noise of scale Δ/ε₁ is put on the threshold, once, and fresh noise of scale 2cΔ/ε₂ on every answer (cΔ/ε₂ when
    ``monotone``), where c is the number of yeses allowed. ε is split ε₁ : ε₂ = 1 : (2c)^(2/3) (1 : c^(2/3)), which
    makes their difference least. With ``answer_epsilon``, each yes may also be given as a number, with noise of scale
    cΔ/ε₃ of its own; the noisy number that was compared is never shown. Questions answered no are free, without end.

    Privacy: (ε + ``answer_epsilon``)-private for the whole stream, whatever the questions, chosen adaptively, between
    neighbours of the stated relation whose answers differ by at most ``sensitivity`` each. Why: compare threshold
    noise z on one dataset with z + Δ on the other; both are whole, so this maps the noise's values one to one at a
    price of e^(Δ·ε₁/Δ). Every no stays a no, since the threshold rose by as much as an answer can. A yes needs at
    most 2Δ more noise, each of c yeses at a price of e^(ε₂/c). For monotone answers (a unit raises all or lowers all;
    add-remove only) z + Δ is needed in one direction only, and Δ more noise is enough in both.
    Reference: Dwork and Roth 2014, Section 3.6; Lyu, Su and Li 2017, Algorithm 7. Their
    Algorithms 3 to 6, wrong but published, are negative controls in the tests.

    >>> stream = SparseVector(threshold=100, sensitivity=1, epsilon=1000, answers=1).start()
    >>> stream(3), stream(250), stream.left
    (False, True, 0)
    """

    threshold: Number
    sensitivity: int
    epsilon: Epsilon
    answers: int = 1
    monotone: bool = False
    answer_epsilon: Epsilon | None = None

    def __post_init__(self) -> None:
        EventMechanism.__post_init__(self)
        settle(
            self,
            threshold=parameters.read_number(self.threshold, "threshold"),
            sensitivity=parameters.read_whole(self.sensitivity, "sensitivity", most=LIMIT),
            epsilon=parameters.read_epsilon(self.epsilon),
            answers=parameters.read_whole(self.answers, "answers", most=1 << 40),
        )
        check_monotone(monotone=self.monotone, neighbours=self.neighbours)
        if self.answer_epsilon is not None:
            settle(self, answer_epsilon=parameters.read_epsilon(self.answer_epsilon, "answer_epsilon"))

    @cached_property
    def _least(self) -> int:
        """The threshold, rounded up. Noisy answers are whole, so this changes no verdict."""
        return math.ceil(parameters.read_number(self.threshold, "threshold"))

    @cached_property
    def split(self) -> tuple[Fraction, Fraction]:
        """(ε₁, ε₂): threshold and answers. Any split is private; this one is close to the best."""
        whole = shorten_down(lower(parameters.read_epsilon(self.epsilon)))
        ratio = (self.answers if self.monotone else 2 * self.answers) ** (2 / 3)
        first = whole * Fraction(1 / (1 + ratio)).limit_denominator(1 << 20) or whole / (1 << 20)
        return first, whole - first

    @cached_property
    def threshold_scale(self) -> Fraction:
        """The scale of the threshold's noise: Δ/ε₁."""
        return self.sensitivity / self.split[0]

    @cached_property
    def answer_scale(self) -> Fraction:
        """The scale of the noise on every answer that is compared: 2cΔ/ε₂, or cΔ/ε₂ for monotone answers."""
        return (1 if self.monotone else 2) * self.answers * self.sensitivity / self.split[1]

    @cached_property
    def number_scale(self) -> Fraction | None:
        """The scale of the noise on the numbers given with a yes: cΔ/ε₃."""
        if self.answer_epsilon is None:
            return None
        return self.answers * self.sensitivity / shorten_down(lower(parameters.read_epsilon(self.answer_epsilon)))

    @cached_property
    def loss(self) -> Exact:
        """The pure ε of the whole stream."""
        epsilon = parameters.read_epsilon(self.epsilon)
        return epsilon if self.answer_epsilon is None else add(epsilon, parameters.read_epsilon(self.answer_epsilon))

    @property
    def event(self) -> Event:
        """The event that describes a whole stream, however many yeses it gave."""
        return Pure(epsilon=self.loss, neighbours=self.neighbours, unit=self.unit)

    def start(self, *, source: EntropySource = SYSTEM) -> Stream:
        """A new stream; each one costs ``privacy`` in full, when it starts."""
        return Stream(self, source)

    def release(self, values: Sequence[int] | Integers, *, source: EntropySource = SYSTEM) -> npt.NDArray[np.bool_]:
        """The verdicts on a batch of answers, in order, up to and including the last yes that is allowed.

        >>> SparseVector(threshold=10, sensitivity=1, epsilon=1000).release([1, 2, 30, 4, 50]).tolist()
        [False, False, True]
        """
        batch = parameters.read_integers(values, "values")
        if batch.ndim != 1:
            raise ParameterError("values", "must be one-dimensional", "Give one answer for each question.")
        bar = self._least + int(discrete_laplace(self.threshold_scale, source=source))
        noise = discrete_laplace(self.answer_scale, len(batch), source=source)
        # Python integers: an answer near the end of int64 plus noise must not wrap.
        above = np.array([a + z >= bar for a, z in zip(batch.tolist(), noise.tolist())], dtype=np.bool_)
        last = np.flatnonzero(above)[self.answers - 1 : self.answers]
        return above[: int(last[0]) + 1] if last.size else above

    def probability(self, output: Sequence[bool], given: Sequence[int] | Integers) -> Interval:
        """The probability of these verdicts, certified; they end with the last yes allowed, or with ``given``."""
        answers = parameters.read_integers(given, "given").tolist()
        verdicts = self._check_output(output, len(answers))
        bar_noise = TwoSidedNoise(self.threshold_scale)
        far, bars, noise = reach(bar_noise), chances(bar_noise), chances_under(TwoSidedNoise(self.answer_scale))
        low = high = 0
        for z in range(1 - far, far):
            chance = bars[z]
            for answer, yes in zip(answers, verdicts):
                no = noise[self._least + z - answer]
                chance = multiply(chance, (UNIT - no[1], UNIT - no[0]) if yes else no)
            low, high = low + chance[0], high + chance[1]
        return Interval(Fraction(low, UNIT), Fraction(high, UNIT) + bar_noise.chance_beyond(far).high)

    def _check_output(self, output: Sequence[bool], questions: int) -> list[bool]:
        verdicts = [bool(verdict) for verdict in output]
        given, length = sum(verdicts), len(verdicts)
        if given == self.answers:
            possible = verdicts[-1] and length <= questions
        else:
            possible = given < self.answers and length == questions
        if not possible:
            fix = "It ends with the last yes that is allowed, or with the last question."
            raise ParameterError("output", "cannot be released for these answers", fix)
        return verdicts

    def error(self, beta: Number, of: int = 1) -> float:
        """How near the threshold verdicts may be wrong, among ``of`` questions, except with probability beta:
        every yes has an answer of at least threshold − error, every no one below threshold + error.
        """
        half = parameters.read_probability(beta, "beta") / 2
        questions = parameters.read_whole(of, "of")
        bound = 0
        for scale, count in ((self.threshold_scale, 1), (self.answer_scale, questions)):
            near = float(scale) * math.log(count / float(half))
            bound += noise_bound(DiscreteLaplaceLaw(scale), half, count, near)
        return float_up(Fraction(bound))


class Stream:
    """One run of a ``SparseVector``: call it with the true answer of each question, and it says whether that is large.

    It keeps secret noise, so it cannot be copied or pickled: two copies would use the same noise twice.
    """

    def __init__(self, rule: SparseVector, source: EntropySource) -> None:
        self.rule = rule
        self._source = source
        self._bar = rule._least + int(discrete_laplace(rule.threshold_scale, source=source))  # noqa: SLF001  # same module
        self._left = rule.answers
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """How many more yeses may be given."""
        return self._left

    def __call__(self, value: int) -> bool:
        """Whether the answer is large; refused once all yeses are spent."""
        exact = parameters.read_whole(value, "value", least=-LIMIT, most=LIMIT)
        with self._lock:
            if not self._left:
                raise BudgetExceeded(
                    f"This stream has given all {self.rule.answers} of its yeses. Start another one, and pay for it."
                )
            above = exact + discrete_laplace(self.rule.answer_scale, source=self._source) >= self._bar
            self._left -= above
        return bool(above)

    def number(self, value: int) -> int | None:
        """The answer with fresh noise if it is large, otherwise None; needs ``answer_epsilon``."""
        scale = self.rule.number_scale
        if scale is None:
            raise UsageError("This stream gives no numbers. Declare answer_epsilon= when making the SparseVector.")
        return int(value) + discrete_laplace(scale, source=self._source) if self(value) else None

    def __repr__(self) -> str:
        return f"Stream({self.left} of {self.rule.answers} positive answers left)"

    def __reduce__(self) -> NoReturn:
        raise UsageError("A stream cannot be copied or pickled: its noise must be used once. Start another one.")
