"""UNION ALL: the rows of several SELECTs, with the unit in the same column of each (``Union``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from discreet.bounding.stability import Owner
from discreet.frontends.resolve.scope import RelationMaker, Scope, SourceName, VisibleColumn, find_known
from discreet.frontends.resolve.select_outputs import SelectResult, derive
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import UnionTerm
from discreet.plan.expressions import Column, Expression, Literal
from discreet.plan.functions import find_common_type, make_call
from discreet.plan.relations import Distinct, Projection, Relation, Union
from discreet.plan.types import Type


def resolve_union(query: UnionTerm, maker: RelationMaker) -> Scope:
    """The rows of all parts, under the names of the first."""
    scopes = [_unwrap(maker.resolve_subquery(part, query.place), maker) for part in query.parts]
    outputs = [[column for column in scope.columns if not column.merged] for scope in scopes]
    if len({scope.known.private for scope in scopes}) != 1:
        rule = "UNION ALL would mix private rows and public ones."
        raise refusal(query.place, rule, "Ask about each by itself.")
    if len({len(columns) for columns in outputs}) != 1:
        rule = "The parts of a UNION have different numbers of columns."
        raise refusal(query.place, rule, "Select as many columns in each.")
    kinds = [_find_type(query, [columns[i] for columns in outputs], i) for i in range(len(outputs[0]))]
    aligned = [[_cast_to(column, kind) for column, kind in zip(columns, kinds)] for columns in outputs]
    carried = _has_shared_unit(aligned, scopes)
    if query.distinct and not carried:
        rule = "UNION without ALL would compare rows of different units."
        unit = maker.catalog.unit.column
        raise refusal(query.place, rule, f"Use UNION ALL, or select {unit} in the same place of each part.")
    name = maker.make_name("union")
    sources, shown = _make_branches(aligned, scopes, name, maker, carried=carried)
    relation: Relation = Union(name, sources)
    if query.distinct:
        relation = Distinct(relation)
    known = find_known(relation, maker.catalog, query.place)
    return Scope(relation, shown, (SourceName("", ""),), known)


def _unwrap(scope: Scope, maker: RelationMaker) -> Scope:
    """A part that has new columns on top, without these: the union makes its own."""
    node = scope.relation
    if not isinstance(node, Projection):
        return scope
    inside = {Column(node.name, name, expression.type): expression for name, expression in node.columns}
    columns = tuple(
        replace(c, expression=inside[c.expression]) if isinstance(c.expression, Column) else c for c in scope.columns
    )
    return replace(scope, relation=node.source, columns=columns, known=find_known(node.source, maker.catalog, None))


def _make_branches(
    aligned: Sequence[Sequence[VisibleColumn]],
    scopes: Sequence[Scope],
    name: str,
    maker: RelationMaker,
    *,
    carried: bool,
) -> tuple[tuple[Projection, ...], tuple[VisibleColumn, ...]]:
    """Each part as new columns, with the unit beside them where the columns do not name it in one place."""
    sources = []
    for outputs, scope in zip(aligned, scopes):
        node, _ = derive(SelectResult(scope, tuple(outputs)), maker.make_name("part"), hidden=False)
        if not carried and scope.known.unit is not None:
            node = replace(node, columns=(*node.columns, (f"unit of {name}", scope.known.unit)))
        sources.append(node)
    shown = tuple(
        VisibleColumn("", output.name, Column(name, own, expression.type))
        for output, (own, expression) in zip(aligned[0], sources[0].columns)
    )
    return tuple(sources), shown


def _has_shared_unit(aligned: Sequence[Sequence[VisibleColumn]], scopes: Sequence[Scope]) -> bool:
    """Whether some column is the unit in every part, or there is no unit to name."""
    if all(scope.known.owner is Owner.NOBODY for scope in scopes):
        return True
    return any(
        all(columns[i].expression in scope.known.units for columns, scope in zip(aligned, scopes))
        for i in range(len(aligned[0]))
    )


def _find_type(query: UnionTerm, columns: Sequence[VisibleColumn], index: int) -> Type:
    kinds = tuple(c.expression.type for c in columns if not _is_null(c.expression))
    found = find_common_type(kinds) if kinds else columns[0].expression.type
    if found is None:
        rule = f"Column {index + 1} of the UNION has values of different types: {' and '.join(dict.fromkeys(kinds))}."
        raise refusal(query.place, rule, "CAST(x AS BIGINT), AS DOUBLE, AS VARCHAR or AS DATE changes a type.")
    return found


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _cast_to(column: VisibleColumn, kind: Type) -> VisibleColumn:
    expression = column.expression
    if expression.type is kind:
        return column
    if _is_null(expression):
        return replace(column, expression=Literal(None, kind))
    return replace(column, expression=make_call("to_real" if kind is Type.REAL else "to_timestamp", expression))
