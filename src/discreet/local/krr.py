"""k-ary randomized response: a report is the true answer, or one of the others.

Local hashing runs the same response on the bucket of an answer, with the functions at the end of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

from discreet.accounting import events
from discreet.entropy import Words
from discreet.exact import Exact, Integers, Ln
from discreet.late_dataclass import dataclass
from discreet.local.protocol import FrequencyProtocol, SymbolProtocol, read_epsilon, read_threshold, write_threshold
from discreet.local.words import (
    WORD,
    Bytes,
    is_below,
    loss_of,
    near_ratio,
    near_threshold,
    pick,
    pick_weight,
    read_words,
    skip_value,
)


@dataclass(frozen=True, kw_only=True)
class KaryResponse(SymbolProtocol, FrequencyProtocol):
    """Keep the answer with probability keep/2^64, otherwise give one of the d − 1 others.

    Privacy: ε-private for each respondent, under replace, with ε exactly the logarithm of the largest ratio between
    two probabilities of one report.
    Why: a report is its own answer with probability keep/2^64 and any other with (1 − keep/2^64)·c/2^64, where c is
    ⌊2^64/(d − 1)⌋ or one more; the ratio is taken over the smallest c, so it covers them all.
    Reference: Warner 1965; Kairouz, Bonawitz & Ramage 2016, §3.

    >>> KaryResponse.for_epsilon(Ln(Fraction(3)), 2).p
    Fraction(3, 4)
    """

    name: ClassVar[str] = "krr"
    keep: int

    @classmethod
    def for_epsilon(cls, epsilon: object, domain_size: int) -> KaryResponse:
        return cls(domain_size=domain_size, keep=response_threshold(read_epsilon(epsilon), domain_size))

    @classmethod
    def read(cls, given: Mapping[str, object], domain_size: int) -> KaryResponse:
        return cls(domain_size=domain_size, keep=read_threshold(given, "keep"))

    @property
    def parameters(self) -> dict[str, int | str]:
        return {"keep": write_threshold(self.keep)}

    @property
    def random_bytes(self) -> int:
        return 16

    @property
    def symbols(self) -> int:
        return self.domain_size

    @property
    def epsilon(self) -> Ln:
        return response_loss(self.keep, self.domain_size)

    @property
    def event(self) -> events.Event:
        """The event of randomized response where all other answers are equally likely, otherwise a pure event."""
        if WORD % (self.domain_size - 1) == 0:
            return events.RandomizedResponse(
                epsilon=self.epsilon, categories=self.domain_size, neighbours="replace", unit="respondent"
            )
        return super().event

    @property
    def p(self) -> Fraction:
        return Fraction(self.keep, WORD)

    @property
    def q(self) -> Fraction:
        return (1 - self.p) / (self.domain_size - 1)

    def respond(self, answers: Integers, random: Bytes) -> Integers:
        words = read_words(random)
        return draw_response(answers, self.domain_size, self.keep, words[:, 0], words[:, 1])

    def chance(self, symbol: int, answer: int) -> Fraction:
        return response_chance(symbol, answer, self.domain_size, self.keep)

    def count_supports(self, state: Integers) -> Integers:
        return state


def response_threshold(epsilon: Exact, size: int) -> int:
    """The largest ``keep`` for ``size`` values whose loss is at most ε."""
    return near_threshold(epsilon, 1, size - 1)


def response_loss(keep: int, size: int) -> Ln:
    """The exact loss of a response over ``size`` values that keeps its own with probability keep/2^64."""
    return loss_of(near_ratio(keep, 1, size - 1))


def draw_response(own: Integers, size: int, keep: int, first: Words, second: Words) -> Integers:
    """Each own value with probability keep/2^64, otherwise one of the others below ``size``."""
    value = skip_value(pick(second, size - 1), own)
    # other + (own − other)·kept chooses without a branch.
    value += (own - value) * is_below(first, keep)
    return value


def response_chance(symbol: int, own: int, size: int, keep: int) -> Fraction:
    """The exact probability that ``draw_response`` gives this symbol."""
    if symbol == own:
        return Fraction(keep, WORD)
    place = symbol - (symbol > own)
    return Fraction((WORD - keep) * pick_weight(place, size - 1), WORD * WORD)
