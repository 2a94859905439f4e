"""Public keys by outer join: visits RIGHT JOIN days ON visits.day = days.day, grouped by days.day.

The groups are the values of the public side, also those that no private row has.

Unit, neighbours: as in an inner join of the same tables. Sensitivity: the same. Reason: a public row that matches
nobody belongs to nobody, so it is dropped like every row whose unit is NULL; what is left are the rows of the inner
join. That such a group is shown says nothing, because the list of groups is the public side's own: it is fixed before
any private row is read, and every group on it is measured with noise. So COUNT(*) of a group without rows is noise
around 0, where plain SQL counts the unmatched row. Where the public side is not grouped by, unmatched rows would make
a difference that cannot be seen, so such a join is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from discreet.bounding.stability import find_relation_facts
from discreet.frontends.resolve.scope import Scope
from discreet.frontends.terms.positions import Place, refusal
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Column, Expression, find_columns
from discreet.plan.relations import JoinKind, Values

MAX_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The public side of a join that keeps it: its place, its columns, and whether it stands inside a subquery."""

    place: Place | None
    columns: frozenset[Expression]
    inside: bool


def check_grouped(kept: Sequence[KeptRows], keys: Sequence[Expression]) -> None:
    """Refuse a question that keeps public rows which match nobody, and does not group by them."""
    read = {column for key in keys for column in find_columns(key)}
    for rows in kept:
        if rows.inside or not read & rows.columns:
            rule = "This join keeps rows of a public table that match nobody, and they would belong to nobody."
            fix = "Use JOIN, or GROUP BY a column of the public table: then its values are the groups."
            raise refusal(rows.place, rule, fix)


def keeps_public(kind: JoinKind, left: Scope, right: Scope) -> bool:
    """Whether a join keeps all rows of its public side, and of the private side those that match."""
    if left.facts.private and not right.facts.private:
        return kind is JoinKind.RIGHT
    return right.facts.private and not left.facts.private and kind is JoinKind.LEFT


def list_rows(scope: Scope, catalog: Catalog) -> Scope:
    """The public side with its rows written into the plan, so that its values are known as keys.

    Where they cannot be read here, or are too many, the side stays as it is: then the keys that the codebook lists are
    public, and others come from the data.
    """
    columns = [column.expression for column in scope.columns]
    names = {column.table for column in columns if isinstance(column, Column)}
    if isinstance(scope.relation, Values) or catalog.read_public is None or len(names) != 1:
        return scope
    values = catalog.read_public(scope.relation)
    if values is None or len(values.rows) > MAX_KEYS or {values.name} != names:
        return scope
    return replace(scope, relation=values, facts=find_relation_facts(values, catalog))
