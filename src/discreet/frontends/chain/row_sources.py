"""Makes the rows of a chain: joins of tables, and one row for each unit, in the same terms as SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discreet.frontends.chain.operands import ChainExpression, as_expression
from discreet.frontends.resolve.from_tables import SourceResolver
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import Draft, Item, JoinTerm, NameTerm, SourceTerm, Star, SubqueryTerm, Term
from discreet.plan.catalog import Catalog
from discreet.plan.relations import JoinKind, Values

KINDS = {str(kind): kind for kind in JoinKind} | {"cross": JoinKind.INNER}


def join_sources(left: SourceTerm, right: SourceTerm, on: object, how: str) -> JoinTerm:
    """A join of two sources. ``on`` is one or several columns that both have, or one or several conditions."""
    kind = KINDS.get(how) if isinstance(how, str) else None
    if kind is None:
        raise refusal(None, "join: this kind of join is not known.", f"Known: {', '.join(KINDS)}.")
    if on is None:
        if how != "cross":
            raise refusal(None, "join needs a condition.", "Write on='patient_id', or on=visits['x'] == other['y'].")
        return JoinTerm(left, right, kind)
    if how == "cross":
        raise refusal(None, "A cross join has no condition.", "Leave on out, or use how='inner'.")
    given = [on] if isinstance(on, str | ChainExpression) else list(on) if isinstance(on, Sequence) else []
    if given and all(isinstance(name, str) for name in given):
        return JoinTerm(left, right, kind, using=tuple(NameTerm(str(name)) for name in given))
    if given and all(isinstance(condition, ChainExpression) for condition in given):
        return JoinTerm(left, right, kind, tuple(c.term for c in given if isinstance(c, ChainExpression)))
    rule = "join: on takes the names of columns that both sides have, or conditions."
    raise refusal(None, rule, "Write on='patient_id', or on=visits['x'] == other['y'].")


def filter_source(source: SourceTerm, conditions: tuple[Term, ...], alias: str) -> SourceTerm:
    """A source with conditions on its rows, under its own name."""
    if not conditions:
        return source
    return SubqueryTerm(Draft(source=source, where=conditions, select=(Item(Star()),)), alias)


def group_per_unit(
    source: SourceTerm,
    conditions: tuple[Term, ...],
    keys: Sequence[object],
    features: Mapping[str, ChainExpression],
    sources: SourceResolver,
) -> SubqueryTerm:
    """One row for each unit and each value of further keys, with features of the unit's rows."""
    scope = sources.resolve_from(source, conditions)
    unit = next((c for c in scope.columns if c.expression in scope.facts.units), None)
    if unit is None:
        raise refusal(None, "per_unit needs rows that name their unit.", "Declare a unit in the codebook.")
    unit_item = Item(NameTerm(unit.name, unit.qualifier or None))
    items = [Item(key.term, key.name) for key in map(as_expression, keys)]
    outputs = [Item(value.term, name) for name, value in features.items()]
    group = (unit_item.term, *(item.term for item in items))
    return SubqueryTerm(Draft(source=source, where=conditions, group=group, select=(unit_item, *items, *outputs)))


def check_values(values: Values, catalog: Catalog) -> Values:
    """The same public rows. A name that is in use is refused."""
    SourceResolver(catalog, {values.name: values})
    return values
