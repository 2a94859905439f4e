"""k-ary randomized response: keep the answer, or give another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from discreet.accounting import events
from discreet.exact import Integers, Ln
from discreet.local.protocol import FrequencyProtocol, SymbolProtocol, read_epsilon, read_threshold, write_threshold
from discreet.local.words import (
    WORD,
    Bytes,
    is_below,
    keep_threshold,
    loss_of,
    pick,
    pick_least,
    pick_most,
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
        even = Fraction(pick_least(domain_size - 1), WORD)
        return cls(domain_size=domain_size, keep=keep_threshold(read_epsilon(epsilon), even))

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
        others = self.domain_size - 1
        least, most = pick_least(others), pick_most(others)
        kept = Fraction(self.keep * WORD, (WORD - self.keep) * least)
        # The second term is the other direction, for thresholds below an even chance.
        return loss_of(max(kept, Fraction((WORD - self.keep) * most, self.keep * WORD), Fraction(most, least)))

    @property
    def event(self) -> events.Event:
        """Randomized response itself where the others are exactly alike, otherwise any report with this loss."""
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
        other = skip_value(pick(words[:, 1], self.domain_size - 1), answers)
        kept = is_below(words[:, 0], self.keep)
        # other + (answer − other)·kept: a choice without a branch.
        other += (answers - other) * kept
        return other

    def chance(self, symbol: int, answer: int) -> Fraction:
        if symbol == answer:
            return self.p
        place = symbol - (symbol > answer)
        return (1 - self.p) * Fraction(pick_weight(place, self.domain_size - 1), WORD)

    def count_supports(self, state: Integers) -> Integers:
        return state
