"""Chooses how many rows of a unit a question may use, where rows come from several relations.

The choice follows from the limits that the codebook declares for each table. Limits are enforced when rows are measured
(``contributions``), so privacy does not depend on the choice. A bad choice costs accuracy only.
"""

from __future__ import annotations

from discreet.plan.catalog import Catalog, ContributionLimits, Link
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
