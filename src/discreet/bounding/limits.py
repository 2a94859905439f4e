"""Chooses how many rows of a unit a question may use, where rows come from several relations.

The choice follows from the limits that the codebook declares for each table. Limits are enforced when rows are measured
(``contributions``), so privacy does not depend on the choice. A bad choice costs accuracy only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits
from discreet.plan.expressions import Column, Expression
from discreet.plan.relations import Join, Relation, Scan, walk_relations


def limit_pairs(
    relation: Join, left: ContributionLimits, right: ContributionLimits, catalog: Catalog
) -> ContributionLimits:
    """How many of a unit's pairs of rows a question may use.

    A row that refers to another one by a declared foreign key is in one pair. Otherwise each row is paired with each.
    Privacy does not depend on keys being unique, because limits are enforced when rows are measured.
    """
    if find_reference(relation.on, relation.left, relation.right, catalog):
        return left
    if find_reference([(two, one) for one, two in relation.on], relation.right, relation.left, catalog):
        return right
    return _multiply_limits(left, right)


def find_reference(
    pairs: Sequence[tuple[Expression, Expression]], child: Relation, parent: Relation, catalog: Catalog
) -> tuple[tuple[Column, Column], ...]:
    """The pairs of a join that follow a declared foreign key from child to parent, in all of its columns; else none."""
    columns = [(one, two) for one, two in pairs if isinstance(one, Column) and isinstance(two, Column)]
    for near, far in dict.fromkeys((one.table, two.table) for one, two in columns):
        there = {(one.name, two.name): (one, two) for one, two in columns if (one.table, two.table) == (near, far)}
        table, referred = _find_table(near, child), _find_table(far, parent)
        for link in () if table is None else catalog.tables[table].keys:
            if link.parent == referred and all(pair in there for pair in link.pairs):
                return tuple(there[pair] for pair in link.pairs)
    return ()


def have_key(expressions: Iterable[Expression], relation: Relation, catalog: Catalog) -> bool:
    """Whether columns are a key of few rows: one is unique in a private table, or they are a foreign key to one."""
    shown: dict[str, set[str]] = {}
    for column in (expression for expression in expressions if isinstance(expression, Column)):
        shown.setdefault(column.table, set()).add(column.name)
    for name, columns in shown.items():
        table = _find_table(name, relation)
        if table is None or catalog.tables[table].public:
            continue
        facts = catalog.tables[table]
        links = (link for link in (*facts.keys, facts.link) if link is not None)
        linked = (link for link in links if not catalog.tables[link.parent].public)
        if any(facts.columns[column][1].unique for column in columns) or any(columns >= {*k.columns} for k in linked):
            return True
    return False


def _find_table(name: str, relation: Relation) -> str | None:
    """The declared table that is read under a name; None if the name is not that of a table."""
    scans = (node for node in walk_relations(relation) if isinstance(node, Scan) and node.name == name)
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
