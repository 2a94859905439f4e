"""From a question to a bounded one: its groups, its limits, and the integers that are measured (``recipes``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

from discreet.bounding.cells import list_cell_forms
from discreet.bounding.contributions import BoundedPlan, Counts, Measure, choose_weight_bits
from discreet.bounding.facts import facts_of
from discreet.bounding.grids import limit_steps
from discreet.bounding.joint_measures import find_families
from discreet.bounding.lengths import check_row
from discreet.bounding.limits import ValueLimits, most_rows
from discreet.bounding.recipes import AggregateRecipe, MeasureCollector
from discreet.bounding.relation_facts import NO_UNIT, Owner, RelationFacts
from discreet.bounding.shape import check_expression, check_released, check_whole
from discreet.bounding.stability import find_relation_facts
from discreet.bounding.step_sizes import set_sizes
from discreet.bounding.structure import check_structure
from discreet.bounding.truncation import cap_joins
from discreet.errors import Unbounded, UnitLost, UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import MAX_GROUPS, MAX_KEYS, MAX_NUMBERS, Catalog, ColumnFacts, ContributionLimits
from discreet.plan.expressions import Expression, find_columns
from discreet.plan.gaps import check_gaps
from discreet.plan.nodes import Aggregate, Question
from discreet.plan.relations import Relation, Scan
from discreet.plan.statistics.definitions import GroupBounds
from discreet.plan.statistics.table import STATISTICS
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours

# The weight of one unit, which its groups share where private keys are chosen by weights.
WHOLE_WEIGHT = 1 << 20


@dataclass(frozen=True, slots=True)
class BoundedQuestion:
    """A question, its bounded form, and the way back from integers to statistics, one for each aggregate.

    ``selector`` is the position of the count of units by which private keys may be named, ``weights`` that of their
    weights, where a unit may be in several groups. ``keys`` are the positions of the question's keys that this form
    groups by.
    """

    question: Question
    bounded: BoundedPlan
    estimates: tuple[AggregateRecipe, ...]
    selector: int | None = None
    keys: tuple[int, ...] = ()
    weights: int | None = None

    @property
    def measured(self) -> tuple[int, ...]:
        """The positions of the measures that statistics need and that get noise."""
        return tuple(position for position in self._used if self.bounded.measures[position].public is None)

    @property
    def public(self) -> dict[int, int]:
        """The measures that statistics need and whose values are public, by their positions."""
        found = {position: self.bounded.measures[position].public for position in self._used}
        return {position: value for position, value in found.items() if value is not None}

    @property
    def is_free(self) -> bool:
        """Whether nothing of it depends on data."""
        return not self.measured and not self.bounded.spreads and self.selector is None

    @property
    def _used(self) -> tuple[int, ...]:
        used = {p for e in self.estimates for p in (e.count, e.steps, e.squares) if p is not None}
        return tuple(sorted(used))

    def shares_of(self, spread: int) -> tuple[Fraction, ...]:
        """The quantiles that are chosen from a spread, ascending, each once; none for a mode."""
        wanted = {e.share for e in self.estimates if e.spread == spread and e.share is not None}
        return tuple(sorted(wanted))


def bound(question: Question, catalog: Catalog) -> BoundedQuestion:
    """The bounded form of a question with one grouping; refused where a bound or a limit is missing."""
    (only,) = bound_all(question, catalog)
    return only


def bound_all(question: Question, catalog: Catalog) -> tuple[BoundedQuestion, ...]:
    """The bounded forms of a question, one for each of its groupings."""
    check_structure(question)
    check_gaps(question, catalog.gaps)
    question = replace(question, source=cap_joins(question.source, catalog))
    source = find_relation_facts(question.source, catalog)
    if source.owner is Owner.NOBODY:
        raise UsageError("This reads public tables only, which need no protection. Nothing was charged.")
    if source.owner is Owner.LOST:
        raise UnitLost(NO_UNIT)
    _check_question(question, source)
    question = replace(question, source=set_sizes(question.source, catalog))
    everything = tuple(range(len(question.keys)))
    sets = (everything,) if question.sets is None else question.sets
    size = find_public_size(question.source, catalog)
    return tuple(_GroupingBounder(question, source, keys, size).bound_grouping() for keys in sets)


def find_public_size(source: Relation, catalog: Catalog) -> int | None:
    """The exact number of units in the rows of a relation, where it is declared and nothing can change it.

    Only for all rows of a declared table, and where units are replaced: a condition or a join may leave units out, and
    where units come and go their number is what has to be hidden.
    """
    if catalog.neighbours is not Neighbours.REPLACE or not isinstance(source, Scan):
        return None
    return catalog.tables[source.table].exact_units


def _check_question(question: Question, source: RelationFacts) -> None:
    """Refuse keys and arguments that are not well formed, and limits that limit nothing."""
    arguments = (aggregate.argument for aggregate in question.aggregates)
    for expression in (*question.keys, *arguments):
        if expression is not None:
            check_expression(expression, source.columns)
    _check_texts(question, source)
    ends = (end for aggregate in question.aggregates for end in aggregate.bounds or ())
    if not all(isinstance(end, Fraction | int) for end in ends):
        raise UsageError("The bounds of an aggregate must be exact numbers. Nothing was charged.")
    for aggregate in question.aggregates:
        _check_parameters(aggregate)
    own = question.limits or ContributionLimits()
    for limit in (own.max_rows, own.max_groups, own.max_rows_per_group, question.min_units):
        if limit is not None:
            check_whole(limit, "what a unit may contribute, or how many units a group needs")
    _check_answer(question)
    everything = range(len(question.keys))
    if question.sets == ():
        raise UsageError("This asks for no grouping at all. Nothing was charged.")
    for positions in question.sets or ():
        if len(set(positions)) < len(positions) or any(position not in everything for position in positions):
            raise UsageError("A grouping names a key that is not there, or one twice. Nothing was charged.")


def _check_texts(question: Question, source: RelationFacts) -> None:
    """Refuse texts that may become too long, before anything is evaluated for public keys."""
    arguments = [a.argument for a in question.aggregates if a.argument is not None]
    held = tuple(dict.fromkeys((*source.columns, *question.keys)))
    check_row(held, arguments, source.columns, source.stored_text)


def _check_parameters(aggregate: Aggregate) -> None:
    """Refuse what a statistic has no use for, and would leave aside."""
    definition = STATISTICS[aggregate.statistic]
    if (aggregate.share is not None) is not definition.has_share:
        raise UsageError("A quantile needs a share, and nothing else has one. Nothing was charged.")
    if aggregate.bounds is not None and definition.group_bounds is not GroupBounds.UNIT:
        raise UsageError("Only sums and counts have bounds of their own. Nothing was charged.")
    if aggregate.distinct and (not definition.has_moments or aggregate.bounds is not None):
        raise UsageError(f"{aggregate} is not available. Nothing was charged.")


def _check_answer(question: Question) -> None:
    """Refuse what cannot be shown of released numbers: it would only fail when all is paid for."""
    kinds, marks = [part.type for part in (*question.keys, *question.aggregates)], len(question.keys)
    for expression in (*(output.expression for output in question.outputs), *(o.expression for o in question.order)):
        check_released(expression, kinds, marks=marks)
    if question.having is not None:
        check_released(question.having, kinds, Type.BOOLEAN, marks)
    for number in (question.limit, question.offset):
        if number is not None:
            check_whole(number, "how many rows are shown, or left out", least=0)


def _check_size(bounded: BoundedPlan) -> None:
    """Refuse more numbers than an answer may have. Public groups decide how many these are, so no data does."""
    groups, numbers = len(bounded.domain or ()), len(bounded.measures)
    chosen = bool(bounded.spreads) or any(measure.matched for measure in bounded.measures)
    if chosen and groups > MAX_KEYS:
        raise UsageError(
            f"These keys have {groups:,} combinations; quantiles, modes and distinct values can be had for at most "
            f"{MAX_KEYS:,}. Nothing was charged."
        )
    if groups * numbers > MAX_NUMBERS:
        raise UsageError(
            f"These keys have {groups:,} combinations, with {numbers} numbers in each; an answer has at most "
            f"{MAX_NUMBERS:,} numbers. Ask for fewer aggregates at once. Nothing was charged."
        )


@dataclass(frozen=True, slots=True)
class _GroupingBounder:
    """One grouping of a question."""

    question: Question
    source: RelationFacts
    positions: tuple[int, ...]
    size: int | None = None

    def bound_grouping(self) -> BoundedQuestion:
        domain = self._find_domain()
        if domain is not None and not self.question.aggregates:
            raise UsageError("This asks for public keys only; add an aggregate such as COUNT(*). Nothing was charged.")
        limits, unit = self._choose_limits(), self.source.unit
        most_steps = None if unit is None else limit_steps(most_rows(limits))
        grouped = unit is not None and limits.max_rows is None
        max_groups = self._cap_groups(domain, limits) if grouped else None
        values = self._limit_values(limits, max_groups, domain)
        size = None if self._keys else self.size  # how many are in each group is not known
        found = MeasureCollector(self.question.aggregates, self.source, most_steps, values, size)
        estimates = tuple(found.make_recipe(aggregate) for aggregate in self.question.aggregates)
        selector = None if domain is not None else found.add_measure(found.measure_named())
        several = domain is None and self.question.min_units is None and (max_groups or limits.max_rows or 1) > 1
        weights = found.add_measure(Measure(counts=Counts.WEIGHT, last=WHOLE_WEIGHT)) if several and unit else None
        bounded = BoundedPlan(
            source=self.question.source,
            keys=self._keys,
            domain=domain,
            unit=unit,
            measures=tuple(found.measures),
            spreads=tuple(found.spreads),
            max_groups=max_groups,
            max_rows_per_group=limits.max_rows_per_group if grouped else None,
            max_rows=limits.max_rows if unit is not None else None,
            spread_rows=self.source.spread_rows or 1,
        )
        _check_size(bounded)
        found_form = BoundedQuestion(self.question, bounded, estimates, selector, self.positions, weights)
        measured = found_form.measured
        joint = bool(find_families(bounded.measures, measured) or list_cell_forms(bounded.measures, measured))
        bounded = replace(bounded, weight_bits=choose_weight_bits(bounded), whole_totals=not joint)
        return replace(found_form, bounded=bounded)

    @property
    def _keys(self) -> tuple[Expression, ...]:
        return tuple(self.question.keys[i] for i in self.positions)

    # Limits

    def _choose_limits(self) -> ContributionLimits:
        """The question's own limits where it has some, with the codebook's for what they leave open."""
        own, declared = self.question.limits, self.source.limits
        if own is None:
            return declared
        if own.max_rows is not None:
            return ContributionLimits(max_rows=own.max_rows)
        groups = own.max_groups or declared.max_groups or declared.max_rows
        rows = own.max_rows_per_group or declared.max_rows_per_group or declared.max_rows
        return ContributionLimits(max_groups=groups, max_rows_per_group=rows)

    def _cap_groups(self, domain: Sequence[object] | None, limits: ContributionLimits) -> int | None:
        """The cap on groups per unit, or None where there cannot be more groups than that anyway.

        Keys that are declared constant per unit need one group only; the cap of 1 is still enforced, not believed.
        """
        if not self._keys:
            return None
        cap = limits.max_groups
        if all(facts_of(key, self.source).constant for key in self._keys):
            cap = 1
        if cap is None:
            raise Unbounded(
                "The codebook does not say in how many groups one unit may count. Add max_groups, or max_rows. "
                "Nothing was charged."
            )
        return None if domain is not None and len(domain) <= cap else cap

    def _limit_values(
        self, limits: ContributionLimits, max_groups: int | None, domain: Sequence[object] | None
    ) -> ValueLimits:
        """How many distinct values one unit brings where its column does not say."""
        caps = (limits.max_rows, max_groups, None if domain is None else len(domain))
        groups = min((cap for cap in caps if cap is not None), default=1)
        rows = limits.max_rows or groups * (limits.max_rows_per_group or 1)
        return ValueLimits(rows, groups, own=self.question.limits is not None)

    # Keys

    def _find_domain(self) -> tuple[tuple[Value, ...], ...] | None:
        """All public groups: the combinations of the keys' values, where every key has public ones."""
        if not self._keys:
            return ((),)
        for key in self._keys:
            self._check_key(key, facts_of(key, self.source))
        domains = [facts_of(key, self.source).keys for key in self._keys]
        size = 1
        for values in domains:
            if values is None:
                self._check_private()
                return None
            size *= len(values)
        if size > MAX_GROUPS:
            raise UsageError(
                f"These keys have {size:,} combinations; at most {MAX_GROUPS:,} can be shown. Nothing was charged."
            )
        if self.question.min_units is not None:
            raise UsageError(
                "These groups are public and always shown, so a least number of units cannot hide any. "
                "Use HAVING on a count. Nothing was charged."
            )
        return tuple(dict.fromkeys(product(*(values or () for values in domains))))  # a group twice is paid for once

    def _check_private(self) -> None:
        """Keys from the data are chosen by units, so there must be units to choose by."""
        if self.source.owner is Owner.MIXED:
            raise UnitLost(
                "This join does not keep units together, so its groups cannot be chosen by units. Group by columns "
                "whose keys the codebook lists. Nothing was charged."
            )

    def _check_key(self, key: Expression, facts: ColumnFacts) -> None:
        if key in self.source.units:
            raise UsageError(
                f"Groups by {str(key)!r} would be single units. Group by a property of them. Nothing was charged."
            )
        if key.type is Type.REAL and facts.keys is None:
            name = next(iter(sorted(column.name for column in find_columns(key))), "x")
            raise UsageError(
                f"Groups by the real number {key} would be single rows. Use bin({name}, 10), with the width that you "
                "want. Nothing was charged."
            )
