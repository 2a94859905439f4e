"""Wanted errors: which outputs can have one, and whether a release keeps it.

Counts and sums have an error that public facts tell, quantiles and modes one in rows of rank. Averages, ratios and
variances have one in a group of a given size (``sized_error``): named by the analyst, or from public numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from discreet.bounding.bound import BoundedQuestion
from discreet.bounding.recipes import AggregateRecipe
from discreet.errors import InternalError, ParameterError
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Expression, ReleasedValue, walk
from discreet.plan.relations import Scan
from discreet.plan.statistics.definitions import SecondMomentBasis
from discreet.plan.statistics.table import STATISTICS
from discreet.release import Release
from discreet.sized_error import SizedError, read_sized


@dataclass(frozen=True, slots=True)
class KnownTarget:
    """The error of a count or a sum; of a quantile or a mode in rows of rank, whatever the values are."""

    estimate: AggregateRecipe
    wanted: Fraction

    def is_met(self, release: Release) -> bool:
        """Whether the release has at most that error."""
        if self.estimate.spread is None:
            error = release.error(self.estimate)
            if error is None:
                raise InternalError("An error that is known is not.")
            return Fraction(error) <= self.wanted
        return release.rank_error(self.estimate.spread) <= self.wanted


@dataclass(frozen=True, slots=True)
class SizedTarget:
    """The error of an average, a ratio or a variance in a group of a given size."""

    statistic: SizedError
    wanted: Fraction
    size: Fraction

    def is_met(self, release: Release) -> bool:
        """Whether the release has at most that error in such a group."""
        return self.statistic.holds(release, self.wanted, self.size, 1 - release.level)


ErrorTarget: TypeAlias = KnownTarget | SizedTarget


def find_group_size(bounded: BoundedQuestion, sizes: Mapping[str, int]) -> Fraction | None:
    """The rough size of a group: the public number of rows over that of public groups; None where it is not known.

    Conditions and joins change how many rows there are, by nobody knows how much.
    """
    source, domain = bounded.question.source, bounded.bounded.domain
    if not isinstance(source, Scan) or not domain or source.table not in sizes:
        return None
    return Fraction(sizes[source.table], len(domain))


def read_targets(
    bounded: BoundedQuestion, wanted: Mapping[str, Fraction], size: Fraction | None
) -> tuple[ErrorTarget, ...]:
    """What is wanted of named outputs, in groups of a size where that is known. Refused where no error can be told."""
    return tuple(_read_target(bounded, name, error, size) for name, error in wanted.items())


def _read_target(bounded: BoundedQuestion, name: str, wanted: Fraction, size: Fraction | None) -> ErrorTarget:
    found = [output.expression for output in bounded.question.outputs if output.name == name]
    for expression in found:
        estimate = _find_estimate(bounded, expression)
        if estimate is not None and _has_known_error(estimate):
            return KnownTarget(estimate, wanted)
        statistic = read_sized(bounded, expression)
        if statistic is None:
            continue
        if size is None:
            fix = "Say it: group_size=500 (--group-size 500 in the shell). Nothing was charged."
            raise ParameterError(f"error[{name!r}]", "depends on how many rows a group has, roughly", fix)
        return SizedTarget(statistic, wanted, size)
    if any(_is_deviation(bounded, expression) for expression in found):
        rule = "depends on how far values are spread, which is not public"
        fix = "Want that of VARIANCE: an error e of a deviation s is about 2·s·e there. Nothing was charged."
        raise ParameterError(f"error[{name!r}]", rule, fix)
    rule = "is not an error that public facts determine" if found else "names no column of the answer"
    raise ParameterError(f"error[{name!r}]", rule, f"{_describe_nearest(bounded)} Nothing was charged.")


def _describe_nearest(bounded: BoundedQuestion) -> str:
    """Which outputs an error can be wanted of."""
    known = [output.name for output in bounded.question.outputs if _can_have_error(bounded, output.expression)]
    if not known:
        return "No column has one here: offer share=0.1, and preview it."
    return f"Give the error of {' or '.join(map(repr, known))}."


def _can_have_error(bounded: BoundedQuestion, expression: Expression) -> bool:
    estimate = _find_estimate(bounded, expression)
    known = estimate is not None and _has_known_error(estimate)
    return known or read_sized(bounded, expression) is not None


def _has_known_error(estimate: AggregateRecipe) -> bool:
    return estimate.spread is not None or STATISTICS[estimate.statistic].has_direct_error


def _find_estimate(bounded: BoundedQuestion, expression: Expression) -> AggregateRecipe | None:
    index = expression.index - len(bounded.question.keys) if isinstance(expression, ReleasedValue) else -1
    return bounded.estimates[index] if index >= 0 else None


def _is_deviation(bounded: BoundedQuestion, expression: Expression) -> bool:
    """Whether it is a standard deviation, or follows from one."""
    parts = [_find_estimate(bounded, part) for part in walk(expression)]
    bases = [STATISTICS[part.statistic].basis for part in parts if part is not None]
    return any(isinstance(basis, SecondMomentBasis) for basis in bases)
