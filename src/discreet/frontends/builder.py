"""A question as a data-frame chain, to the same plan as SQL.

    visits.where(col("age") > 30).group_by("ward", col("age").bin(10)).agg(n=count(), cost=mean("cost"))

Every step returns a new builder and nothing is read or charged. ``question`` is the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from discreet.frontends.chain_terms import (
    Case,
    Descending,
    Expression,
    Operand,
    col,
    column_or_expression,
    count,
    count_units,
    lit,
    mean,
    stddev,
    sum_,
    variance,
    when,
)
from discreet.frontends.positions import refusal
from discreet.frontends.resolve import resolve
from discreet.frontends.terms import Draft, Item, Name, Sort, Term, measures_in
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question

__all__ = [
    "Case",
    "Expression",
    "TableBuilder",
    "col",
    "count",
    "count_units",
    "lit",
    "mean",
    "stddev",
    "sum_",
    "variance",
    "when",
]


@dataclass(frozen=True)
class TableBuilder:
    """The rows of a declared table, and what is asked of them so far.

    Subclasses may add fields and verbs (such as ``ask``); every step keeps them.
    """

    catalog: Catalog
    table: str
    conditions: tuple[Term, ...] = ()
    keys: tuple[Item, ...] = ()
    outputs: tuple[Item, ...] = ()
    conditions_on_groups: tuple[Term, ...] = ()
    order: tuple[Sort, ...] = ()
    rows: int | None = None
    skipped: int = 0

    def where(self, *conditions: Expression) -> Self:
        """Only the rows for which all conditions are true."""
        self._before_aggregates("where")
        return replace(self, conditions=(*self.conditions, *(_condition(c, "where") for c in conditions)))

    def group_by(self, *keys: Operand, **named: Operand) -> Self:
        """One group for each value of the keys: columns by name, expressions, or name=expression."""
        self._before_aggregates("group_by")
        unnamed = [column_or_expression(key) for key in keys]
        items = [Item(key.term, key.name) for key in unnamed]
        items += [Item(column_or_expression(key).term, name) for name, key in named.items()]
        for item in items:
            if measures_in(item.term):
                raise refusal(None, "A key cannot contain an aggregate.", "Group by columns or expressions of them.")
        return replace(self, keys=(*self.keys, *items))

    def agg(self, *unnamed: Expression, **named: Expression) -> Self:
        """What to measure in each group: ``agg(n=count(), share=sum_("cost") / count())``."""
        items = [Item(_expression(value, "agg").term, value.name) for value in unnamed]
        items += [Item(_expression(value, name).term, name) for name, value in named.items()]
        return replace(self, outputs=(*self.outputs, *items))

    def having(self, *conditions: Expression) -> Self:
        """Only the groups for which all conditions on released numbers are true; costs nothing."""
        found = tuple(_condition(c, "having") for c in conditions)
        return replace(self, conditions_on_groups=(*self.conditions_on_groups, *found))

    def order_by(self, *criteria: Operand | Descending) -> Self:
        """The order of the answer: names of outputs, expressions, or either with ``.desc()``."""
        sorts = []
        for criterion in criteria:
            down = isinstance(criterion, Descending)
            value = criterion.expression if isinstance(criterion, Descending) else criterion
            sorts.append(Sort(column_or_expression(value).term, down))
        return replace(self, order=(*self.order, *sorts))

    def limit(self, rows: int, *, offset: int = 0) -> Self:
        """At most so many rows of the answer, after leaving out the first ``offset``."""
        for name, value, least in (("rows", rows, 1), ("offset", offset, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise refusal(None, f"limit: {name} must be a whole number from {least} on.", "Write limit(10).")
        return replace(self, rows=rows, skipped=offset)

    @property
    def question(self) -> Question:
        """The plan, as SQL would give it."""
        draft = Draft(
            table=Name(self.table),
            where=self.conditions,
            group=tuple(item.term for item in self.keys),
            select=(*self.keys, *self.outputs),
            having=self.conditions_on_groups,
            order=self.order,
            limit=self.rows,
            offset=self.skipped,
        )
        return resolve(draft, self.catalog)

    def _before_aggregates(self, step: str) -> None:
        if self.outputs:
            fix = "Put where and group_by first; having filters released numbers."
            raise refusal(None, f"{step} comes before agg.", fix)


def _expression(value: object, what: str) -> Expression:
    if isinstance(value, Expression):
        return value
    rule = f"{what}: a {type(value).__name__} is not an expression."
    raise refusal(None, rule, "Write for example n=count() or age=mean('age').")


def _condition(value: object, step: str) -> Term:
    if isinstance(value, Expression):
        return value.term
    rule = f"{step} takes conditions; a {type(value).__name__} is none."
    raise refusal(None, rule, f"Write for example {step}(col('age') > 30).")
