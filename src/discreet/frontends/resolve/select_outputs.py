"""The outputs of a SELECT inside a question, and the relation that shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from discreet.bounding.stability import Owner
from discreet.frontends.resolve import output_names
from discreet.frontends.resolve.scope import (
    RelationMaker,
    Scope,
    SourceName,
    VisibleColumn,
    check_owner,
    find_known,
    is_named,
    make_unique_names,
)
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import Draft, Item, NameTerm, Star
from discreet.plan.expressions import Column, Expression
from discreet.plan.relations import Distinct, Projection


@dataclass(frozen=True, slots=True)
class SelectResult:
    """What a SELECT yields: the rows it was made from, and its outputs as columns over them."""

    base: Scope
    outputs: tuple[VisibleColumn, ...]
    place: Place | None = None


def expand_stars(draft: Draft, base: Scope) -> Iterator[Item]:
    """The outputs with every * replaced by the columns it stands for."""
    for item in draft.select:
        if isinstance(item.term, Star):
            for column in base.expand_star(item.term):
                yield Item(NameTerm(column.name, column.qualifier or None, item.place), None, item.place)
        else:
            yield item


def title_of(item: Item, expression: Expression) -> str:
    """The name of an output: as given, or the column's own, or a plain one."""
    if item.alias is not None:
        return item.alias
    if isinstance(item.term, NameTerm):
        return item.term.name
    return output_names.Titles((), (), {}).of(expression) or "value"


def show_outputs(derived: SelectResult, maker: RelationMaker, *, distinct: bool = False) -> Scope:
    """The scope that shows the outputs: the same relation where they are columns of it, else new columns."""
    if distinct:
        return _show_distinct(derived, maker)
    base, outputs = derived.base, derived.outputs
    if all(is_named(output) for output in outputs):
        return replace(base, columns=outputs, sources=(SourceName("", ""),))
    name = maker.make_name("subquery")
    node, shown = derive(derived, name, hidden=True)
    return Scope(node, shown, (SourceName("", ""),), find_known(node, maker.catalog, derived.place))


def derive(derived: SelectResult, name: str, *, hidden: bool) -> tuple[Projection, tuple[VisibleColumn, ...]]:
    """The outputs as columns of a relation of their own; ``hidden`` adds the unit where no output is it."""
    base = derived.base
    found = list(zip(make_unique_names([output.name for output in derived.outputs]), derived.outputs))
    columns = [(own, output.expression) for own, output in found]
    unit = base.known.unit
    if hidden and unit is not None and not any(output.expression in base.known.units for output in derived.outputs):
        columns.append((f"unit of {name}", unit))
    shown = tuple(replace(o, expression=Column(name, own, o.expression.type), merged=False) for own, o in found)
    return Projection(base.relation, name, tuple(columns)), shown


def _show_distinct(derived: SelectResult, maker: RelationMaker) -> Scope:
    base = derived.base
    if base.known.owner is not Owner.NOBODY and not names_unit(derived.outputs, base):
        check_owner(base.known, "DISTINCT", derived.place)
        unit = base.describe_unit() or maker.catalog.unit.column
        rule = "SELECT DISTINCT inside a question would compare rows of different units."
        raise refusal(derived.place, rule, f"Select {unit}, too; or ask it as a question of its own with GROUP BY.")
    node, shown = derive(derived, maker.make_name("subquery"), hidden=False)
    relation = Distinct(node)
    return Scope(relation, shown, (SourceName("", ""),), find_known(relation, maker.catalog, derived.place))


def names_unit(outputs: Sequence[VisibleColumn], base: Scope) -> bool:
    """Whether one of the outputs is the unit of its row."""
    return any(output.expression in base.known.units for output in outputs)
