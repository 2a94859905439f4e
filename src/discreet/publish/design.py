"""Designs: a release plan against a codebook, with everything settled that is known before data are read or paid for.

A design says which columns with which cells, which rows of whom with which limits, and which tables. Its price is added
in ``method``. Nothing here reads data.
"""

# ruff: noqa: S608  # our own parser reads these texts, and nothing else does
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations

from discreet import parameters
from discreet.bounding.bound import bound
from discreet.bounding.contributions import LEAST_BITS, BoundedPlan, Spread
from discreet.bounding.facts import facts_of
from discreet.bounding.limits import most_rows
from discreet.bounding.stability import find_relation_facts
from discreet.engines.tabulation import Tabulation
from discreet.errors import UnitLost, UsageError
from discreet.exact import Floats, Integers
from discreet.frontends import read_sql
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, ContributionLimits
from discreet.plan.functions import make_literal
from discreet.plan.nodes import Question
from discreet.privacy import Neighbours, Unit
from discreet.publish.columns import ColumnChoice, PublishedColumn, publish_column
from discreet.publish.measurements import project
from discreet.publish.priors import read_priors
from discreet.publish.range_strategies import RangeStrategy, RangeWorkload, choose_strategy
from discreet.publish.release_plan import ReleasePlan
from discreet.publish.workload import Attributes, Workload, list_subsets

# The most cells that all tables of a release may have together: about 2 GB of work.
MOST_CELLS = 1 << 25
MOST_COLUMNS = 64
# How much more the error of a one-way table counts; on narrow data, where all tables are small, it counts as others.
_ONE_WAY_WEIGHT = 10.0
_NARROW = 4


@dataclass(frozen=True, kw_only=True)
class ReleaseDesign:
    """A plan that can be priced and run: its columns, the rows that it reads, and the tables that it wants."""

    plan: ReleasePlan
    question: Question
    bounded: BoundedPlan
    columns: tuple[PublishedColumn, ...]
    workload: Workload
    max_rows: int
    neighbours: Neighbours
    unit: Unit

    @property
    def steps(self) -> int:
        """What a row counts as that weighs fully."""
        return 1 << self.bounded.weight_bits

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def priors(self) -> dict[Attributes, Floats]:
        """The public tables that estimates lean on."""
        return read_priors(self.plan.priors, self.columns)

    def tabulate(self, workload: Workload) -> Tabulation:
        """The tables to count: the largest of a workload, and the fine histograms."""
        views = [column.view(i) for i, column in enumerate(self.columns)]
        fine = [self.columns[column].fine_view(column) for column in workload.fine]
        numbers = tuple((len(views) + i,) for i in range(len(fine)))
        return Tabulation(self.bounded, (*views, *fine), (*workload.tops, *numbers))

    def split_tables(
        self, counted: Sequence[Integers], workload: Workload
    ) -> tuple[dict[Attributes, Integers], dict[int, Integers]]:
        """The exact tables of a workload's closure, and its fine histograms without what has no value."""
        tables: dict[Attributes, Integers] = {}
        for top, table in zip(workload.tops, counted):
            for part in list_subsets(top):
                if part not in tables:
                    tables[part] = project(table, top, part)
        fine = dict(zip(workload.fine, (table[:-1] for table in counted[len(workload.tops) :]), strict=True))
        return tables, fine


def design(plan: ReleasePlan, catalog: Catalog) -> ReleaseDesign:
    """The design of a plan; refused where a fact, a bound or a limit is missing, or where memory would not do."""
    if len(plan.columns) > MOST_COLUMNS:
        raise UsageError(f"A release has at most {MOST_COLUMNS} columns. Nothing was charged.")
    where = f" WHERE {plan.where}" if plan.where else ""
    base = read_sql.read(f"SELECT COUNT(*) AS n FROM {plan.source}{where}", catalog)
    if base.keys or base.sets is not None or base.having is not None or len(base.aggregates) != 1:
        raise UsageError("The rows of a plan are those of FROM and WHERE, without groups. Nothing was charged.")
    columns = tuple(_read_column(name, choice, plan, catalog) for name, choice in plan.columns.items())
    bounded, max_rows = _bound(base, plan, catalog)
    workload = _choose_workload(plan, columns)
    read_priors(plan.priors, columns)  # refuses what is no table
    return ReleaseDesign(
        plan=plan,
        question=base,
        bounded=replace(bounded, spreads=tuple(column.spread for column in columns) or (_make_nothing(),)),
        columns=columns,
        workload=workload,
        max_rows=max_rows,
        neighbours=catalog.neighbours,
        unit=catalog.unit,
    )


