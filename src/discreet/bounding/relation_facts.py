"""What is known of a relation, as a value: to whom its rows belong, and what its columns hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum

from discreet.bounding.fan_out import FanOut
from discreet.errors import UnitLost
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import ColumnFacts, ContributionLimits
from discreet.plan.expressions import Column, Expression

NO_UNIT = (
    "These rows no longer say whose they are. Keep the column that names the unit in the subquery. Nothing was charged."
)


class Owner(StrEnum):
    """To whom the rows of a relation belong."""

    NOBODY = "nobody"  # public
    ROW = "row"  # each row is its own unit
    UNIT = "unit"  # each row names its unit
    MIXED = "mixed"  # rows of several units were joined, after truncation
    LOST = "lost"  # private rows that do not name their unit


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationFacts:
    """What is known of a relation.

    ``units`` are expressions that give the unit of each row. All are equal, and the first is used for bounding.
    ``limits`` say how many rows of a unit a question may use. ``stored_text`` is how many code points of text the rows
    of the tables below may hold together (``lengths``). ``rows`` says how many rows a unit may have (``fan_out``), and
    ``single`` names the relations below of which it has no row twice. ``spread_rows`` is set where rows of units are
    mixed: one unit adds or takes away at most so many rows.
    """

    columns: Mapping[Column, ColumnFacts]
    owner: Owner
    units: tuple[Expression, ...] = ()
    limits: ContributionLimits = field(default_factory=ContributionLimits)
    stored_text: int = 0
    rows: FanOut = field(default_factory=FanOut)
    single: frozenset[str] = frozenset()
    spread_rows: int | None = None

    @property
    def private(self) -> bool:
        return self.owner is not Owner.NOBODY

    @property
    def unit(self) -> Expression | None:
        return self.units[0] if self.units else None

    def find_facts(self, column: Column) -> ColumnFacts:
        """The facts of a column."""
        return self.columns[column]


def check_owners(*sides: RelationFacts) -> None:
    """Refuse rows that do not say whose they are, and rows of several units."""
    for side in sides:
        if side.owner is Owner.LOST:
            raise UnitLost(NO_UNIT)
        if side.owner is Owner.MIXED:
            raise UnitLost(
                "A join that does not keep units together can be aggregated, and nothing else: no further join, "
                "grouping or window. Join on the unit first. Nothing was charged."
            )


def make_nullable(facts: ColumnFacts) -> ColumnFacts:
    """The facts of a column that may also be missing."""
    keys = facts.keys
    if keys is not None and None not in keys:
        keys = (*keys, None)
    return replace(facts, nullable=True, keys=keys, unique=False)
