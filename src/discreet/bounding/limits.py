"""Chooses how many rows of a unit a question may use, where rows come from several relations.

The choice follows from the limits that the codebook declares for each table. Limits are enforced when rows are measured
(``contributions``), so privacy does not depend on the choice. A bad choice costs accuracy only.
"""

from __future__ import annotations

from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, Link
from discreet.plan.expressions import Column, Expression
from discreet.plan.relations import Join, Relation, Scan, walk_relations


def limit_pairs(
    relation: Join, left: ContributionLimits, right: ContributionLimits, catalog: Catalog
) -> ContributionLimits:
    """How many of a unit's pairs of rows a question may use.

    A row that refers to another one by a declared foreign key is in one pair. Otherwise each row is paired with each.
    Privacy does not depend on keys being unique, because limits are enforced when rows are measured.
    """
    if any(refers(one, relation.left, two, relation.right, catalog) for one, two in relation.on):
        return left
    if any(refers(two, relation.right, one, relation.left, catalog) for one, two in relation.on):
        return right
    return _multiply_limits(left, right)


def refers(one: Expression, child: Relation, two: Expression, parent: Relation, catalog: Catalog) -> bool:
    """Whether one column is a declared foreign key to the other."""
    if not isinstance(one, Column) or not isinstance(two, Column):
        return False
    near, far = _table_of(one, child), _table_of(two, parent)
    if near is None or far is None:
        return False
    return any(link == Link(one.name, far, two.name) for link in catalog.tables[near].keys)


def is_key(expression: Expression, relation: Relation, catalog: Catalog) -> bool:
    """Whether a column is declared as unique in a private table, or as a foreign key to one: a key of few rows."""
    table = _table_of(expression, relation) if isinstance(expression, Column) else None
    if table is None or not isinstance(expression, Column) or catalog.tables[table].public:
        return False
    facts = catalog.tables[table]
    linked = (link for link in (*facts.keys, facts.link) if link is not None and not catalog.tables[link.parent].public)
    return facts.columns[expression.name][1].unique or any(link.column == expression.name for link in linked)


def _table_of(column: Column, relation: Relation) -> str | None:
    """The declared table that a column is read from."""
    scans = (node for node in walk_relations(relation) if isinstance(node, Scan) and node.name == column.table)
    return next((scan.table for scan in scans), None)


def _multiply_limits(left: ContributionLimits, right: ContributionLimits) -> ContributionLimits:
    """The limits where each row of one side is paired with each row of the other."""
    if left.max_rows is not None and right.max_rows is not None:
        return ContributionLimits(max_rows=left.max_rows * right.max_rows)
    if left.max_rows is None and right.max_rows is None:
        return ContributionLimits(
            max_groups=max(left.max_groups or 1, right.max_groups or 1),
            max_rows_per_group=(left.max_rows_per_group or 1) * (right.max_rows_per_group or 1),
        )
    grouped, total = (left, right) if left.max_rows is None else (right, left)
    rows = (grouped.max_rows_per_group or 1) * (total.max_rows or 1)
    return ContributionLimits(max_groups=grouped.max_groups, max_rows_per_group=rows)


def add_limits(left: ContributionLimits, right: ContributionLimits) -> ContributionLimits:
    """The limits of a union: a unit has the rows of one part and the rows of the other."""
    if left.max_rows is not None and right.max_rows is not None:
        return ContributionLimits(max_rows=left.max_rows + right.max_rows)
    if left.max_rows is None and right.max_rows is None:
        return ContributionLimits(
            max_groups=(left.max_groups or 1) + (right.max_groups or 1),
            max_rows_per_group=max(left.max_rows_per_group or 1, right.max_rows_per_group or 1),
        )
    return ContributionLimits(max_rows=most_rows(left) + most_rows(right))


def most_rows(limits: ContributionLimits) -> int:
    """The most rows of a unit that count in all."""
    if limits.max_rows is not None:
        return limits.max_rows
    return (limits.max_groups or 1) * (limits.max_rows_per_group or 1)


@dataclass(frozen=True, slots=True)
class ValueLimits:
    """How many distinct values one unit brings, where a question counts them.

    Without ``max_values`` it is as many as the rows that count (``rows``): a row brings one value, and nothing has to
    be bought. A column that is constant for a unit has one value in each of ``groups`` groups. ``own`` says that the
    question limits rows itself, which then limits values, too.
    """

    rows: int = 1
    groups: int = 1
    own: bool = False

    def choose(self, facts: ColumnFacts) -> int:
        """The limit for an argument. It is enforced when values are counted, so privacy does not rest on the facts."""
        if facts.max_values is not None:
            return min(facts.max_values, self.rows) if self.own else facts.max_values
        return min(self.rows, self.groups) if facts.constant else self.rows
