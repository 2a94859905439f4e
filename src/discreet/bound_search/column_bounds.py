"""The search for the bounds of a column: units are counted by the size of their values, in powers of two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.answer import Answer
from discreet.answer_rows import Cell, Rows, make_rows
from discreet.bound_search.bound_rule import DOUBTS, PartNoise, read_bounds, threshold
from discreet.bound_search.curator_protocol import CuratorProtocol
from discreet.bound_search.far_end import CountNoise
from discreet.bounding.facts import facts_of
from discreet.bounding.relation_facts import Owner
from discreet.bounding.stability import find_relation_facts
from discreet.errors import InternalError, UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, ContributionLimits
from discreet.plan.expressions import Expression
from discreet.plan.functions import make_call
from discreet.plan.magnitude import IntOrFloat, ends
from discreet.plan.nodes import Aggregate, Output, Question
from discreet.plan.reach import reach
from discreet.plan.relations import Relation, Where
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type, Value
from discreet.preview import Preview

# Every unit counts once, in one of the powers of two that it has values of. So noise is small whatever the limits are.
ONE_ROW = ContributionLimits(max_groups=1, max_rows_per_group=1)
# Bounds that noise alone would show with at least this probability are given with a warning.
UNSURE = Fraction(1, 100)


def make_column_question(table: str, column: str, catalog: Catalog) -> Question:
    """The question how many units have a value of each power of two in a column of a declared table."""
    declared = catalog.find_table(table)
    value = declared.find_column(column)
    return make_values_question(reach(declared.name, catalog).relation, value, catalog)


def make_values_question(source: Relation, value: Expression, catalog: Catalog) -> Question:
    """The same question about any number that is computed from the rows of a relation."""
    if not value.type.is_number:
        raise UsageError(f"{value} is not a number, so it has no bounds to find. Nothing was charged.")
    rows = find_relation_facts(source, catalog)
    if facts_of(value, rows).nullable:
        source = Where(source, make_call("not", make_call("is_null", value)))
    statistic = Statistic.COUNT if rows.owner is Owner.MIXED else Statistic.COUNT_UNITS
    question = Question(
        source=source, keys=(make_call("magnitude", value),), aggregates=(Aggregate(statistic),), limits=ONE_ROW
    )
    not_null = make_call("not", make_call("is_null", question.refer_to_key(0)))
    return replace(
        question,
        outputs=(Output("magnitude", question.refer_to_key(0)), Output("units", question.refer_to_aggregate(0))),
        having=not_null,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds that were bought: zero, powers of two or one and a half of them; None where nothing was seen.

    ``above`` is the noisy number of units above which a power of two is seen. ``doubt`` is the probability that noise
    alone shows one. All of it follows from ``answer``, which is on record.
    """

    of: str
    low: IntOrFloat | None
    high: IntOrFloat | None
    above: int
    doubt: Fraction
    answer: Answer

    @property
    def found(self) -> bool:
        """Whether bounds were found."""
        return self.low is not None

    @property
    def suggestion(self) -> str | None:
        """The line for the codebook."""
        if self.low is None or self.high is None:
            return None
        return f"bounds = [{format_number(self.low)}, {format_number(self.high)}]"

    @property
    def words(self) -> str:
        """What was found and how certain it is; or what to do where nothing was found."""
        if self.low is None or self.high is None:
            return (
                f"No bounds of {self.of} were found: no power of two is there for more than {self.above:,} units, and "
                "fewer could be noise. Offer more, or declare bounds that you know."
            )
        unsure = (
            "" if self.doubt < UNSURE else f" In {float(self.doubt):.0%} of cases noise alone looks so: offer more."
        )
        return (
            f"{self.of} lies between {format_number(self.low)} and {format_number(self.high)}: "
            "every power of two that more than "
            f"{self.above:,} units have is inside. Values outside are moved to the nearer end.{unsure}"
        )

    @property
    def rows(self) -> Rows:
        """The noisy counts of the powers of two that were seen, and of one more on each side."""
        every = self.answer.rows.rows
        seen = [i for i, (_, units) in enumerate(every) if isinstance(units.value, int) and units.value > self.above]
        shown = every[max(0, seen[0] - 1) : seen[-1] + 2] if seen else ()
        rows = tuple((Cell(_describe_bucket(bucket.value)), units) for bucket, units in shown)
        return make_rows(("values", "units"), (Type.TEXT, Type.INTEGER), (False, True), rows)

    def to_dict(self) -> dict[str, Any]:
        """The bounds as plain JSON values."""
        return {
            "of": self.of,
            "low": self.low,
            "high": self.high,
            "above": self.above,
            "doubt": float(self.doubt),
            "words": self.words,
            "codebook": self.suggestion,
            "receipt": dict(self.answer.receipt),
            "replayed": self.answer.replayed,
            "remaining": self.answer.remaining,
        }

    def __str__(self) -> str:
        lines = [self.words]
        if self.suggestion is not None:
            lines.append(f"for the codebook: {self.suggestion}")
        return "\n".join([*lines, self.answer.describe_cost()])

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsPreview:
    """What a search for bounds would cost, and how many units a power of two needs to be seen. A preview is free."""

    of: str
    preview: Preview
    above: int

    @property
    def words(self) -> str:
        """What the search will find."""
        return (
            f"units are counted by the size of {self.of}, in powers of two; the bounds enclose every size that more "
            f"than {self.above:,} units have"
        )

    def to_dict(self) -> dict[str, Any]:
        """The preview as plain JSON values."""
        return {"of": self.of, "above": self.above, "words": self.words, **self.preview.to_dict()}

    def __str__(self) -> str:
        fits = "" if self.preview.fits else "  (more than is left)"
        return "\n".join(
            [
                f"bounds    {self.words}",
                f"cost      {self.preview.cost}{fits}",
                f"left      {self.preview.remaining}",
                "nothing was charged, no data was read",
            ]
        )

    __repr__ = __str__


