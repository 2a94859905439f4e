"""Resolves UNION ALL and UNION: the rows of several SELECTs, with the unit in the same column of each (``Union``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from discreet.bounding.relation_facts import Owner
from discreet.frontends.resolve.equalities import cast_to
from discreet.frontends.resolve.scope import RelationMaker, Scope, SourceName, VisibleColumn, find_facts_at
from discreet.frontends.resolve.select_outputs import SelectResult, project
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import QueryTerm, UnionTerm
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Column, Expression, Literal
from discreet.plan.functions import find_common_type
from discreet.plan.relations import Distinct, Projection, Relation, Union
from discreet.plan.types import Type


@dataclass(frozen=True, slots=True)
class AlignedParts:
    """The parts of a UNION, INTERSECT or EXCEPT: their outputs, in one type for each column.

    ``has_unit`` says whether one column is the unit in every part, or no part has units.
    """

    scopes: tuple[Scope, ...]
    outputs: tuple[tuple[VisibleColumn, ...], ...]
    has_unit: bool


def align_parts(parts: Sequence[QueryTerm], word: str, place: Place | None, maker: RelationMaker) -> AlignedParts:
    """Several SELECTs whose rows are put together or compared."""
    scopes = tuple(_unwrap(maker.resolve_subquery(part, place), maker) for part in parts)
    outputs = [[column for column in scope.columns if not column.merged] for scope in scopes]
    if len({scope.facts.private for scope in scopes}) != 1:
        rule = f"{word} would mix private rows and public ones."
        fix = "Ask about each by itself." if word.startswith("UNION") else "Use WHERE x IN (SELECT ...), or NOT EXISTS."
        raise refusal(place, rule, fix)
    if len({len(columns) for columns in outputs}) != 1:
        rule = f"The parts of {_with_article(word)} have different numbers of columns."
        raise refusal(place, rule, "Select as many columns in each.")
    kinds = [_find_type(word, place, [columns[i] for columns in outputs], i) for i in range(len(outputs[0]))]
    aligned = tuple(tuple(_cast_column(column, kind) for column, kind in zip(columns, kinds)) for columns in outputs)
    return AlignedParts(scopes, aligned, _has_shared_unit(aligned, scopes))


def _with_article(word: str) -> str:
    word = word.removesuffix(" ALL")
    return f"an {word}" if word[0] in "IE" else f"a {word}"


def resolve_union(query: UnionTerm, maker: RelationMaker) -> Scope:
    """The rows of all parts. The names of the columns are those of the first part."""
    parts = align_parts(query.parts, "UNION ALL", query.place, maker)
    if query.distinct and not parts.has_unit:
        rule = "UNION without ALL would compare rows of different units."
        unit = maker.catalog.unit.column
        raise refusal(query.place, rule, f"Use UNION ALL, or select {unit} in the same place of each part.")
    name = maker.make_name("union")
    sources, shown = _make_branches(parts.outputs, parts.scopes, name, maker, has_unit=parts.has_unit)
    relation: Relation = Union(name, sources)
    if query.distinct:
        relation = Distinct(relation)
    facts = find_facts_at(relation, maker.catalog, query.place)
    return Scope(relation, shown, (SourceName("", ""),), facts)


def _unwrap(scope: Scope, maker: RelationMaker) -> Scope:
    """A part without the projection on top of it, because the union makes its own projection."""
    node = scope.relation
    if not isinstance(node, Projection):
        return scope
    inside = {Column(node.name, name, expression.type): expression for name, expression in node.columns}
    columns = tuple(
        replace(c, expression=inside[c.expression]) if isinstance(c.expression, Column) else c for c in scope.columns
    )
    return replace(scope, relation=node.source, columns=columns, facts=find_facts_at(node.source, maker.catalog, None))


def _make_branches(
    aligned: Sequence[Sequence[VisibleColumn]],
    scopes: Sequence[Scope],
    name: str,
    maker: RelationMaker,
    *,
    has_unit: bool,
) -> tuple[tuple[Projection, ...], tuple[VisibleColumn, ...]]:
    """Each part as a projection. The unit is added to each where it is not in the same column of all parts."""
    sources = []
    for outputs, scope in zip(aligned, scopes):
        node, _ = project(SelectResult(scope, tuple(outputs)), maker.make_name("part"), hidden=False)
        if not has_unit and scope.facts.unit is not None:
            node = replace(node, columns=(*node.columns, (f"unit of {name}", scope.facts.unit)))
        sources.append(node)
    shown = tuple(
        VisibleColumn("", output.name, Column(name, own, expression.type))
        for output, (own, expression) in zip(aligned[0], sources[0].columns)
    )
    return tuple(sources), shown


def _has_shared_unit(aligned: Sequence[Sequence[VisibleColumn]], scopes: Sequence[Scope]) -> bool:
    """Whether one column is the unit in every part, or no part has units."""
    if all(scope.facts.owner is Owner.NOBODY for scope in scopes):
        return True
    return any(
        all(columns[i].expression in scope.facts.units for columns, scope in zip(aligned, scopes))
        for i in range(len(aligned[0]))
    )


def _find_type(word: str, place: Place | None, columns: Sequence[VisibleColumn], index: int) -> Type:
    kinds = tuple(c.expression.type for c in columns if not _is_null(c.expression))
    found = find_common_type(kinds) if kinds else columns[0].expression.type
    if found is None:
        kind = word.removesuffix(" ALL")
        rule = f"Column {index + 1} of the {kind} has values of different types: {' and '.join(dict.fromkeys(kinds))}."
        raise refusal(place, rule, "CAST(x AS BIGINT), AS DOUBLE, AS VARCHAR or AS DATE changes a type.")
    return found


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _cast_column(column: VisibleColumn, kind: Type) -> VisibleColumn:
    expression = column.expression
    if expression.type is not kind and _is_null(expression):
        return replace(column, expression=Literal(None, kind))
    return replace(column, expression=cast_to(expression, kind))
