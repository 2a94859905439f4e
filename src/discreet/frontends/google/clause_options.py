"""Reads OPTIONS(name = value, ...) of the GoogleSQL form."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.frontends.google.constant_numbers import read_exact_number
from discreet.frontends.sql.parsing import bare_word_of
from discreet.frontends.sql.places import Places
from discreet.frontends.terms.positions import Place, refusal
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import suggest_nearest

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

NAMES = (
    "epsilon", "delta", "max_groups_contributed", "max_rows_contributed", "min_privacy_units_per_group",
    "privacy_unit_column", "group_selection_strategy",
)  # fmt: skip  # a list of words
MAX_LIMIT = 1_000_000  # the largest limit for rows or groups of one unit


@dataclass(frozen=True, slots=True)
class Option:
    """One option: the words after its equals sign, and its place."""

    name: str
    words: tuple[Token, ...]
    place: Place

    def read_amount(self) -> Fraction:
        """A number, exactly as it is written."""
        example = {"epsilon": "0.5", "delta": "1e-6"}.get(self.name, "3")
        return read_exact_number(
            self.words, self.place, f"{self.name} takes a number.", f"Write for example {self.name}={example}."
        )

    def read_loss(self) -> Fraction:
        """An epsilon above 0, or a delta from 0 to below 1."""
        value = self.read_amount()
        if self.name == "epsilon" and value <= 0:
            raise refusal(self.place, "epsilon must be above 0.", "Write for example epsilon=0.5.")
        if self.name == "delta" and not 0 <= value < 1:
            raise refusal(self.place, "delta is a probability far below 1.", "Write for example delta=1e-6.")
        return value

    def read_limit(self) -> int | None:
        """A whole number from 1 to ``MAX_LIMIT``; None for NULL, which sets no limit beside the codebook's."""
        if [bare_word_of(word) for word in self.words] == ["NULL"]:
            return None
        value = self.read_amount()
        if value.denominator != 1 or not 1 <= value <= MAX_LIMIT:
            rule = f"{self.name} takes a whole number from 1 to {MAX_LIMIT:,}."
            raise refusal(self.place, rule, f"Write for example {self.name}=3.")
        return int(value)

    def read_path(self) -> tuple[str, ...]:
        """A name, with or without a table before it: visits.patient_id."""
        names, dots = self.words[::2], self.words[1::2]
        kinds = {word.token_type.name for word in names}
        if (
            len(self.words) % 2 == 0
            or any(bare_word_of(dot) != "." for dot in dots)
            or kinds & {"NUMBER", "L_PAREN", "DASH"}
        ):
            raise refusal(self.place, f"{self.name} takes a name.", f"Write for example {self.name}=patient_id.")
        return tuple(word.text for word in names)


def read_options(tokens: list[Token], start: int, places: Places) -> tuple[Mapping[str, Option], int]:
    """The options that begin at a position, and the position after them; no options where there is no OPTIONS."""
    if len(tokens) <= start or bare_word_of(tokens[start]) != "OPTIONS":
        return {}, start
    opening = places.of_token(tokens[start])
    if len(tokens) <= start + 1 or bare_word_of(tokens[start + 1]) != "(":
        raise refusal(opening, "OPTIONS needs a list in parentheses.", "Write OPTIONS(epsilon=1, delta=1e-6).")
    end = find_closing(tokens, start + 1)
    if end is None:
        raise refusal(opening, "The parenthesis of OPTIONS is not closed.", "Write OPTIONS(epsilon=1, delta=1e-6).")
    found: dict[str, Option] = {}
    for part in split_at_commas(tokens[start + 2 : end]):
        option = _read_option(part, opening, places)
        if option.name in found:
            raise refusal(option.place, f"{option.name} is set twice.", "Keep one of them.")
        found[option.name] = option
    return found, end + 1


def _read_option(part: list[Token], opening: Place, places: Places) -> Option:
    if len(part) < 3 or bare_word_of(part[1]) != "=":
        place = places.of_token(part[0]) if part else opening
        raise refusal(place, "An option is a name and a value.", "Write OPTIONS(epsilon=1, delta=1e-6).")
    name = part[0].text.lower()
    place = places.of_token(part[0]).extend_to(places.of_token(part[-1]))
    if name not in NAMES:
        if name == "kappa":
            raise refusal(place, "kappa is an old name.", "Write max_groups_contributed.")
        raise refusal(place, f"There is no option {name!r}.", _suggest_option(name))
    return Option(name, tuple(part[2:]), place)


def _suggest_option(name: str) -> str:
    hint = suggest_nearest(name, NAMES)
    return hint if hint.startswith("Did") else f"Known: {', '.join(NAMES)}."


def find_closing(tokens: list[Token], opening: int) -> int | None:
    """The position of the parenthesis that closes the one at a position."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (bare_word_of(tokens[at]) == "(") - (bare_word_of(tokens[at]) == ")")
        if depth == 0:
            return at
    return None


def split_at_commas(tokens: list[Token]) -> list[list[Token]]:
    """The tokens between commas, where commas inside parentheses do not count; empty for no tokens."""
    parts: list[list[Token]] = [[]] if tokens else []
    depth = 0
    for token in tokens:
        depth += (bare_word_of(token) == "(") - (bare_word_of(token) == ")")
        if bare_word_of(token) == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
