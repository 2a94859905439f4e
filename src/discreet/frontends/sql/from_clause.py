"""Reads FROM into terms: tables, subqueries, rows of constants, and joins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.frontends.sql import refusals
from discreet.frontends.sql.arrays import read_series, read_unnest
from discreet.frontends.sql.reader import ExpressionReader
from discreet.frontends.sql.schema_names import has_schema
from discreet.frontends.sql.with_clause import WithQuery
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import (
    Constant,
    Draft,
    Item,
    JoinTerm,
    NameTerm,
    SourceTerm,
    Star,
    SubqueryTerm,
    TableTerm,
    ValuesTerm,
)
from discreet.plan.relations import JoinKind

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

KINDS: Mapping[tuple[str, str], JoinKind] = {
    ("", ""): JoinKind.INNER,
    ("", "INNER"): JoinKind.INNER,
    ("", "CROSS"): JoinKind.INNER,
    ("", "OUTER"): JoinKind.FULL,
    ("LEFT", ""): JoinKind.LEFT,
    ("LEFT", "OUTER"): JoinKind.LEFT,
    ("RIGHT", ""): JoinKind.RIGHT,
    ("RIGHT", "OUTER"): JoinKind.RIGHT,
    ("FULL", ""): JoinKind.FULL,
    ("FULL", "OUTER"): JoinKind.FULL,
    ("", "SEMI"): JoinKind.SEMI,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("", "ANTI"): JoinKind.ANTI,
    ("LEFT", "ANTI"): JoinKind.ANTI,
}


def read_source(select: Node, reader: ExpressionReader, with_queries: Mapping[str, WithQuery]) -> SourceTerm:
    """The source of a SELECT as a term."""
    return _FromReader(reader, with_queries).read(select)


class _FromReader:
    """Reads one FROM. ``with_queries`` are the SELECTs of WITH, by name."""

    def __init__(self, reader: ExpressionReader, with_queries: Mapping[str, WithQuery]) -> None:
        self.reader = reader
        self.with_queries = with_queries

    def read(self, select: Node) -> SourceTerm:
        source = self._read_source(select.args["from_"].this)
        return self._read_joins(source, select.args.get("joins"))

    def _read_source(self, node: Node) -> SourceTerm:
        match type(node).__name__:
            case "Table":
                source: SourceTerm = self._read_table(node)
            case "Subquery":
                source = self._read_subquery(node)
            case "Values":
                source = self._read_values(node)
            case "Unnest":
                source = read_unnest(self.reader, node, *self._read_alias(node))
            case _:
                self.reader.refuse(node)
        return self._read_joins(source, node.args.get("joins"))

    def _read_joins(self, source: SourceTerm, joins: list[Node] | None) -> SourceTerm:
        for join in joins or ():
            source = self._read_join(source, join)
        return source

    def _read_table(self, node: Node) -> SourceTerm:
        self._check_parts(node, "this", "alias", "joins", "db", "catalog")
        if type(node.this).__name__ == "GenerateSeries":
            return read_series(self.reader, node.this, *self._read_alias(node))
        if type(node.this).__name__ != "Identifier":
            rule = "A question reads a declared table only, not a file or a function."
            raise refusal(self.reader.place_of(node), rule, "The codebook lists the tables.")
        name, place = str(node.this.name), self.reader.place_of(node.this)
        alias, columns = self._read_alias(node)
        query = None if has_schema(node) else self.with_queries.get(name.lower())
        if query is not None:
            renamed = (*columns, *query.columns[len(columns) :])
            return SubqueryTerm(query.query, alias or name, renamed, place)
        if columns:
            rule = "A declared table keeps the names of its columns."
            raise refusal(self.reader.place_of(node.args["alias"]), rule, "Leave the list of names out.")
        return TableTerm(NameTerm(name, None, place), alias)

    def _read_subquery(self, node: Node) -> SourceTerm:
        self._check_parts(node, "this", "alias", "joins")
        inner = node.this
        alias, columns = self._read_alias(node)
        if _is_source(inner):
            source = self._read_source(inner)
            if alias is None:
                return source
            place = self.reader.place_of(node.args["alias"])
            return SubqueryTerm(Draft(source=source, select=(Item(Star(), None, place),)), alias, columns, place)
        return SubqueryTerm(self.reader.query(inner), alias, columns, self.reader.places.of(inner, "SELECT"))

    def _read_values(self, node: Node) -> SourceTerm:
        self._check_parts(node, "expressions", "alias")
        alias, columns = self._read_alias(node)
        rows = []
        for row in node.expressions:
            cells = row.expressions if type(row).__name__ == "Tuple" else [row]
            rows.append(tuple(self._read_constant(cell) for cell in cells))
        return ValuesTerm(tuple(rows), alias, columns, self.reader.places.of(node, "VALUES"))

    def _read_constant(self, node: Node) -> Constant:
        term = self.reader.read(node)
        if not isinstance(term, Constant):
            raise refusal(self.reader.place_of(node), "VALUES holds constants only.", "Write numbers, texts and dates.")
        return term

    def _read_alias(self, node: Node) -> tuple[str | None, tuple[str, ...]]:
        alias = node.args.get("alias")
        if alias is None:
            return None, ()
        self.reader.check_parts(alias, "this", "columns")
        columns = tuple(str(column.name) for column in alias.args.get("columns") or ())
        return str(alias.name) or None, columns

    # Joins

    def _read_join(self, left: SourceTerm, node: Node) -> SourceTerm:
        place = self._place_of(node)
        self._check_parts(node, "this", "side", "kind", "on", "using", "method")
        method = str(node.args.get("method") or "").upper()
        side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
        if method not in {"", "NATURAL"} or (side, kind) not in KINDS:
            words = " ".join(word for word in (method, side, kind) if word)
            rule = f"{words} JOIN is not available."
            raise refusal(place, rule, "Available are JOIN, LEFT, RIGHT, FULL, CROSS, SEMI and ANTI JOIN.")
        on, using = node.args.get("on"), node.args.get("using")
        source = JoinTerm(
            left,
            self._read_source(node.this),
            KINDS[side, kind],
            (self.reader.read(on),) if on is not None else (),
            tuple(NameTerm(str(name.name), None, self.reader.place_of(name)) for name in using) if using else None,
            natural=method == "NATURAL",
            place=place,
        )
        self._check_condition(source, kind)
        return source

    def _check_condition(self, join: JoinTerm, word: str) -> None:
        conditions = [bool(join.on), join.using is not None, join.natural]
        outer = join.kind is not JoinKind.INNER
        if outer and not any(conditions):
            rule = f"{join.kind.upper()} JOIN needs a condition."
            raise refusal(join.place, rule, "Add ON a.x = b.y, or USING (x).")
        if sum(conditions) > 1 or (word == "CROSS" and any(conditions)):
            raise refusal(join.place, "This join has more than one kind of condition.", "Keep ON, USING or NATURAL.")

    def _place_of(self, node: Node) -> Place:
        """The place of what is joined."""
        return self.reader.place_of(node.this)

    def _check_parts(self, node: Node, *parts: str) -> None:
        self.reader.check_clause(node, parts, refusals.TABLE_PARTS, "{word} is not available in FROM.", "Leave it out.")


def _is_source(node: Node) -> bool:
    """Whether a node in parentheses is a source by itself: a table, a join, or a subquery with a name."""
    while type(node).__name__ == "Subquery" and not node.args.get("alias") and not node.args.get("joins"):
        node = node.this
    return type(node).__name__ in {"Table", "Subquery", "Values"}
