"""The search for limits: how many rows, groups and rows in a group one unit should count with.

The question first makes one row for each unit, so the codebook's limits leave nothing out. Then it counts units by how
much each has, in cells (``limit_rule``), and the limit with the least loss and noise together is read off the counts.
With a ``share``, quantiles over all units are asked instead: what this share of them does not exceed.

Privacy: unit and neighbours are the codebook's. A unit is one row of ``PerUnit``, whatever it has, so in each grouping
it is in one cell and moves one count by 1 (replaced: two counts by 1 each). The groupings are composed, and together
they cost the offer. All else is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

from discreet import parameters
from discreet.answer import Answer
from discreet.bound_search.column_bounds import pick_priced
from discreet.bound_search.curator_protocol import CuratorProtocol
from discreet.bound_search.limit_rule import CELLS, MAX_COUNT, CellNoise, NoisyLimit, read_limit, threshold_of
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.parameters import Number
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import make_call, make_literal
from discreet.plan.nodes import Aggregate, Output, Question
from discreet.plan.reach import reach
from discreet.plan.relations import Feature, FeatureCall, PerUnit, Projection, Relation
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type
from discreet.preview import Preview


def make_contribution_question(
    table: str, catalog: Catalog, *, by: Sequence[str] = (), share: Number | None = None
) -> Question:
    """The question how many units have how many rows. With ``by`` it also asks about groups.

    The cells, or with ``share`` the quantiles, are named ``rows``, and with ``by`` also ``groups`` and
    ``rows_per_group`` (in the unit's largest group).
    """
    within = None if share is None else parameters.read_probability(share, "share")
    declared = catalog.find_table(table)
    reached = reach(declared.name, catalog)
    if reached.unit is None:
        why = "is public" if declared.public else "has one unit a row"
        raise UsageError(f"The table {declared.name!r} {why}, so there is nothing to limit. Nothing was charged.")
    keys = tuple(declared.find_column(name) for name in by)
    source, columns = _count_per_unit(reached.relation, reached.unit, keys)
    return _ask_for_cells(source, columns) if within is None else _ask_for_quantiles(source, columns, within)


def _ask_for_cells(source: PerUnit, columns: Mapping[str, Column]) -> Question:
    """How many units are in each cell, by each of the columns."""
    unit = source.keys[0][1].type
    cells = Projection(
        source,
        "cells",
        (
            ("unit", Column(source.name, "unit", unit)),
            *((name, _find_cell(column)) for name, column in columns.items()),
        ),
    )
    question = Question(
        source=cells,
        keys=tuple(Column(cells.name, name, Type.INTEGER) for name in columns),
        aggregates=(Aggregate(Statistic.COUNT),),
        sets=tuple((i,) for i in range(len(columns))) if len(columns) > 1 else None,
    )
    keys = tuple(Output(name, question.refer_to_key(i)) for i, name in enumerate(columns))
    return replace(question, outputs=(*keys, Output("units", question.refer_to_aggregate(0))))


def _find_cell(column: Column) -> Expression:
    """The least number of the cell that a number is in. All cells are public."""
    arms = [
        part
        for start in reversed(CELLS[1:])
        for part in (make_call("at_least", column, make_literal(start)), make_literal(start))
    ]
    return make_call("case", *arms, make_literal(CELLS[0]))


def _ask_for_quantiles(source: Relation, columns: Mapping[str, Column], within: Fraction) -> Question:
    """What a share of the units does not exceed, in each of the columns."""
    aggregates = tuple(
        Aggregate(Statistic.QUANTILE, make_call("clamp", column, make_literal(1), make_literal(MAX_COUNT)), within)
        for column in columns.values()
    )
    question = Question(source=source, aggregates=aggregates)
    return replace(
        question, outputs=tuple(Output(name, question.refer_to_aggregate(i)) for i, name in enumerate(columns))
    )


def _count_per_unit(source: Relation, unit: Column, keys: Sequence[Expression]) -> tuple[PerUnit, dict[str, Column]]:
    """A relation with one row for each unit, and its columns that hold counts, by name."""
    count = FeatureCall(Feature.COUNT, None, Type.INTEGER)
    if not keys:
        per_unit = PerUnit(source, "units", (("unit", unit),), (("rows", count),))
        return per_unit, {"rows": Column("units", "rows", Type.INTEGER)}
    key_columns = tuple((f"key{i}", key) for i, key in enumerate(keys))
    groups = PerUnit(source, "groups", (("unit", unit), *key_columns), (("rows", count),))
    rows = Column("groups", "rows", Type.INTEGER)
    features = (
        ("rows", FeatureCall(Feature.SUM, rows, Type.INTEGER)),
        ("groups", count),
        ("rows_per_group", FeatureCall(Feature.MAX, rows, Type.INTEGER)),
    )
    per_unit = PerUnit(groups, "units", (("unit", Column("groups", "unit", unit.type)),), features)
    return per_unit, {name: Column("units", name, Type.INTEGER) for name, _ in features}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions:
    """Limits that were bought. ``groups`` and ``rows_per_group`` go with ``by``.

    With a ``share``, about so many of all units do not exceed them. Otherwise loss and noise together are least there;
    ``above`` is the noisy number of units above which a power of two is seen, and limits are None where none is.
    """

    of: str
    by: tuple[str, ...]
    share: Fraction | None
    rows: int | None
    groups: int | None
    rows_per_group: int | None
    answer: Answer
    above: int | None = None

    @property
    def found(self) -> bool:
        """Whether limits were found."""
        return self.rows is not None

    @property
    def suggestions(self) -> tuple[str, ...]:
        """Lines for the codebook. Each is one way to limit what a unit contributes."""
        found = [] if self.rows is None else [f"max_rows = {self.rows}"]
        if self.groups is not None and self.rows_per_group is not None:
            found.append(f"max_groups = {self.groups}\nmax_rows_per_group = {self.rows_per_group}")
        return tuple(found)

    @property
    def words(self) -> str:
        """What was found; or what to do where nothing was found."""
        if self.rows is None:
            return (
                f"No limits of {self.of} were found: no power of two is there for more than {self.above:,} units, and "
                "fewer could be noise. Offer more, or declare limits that you know."
            )
        rows = _format_count(self.rows, "row")
        if self.share is not None:
            most = f"About {float(self.share):.0%} of the units in {self.of} have at most {rows}"
            if self.groups is None or self.rows_per_group is None:
                return f"{most}."
            return (
                f"{most}, are in at most {_format_count(self.groups, 'group')} by {', '.join(self.by)}, and have at "
                f"most {_format_count(self.rows_per_group, 'row')} in one of them."
            )
        either = ""
        if self.groups is not None and self.rows_per_group is not None:
            groups, each = _format_count(self.groups, "group"), _format_count(self.rows_per_group, "row")
            either = f", or {groups} by {', '.join(self.by)} with {each} in each"
        return (
            f"One unit in {self.of} should count with {rows}{either}: there, what is lost beyond the limit and the "
            "noise of a later question are least together."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain JSON values."""
        return {
            "of": self.of,
            "by": list(self.by),
            "share": None if self.share is None else float(self.share),
            "max_rows": self.rows,
            "max_groups": self.groups,
            "max_rows_per_group": self.rows_per_group,
            "words": self.words,
            "codebook": list(self.suggestions),
            "receipt": dict(self.answer.receipt),
            "replayed": self.answer.replayed,
            "remaining": self.answer.remaining,
        }

    def __str__(self) -> str:
        ways = " or ".join(way.replace("\n", ", ") for way in self.suggestions)
        lines = [f"for the codebook: {ways}"] if self.found else []
        return "\n".join([self.words, *lines, self.answer.describe_cost()])

    __repr__ = __str__


def _format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def buy_contributions(
    curator: CuratorProtocol, table: str, *, by: Sequence[str] = (), share: Number | None = None, **offer: Any
) -> Contributions:
    """Buy limits on what a unit contributes: ``offer`` is what ``Curator.ask`` takes, such as epsilon=0.1."""
    question = make_contribution_question(table, curator.catalog, by=by, share=share)
    declared = curator.catalog.find_table(table)
    columns = tuple(declared.find_column(name) for name in by)
    public = _count_groups(columns, curator.catalog)
    within, above = None, None
    if share is None:
        noises = find_cell_noises(curator.preview(question, **pick_priced(offer)))
        answer = curator.ask(question, **offer)
        read = _read_limits(answer, noises, public or 1)  # one loses the least
        above = max(threshold_of(noise) for noise in noises)
        limits = {name: found.limit for name, found in read.items() if found is not None}
        limits = limits if len(limits) == len(read) else {}
    else:
        answer = curator.ask(question, **offer)
        within = parameters.read_probability(share, "share")
        (row,) = answer.rows.rows
        limits = {name: _to_whole(cell.value) for name, cell in zip(answer.rows.names, row)}
    if public is not None and "groups" in limits:  # nobody is in more groups than there are
        limits["groups"] = min(limits["groups"], public)
    return Contributions(
        of=declared.name,
        by=tuple(column.name for column in columns),
        share=within,
        rows=limits.get("rows"),
        groups=limits.get("groups"),
        rows_per_group=limits.get("rows_per_group"),
        answer=answer,
        above=above,
    )


def preview_contributions(
    curator: CuratorProtocol, table: str, *, by: Sequence[str] = (), share: Number | None = None, **offer: Any
) -> Preview:
    """What ``buy_contributions`` would cost. It is free: no data is read and nothing is charged."""
    return curator.preview(make_contribution_question(table, curator.catalog, by=by, share=share), **offer)


def find_cell_noises(preview: Preview) -> list[CellNoise]:
    """The noise of the cells of each grouping. The noise that was priced is the noise that is drawn."""
    found = []
    for release in preview.plan.releases:
        ((noise,), (count,)) = release.noises.values(), release.recoveries
        found.append(CellNoise(noise, release.units(count)))
    return found


def _read_limits(answer: Answer, noises: Sequence[CellNoise], groups: int) -> dict[str, NoisyLimit | None]:
    """The limit of each grouping, by the name of its cells. The keys of other groupings are NULL."""
    *names, _ = answer.rows.names
    found = {}
    for position, (name, noise) in enumerate(zip(names, noises, strict=True)):
        cells = ((row[position].value, row[-1].value) for row in answer.rows.rows)
        counts = {start: units for start, units in cells if isinstance(start, int) and isinstance(units, int)}
        found[name] = read_limit(counts, noise, later=noise.find_later_error(len(noises)), groups=groups)
    return found


def _count_groups(columns: Sequence[Column], catalog: Catalog) -> int | None:
    """How many groups these columns make, where their keys are public."""
    keys = [catalog.find_facts(column).keys for column in columns]
    return prod(len(each) for each in keys if each is not None) if None not in keys else None


def _to_whole(value: object) -> int:
    return max(1, min(MAX_COUNT, int(value))) if isinstance(value, int | float) else 1