def buy_bounds(curator: CuratorProtocol, table: str, column: str, **offer: Any) -> Bounds:
    """Buy the bounds of a column: ``offer`` is what ``Curator.ask`` takes, such as epsilon=0.1."""
    declared = curator.catalog.find_table(table)
    name = f"{declared.name}.{declared.find_column(column).name}"
    return ask_for_bounds(curator, make_column_question(table, column, curator.catalog), name, **offer)


def preview_bounds(curator: CuratorProtocol, table: str, column: str, **offer: Any) -> BoundsPreview:
    """What ``buy_bounds`` would cost and find. It is free: no data is read and nothing is charged."""
    declared = curator.catalog.find_table(table)
    name = f"{declared.name}.{declared.find_column(column).name}"
    return preview_search(curator, make_column_question(table, column, curator.catalog), name, **offer)


def ask_for_bounds(curator: CuratorProtocol, question: Question, of: str, **offer: Any) -> Bounds:
    """Ask a question about powers of two, and read the bounds off its answer."""
    noise = _noise_of(curator.preview(question, **pick_priced(offer)))
    answer = curator.ask(question, **offer)
    counts = {bucket.value: number.value for bucket, number in answer.rows.rows}
    found = read_bounds(counts, noise)  # type: ignore[arg-type]  # a number's buckets, and counts of units
    if found is None:
        doubt = DOUBTS[-1]
        above = threshold(noise, len(counts), doubt)
        return Bounds(of=of, low=None, high=None, above=above, doubt=doubt, answer=answer)
    return Bounds(of=of, low=found.low, high=found.high, above=found.above, doubt=found.doubt, answer=answer)


def preview_search(curator: CuratorProtocol, question: Question, of: str, **offer: Any) -> BoundsPreview:
    """What ``ask_for_bounds`` would cost and find."""
    shown = curator.preview(question, **offer)
    return BoundsPreview(of=of, preview=shown, above=threshold(_noise_of(shown), _count_buckets(shown), DOUBTS[0]))


_PRICED = frozenset({"epsilon", "rho", "share", "delta", "level", "analyst"})


def pick_priced(offer: Mapping[str, Any]) -> dict[str, Any]:
    """What of an offer decides the noise, as ``Curator.preview`` takes it."""
    return {name: value for name, value in offer.items() if name in _PRICED}


def _noise_of(preview: Preview) -> CountNoise:
    """The noise of the counts. The noise that was priced is the noise that is drawn."""
    (release,) = preview.plan.releases
    ((noise,), (count,)) = release.noises.values(), release.recoveries
    return PartNoise(noise, release.units(count))


def _count_buckets(preview: Preview) -> int:
    """How many powers of two there are, without NULL."""
    (release,) = preview.plan.releases
    domain = release.bounded.bounded.domain
    if domain is None:
        raise InternalError("Powers of two are public.")
    return sum(None not in key for key in domain)


def _describe_bucket(bucket: Value) -> str:
    low, high = ends(bucket) if isinstance(bucket, int | float) else (0, 0)
    return format_number(low) if low == high else f"{format_number(low)} to {format_number(high)}"


def format_number(number: IntOrFloat) -> str:
    """A power of two as people write it.

    >>> format_number(128.0), format_number(0.25), format_number(-(2**40))
    ('128', '0.25', '-1099511627776')
    """
    return str(int(number)) if number == int(number) else repr(number)
