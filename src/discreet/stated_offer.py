"""What is said of a price beside a question, and in its own words: one offer of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import ParameterError
from discreet.frontends.read_sql import QuestionAndOffer
from discreet.late_dataclass import dataclass
from discreet.offer import Offer
from discreet.parameters import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedOffer:
    """What a caller says beside a statement: the words of an offer, the level, and whether ends are wanted."""

    words: Mapping[str, Any]
    level: Number = 0.95
    ends: bool = False

    @property
    def given(self) -> dict[str, Any]:
        """The words that were said."""
        return {word: value for word, value in self.words.items() if value is not None}

    def make_offer(self, asked: QuestionAndOffer) -> Offer:
        """What is offered for a question: beside it, else in its own words."""
        both = sorted(self.given.keys() & asked.offer.keys())
        if both:
            rule = f"is said twice, in the question and beside it: {', '.join(both)}"
            raise ParameterError("cost", rule, "Say it in one place. Nothing was charged.")
        # A text that states ε states a guarantee, and the question by itself keeps it.
        alone = "epsilon" in asked.offer
        return Offer(**{**asked.offer, **self.given}, level=self.level, alone=alone, ends=self.ends)
