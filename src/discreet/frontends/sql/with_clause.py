"""Reads WITH (SELECTs by name), UNION, INTERSECT and EXCEPT (the rows of several SELECTs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from discreet.frontends.sql import refusals
from discreet.frontends.sql.reader import ExpressionReader
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import QueryTerm, SetTerm, UnionTerm

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node


class WithQuery(NamedTuple):
    """A SELECT of WITH, and the names of its columns if they are given."""

    query: QueryTerm
    columns: tuple[str, ...]


QueryReader: TypeAlias = Callable[["Node", Mapping[str, WithQuery]], QueryTerm]


def read_with(
    clause: Node | None, reader: ExpressionReader, read: QueryReader, around: Mapping[str, WithQuery] | None = None
) -> dict[str, WithQuery]:
    """The SELECTs of a WITH, by name. Each may use those before it, and each use is read as if written out."""
    found: dict[str, WithQuery] = {}
    if clause is None:
        return found
    if clause.args.get("recursive"):
        rule = "WITH RECURSIVE is not available: how often it repeats depends on the data."
        raise refusal(reader.places.find_word("RECURSIVE"), rule, "Use WITH, without recursion.")
    reader.check_parts(clause, "expressions")
    for part in clause.expressions:
        reader.check_parts(part, "this", "alias", "materialized")
        alias = part.args["alias"]
        name = str(alias.name)
        if name.lower() in found:
            raise refusal(reader.places.of(alias), f"WITH names {name!r} twice.", "Choose another name.")
        columns = tuple(str(column.name) for column in alias.args.get("columns") or ())
        found[name.lower()] = WithQuery(read(part.this, {**(around or {}), **found}), columns)
    return found


def read_union(node: Node, reader: ExpressionReader, read: Callable[[Node], QueryTerm]) -> QueryTerm:
    """UNION ALL and UNION of any number of SELECTs, from left to right, without deep recursion."""
    rights: list[tuple[Node, bool]] = []
    place = reader.places.of(node, "UNION")
    top = node
    while type(node).__name__ == "Union":
        parts = ("this", "expression", "distinct", "order", *(("with_",) if node is top else ()))
        for part in ("limit", "offset"):
            if node.args.get(part):
                reason = refusals.INNER_CLAUSES[part]
                raise refusal(reader.places.of(node.args[part], reason.word), reason.rule, reason.fix)
        if node.args.get("by_name"):
            raise refusal(place, "UNION BY NAME is not available.", "Select the columns in the same order.")
        reader.check_parts(node, *parts)
        rights.append((node.expression, bool(node.args.get("distinct"))))
        node = node.this
    queries = [read(node), *(read(right) for right, _ in reversed(rights))]
    flags = [distinct for _, distinct in reversed(rights)]
    if not any(flags):
        return UnionTerm(tuple(queries), place=place)
    last = len(flags) - 1 - flags[::-1].index(True)  # a later UNION makes everything before it distinct
    together = UnionTerm(tuple(queries[: last + 2]), distinct=True, place=place)
    rest = queries[last + 2 :]
    return UnionTerm((together, *rest), place=place) if rest else together


def read_set_operation(node: Node, reader: ExpressionReader, read: Callable[[Node], QueryTerm]) -> SetTerm:
    """INTERSECT and EXCEPT of two SELECTs."""
    word = type(node).__name__.upper()
    place = reader.places.of(node, word)
    for part in ("limit", "offset"):
        if node.args.get(part):
            reason = refusals.INNER_CLAUSES[part]
            raise refusal(reader.places.of(node.args[part], reason.word), reason.rule, reason.fix)
    if not node.args.get("distinct"):
        rule = f"{word} ALL is not available: it counts how often each row occurs."
        raise refusal(place, rule, f"Write {word}, which keeps each row once.")
    if node.args.get("by_name"):
        raise refusal(place, f"{word} BY NAME is not available.", "Select the columns in the same order.")
    reader.check_parts(node, "this", "expression", "distinct", "order", "with_")
    return SetTerm(read(node.this), read(node.expression), without=word == "EXCEPT", place=place)
