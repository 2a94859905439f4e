"""The search for limits: how many rows, groups and rows in a group one unit has, as quantiles over all units.

The question first makes one row for each unit. So the codebook's limits leave nothing out, and one unit is
one rank of a quantile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet import parameters
from discreet.answer import Answer
from discreet.bound_search.curator_protocol import CuratorProtocol
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.parameters import Number
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import make_call, make_literal
from discreet.plan.nodes import Aggregate, Output, Question
from discreet.plan.reach import reach
from discreet.plan.relations import Feature, FeatureCall, PerUnit, Relation
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type
from discreet.preview import Preview

# A unit with more rows or groups than this counts as one with this many.
MAX_COUNT = 1 << 16
SHARE = Fraction(95, 100)


def make_contribution_question(
    table: str, catalog: Catalog, *, by: Sequence[str] = (), share: Number = SHARE
) -> Question:
    """The question how many rows a share of all units do not exceed. With ``by`` it also asks about groups.

    The outputs are ``rows``, and with ``by`` also ``groups`` and ``rows_per_group`` (in the unit's largest group).
    """
    within = parameters.read_probability(share, "share")
    declared = catalog.find_table(table)
    reached = reach(declared.name, catalog)
    if reached.unit is None:
        why = "is public" if declared.public else "has one unit a row"
        raise UsageError(f"The table {declared.name!r} {why}, so there is nothing to limit. Nothing was charged.")
    keys = tuple(declared.find_column(name) for name in by)
    source, columns = _count_per_unit(reached.relation, reached.unit, keys)
    aggregates = tuple(
        Aggregate(Statistic.QUANTILE, make_call("clamp", column, make_literal(1), make_literal(MAX_COUNT)), within)
        for column in columns.values()
    )
    question = Question(source=source, aggregates=aggregates)
    return replace(
        question, outputs=tuple(Output(name, question.refer_to_aggregate(i)) for i, name in enumerate(columns))
    )


def _count_per_unit(source: Relation, unit: Column, keys: Sequence[Expression]) -> tuple[Relation, dict[str, Column]]:
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
    """Numbers that about a ``share`` of all units do not exceed. ``groups`` and ``rows_per_group`` go with ``by``."""

    of: str
    by: tuple[str, ...]
    share: Fraction
    rows: int
    groups: int | None
    rows_per_group: int | None
    answer: Answer

    @property
    def suggestions(self) -> tuple[str, ...]:
        """Lines for the codebook. Each is one way to limit what a unit contributes."""
        found = [f"max_rows = {self.rows}"]
        if self.groups is not None and self.rows_per_group is not None:
            found.append(f"max_groups = {self.groups}\nmax_rows_per_group = {self.rows_per_group}")
        return tuple(found)

    @property
    def words(self) -> str:
        """What was found."""
        most = f"About {float(self.share):.0%} of the units in {self.of} have at most {_format_count(self.rows, 'row')}"
        if self.groups is None or self.rows_per_group is None:
            return f"{most}."
        return (
            f"{most}, are in at most {_format_count(self.groups, 'group')} by {', '.join(self.by)}, and have at most "
            f"{_format_count(self.rows_per_group, 'row')} in one of them."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain JSON values."""
        return {
            "of": self.of,
            "by": list(self.by),
            "share": float(self.share),
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
        return "\n".join([self.words, f"for the codebook: {ways}", self.answer.describe_cost()])

    __repr__ = __str__


def _format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def buy_contributions(
    curator: CuratorProtocol, table: str, *, by: Sequence[str] = (), share: Number = SHARE, **offer: Any
) -> Contributions:
    """Buy how much a unit contributes: ``offer`` is what ``Curator.ask`` takes, such as epsilon=0.1."""
    answer = curator.ask(make_contribution_question(table, curator.catalog, by=by, share=share), **offer)
    declared = curator.catalog.find_table(table)
    (row,) = answer.rows.rows
    numbers = {name: _to_whole(cell.value) for name, cell in zip(answer.rows.names, row)}
    return Contributions(
        of=declared.name,
        by=tuple(declared.find_column(name).name for name in by),
        share=parameters.read_probability(share, "share"),
        rows=numbers["rows"],
        groups=numbers.get("groups"),
        rows_per_group=numbers.get("rows_per_group"),
        answer=answer,
    )


def preview_contributions(
    curator: CuratorProtocol, table: str, *, by: Sequence[str] = (), share: Number = SHARE, **offer: Any
) -> Preview:
    """What ``buy_contributions`` would cost. It is free: no data is read and nothing is charged."""
    return curator.preview(make_contribution_question(table, curator.catalog, by=by, share=share), **offer)


def _to_whole(value: object) -> int:
    return max(1, min(MAX_COUNT, int(value))) if isinstance(value, int | float) else 1
