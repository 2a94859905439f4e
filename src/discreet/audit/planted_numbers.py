"""Planted bugs in the numbers: in bounding, in the engines, in mechanisms and in the rules for keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import charged_answers, price
from discreet.audit.planting import PlantedBug, Planter, get, swap, swap_all
from discreet.bounding import contributions, joint_measures
from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Reach
from discreet.engines import steps
from discreet.engines.duckdb import engine as duckdb_engine
from discreet.engines.duckdb import unit_ranges
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.engine import Groups
from discreet.engines.memory import engine as memory_engine
from discreet.engines.sql import distinct_values, lots, relations, unit_sums
from discreet.engines.sql.statement import BoundedStatement
from discreet.mechanisms import gaussian, laplace, rounded_gaussian, threshold, weighted_selection
from discreet.mechanisms.quantiles.cells import CellMechanism, CellQuantiles
from discreet.mechanisms.quantiles.ends import CellEnds
from discreet.mechanisms.threshold import KeyMechanism, KeySelection, NoisyThreshold
from discreet.mechanisms.weighted_selection import WeightedSelection
from discreet.plan.expressions import Literal
from discreet.plan.relations import Capped
from discreet.plan.types import Type
from discreet.privacy import Neighbours
from discreet.release import NoisyGroups, Release

CAPS = {"max_groups": "groups", "max_rows_per_group": "rows in a group", "max_rows": "rows in all"}


def _swap_claim(change: Callable[[Any, BoundedPlan, Measure, Neighbours], Any]) -> Planter:
    """A bug in how far one unit is claimed to move a measure, where prices are made."""
    return swap(joint_measures, "sensitivity", lambda right: lambda *given: change(right, *given))


def _swap_reach(change: Callable[[Any, Neighbours], Any]) -> Planter:
    return swap(price, "reach", lambda right: lambda bounded, relation: change(right(bounded, relation), relation))


def _shorten(far: Reach, bounded: BoundedPlan) -> Reach:
    return replace(far, rows=max(1, far.rows - (1 << bounded.weight_bits)))


def _grow(bounded: BoundedPlan, cap: str) -> BoundedPlan:
    """The plan with one more of what a cap allows."""
    limit = getattr(bounded, cap)
    return bounded if limit is None else replace(bounded, **{cap: limit + 1})


def _run_grown(cap: str) -> Planter:
    def change(right: Any) -> Any:
        return lambda self, bounded, **more: right(self, _grow(bounded, cap), **more)

    return swap(DuckDBEngine, "run", change)


def _with_grown(statement: BoundedStatement, caps: tuple[str, ...], work: Callable[[], Any]) -> Any:
    """Do work while a statement takes its caps for larger than they are."""
    plain = statement.bounded
    for cap in caps:
        statement.bounded = _grow(statement.bounded, cap)
    try:
        return work()
    finally:
        statement.bounded = plain


def _with_more(caps: tuple[str, ...]) -> Callable[[Any], Any]:
    """One more of what caps allow, in one step of a statement and only there."""

    def change(right: Any) -> Any:
        return lambda statement, *more: _with_grown(statement, caps, lambda: right(statement, *more))

    return change


def _add_grown_spreads(*caps: str) -> Planter:
    def change(right: Any) -> Any:
        return lambda runner, statement, *more: _with_grown(statement, caps, lambda: right(runner, statement, *more))

    return swap(duckdb_engine, "add_spreads", change)


def _write_whole(statement: BoundedStatement) -> str:
    """The weight of what counts in full."""
    return str(1 << statement.bounded.weight_bits)


def _round_up(_: Any) -> Any:
    """Weights that are rounded up: nothing else is changed."""

    def write(statement: BoundedStatement, most: int, count: str) -> str:
        whole = 1 << statement.bounded.weight_bits
        shared = statement.dialect.trunc_divide(f"{most * whole} + {count} - 1", count)
        return f"least({whole}, {shared})"

    return write


def _cap_everybody(right: Any) -> Any:
    """Of the rows of all units together some remain, not of each."""

    def write(clauses: Any, relation: Capped, *more: Any, **named: Any) -> Any:
        return right(clauses, replace(relation, by=(Literal(1, Type.INTEGER),)), *more, **named)

    return write


def _widen(measure: Measure) -> Measure:
    if measure.counts in (Counts.ROWS, Counts.VALUES, Counts.UNITS, Counts.DISTINCT, Counts.NAMED, Counts.WEIGHT):
        return measure
    return replace(measure, first=2 * min(measure.first, 0) - 9, last=2 * max(measure.last, 0) + 9)


def _run_wide(right: Any) -> Any:
    def run(self: Any, bounded: BoundedPlan, **more: Any) -> Groups:
        wide = replace(bounded, measures=tuple(map(_widen, bounded.measures)))
        found: Groups = right(self, wide, **more)
        return found

    return run


def _name_enough(right: Any) -> Any:
    """Keys with ``min_units`` units are named, and nobody asks the rule."""

    def release(self: Any, counts: Any, **more: Any) -> Any:
        if self.min_units == 1:
            return right(self, counts, **more)
        named = sorted(key for key, units in counts.items() if units >= self.min_units)
        return named if isinstance(self, KeySelection) else {key: counts[key] for key in named}

    return release


def _by_size(right: Any) -> Any:
    """Keys with most units first."""

    def read(counts: Any) -> Any:
        keys, units = right(counts)
        order = np.argsort(-units, kind="stable")
        return [keys[i] for i in order.tolist()], units[order]

    return read


def _draw_by_size(right: Any) -> Any:
    """Public groups with the largest true numbers first."""

    def draw(release: Release, groups: Groups, **more: Any) -> NoisyGroups:
        found: NoisyGroups = right(release, groups, **more)
        if release.selection is not None or not groups.values:
            return found
        true = dict(zip(groups.keys, groups.values[0]))
        order = sorted(range(len(found.keys)), key=lambda i: -true.get(found.keys[i], 0))
        return NoisyGroups(
            tuple(found.keys[i] for i in order),
            {p: values[order] for p, values in found.measures.items()},
            {p: tuple(chosen[i] for i in order) for p, chosen in found.chosen.items()},
            {p: tuple(ends[i] for i in order) for p, ends in found.ends.items()},
        )

    return draw


def _draw_enough(right: Any) -> Any:
    """Private keys with ``min_units`` units are named by the curator itself."""

    def draw(release: Release, groups: Groups, **more: Any) -> NoisyGroups:
        least, selector = release.bounded.question.min_units, release.bounded.selector
        if least is None or selector is None:
            found: NoisyGroups = right(release, groups, **more)
            return found
        named = [key for key, units in zip(groups.keys, groups.values[selector]) if units >= least]
        plain = replace(release.bounded.bounded, domain=tuple(named))
        bounded = replace(release.bounded, bounded=plain)
        kept: NoisyGroups = right(replace(release, bounded=bounded, selection=None), groups, **more)
        return kept

    return draw


def _shrink_scale(owner: Any, name: str, share: Fraction) -> Planter:
    """A sampler that gets a part of its scale only."""
    return swap(owner, name, lambda right: lambda scale, *more, **named: right(share * scale, *more, **named))


BOUNDING = (
    PlantedBug(
        name="positive lower bounds",
        changes="a unit that adds nothing is thought to add the lower bound",
        section="engines",
        plant=swap(
            Measure,
            "row_low",
            lambda _: property(lambda self: self.first if self.counts is Counts.STEPS else 0),
        ),
    ),
    PlantedBug(
        name="positive bounds of a unit's sum",
        changes="a unit without rows in a group is thought to add the lower bound of its sum there",
        section="engines",
        plant=swap(contributions, "_include_zero", lambda _: lambda ends: ends),
    ),
    PlantedBug(
        name="replace priced as add-remove",
        changes="noise for one unit where two change",
        section="questions",
        plant=_swap_claim(lambda right, bounded, measure, _: right(bounded, measure, Neighbours.ADD_REMOVE)),
    ),
    PlantedBug(
        name="one group claimed",
        changes="noise for one group of a unit that is in several",
        section="questions",
        plant=_swap_claim(lambda right, b, m, n: right(replace(b, max_groups=1) if b.max_groups else b, m, n)),
    ),
    PlantedBug(
        name="half of the squares",
        changes="the squared distance is claimed to be half of what it is",
        section="questions",
        plant=_swap_claim(lambda right, *g: replace(right(*g), l2_squared=right(*g).l2_squared // 2)),
    ),
    PlantedBug(
        name="a reach of one row less",
        changes="choices are calibrated for fewer rows than a unit may have",
        section="questions",
        plant=swap(price, "reach", lambda right: lambda bounded, relation: _shorten(right(bounded, relation), bounded)),
    ),
    PlantedBug(
        name="in place everywhere",
        changes="rows of a replaced unit are thought to stay in their group, where there are several",
        section="questions",
        plant=_swap_reach(lambda far, relation: replace(far, in_place=relation is Neighbours.REPLACE)),
    ),
)

ENGINES = (
    *(
        PlantedBug(
            name=f"one more in the engine: {what}",
            changes="a cap is off by one",
            section="engines",
            plant=_run_grown(cap),
        )
        for cap, what in CAPS.items()
    ),
    *(
        PlantedBug(
            name=f"one more in ranges of units: {what}",
            changes="a cap is off by one on prepared tables, and right in the one statement beside it",
            section="engines",
            plant=swap(unit_ranges, "write_by_units", _with_more((cap,))),
        )
        for cap, what in CAPS.items()
    ),
    PlantedBug(
        name="one row more where counts are joined",
        changes="a cap on rows is off by one in one of two forms of the statement",
        section="engines",
        plant=swap(unit_sums, "write_unit_counts", _with_more(("max_rows",))),
    ),
    PlantedBug(
        name="weights rounded up",
        changes="the weights of a unit's rows sum to a little more than its cap",
        section="engines",
        plant=swap(unit_sums, "_write_share", _round_up),
    ),
    PlantedBug(
        name="weights one too large",
        changes="each weight is 2^-b more than its share",
        section="engines",
        plant=swap(unit_sums, "_write_share", lambda right: lambda *given: f"1 + {right(*given)}"),
    ),
    PlantedBug(
        name="rows of many groups in full",
        changes="rows of a unit that is in too many groups weigh as if it were in few",
        section="engines",
        plant=swap(unit_sums, "limits_groups", lambda _: lambda _bounded: False),
    ),
    PlantedBug(
        name="units of many groups in full",
        changes="a unit that is in too many groups counts as one in each",
        section="engines",
        plant=swap(unit_sums, "_write_unit_weight", lambda _: _write_whole),
    ),
    PlantedBug(
        name="rows in a group in full",
        changes="the rows of a unit in one group all weigh one",
        section="engines",
        plant=swap(unit_sums, "_write_group_weight", lambda _: lambda statement, _rows: _write_whole(statement)),
    ),
    PlantedBug(
        name="totals rounded where it is not free",
        changes="a unit moves many groups by a little, and rounding makes a whole step of each little",
        section="engines",
        plant=swap_all(
            *(
                swap(owner, "unit_bits", lambda _: lambda _bounded, _measure: 0)
                for owner in (contributions, steps, memory_engine)
            )
        ),
    ),
    PlantedBug(
        name="one group more by lot",
        changes="a unit names keys in one group more than it may",
        section="engines",
        plant=swap(lots, "_write_placed", _with_more(("max_groups",))),
    ),
    PlantedBug(
        name="one distinct value more",
        changes="a unit brings one distinct value more than it may",
        section="engines",
        plant=swap(distinct_values, "Matching", lambda right: lambda most, groups: right(most + 1, groups)),
    ),
    PlantedBug(
        name="one row more in spreads",
        changes="quantiles and modes choose from one row more of a unit than is allowed",
        section="engines",
        plant=_add_grown_spreads("max_rows_per_group", "max_rows"),
    ),
    PlantedBug(
        name="one group more in spreads",
        changes="rows of one group more weigh in full where quantiles and modes choose",
        section="engines",
        plant=_add_grown_spreads("max_groups"),
    ),
    PlantedBug(
        name="one row more under joins",
        changes="of a unit's rows one more than allowed is joined with its others",
        section="engines",
        plant=swap(
            relations,
            "write_capped",
            lambda right: (
                lambda clauses, relation, *more: right(clauses, replace(relation, rows=relation.rows + 1), *more)
            ),
        ),
    ),
    PlantedBug(
        name="caps under joins over everybody",
        changes="rows of one unit push out those of others before a join",
        section="engines",
        plant=swap(relations, "write_capped", _cap_everybody),
    ),
    PlantedBug(
        name="bounds forgotten",
        changes="values are clamped to wider bounds than the noise is for",
        section="engines",
        plant=swap(DuckDBEngine, "run", _run_wide),
    ),
)

MECHANISMS = (
    PlantedBug(
        name="Laplace noise a tenth short",
        changes="the scale that is drawn is smaller than the stated one",
        section="mechanisms",
        plant=_shrink_scale(laplace, "discrete_laplace", Fraction(9, 10)),
    ),
    PlantedBug(
        name="Gaussian noise a tenth short",
        changes="the variance that is drawn is smaller than the stated one",
        section="mechanisms",
        plant=_shrink_scale(gaussian, "discrete_gaussian", Fraction(8, 10)),
    ),
    PlantedBug(
        name="rounded Gaussian noise a tenth short",
        changes="the variance that is drawn is smaller than the stated one",
        section="mechanisms",
        plant=_shrink_scale(rounded_gaussian, "rounded_gaussian", Fraction(8, 10)),
    ),
    PlantedBug(
        name="the mode of one unit under replace",
        changes="rows of the unit that goes are not counted",
        section="mechanisms",
        plant=swap(CellMechanism, "_changes", lambda _: property(lambda self: self.max_rows)),
    ),
    PlantedBug(
        name="every quantile in place",
        changes="the factor for rows that stay in their group is used for all",
        section="mechanisms",
        plant=swap(
            CellQuantiles,
            "_factor",
            lambda right: lambda self, q: right(replace(self, in_place=True), q),
        ),
    ),
    PlantedBug(
        name="rank errors not halved",
        changes="quantiles are chosen at twice the loss",
        section="mechanisms",
        plant=swap(CellQuantiles, "_factor", lambda right: lambda self, q: 2 * right(self, q)),
    ),
    PlantedBug(
        name="ends not halved",
        changes="the ends of quantiles are chosen at twice the loss",
        section="mechanisms",
        plant=swap(CellEnds, "factor", lambda right: lambda self, q: 2 * right(self, q)),
    ),
)

KEYS = (
    PlantedBug(
        name="thresholds of one unit under replace",
        changes="rules for keys count the keys of one unit where two change",
        section="mechanisms",
        plant=swap(KeyMechanism, "_moves", lambda _: property(lambda self: self.max_groups)),
    ),
    PlantedBug(
        name="weighted noise of one unit under replace",
        changes="the noise on weights is for one unit where two change",
        section="mechanisms",
        plant=swap(WeightedSelection, "_units", lambda _: property(lambda _self: 1)),
    ),
    PlantedBug(
        name="a weighted threshold that is too low",
        changes="a key of one unit is named more often than δ",
        section="mechanisms",
        plant=swap(
            WeightedSelection,
            "bar",
            lambda right: property(lambda self: get(right, self) - self.weight(1) // 2),
        ),
    ),
    PlantedBug(
        name="min_units instead of the rule",
        changes="keys with enough units are named, without noise",
        section="mechanisms",
        plant=swap_all(swap(KeySelection, "release", _name_enough), swap(NoisyThreshold, "release", _name_enough)),
    ),
    PlantedBug(
        name="min_units before the rule",
        changes="the rule for keys is not asked where min_units is given",
        section="questions",
        plant=swap(charged_answers, "draw", _draw_enough),
    ),
    PlantedBug(
        name="named keys by size",
        changes="the order of keys shows who has most units",
        section="mechanisms",
        plant=swap_all(swap(threshold, "read_counts", _by_size), swap(weighted_selection, "read_counts", _by_size)),
    ),
    PlantedBug(
        name="public groups by size",
        changes="the order of groups shows which is largest",
        section="questions",
        plant=swap(charged_answers, "draw", _draw_by_size),
    ),
)
