"""A question as a data-frame chain, to the same plan as SQL.

    visits.where(col("age") > 30).group_by("ward", col("age").bin(10)).agg(n=count(), cost=mean("cost"))

Every step returns a new builder and nothing is read or charged. ``question`` is the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

from discreet.frontends.chain import row_sources
from discreet.frontends.chain.operands import ChainExpression, DescendingOrder, Operand, as_expression
from discreet.frontends.chain.row_sources import check_values
from discreet.frontends.resolve.from_tables import SourceResolver
from discreet.frontends.resolve.resolver import resolve
from discreet.frontends.terms import grouping_sets as grouping
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import Draft, Item, NameTerm, Sort, SourceTerm, TableTerm, Term, aggregates_in
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, ContributionLimits
from discreet.plan.nodes import Question
from discreet.plan.relations import Values


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
    groupings: grouping.Sets = ((),)
    limits: ContributionLimits | None = None
    least_units: int | None = None
    source: SourceTerm | None = None
    called: str | None = None
    public: tuple[Values, ...] = ()

    def __getitem__(self, column: str) -> ChainExpression:
        """A column of this table, to tell it from those of others: ``visits["ward"] == wards["ward"]``."""
        if not isinstance(column, str):
            raise refusal(None, "The name of a column must be a text.", "Write visits['age'].")
        return ChainExpression(NameTerm(column, self.called or self.table))

    def named(self, name: str) -> Self:
        """The same table under another name, to be joined with itself."""
        if not isinstance(name, str) or not name or self.source is not None:
            raise refusal(None, "named gives a table a name of its own.", "Write visits.named('earlier') at first.")
        return replace(self, called=name)

    def join(self, other: TableBuilder | Values, on: object = None, how: str = "inner") -> Self:
        """Rows beside rows of another table, chain or public rows; ``how`` is inner, left, right, full, semi or anti.

        ``on`` is a column that both have, a list of them, or conditions: ``on=visits["age"] > wards["least"]``.
        Tables about people are joined by whom they are about; declared foreign keys do so by themselves.
        """
        _check_before_groups(self, "join")
        if isinstance(other, Values):
            right: SourceTerm = TableTerm(NameTerm(other.name))
            public = (*self.public, *([] if other in self.public else [check_values(other, self.catalog)]))
        elif isinstance(other, TableBuilder):
            _check_before_groups(other, "join")
            right = _rows_of(other)
            public = tuple(dict.fromkeys((*self.public, *other.public)))
        else:
            rule = f"join takes a table or a chain; a {type(other).__name__} is none."
            raise refusal(None, rule, "Write visits.join(patients, on='patient_id').")
        left, conditions = (_rows_of(self), ()) if self.source is None else (self.source, self.conditions)
        if conditions and how in {"right", "full"}:
            rule = f"where before a {how} join would come after it."
            raise refusal(None, rule, "Filter each table before it is joined.")
        joined = row_sources.join_sources(left, right, on, how)
        return replace(self, source=joined, conditions=conditions, public=public)

    def per_unit(self, *keys: Operand, **features: ChainExpression) -> Self:
        """One row for each unit, with features of all of its rows: ``per_unit(visits=count(), last=max_("day"))``."""
        _check_before_groups(self, "per_unit")
        for name, value in features.items():
            _check_expression(value, name)
        sources = SourceResolver(self.catalog, {values.name: values for values in self.public})
        rows = row_sources.group_per_unit(_source_of(self), self.conditions, (*keys,), features, sources)
        return replace(self, source=replace(rows, alias=self.called or self.table), conditions=())

    def where(self, *conditions: ChainExpression) -> Self:
        """Only the rows for which all conditions are true."""
        self._check_before_aggregates("where")
        return replace(self, conditions=(*self.conditions, *(_check_condition(c, "where") for c in conditions)))

    def group_by(self, *keys: Operand, **named: Operand) -> Self:
        """One group for each value of the keys: columns by name, expressions, or name=expression."""
        items = self._read_keys("group_by", keys, named)
        return self._add_groups(items, (tuple(item.term for item in items),))

    def rollup(self, *keys: Operand, **named: Operand) -> Self:
        """Groups by all keys, by all but the last, and so on, down to one total. A key is NULL in totals over it."""
        items = self._read_keys("rollup", keys, named)
        return self._add_groups(items, grouping.make_rollup([(item.term,) for item in items], None))

    def cube(self, *keys: Operand, **named: Operand) -> Self:
        """Groups by every choice of the keys. A key is NULL in totals over it."""
        items = self._read_keys("cube", keys, named)
        return self._add_groups(items, grouping.make_cube([(item.term,) for item in items], None))

    def grouping_sets(self, *sets: Sequence[Operand], **named: Operand) -> Self:
        """Groups by each set of keys: ``grouping_sets(["ward", "sex"], ["ward"], [])``. Sets may hold named keys."""
        self._check_before_aggregates("grouping_sets")
        if not sets or any(isinstance(keys, str) or not isinstance(keys, Sequence) for keys in sets):
            raise refusal(None, "grouping_sets takes lists of keys.", "Write grouping_sets(['ward'], []).")
        short = {name: as_expression(value).term for name, value in named.items()}
        chosen = [[self._read_set_key(key, short) for key in keys] for keys in sets]
        items = tuple(dict.fromkeys(item for keys in chosen for item in keys))
        found = tuple(tuple(item.term for item in keys) for keys in chosen)
        return self._add_groups(items, grouping.append_sets([(keys,) for keys in found], None))

    def _read_set_key(self, key: Operand, named: Mapping[str, Term]) -> Item:
        if isinstance(key, str) and key in named:
            return Item(named[key], key)
        (item,) = self._read_keys("grouping_sets", (key,), {})
        return item

    def _read_keys(self, step: str, keys: Sequence[Operand], named: Mapping[str, Operand]) -> tuple[Item, ...]:
        self._check_before_aggregates(step)
        unnamed = [as_expression(key) for key in keys]
        items = [Item(key.term, key.name) for key in unnamed]
        items += [Item(as_expression(key).term, name) for name, key in named.items()]
        for item in items:
            if aggregates_in(item.term):
                raise refusal(None, "A key cannot contain an aggregate.", "Group by columns or expressions of them.")
        return tuple(items)

    def _add_groups(self, items: tuple[Item, ...], sets: grouping.Sets) -> Self:
        groupings = grouping.cross_sets([self.groupings, sets], None)
        return replace(self, keys=(*self.keys, *items), groupings=groupings)

    def contributing(
        self, *, max_groups: int | None = None, max_rows_per_group: int | None = None, max_rows: int | None = None
    ) -> Self:
        """How much one unit may add to this question, instead of what the codebook says; the rest is left out."""
        given = {"max_groups": max_groups, "max_rows_per_group": max_rows_per_group, "max_rows": max_rows}
        for name, value in given.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                rule = f"contributing: {name} must be a whole number from 1 on."
                raise refusal(None, rule, f"Write contributing({name}=3).")
        if max_rows is not None and (max_groups is not None or max_rows_per_group is not None):
            rule = "contributing: max_rows stands alone, or max_groups with max_rows_per_group."
            raise refusal(None, rule, "Write contributing(max_groups=3).")
        return replace(self, limits=ContributionLimits(**given))

    def with_units(self, least: int) -> Self:
        """Only groups that seem to have so many units; for groups whose keys come from the data."""
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise refusal(None, "with_units takes a whole number from 1 on.", "Write with_units(10).")
        return replace(self, least_units=least)

    def agg(self, *unnamed: ChainExpression, **named: ChainExpression) -> Self:
        """What to measure in each group: ``agg(n=count(), share=sum_("cost") / count())``."""
        items = [Item(_check_expression(value, "agg").term, value.name) for value in unnamed]
        items += [Item(_check_expression(value, name).term, name) for name, value in named.items()]
        return replace(self, outputs=(*self.outputs, *items))

    def having(self, *conditions: ChainExpression) -> Self:
        """Only the groups for which all conditions on released numbers are true; costs nothing."""
        found = tuple(_check_condition(c, "having") for c in conditions)
        return replace(self, conditions_on_groups=(*self.conditions_on_groups, *found))

    def order_by(self, *criteria: Operand | DescendingOrder) -> Self:
        """The order of the answer: names of outputs, expressions, or either with ``.desc()``."""
        sorts = []
        for criterion in criteria:
            down = isinstance(criterion, DescendingOrder)
            value = criterion.expression if isinstance(criterion, DescendingOrder) else criterion
            sorts.append(Sort(as_expression(value).term, down))
        return replace(self, order=(*self.order, *sorts))

    def limit(self, rows: int, *, offset: int = 0) -> Self:
        """At most so many rows of the answer, after leaving out the first ``offset``."""
        for name, value, least in (("rows", rows, 1), ("offset", offset, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise refusal(None, f"limit: {name} must be a whole number from {least} on.", "Write limit(10).")
        return replace(self, rows=rows, skipped=offset)

    @property
    def draft(self) -> Draft:
        """The question in terms, before names are looked up."""
        group, sets = grouping.number_keys(self.groupings)
        return Draft(
            source=_source_of(self),
            where=self.conditions,
            group=group,
            sets=sets,
            select=(*self.keys, *self.outputs),
            having=self.conditions_on_groups,
            order=self.order,
            limit=self.rows,
            offset=self.skipped,
        )

    @property
    def question(self) -> Question:
        """The plan, as SQL would give it."""
        public = {values.name: values for values in self.public}
        return replace(resolve(self.draft, self.catalog, public), limits=self.limits, min_units=self.least_units)

    def _check_before_aggregates(self, step: str) -> None:
        if self.outputs:
            fix = "Put where and group_by first; having filters released numbers."
            raise refusal(None, f"{step} comes before agg.", fix)


def _source_of(chain: TableBuilder) -> SourceTerm:
    """What a chain reads, before its conditions."""
    return TableTerm(NameTerm(chain.table), chain.called) if chain.source is None else chain.source


def _rows_of(chain: TableBuilder) -> SourceTerm:
    """What a chain reads, after its conditions, under its name."""
    return row_sources.filter_source(_source_of(chain), chain.conditions, chain.called or chain.table)


def _check_before_groups(chain: TableBuilder, step: str) -> None:
    if chain.outputs or chain.keys:
        raise refusal(None, f"{step} comes before group_by and agg.", f"Put {step} first.")


def _check_expression(value: object, what: str) -> ChainExpression:
    if isinstance(value, ChainExpression):
        return value
    rule = f"{what}: a {type(value).__name__} is not an expression."
    raise refusal(None, rule, "Write for example n=count() or age=mean('age').")


def _check_condition(value: object, step: str) -> Term:
    if isinstance(value, ChainExpression):
        return value.term
    rule = f"{step} takes conditions; a {type(value).__name__} is none."
    raise refusal(None, rule, f"Write for example {step}(col('age') > 30).")
