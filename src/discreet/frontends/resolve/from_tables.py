"""Resolves FROM: declared tables, public rows, subqueries and joins become a scope over one relation.

Each relation gets a name in the plan that does not depend on the analyst's aliases. A table that is read first has its
own name, and "visits 2" the next time. Subqueries are numbered in their order. So questions that differ in aliases only
give equal plans.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import assert_never

from discreet.bounding.stability import find_relation_facts
from discreet.frontends.resolve import subqueries
from discreet.frontends.resolve.equalities import WhereEqualities, split_ands
from discreet.frontends.resolve.join_scopes import join
from discreet.frontends.resolve.public_keys import KeptRows, keeps_public
from discreet.frontends.resolve.scope import Origin, Scope, SourceName, VisibleColumn, title_of_subquery, title_of_table
from discreet.frontends.resolve.select_outputs import SelectResult, show_outputs
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import JoinTerm, QueryTerm, SourceTerm, SubqueryTerm, TableTerm, Term, ValuesTerm
from discreet.plan.catalog import Catalog, suggest_nearest
from discreet.plan.expressions import Column
from discreet.plan.functions import find_common_type
from discreet.plan.reach import TableRelation, reach
from discreet.plan.relations import JoinKind, Relation, Scan, Values, walk_relations
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value, type_of

MAX_RELATIONS = 50  # tables and subqueries in one question, each counted as often as it is used
MAX_SUBQUERIES = 10  # subqueries within each other


class SourceResolver:
    """Makes the relations of one question, and gives them their names."""

    def __init__(self, catalog: Catalog, public: Mapping[str, Values] | None = None) -> None:
        self.catalog = catalog
        self.public = check_public(public or {}, catalog)
        self.taken: set[str] = set()
        self.kept: list[KeptRows] = []
        self.relations = 0
        self.depth = 0

    def resolve_from(self, source: SourceTerm, where: Sequence[Term] = ()) -> Scope:
        """The columns of a FROM. Equalities of ``where`` may become conditions of its joins."""
        return self._resolve_from(source, WhereEqualities(tuple(split_ands(where))))

    def _resolve_from(self, source: SourceTerm, pending: WhereEqualities) -> Scope:
        match source:
            case TableTerm():
                return self._resolve_table(source)
            case SubqueryTerm():
                found = self.resolve_subquery(source.query, source.place)
                alias = source.alias or ""
                shown = found.rename(alias, title_of_subquery(alias), source.columns, source.place)
                return self._rename_columns(shown) if source.columns else shown
            case ValuesTerm():
                return self._resolve_values(source)
            case JoinTerm():
                return self._join(source, pending)
            case _:
                assert_never(source)

    def resolve_subquery(self, query: QueryTerm, place: Place | None = None) -> Scope:
        """The columns of a SELECT inside a question."""
        self._count_relation(place)
        self.depth += 1
        if self.depth > MAX_SUBQUERIES:
            rule = f"More than {MAX_SUBQUERIES} subqueries within each other."
            raise refusal(place, rule, "Ask for something simpler.")
        found = subqueries.scope_of(query, self)
        self.depth -= 1
        return found

    def _rename_columns(self, scope: Scope) -> Scope:
        """The same scope with new names for its columns, as AS t (a, b) gives them."""
        named = show_outputs(SelectResult(scope, scope.columns), self)
        return replace(named, sources=scope.sources)

    def make_name(self, base: str) -> str:
        """A free name for a relation."""
        number = 1
        while True:
            name = base if number == 1 else f"{base} {number}"
            if name.lower() not in self.taken and name.lower() not in {t.lower() for t in self.catalog.tables}:
                self.taken.add(name.lower())
                return name
            number += 1

    def _count_relation(self, place: Place | None) -> None:
        self.relations += 1
        if self.relations > MAX_RELATIONS:
            rule = f"The question reads more than {MAX_RELATIONS} tables and subqueries, each as often as it is used."
            raise refusal(place, rule, "Ask for something simpler.")

    # Tables

    def _resolve_table(self, term: TableTerm) -> Scope:
        name = term.name
        self._count_relation(name.place)
        for title, table in self.catalog.tables.items():
            if title.lower() == name.name.lower():
                return self._scan_table(table.name, term.alias or table.name)
        for title, values in self.public.items():
            if title.lower() == name.name.lower():
                return self._show_values(
                    replace(values, name=self.make_name(values.name)), term.alias or title, title_of_table(title)
                )
        rule = f"There is no declared table {name.name!r}."
        raise refusal(name.place, rule, suggest_nearest(name.name, [*self.catalog.tables, *self.public]))

    def _scan_table(self, table: str, alias: str) -> Scope:
        facts = self.catalog.tables[table]
        reached = self._reach(table)
        scan = next(node for node in walk_relations(reached.relation) if isinstance(node, Scan) and node.table == table)
        columns = [
            VisibleColumn(alias, name, Column(scan.name, name, kind), Origin(table, name, scan.name))
            for name, (kind, _) in facts.columns.items()
        ]
        unit = facts.unit.column
        taken = {column.name.lower() for column in columns}
        if facts.link is not None and unit is not None and reached.unit is not None and unit.lower() not in taken:
            columns.append(VisibleColumn(alias, unit, reached.unit, implicit=True))
        source = SourceName(alias, title_of_table(table))
        return Scope(reached.relation, tuple(columns), (source,), find_relation_facts(reached.relation, self.catalog))

    def _reach(self, table: str) -> TableRelation:
        """The relation of a table, under names that are not used yet."""
        number = 1
        while True:
            reached = reach(table, self.catalog, "" if number == 1 else f"{table} {number}")
            names = {name.lower() for node in walk_relations(reached.relation) if (name := _name_of(node))}
            others = {title.lower() for title in self.catalog.tables if title != table}
            if not names & (self.taken | others) and (number == 1 or f"{table} {number}".lower() not in others):
                self.taken |= names
                return reached
            number += 1

    def _show_values(self, values: Values, alias: str, title: str) -> Scope:
        columns = tuple(VisibleColumn(alias, name, Column(values.name, name, kind)) for name, kind in values.columns)
        return Scope(values, columns, (SourceName(alias, title),), find_relation_facts(values, self.catalog))

    # Rows in the question

    def _resolve_values(self, term: ValuesTerm) -> Scope:
        self._count_relation(term.place)
        widths = {len(row) for row in term.rows}
        if len(widths) != 1:
            raise refusal(term.place, "The rows of VALUES differ in length.", "Give each row as many values.")
        (width,) = widths
        kinds = [self._find_type(term, i) for i in range(width)]
        rows = tuple(tuple(_fit_value(c.value, k) for c, k in zip(row, kinds)) for row in term.rows)
        columns = tuple((f"col{i}", kind) for i, kind in enumerate(kinds))
        if len(term.columns) > width:
            raise refusal(term.place, f"{len(term.columns)} names for {width} columns.", "Give as many names.")
        named = tuple((name, kind) for name, (_, kind) in zip(term.columns, columns)) + columns[len(term.columns) :]
        if len({name.lower() for name, _ in named}) < width:
            raise refusal(term.place, "Two columns of VALUES have the same name.", "Give each a name of its own.")
        alias = term.alias or ""
        return self._show_values(Values(self.make_name("values"), named, rows), alias, title_of_subquery(alias))

    def _find_type(self, term: ValuesTerm, index: int) -> Type:
        kinds = tuple(kind for row in term.rows if (kind := type_of(row[index].value)) is not None)
        found = find_common_type(kinds) if kinds else Type.TEXT
        if found is None:
            rule = f"Column {index + 1} of VALUES mixes types."
            raise refusal(term.place, rule, "All values of a column must be of one type.")
        return found

    # Joins

    def _join(self, term: JoinTerm, pending: WhereEqualities) -> Scope:
        """Resolve both sides, then the join.

        Conditions of WHERE go down to a side only where they filter the same rows there as above the join.
        """
        none = WhereEqualities()
        keeps_left = term.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
        keeps_right = term.kind in (JoinKind.INNER, JoinKind.RIGHT)
        below = pending.add_conditions(term)
        left = self._resolve_from(term.left, below if keeps_left else none)
        right = self._resolve_from(term.right, below if keeps_right else none)
        if keeps_public(term.kind, left, right):
            public = right if left.facts.private else left
            columns = frozenset(column.expression for column in public.columns)
            self.kept.append(KeptRows(term.place, columns, self.depth > 0))
        more = pending.find_pairs(left, right) if term.kind is JoinKind.INNER else []
        return join(term, left, right, more, self.catalog)


def _name_of(relation: Relation) -> str:
    return getattr(relation, "name", "")


def _fit_value(value: Value, kind: Type) -> Value:
    """A value as one of its column's type."""
    if kind is Type.REAL and isinstance(value, int):
        return float(value)
    if kind is Type.TIMESTAMP and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value


def check_public(public: Mapping[str, Values], catalog: Catalog) -> dict[str, Values]:
    """The public rows that a question brings. A name that is in use, or a value of a wrong type, is refused."""
    found: dict[str, Values] = {}
    for name, values in public.items():
        if not isinstance(name, str) or not isinstance(values, Values):
            raise refusal(None, "Public rows are given by name.", "Pass public={'name': Values(...)}.")
        if name.lower() in {title.lower() for title in (*catalog.tables, *found)}:
            rule = f"Public rows cannot be called {name!r}: there is a table of that name."
            raise refusal(None, rule, "Choose another name.")
        names = [column.lower() for column, _ in values.columns]
        if len(set(names)) < len(names) or not names:
            raise refusal(None, f"The columns of {name!r} need names of their own.", "Rename them.")
        for row in values.rows:
            if len(row) != len(names) or not all(_fits(v, kind) for v, (_, kind) in zip(row, values.columns)):
                raise refusal(None, f"A row of {name!r} does not fit its columns.", "Give each column one type.")
        found[name] = replace(values, name=name)
    return found


def _fits(value: Value, kind: Type) -> bool:
    if isinstance(value, float) and not isfinite(value):
        return False
    if isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX:
        return False
    return type_of(value) in (None, kind)
