"""Subqueries over public tables that stand for a value: WHERE age > (SELECT AVG(beds) FROM wards).

Each is computed exactly and becomes a constant of the question, as if the analyst had looked the number up and written
it there. So it is public, it costs nothing, and the question is recorded with the value that it had.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from discreet.errors import QuestionError
from discreet.frontends.google.privacy_clause import ReleasedSelects
from discreet.frontends.outer.computation import ReleasedComputation
from discreet.frontends.outer.outer_reader import read_computation, reads_public_only
from discreet.frontends.terms.positions import refusal
from discreet.plan.catalog import Catalog
from discreet.plan.relations import Values
from discreet.plan.types import Value

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

PublicComputer: TypeAlias = Callable[[ReleasedComputation], Sequence[Sequence[Value]]]
"""Gives the rows of a computation that reads public tables alone."""

# Where a subquery stands for rows and not for a value.
_ROWS = frozenset({"From", "Join", "Table", "CTE", "Union", "Intersect", "Except", "In", "Exists", "Subquery"})


def compute_scalars(
    selects: ReleasedSelects, catalog: Catalog, public: Mapping[str, Values], compute: PublicComputer
) -> None:
    """Put constants in place of the subqueries over public tables that stand for a value."""
    for node in list(_list_scalars(selects, catalog, public)):
        place = selects.places.of(node, "SELECT")
        try:
            found = compute(read_computation(replace(selects, tree=node.this.copy()), catalog, public))
        except QuestionError as error:
            rule = f"This subquery over public tables cannot be computed by itself. {error.rule}"
            raise refusal(place, rule, "It cannot read columns of the question around it.") from None
        if len(found) > 1 or any(len(row) != 1 for row in found):
            raise refusal(place, "A subquery that stands for a value has one column and one row.", "Aggregate it.")
        constant = _write_constant(found[0][0] if found else None)
        for part in constant.walk():
            part.meta.update(start=place.start, end=place.end - 1)
        node.replace(constant)


def _list_scalars(selects: ReleasedSelects, catalog: Catalog, public: Mapping[str, Values]) -> Iterator[Expr]:
    """The subqueries that stand for a value and read public tables alone, none of which a WITH might rename."""
    named = {part.alias.lower() for part in selects.tree.walk() if type(part).__name__ == "CTE"}
    for node in selects.tree.walk():
        if type(node).__name__ != "Subquery" or type(node.parent).__name__ in {*_ROWS, "NoneType"}:
            continue
        tables = {part.name.lower() for part in node.walk() if type(part).__name__ == "Table"}
        marked = any(selects.is_marked(part) for part in node.walk())
        if not marked and not tables & named and reads_public_only(node, catalog, public):
            yield node


def _write_constant(value: Value) -> Expr:
    from sqlglot.expressions import Boolean, DataType, Literal, Neg, Null, Paren, cast

    match value:
        case None:
            return Null()
        case bool():
            return Boolean(this=value)
        case int() | float():
            number = Literal.number(repr(abs(value)))
            return Paren(this=Neg(this=number)) if value < 0 else number
        case dt.datetime():
            return cast(Literal.string(value.isoformat(sep=" ")), DataType.build("TIMESTAMP"))
        case dt.date():
            return cast(Literal.string(value.isoformat()), DataType.build("DATE"))
        case str():
            return Literal.string(value)