def _make_nothing() -> Spread:
    """What rows are told apart by where a plan has no columns: nothing. They are all counted."""
    return Spread(argument=make_literal(1), values=(1,), last=0)


def _read_column(name: str, choice: ColumnChoice, plan: ReleasePlan, catalog: Catalog) -> PublishedColumn:
    """A column by its name, or by an expression of its own."""
    text = choice.of if choice.of is not None else '"' + name.replace('"', '""') + '"'
    question = read_sql.read(f"SELECT {text} AS c, COUNT(*) AS n FROM {plan.source} GROUP BY {text}", catalog)
    if len(question.keys) != 1:
        raise UsageError(f"The column {name!r} of the plan is not one expression. Nothing was charged.")
    facts = find_relation_facts(question.source, catalog)
    (expression,) = question.keys
    if expression in facts.units:
        raise UsageError(
            f"The column {name!r} names units, and cannot be published. Leave it out. Nothing was charged."
        )
    return publish_column(name, expression, facts_of(expression, facts), choice)


def _bound(base: Question, plan: ReleasePlan, catalog: Catalog) -> tuple[BoundedPlan, int]:
    """The rows with a limit on what one unit has in all, and this limit."""
    own = None if plan.max_rows is None else ContributionLimits(max_rows=plan.max_rows)
    found = bound(replace(base, limits=own), catalog).bounded
    if found.spread_rows > 1:
        raise UnitLost("This join does not keep units together, so it cannot be published. Nothing was charged.")
    if found.unit is None:
        return replace(found, measures=(), weight_bits=0), 1
    limits = own or find_relation_facts(base.source, catalog).limits
    rows = most_rows(limits)
    return replace(
        found, measures=(), max_groups=None, max_rows_per_group=None, max_rows=rows, weight_bits=LEAST_BITS
    ), rows


def _choose_ranges(column: PublishedColumn, plan: ReleasePlan) -> RangeStrategy:
    if column.listed:
        raise UsageError(f"Ranges need numbers or days; {column.name!r} has listed values. Nothing was charged.")
    return choose_strategy(column.fine, RangeWorkload(plan.columns[column.name].ranges or ""))


def _choose_workload(plan: ReleasePlan, columns: Sequence[PublishedColumn]) -> Workload:
    """The tables that are wanted, with their weights; refused where they are too large for memory."""
    sizes = tuple(column.size for column in columns)
    names = [column.name for column in columns]
    if plan.marginals is None:
        wanted = [p for ways in range(1, plan.ways + 1) for p in combinations(range(len(sizes)), ways)]
    else:
        stated = [tuple(sorted(names.index(column) for column in marginal)) for marginal in plan.marginals]
        wanted = sorted({*stated, *((i,) for i in range(len(sizes)))}, key=lambda part: (len(part), part))
    narrow = max(sizes, default=0) <= _NARROW
    weights = {p: _ONE_WAY_WEIGHT if len(p) == 1 and not narrow else 1.0 for p in wanted}
    if plan.marginals is not None and plan.marginal_weights is not None:
        weights |= {p: float(parameters.read_positive(w, "weight")) for p, w in zip(stated, plan.marginal_weights)}
    fine = {i: column.fine_size for i, column in enumerate(columns) if column.fine_size and plan.synthetic}
    strategies = {
        i: _choose_ranges(column, plan) for i, column in enumerate(columns) if plan.columns[column.name].ranges
    }
    fine |= {i: columns[i].fine for i in strategies}
    workload = Workload(sizes, weights, dict(sorted(fine.items())), strategies)
    cells = sum(map(workload.cells, workload.closure))
    if cells > MOST_CELLS:
        widest = sorted(zip(sizes, names), reverse=True)[:3]
        listed = ", ".join(f"{name} ({size} cells)" for size, name in widest)
        raise UsageError(
            f"These tables have {cells:,} cells together; at most {MOST_CELLS:,} fit. Give fewer bins to {listed}, "
            "or name marginals. Nothing was charged."
        )
    return workload
