"""The exponential mechanism: chooses a candidate with a probability that grows exponentially with its score."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

from discreet import parameters
from discreet.accounting.events import Event
from discreet.accounting.events import Exponential as ExponentialEvent
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Exact, Interval, decimal, float_up, lower, sqrt_lower
from discreet.late_dataclass import dataclass
from discreet.mechanisms.mechanism import EventMechanism, OneEventMechanism, find_form, settle
from discreet.mechanisms.scores import Score, ScoresLike, read_position, read_scores, sum_intervals, weights
from discreet.parameters import Epsilon, Number
from discreet.privacy import Neighbours
from discreet.samplers import categorical_exp

CandidateT = TypeVar("CandidateT")


@dataclass(frozen=True, kw_only=True, repr=False)
class SelectionMechanism(OneEventMechanism):
    """The base of mechanisms that choose by score: the sensitivity of a score, and whether scores are monotone.

    ``monotone=True`` states that adding a unit raises all scores or lowers all scores (each by its own amount,
    at most the sensitivity), as counts and revenues do. It halves the noise, and it is a statement about adding and
    removing: replacing a unit is one step of each kind, so under ``replace`` it is refused.
    """

    sensitivity: Number
    monotone: bool = False

    def __post_init__(self) -> None:
        EventMechanism.__post_init__(self)
        settle(self, sensitivity=parameters.read_positive(self.sensitivity, "sensitivity"))
        check_monotone(monotone=self.monotone, neighbours=self.neighbours)

    def _factor(self, loss: Exact) -> Fraction:
        """The multiple of a score in the exponent, rounded down where the loss is irrational."""
        sensitivity = parameters.read_positive(self.sensitivity, "sensitivity")
        return shorten_down(lower(loss) / (sensitivity if self.monotone else 2 * sensitivity))


@dataclass(frozen=True, kw_only=True, repr=False)
class ChoiceMechanism(SelectionMechanism):
    """The base of mechanisms that choose one candidate. It is not a mechanism by itself."""

    @abstractmethod
    def release(self, scores: ScoresLike, *, source: EntropySource = SYSTEM) -> int:
        """The index of the chosen candidate."""

    def choose(
        self,
        candidates: Sequence[CandidateT],
        utility: Callable[[CandidateT], Score],
        *,
        source: EntropySource = SYSTEM,
    ) -> CandidateT:
        """The chosen candidate itself; ``utility`` scores one candidate on the private data.

        >>> sure = Exponential(sensitivity=1, epsilon=1000)
        >>> sure.choose(["tea", "coffee"], {"tea": 3, "coffee": 9}.__getitem__)
        'coffee'
        """
        return candidates[self.release([utility(candidate) for candidate in candidates], source=source)]


def check_monotone(*, monotone: object, neighbours: Neighbours | str) -> None:
    """Refuse ``monotone`` where it is not a bool, or under replace, where it has no meaning."""
    if not isinstance(monotone, bool):
        raise parameters.refuse("monotone", "True or False", monotone, "Say monotone=True only if it is proven.")
    if monotone and neighbours != Neighbours.ADD_REMOVE:
        fix = "Leave it out, or state the sensitivity for add-remove neighbours."
        raise ParameterError("monotone", "has no meaning under replace", fix)


def shorten_down(x: Fraction) -> Fraction:
    """At or below x: x itself, or its first 64 bits where it is longer, because shorter numbers draw faster."""
    if max(x.numerator, x.denominator).bit_length() <= 64:
        return x
    unit = Fraction(2) ** (64 + x.denominator.bit_length() - x.numerator.bit_length())
    return math.floor(x * unit) / unit


def loss_from_rho(rho: object, count: int = 1) -> Fraction:
    """The ε, rounded down, whose bounded range costs at most ρ in ``count`` rounds: √(8ρ/count)."""
    epsilon = shorten_down(sqrt_lower(8 * parameters.read_positive(rho, "rho") / count))
    if epsilon > parameters.MAX_EPSILON:
        raise parameters.refuse("rho", "smaller", rho, "A larger loss protects nobody: release without privacy.")
    return epsilon


def read_choice_budget(epsilon: object, rho: object) -> tuple[Exact | None, Fraction | None]:
    """The exact ε or ρ of a mechanism that chooses; refused where none is given, or both."""
    form = find_form({"epsilon": epsilon, "rho": rho}, "Give epsilon=1, or rho=0.1 to count in zCDP.")
    if form == "epsilon":
        return parameters.read_epsilon(epsilon), None
    return None, parameters.read_positive(rho, "rho")


def loss_of_round(epsilon: object, rho: object, rounds: int = 1) -> Exact:
    """The ε₀ of one of ``rounds`` equal choices within a budget: ε/rounds, or √(8ρ/rounds); rounded down."""
    if epsilon is None:
        return loss_from_rho(rho, rounds)
    whole = parameters.read_epsilon(epsilon)
    return whole if rounds == 1 else lower(whole) / rounds


def utility_loss(factor: Fraction, *, beta: Fraction, candidates: int) -> float:
    """The t with P[best score − chosen score ≥ t] ≤ β for weights e^(factor·score): ln((k−1)(1−β)/β)/factor.

    At worst one candidate is best and k − 1 are t below it; their share is then (k−1)e^(−ft)/(1 + (k−1)e^(−ft)).
    This is a little below the usual ln(k/β)/factor, and reached by that case.
    """
    odds = (candidates - 1) * (1 - beta) / beta
    if odds <= 1:
        return 0.0
    # The logarithm and the division err by a few units in the last place; the last factor outweighs that.
    log = math.log(odds.numerator) - math.log(odds.denominator)
    return float_up(decimal(log * (1 + 1e-12) + 1e-12) / factor)


@dataclass(frozen=True, kw_only=True, repr=False)
class Exponential(ChoiceMechanism):
    """Choose candidate r with probability ∝ exp(ε·u(r)/(2Δ)), for scores u that one unit changes by at most Δ.

    Scores are exact: ints, Fractions, or floats as the dyadic rationals they are. A sensitivity of 1/n is best kept by
    passing whole counts with sensitivity 1, or Fractions: rounded quotients differ by a little more than 1/n.

    Privacy: ε-private between neighbours of the stated relation whose scores differ by at most ``sensitivity``, and
    ε-bounded range, hence ε²/8-zCDP. Why: the exponent of r moves by at most ε/2 and the normaliser by a factor of at
    most e^(ε/2), so log-ratios stay within ±ε and within a range of ε of each other. For ``monotone`` scores
    (add-remove only) exponent and normaliser move the same way and partly cancel, so exp(ε·u/Δ) has the same loss;
    without monotonicity that form would lose up to 2ε.
    Reference: McSherry and Talwar 2007, Theorem 6; Durfee and Rogers 2019; Dong, Durfee and Rogers 2020.

    >>> choice = Exponential(sensitivity=1, epsilon=2)
    >>> choice.event
    Exponential(epsilon=2, count=1, neighbours='add-remove', unit='one row')
    >>> round(float(choice.probability(1, given=[0, 1, 1])), 4)  # e/(1 + 2e)
    0.4223
    >>> round(choice.error(0.05, of=100), 2)  # no more than this below the best of 100, with 95 %
    7.54
    """

    epsilon: Epsilon | None = None
    rho: Number | None = None

    def __post_init__(self) -> None:
        SelectionMechanism.__post_init__(self)
        epsilon, rho = read_choice_budget(self.epsilon, self.rho)
        settle(self, epsilon=epsilon, rho=rho)
        _ = self.loss  # refuse a ρ that is too large, now

    @cached_property
    def loss(self) -> Exact:
        """The pure ε: as given, or √(8ρ) rounded down."""
        return loss_of_round(self.epsilon, self.rho)

    @cached_property
    def factor(self) -> Fraction:
        """The multiple of a score in the exponent: ε/(2Δ), or ε/Δ for monotone scores."""
        return self._factor(self.loss)

    @property
    def event(self) -> Event:
        """The event that describes one release."""
        return ExponentialEvent(epsilon=self.loss, neighbours=self.neighbours, unit=self.unit)

    def release(self, scores: ScoresLike, *, source: EntropySource = SYSTEM) -> int:
        """The index of the chosen candidate."""
        read = read_scores(scores)
        return categorical_exp(read.steps, self.factor * read.unit, source=source)

    def probability(self, output: int, given: ScoresLike) -> Interval:
        """The probability of choosing the candidate at index ``output``, certified to about 150 bits."""
        read = read_scores(given)
        chosen = read_position(output, len(read))
        others = weights(read, self.factor)
        own = others.pop(chosen)
        rest = sum_intervals(others)
        # The share rises with the own weight and falls with the others', so opposite ends give certain bounds.
        return Interval(own.low / (own.low + rest.high), own.high / (own.high + rest.low))

    def error(self, beta: Number, of: int) -> float:
        """How far below the best of ``of`` candidates the chosen one may be, except with probability beta."""
        return utility_loss(
            self.factor,
            beta=parameters.read_probability(beta, "beta"),
            candidates=parameters.read_whole(of, "of"),
        )
