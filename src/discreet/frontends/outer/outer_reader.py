"""Reads a statement that computes with released answers.

    WITH r AS (SELECT WITH DIFFERENTIAL_PRIVACY ward, COUNT(*) AS n FROM visits GROUP BY ward)
    SELECT ward, n / (SELECT SUM(n) FROM r) AS share FROM r JOIN wards USING (ward) ORDER BY share DESC

Each SELECT with the clause is read as a question, and replaced by the table of its released rows. Of two equal ones
there is one release. What is left may read these tables, declared public tables, and public rows that the analyst
brings: a private table outside of the clause is refused. Only what ``allowed_nodes`` lists may stand there, and the SQL
that is run is written anew from the tree.

A statement without the clause that reads public tables alone is such a computation, too, without any question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from discreet.frontends.google.privacy_clause import QuestionAndOffer, ReleasedSelects
from discreet.frontends.outer import allowed_nodes
from discreet.frontends.outer.column_ends import OuterColumns, settle_columns
from discreet.frontends.outer.computation import (
    OuterColumn,
    ReleasedComputation,
    name_brought,
    name_public,
    name_released,
)
from discreet.frontends.outer.row_counts import list_rules
from discreet.frontends.resolve.from_tables import check_public
from discreet.frontends.sql.places import Places
from discreet.frontends.sql.reader import ExpressionReader
from discreet.frontends.sql.select_clauses import SelectReader
from discreet.frontends.sql.with_clause import WithQuery
from discreet.frontends.terms.positions import refusal
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, suggest_nearest
from discreet.plan.expressions import ReleasedValue, walk
from discreet.plan.nodes import Question
from discreet.plan.relations import Values

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

MAX_RELEASES = 50
_OUTSIDE = "Outside of SELECT WITH DIFFERENTIAL_PRIVACY only released answers and public tables can be read"
_RELEASE = "Write SELECT WITH DIFFERENTIAL_PRIVACY where it is aggregated."


@dataclass(frozen=True, slots=True)
class _WithName:
    """A name of WITH: its query, and whether it has rows of people, which only a SELECT with the clause may read."""

    node: Expr
    private: bool
    released: bool


Names = Mapping[str, _WithName]


def reads_public_only(tree: Expr, catalog: Catalog, public: Mapping[str, Values]) -> bool:
    """Whether a statement reads tables, and all of them are public or its own."""
    private = {name.lower() for name, table in catalog.tables.items() if not table.public}
    known = {str(name).lower() for name in (*catalog.tables, *public)} - private
    tables = set(_list_tables(tree, frozenset()))
    return bool(tables) and tables <= known


def _list_tables(node: Expr, names: frozenset[str]) -> Iterator[str]:
    """The tables that a statement reads. A name of WITH is none, from the SELECT after its own on."""
    clause = node.args.get("with_")
    for part in clause.expressions if clause is not None else ():
        yield from _list_tables(part.this, names)
        names |= {part.alias.lower()}
    if type(node).__name__ == "Table" and (node.args.get("db") is not None or node.name.lower() not in names):
        yield node.name.lower()
    for inner in node.iter_expressions():
        if inner is not clause:
            yield from _list_tables(inner, names)


def read_computation(selects: ReleasedSelects, catalog: Catalog, public: Mapping[str, Values]) -> ReleasedComputation:
    """The computation that a statement is."""
    reader = OuterReader(selects, catalog, check_public(public, catalog))
    tree = selects.tree.copy()
    tree = reader.visit(tree, {})
    selects.check_bounds()
    columns = settle_columns(tree, reader.columns)
    return ReleasedComputation(
        text=selects.text,
        sql=tree.sql(dialect="duckdb", identify=True, comments=False),
        questions=tuple(reader.questions),
        tables=tuple(reader.tables),
        brought=tuple(reader.brought),
        columns=columns,
        rules=list_rules(tree),
    )


@dataclass(slots=True)
class OuterReader:
    """Replaces what is released and public by tables, and checks all the rest."""

    selects: ReleasedSelects
    catalog: Catalog
    public: Mapping[str, Values]
    questions: list[QuestionAndOffer] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    brought: list[Values] = field(default_factory=list)
    columns: dict[str, OuterColumns] = field(default_factory=dict)

    @property
    def places(self) -> Places:
        return self.selects.places

    def visit(self, node: Expr, names: Names) -> Expr:
        """The node with everything inside it settled; another node where it is replaced."""
        names = self._read_names(node, names)
        if self.selects.is_marked(node):
            return self._release(node, names)
        self._check(node)
        if type(node).__name__ == "Table":
            self._settle_table(node, names)
        elif type(node).__name__ == "Column":
            node.set("db", None)
            node.set("catalog", None)
        self._visit_parts(node, names)
        return _make_total(node)

    def _visit_parts(self, node: Expr, names: Names) -> None:
        clause = node.args.get("with_")  # its names are read before
        for part in [part for part in node.iter_expressions() if part is not clause]:
            found = self.visit(part, names)
            if found is not part:
                part.replace(found)

    # Names of WITH

    def _read_names(self, node: Expr, names: Names) -> Names:
        """The names that a query may use: those around it, and those of its own WITH. Private ones leave the tree."""
        clause = node.args.get("with_")
        if clause is None:
            return names
        self._check(clause)
        found = dict(names)
        for part in list(clause.expressions):
            known = self._classify(part, found)
            if known.private:
                part.pop()
            else:
                self._check(part)
                self._visit_parts(part, found)
            found[part.alias.lower()] = known
        if not clause.expressions:
            node.set("with_", None)
        return found

    def _classify(self, part: Expr, names: Names) -> _WithName:
        released = any(self.selects.is_marked(node) for node in part.walk())
        private = not released and any(
            self._is_private(node, names) for node in part.walk() if type(node).__name__ == "Table"
        )
        return _WithName(part.copy(), private, released)

    def _is_private(self, table: Expr, names: Names) -> bool:
        name = table.name.lower()
        if table.args.get("db") is None and name in names:
            return names[name].private
        return any(name == title.lower() and not facts.public for title, facts in self.catalog.tables.items())

    # Questions

    def _release(self, node: Expr, names: Names) -> Expr:
        """The table of a released question, in place of its SELECT."""
        from sqlglot.expressions import column, select, table_

        self._check_inside(node, names)
        mark = self.selects.take_mark(node) or ""
        asked = self.selects.read_select(node, mark, self._read_private(node, names), self.catalog, self.public)
        if asked not in self.questions:
            self.questions.append(asked)
        if len(self.questions) > MAX_RELEASES:
            rule = f"The statement releases more than {MAX_RELEASES} answers."
            raise refusal(self.places.of(node, "SELECT"), rule, "Ask for fewer at once.")
        index = self.questions.index(asked)
        columns = _list_columns(asked.question, index)
        name = name_released(index)
        self.columns[name] = columns
        shown = [column(known.name, quoted=True) for known in columns]
        return select(*shown).from_(table_(name, db="main", quoted=True))

    def _check_inside(self, node: Expr, names: Names) -> None:
        """Refuse a SELECT with the clause that reads what another one releases: its price would depend on it."""
        inner = [part for part in node.walk() if part is not node and self.selects.is_marked(part)]
        read = [part for part in node.walk() if type(part).__name__ == "Table" and part.args.get("db") is None]
        used = [part for part in read if part.name.lower() in names and names[part.name.lower()].released]
        if inner or used:
            rule = "This SELECT WITH DIFFERENTIAL_PRIVACY reads what another one releases."
            fix = "Leave the clause out here if no private table is read; else ask twice, with public={'name': answer}."
            raise refusal(self.places.of((inner or used)[0], "SELECT" if inner else ""), rule, fix)

    def _read_private(self, node: Expr, names: Names) -> dict[str, WithQuery]:
        """The names of WITH around a SELECT that it uses, and those that these use."""
        wanted = {part.name.lower() for part in node.walk() if type(part).__name__ == "Table"}
        for name in list(names)[::-1]:
            if name in wanted:
                wanted |= {part.name.lower() for part in names[name].node.walk() if type(part).__name__ == "Table"}
        found: dict[str, WithQuery] = {}
        for name, known in names.items():
            if name in wanted and not known.released:
                alias = known.node.args["alias"]
                columns = tuple(str(column.name) for column in alias.args.get("columns") or ())
                reader = SelectReader(self.places, self.selects.forms, found)
                found[name] = WithQuery(reader.read_query(known.node.this), columns)
        return found

    # Tables

    def _settle_table(self, node: Expr, names: Names) -> None:
        """Let a table in FROM be one that the computation has."""
        name = node.name
        if type(node.this).__name__ != "Identifier":
            rule = "A statement reads declared tables only, not a file or a function."
            raise refusal(self.places.of(node), rule, "The codebook lists the tables.")
        known = None if node.args.get("db") is not None else names.get(name.lower())
        if known is not None:
            if known.private:
                raise refusal(self.places.of(node.this), f"{_OUTSIDE}, and {name!r} has rows of people.", _RELEASE)
            return
        from sqlglot.expressions import TableAlias, to_identifier

        own = self._find_table(node)
        if node.args.get("alias") is None:
            node.set("alias", TableAlias(this=to_identifier(name, quoted=True)))
        node.set("this", to_identifier(own, quoted=True))
        node.set("db", to_identifier("main", quoted=True))
        node.set("catalog", None)

    def _find_table(self, node: Expr) -> str:
        """The name under which a public table stands in the computation."""
        name = node.name.lower()
        for title, facts in self.catalog.tables.items():
            if title.lower() == name:
                if not facts.public:
                    raise refusal(self.places.of(node.this), f"{_OUTSIDE}, and {title!r} is private.", _RELEASE)
                if facts.name not in self.tables:
                    self.tables.append(facts.name)
                own = name_public(self.tables.index(facts.name))
                self.columns[own] = tuple(OuterColumn(column) for column in facts.columns)
                return own
        for title, values in self.public.items():
            if title.lower() == name:
                if values not in self.brought:
                    self.brought.append(values)
                own = name_brought(self.brought.index(values))
                self.columns[own] = tuple(OuterColumn(column) for column, _ in values.columns)
                return own
        rule = f"There is no declared table {node.name!r}."
        raise refusal(self.places.of(node.this), rule, suggest_nearest(node.name, [*self.catalog.tables, *self.public]))

    # What may stand there

    def _check(self, node: Expr) -> None:
        """Refuse a node that is not on the list, or has a part that would change what it does."""
        kind = type(node).__name__
        if kind == "Anonymous":
            rule = f"The function {node.name} is not available."
            raise refusal(self.places.of(node), rule, "`discreet help sql` lists everything that is.")
        if kind not in allowed_nodes.NODES:
            ExpressionReader(self.places, {}).refuse(node)
        parts = allowed_nodes.PARTS.get(kind)
        more = [part for part, value in node.args.items() if value and parts is not None and part not in parts]
        if more:
            what = more[0].strip("_").replace("_", " ").upper()
            rule = f"{what} is not available in a computation over released answers."
            raise refusal(self.places.of(node), rule, "Leave it out.")
        if kind == "Join":
            words = {str(node.args.get(part) or "").upper() for part in ("side", "kind", "method")}
            if not words <= allowed_nodes.JOIN_WORDS:
                rule = f"{' '.join(sorted(words - {''}))} JOIN is not available."
                raise refusal(self.places.of(node.this), rule, "Use JOIN with a condition.")
        if kind == "DataType" and node.this.name not in allowed_nodes.TYPES:
            fix = "CAST knows BOOLEAN, BIGINT, DOUBLE, VARCHAR, DATE and TIMESTAMP."
            raise refusal(self.places.of(node), "This type is not available.", fix)


def _make_total(node: Expr) -> Expr:
    """A CAST that is NULL where it is not possible, as everywhere here; other nodes as they are."""
    from sqlglot.expressions import TryCast

    return TryCast(this=node.this, to=node.args["to"]) if type(node).__name__ == "Cast" else node


def _list_columns(question: Question, index: int) -> OuterColumns:
    """The columns of a released question. An output that is made of measures may have an interval."""
    first = len(question.keys)
    return tuple(
        OuterColumn(output.name, ((index, at),) if output.expression.type.has_ends and measured else ())
        for at, output in enumerate(question.outputs)
        for measured in [any(isinstance(p, ReleasedValue) and p.index >= first for p in walk(output.expression))]
    )
