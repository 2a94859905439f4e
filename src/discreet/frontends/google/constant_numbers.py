"""Reads numbers that are written as arithmetic of constants: 1, -0.5, 3 * 2, (1 + 1) / 4, CAST(1 AS FLOAT64).

Options and contribution bounds are such numbers. They are computed exactly, as rationals, before anything is parsed:
an ε of 1/3 is one third and not the nearest double.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.frontends.sql.parsing import bare_word_of
from discreet.frontends.terms import constants
from discreet.frontends.terms.positions import Place, refusal

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

MAX_WORDS = 50
CASTS = frozenset({"CAST", "SAFE_CAST"})
# A cast changes none of these numbers: all of them are exact. INT64 would round, so it is not among them.
TYPES = frozenset({"FLOAT64", "DOUBLE", "NUMERIC", "BIGNUMERIC"})


def read_exact_number(words: Sequence[Token], place: Place, rule: str, fix: str) -> Fraction:
    """The exact value of arithmetic on constants. ``rule`` and ``fix`` are for words that are something else."""
    if len(words) > MAX_WORDS:
        raise refusal(place, f"A number of more than {MAX_WORDS} words.", fix)
    reader = _NumberReader(words, place)
    value = reader.read_sum()
    if value is None or not reader.is_at_end:
        raise refusal(place, rule, fix)
    return value


class _NumberReader:
    """Reads a sum from words, from left to right; None where the words are no number."""

    def __init__(self, words: Sequence[Token], place: Place) -> None:
        self.words = words
        self.place = place
        self.at = 0

    @property
    def is_at_end(self) -> bool:
        """Whether all words were read."""
        return self.at == len(self.words)

    def read_sum(self) -> Fraction | None:
        """The value of a + b - c, where each is a product."""
        total = self._read_product()
        while total is not None and (sign := self._take("+", "-")):
            other = self._read_product()
            if other is None:
                return None
            total = total + other if sign == "+" else total - other
        return total

    def _read_product(self) -> Fraction | None:
        value = self._read_factor()
        while value is not None and (sign := self._take("*", "/")):
            other = self._read_factor()
            if other is None:
                return None
            if sign == "/" and other == 0:
                raise refusal(self.place, "This number is divided by zero.", "Write another number.")
            value = value * other if sign == "*" else value / other
        return value

    def _read_factor(self) -> Fraction | None:
        if sign := self._take("+", "-"):
            value = self._read_factor()
            return -value if value is not None and sign == "-" else value
        if self._take("("):
            value = self.read_sum()
            return value if self._take(")") else None
        if self._take(*CASTS):
            return self._read_cast()
        return self._read_literal()

    def _read_cast(self) -> Fraction | None:
        if not self._take("("):
            return None
        value = self.read_sum()
        return value if self._take("AS") and self._take(*TYPES) and self._take(")") else None

    def _read_literal(self) -> Fraction | None:
        """A number as it is written. The tokenizer splits .5 into two words."""
        rest = self.words[self.at : self.at + 2]
        if len(rest) == 2 and bare_word_of(rest[0]) == "." and rest[0].end + 1 == rest[1].start:
            text, count = f".{rest[1].text}", 2
        elif rest:
            text, count = rest[0].text, 1
        else:
            return None
        if rest[count - 1].token_type.name != "NUMBER":
            return None
        self.at += count
        constants.read_number(text, self.place)  # refuses a text that is not a number
        return Fraction(Decimal(text))

    def _take(self, *signs: str) -> str:
        """The next word, if it is one of these; else nothing is read."""
        if self.at < len(self.words) and bare_word_of(self.words[self.at]) in signs:
            self.at += 1
            return bare_word_of(self.words[self.at - 1])
        return ""
