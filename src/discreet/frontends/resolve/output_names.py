"""Names the columns of an answer: as the analyst did, else by a plain and unique name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import assert_never

from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import AggregateTerm, Item
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Call, Column, Expression, Literal, ReleasedValue
from discreet.plan.nodes import Aggregate
from discreet.plan.statistics.definitions import PairStatistic
from discreet.plan.statistics.table import STATISTICS

LONGEST = 60  # characters of a name that is made here
MAX_NAME = 128  # characters of a name that the analyst gave

# An output of these functions has the name of their argument.
SAME_NAME = frozenset(
    {"round", "coalesce", "to_integer", "to_real", "to_text", "to_date", "to_timestamp", "to_boolean"}
)
# An output of these functions is named by the part of a date, such as year_day.
BY_WORD = frozenset({"part", "date_trunc"})


@dataclass(frozen=True, slots=True)
class Titles:
    """Makes plain names for outputs: count, sum_age, ward, year_admitted. ``names`` has names of whole expressions."""

    keys: Sequence[Expression]
    aggregates: Sequence[Aggregate]
    names: Mapping[Expression, str]

    def of(self, expression: Expression) -> str:
        """A plain name for an expression; empty for a constant."""
        if expression in self.names:
            return self.names[expression]
        match expression:
            case Column():
                return expression.name
            case Literal():
                return ""
            case ReleasedValue() if expression.index < 0:
                return join_words("grouping", self.of(self.keys[-1 - expression.index]))
            case ReleasedValue() if expression.index < len(self.keys):
                return self.of(self.keys[expression.index])
            case ReleasedValue():
                aggregate = self.aggregates[expression.index - len(self.keys)]
                return self.of_aggregate(aggregate)
            case Call():
                return self._of_call(expression)
            case _:
                assert_never(expression)

    def of_aggregate(self, aggregate: Aggregate) -> str:
        """A plain name for an aggregate: sum_age for SUM(age), quantile_25_age for QUANTILE(age, 0.25)."""
        argument = "" if aggregate.argument is None else self.of(aggregate.argument)
        return join_words(_word_of(aggregate), "distinct" * aggregate.distinct, argument)

    def _of_call(self, call: Call) -> str:
        inner = list(dict.fromkeys(self.of(argument) for argument in call.arguments))
        if call.function in SAME_NAME and len(list(filter(None, inner))) == 1:
            return join_words(*inner)
        first = call.arguments[0]
        word = str(first.value) if call.function in BY_WORD and isinstance(first, Literal) else call.function
        return join_words(word, *inner)


def sql_word_of(measure: AggregateTerm) -> str:
    """The name of an aggregate in a refusal: SUM, MEDIAN, MIN."""
    if measure.word:
        return measure.word.upper()
    if isinstance(measure.statistic, PairStatistic):
        return measure.statistic.value.upper()
    return STATISTICS[measure.statistic].output.upper()


def _word_of(aggregate: Aggregate) -> str:
    """The word for a statistic. A quantile is named by its percentage."""
    if aggregate.share is None:
        return STATISTICS[aggregate.statistic].output
    if aggregate.share == Fraction(1, 2):
        return "median"
    return f"quantile_{float(100 * aggregate.share):.6g}".replace(".", "_")


def join_words(*parts: str) -> str:
    """The words, joined to a name of limited length."""
    return "_".join(filter(None, parts))[:LONGEST].rstrip("_")


def name_outputs(items: Sequence[Item], defaults: Sequence[str], measured: Sequence[bool]) -> list[str]:
    """The names of all outputs. Names that the analyst gave stay as they are, and the others are made unique.

    A measured output x also has x_low and x_high, the ends of its noise interval, so these names are taken, too.
    """
    taken: set[str] = set()
    for item, noisy in zip(items, measured):
        if item.alias is not None:
            _check(item)
            wanted = _find_claims(item.alias, noisy=noisy)
            if wanted & taken:
                raise _explain_taken(item)
            taken |= wanted
    titles = []
    for item, plain, noisy in zip(items, defaults, measured):
        title = item.alias
        if title is None:
            base, number = plain or "value", 1
            title = base
            while _find_claims(title, noisy=noisy) & taken:
                number += 1
                title = f"{base}_{number}"
            taken |= _find_claims(title, noisy=noisy)
        titles.append(title)
    return titles


def _check(item: Item) -> None:
    alias = item.alias or ""
    if not 0 < len(alias) <= MAX_NAME or not alias.isprintable() or alias != alias.strip():
        rule = f"The name of an output has 1 to {MAX_NAME} printable characters, without spaces at its ends."
        raise refusal(item.place, rule, "Choose a short name of letters, digits and underscores.")


def _find_claims(title: str, *, noisy: bool) -> set[str]:
    small = title.lower()
    return {small, f"{small}_low", f"{small}_high"} if noisy else {small}


def _explain_taken(item: Item) -> Exception:
    rule = f"The name {item.alias!r} is taken by another output."
    fix = "Choose another name. An output n also makes n_low and n_high, the ends of its noise interval."
    return refusal(item.place, rule, fix)
