"""Makes the outputs of a SELECT inside a question, and the relation that has them as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from discreet.bounding.relation_facts import Owner
from discreet.frontends.resolve import output_names
from discreet.frontends.resolve.foreign_keys import fixes_unit
from discreet.frontends.resolve.scope import (
    RelationMaker,
    Scope,
    SourceName,
    VisibleColumn,
    check_owner,
    find_facts_at,
    is_named,
    make_unique_names,
)
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import Draft, Item, NameTerm, Star
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Column, Expression
from discreet.plan.relations import Distinct, Projection


@dataclass(frozen=True, slots=True)
class SelectResult:
    """The result of a SELECT: the scope that it reads, and its outputs as columns over that scope."""

    base: Scope
    outputs: tuple[VisibleColumn, ...]
    place: Place | None = None


def expand_stars(draft: Draft, base: Scope) -> Iterator[Item]:
    """The outputs, in which every * is replaced by its columns."""
    for item in draft.select:
        if isinstance(item.term, Star):
            for column in base.expand_star(item.term):
                yield Item(NameTerm(column.name, column.qualifier or None, item.place), None, item.place)
        else:
            yield item


def title_of(item: Item, expression: Expression) -> str:
    """The name of an output: the one the analyst gave, else the name of the column, else a plain name."""
    if item.alias is not None:
        return item.alias
    if isinstance(item.term, NameTerm):
        return item.term.name
    return output_names.Titles((), (), {}).of(expression) or "value"


def show_outputs(result: SelectResult, maker: RelationMaker, *, distinct: bool = False) -> Scope:
    """The scope of the outputs. If all outputs are columns of the relation, it stays; else it gets new columns."""
    if distinct:
        return _show_distinct(result, maker)
    base, outputs = result.base, result.outputs
    if all(is_named(output) for output in outputs):
        return replace(base, columns=outputs, sources=(SourceName("", ""),))
    name = maker.make_name("subquery")
    node, shown = project(result, name, hidden=True)
    return Scope(node, shown, (SourceName("", ""),), find_facts_at(node, maker.catalog, result.place))


def project(result: SelectResult, name: str, *, hidden: bool) -> tuple[Projection, tuple[VisibleColumn, ...]]:
    """The outputs as columns of a new relation. ``hidden`` adds the unit where no output shows it."""
    base = result.base
    found = list(zip(make_unique_names([output.name for output in result.outputs]), result.outputs))
    columns = [(own, output.expression) for own, output in found]
    unit = base.facts.unit
    if hidden and unit is not None and not any(output.expression in base.facts.units for output in result.outputs):
        columns.append((f"unit of {name}", unit))
    shown = tuple(replace(o, expression=Column(name, own, o.expression.type), merged=False) for own, o in found)
    return Projection(base.relation, name, tuple(columns)), shown


def _show_distinct(result: SelectResult, maker: RelationMaker) -> Scope:
    base = result.base
    fixed = fixes_unit([output.expression for output in result.outputs], base, maker.catalog)
    if base.facts.owner is not Owner.NOBODY and not names_unit(result.outputs, base) and not fixed:
        check_owner(base.facts, "DISTINCT", result.place)
        unit = base.describe_unit() or maker.catalog.unit.column
        rule = "SELECT DISTINCT inside a question would compare rows of different units."
        raise refusal(result.place, rule, f"Select {unit}, too; or ask it as a question of its own with GROUP BY.")
    node, shown = project(result, maker.make_name("subquery"), hidden=fixed)
    relation = Distinct(node)
    return Scope(relation, shown, (SourceName("", ""),), find_facts_at(relation, maker.catalog, result.place))


def names_unit(outputs: Sequence[VisibleColumn], base: Scope) -> bool:
    """Whether one of the outputs is the unit of its row."""
    return any(output.expression in base.facts.units for output in outputs)
