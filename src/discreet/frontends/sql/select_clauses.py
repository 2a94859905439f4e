"""Reads the clauses of a SELECT into terms: of a question, and of the SELECTs inside it.

A question has aggregates or keys, and may be ordered and limited. A SELECT inside it has rows. It may have DISTINCT,
windows and QUALIFY, but no LIMIT, because the rows that LIMIT keeps depend on the rows of all units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.frontends.sql import from_clause, grouping, refusals
from discreet.frontends.sql.inner_forms import add_inner_forms
from discreet.frontends.sql.places import Places
from discreet.frontends.sql.reader import ExpressionReader, Form
from discreet.frontends.sql.refusals import ONE_SELECT, RefusalReason
from discreet.frontends.sql.with_clause import WithQuery, read_set_operation, read_union, read_with
from discreet.frontends.terms import constants
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import (
    Constant,
    Draft,
    Item,
    Ordinal,
    QueryTerm,
    Star,
    Term,
    ValuesTerm,
    aggregates_in,
)

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

# The parts of a SELECT that a question can have, and those that a SELECT inside it can have.
CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_", "distinct")
INNER_CLAUSES = (
    "expressions", "from_", "joins", "where", "group", "having", "order", "with_", "distinct", "qualify", "windows",
)  # fmt: skip  # one list


class SelectReader:
    """Reads one SELECT. ``names`` are the SELECTs of a WITH around it, by name."""

    def __init__(
        self,
        places: Places,
        forms: Mapping[str, Form],
        names: Mapping[str, WithQuery] | None = None,
        *,
        inner: bool = False,
    ) -> None:
        self.places = places
        self.forms = forms
        self.names = dict(names or {})
        self.inner = inner
        self.reader = ExpressionReader(places, add_inner_forms(forms) if inner else forms, self.read_query)

    def read(self, tree: Expr) -> Draft:
        """The SELECT as terms."""
        if type(tree).__name__ != "Select":
            self.reader.refuse(tree)
        reasons = refusals.INNER_CLAUSES if self.inner else refusals.CLAUSES
        self._check_parts(tree, INNER_CLAUSES if self.inner else CLAUSES, reasons)
        self.names |= read_with(tree.args.get("with_"), self.reader, self._read_inside, self.names)
        if tree.args.get("from_") is None and self.inner and _list_parts(tree) == ["expressions"]:
            return self._read_constants(tree)
        if tree.args.get("from_") is None:
            place = self.places.of(tree) if self.inner else self.places.find_first_word()
            raise refusal(place, "The question names no table.", "Add FROM and a declared table.")
        self.reader.windows = {window.this.name.lower(): window for window in tree.args.get("windows") or ()}
        order = tree.args.get("order")
        group, sets = grouping.read_keys(tree.args.get("group"), self.reader, self._read_key)
        if self.inner and sets is not None:
            rule = "Several groupings at once are not available inside a question."
            raise refusal(self.places.of(tree.args["group"]), rule, "Use one GROUP BY.")
        distinct = self._read_distinct(tree.args.get("distinct"))
        if distinct and not self.inner and self._names_groups(tree):
            group = None  # the outputs are the keys, as with GROUP BY ALL
        return Draft(
            source=from_clause.read_source(tree, self.reader, self.names),
            where=self._read_condition(tree.args.get("where")),
            group=group,
            sets=sets,
            select=self._read_outputs(tree),
            having=self._read_condition(tree.args.get("having")),
            order=tuple(
                self.reader.read_sort(part, self._read_key, released=not self.inner)
                for part in (() if order is None else order.expressions)
            ),
            limit=self._read_limit(tree.args.get("limit"), 1),
            offset=self._read_limit(tree.args.get("offset"), 0) or 0,
            distinct=distinct,
            qualify=self._read_condition(tree.args.get("qualify")),
        )

    def _read_constants(self, tree: Expr) -> Draft:
        """A SELECT of constants without FROM: one public row."""
        items = [self._read_item(node) for node in tree.expressions]
        place = self.places.of(tree)
        constants_only = [item.term for item in items if isinstance(item.term, Constant)]
        if len(constants_only) < len(items):
            raise refusal(place, "A SELECT without FROM holds constants only.", "Add FROM and a declared table.")
        names = tuple(item.alias or f"col{i}" for i, item in enumerate(items))
        return Draft(
            source=ValuesTerm((tuple(constants_only),), None, names, place), select=(Item(Star(), None, place),)
        )

    def read_query(self, node: Expr) -> QueryTerm:
        """A SELECT inside this one, or a UNION of several."""
        return self._read_inside(node, self.names)

    def _read_inside(self, node: Expr, names: Mapping[str, WithQuery]) -> QueryTerm:
        while type(node).__name__ == "Subquery":
            self.reader.check_parts(node, "this")
            node = node.this
        if type(node).__name__ in {"Union", "Intersect", "Except"}:
            around = {**names, **read_with(node.args.get("with_"), self.reader, self._read_inside, names)}
            read = read_union if type(node).__name__ == "Union" else read_set_operation
            return read(node, self.reader, lambda part: self._read_inside(part, around))
        return SelectReader(self.places, self.forms, names, inner=True).read(node)

    def _check_parts(self, node: Expr, parts: tuple[str, ...], reasons: Mapping[str, RefusalReason]) -> None:
        """Refuses a clause that has more than these parts."""
        self.reader.check_clause(node, parts, reasons, "{word} is not available in a question.", ONE_SELECT)

    def _read_distinct(self, node: Expr | None) -> bool:
        if node is None:
            return False
        if node.args.get("on") is not None:
            rule = "DISTINCT ON is not available: which row it keeps depends on the order of all."
            fix = "Use ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) and keep row 1."
            raise refusal(self.places.of(node, "DISTINCT"), rule, fix)
        self.reader.check_parts(node)
        return True

    def _names_groups(self, tree: Expr) -> bool:
        """Whether SELECT DISTINCT stands for GROUP BY: it has neither aggregates nor GROUP BY."""
        return tree.args.get("group") is None and not any(aggregates_in(item.term) for item in self._read_outputs(tree))

    def _read_outputs(self, tree: Expr) -> tuple[Item, ...]:
        if not tree.expressions:
            raise refusal(
                self.places.find_first_word(), "The question asks for nothing.", "Add an aggregate, such as COUNT(*)."
            )
        return tuple(self._read_item(node) for node in tree.expressions)

    def _read_item(self, node: Expr) -> Item:
        if self.inner and (star := self._read_star(node)) is not None:
            return Item(star, None, star.place)
        if type(node).__name__ != "Alias":
            return Item(self.reader.read(node), None, self.places.of(node))
        self.reader.check_parts(node, "this", "alias")
        return Item(self.reader.read(node.this), node.alias, self.places.of(node.args["alias"]))

    def _read_star(self, node: Expr) -> Star | None:
        """* or t.*, with EXCLUDE."""
        bare, qualifier = node, None
        if type(node).__name__ == "Column" and type(node.this).__name__ == "Star":
            self.reader.check_parts(node, "this", "table", "db", "catalog")
            bare, qualifier = node.this, node.args["table"].name if node.args.get("table") is not None else None
        if type(bare).__name__ != "Star":
            return None
        self.reader.check_parts(bare, "except_")
        without = tuple(str(column.name) for column in bare.args.get("except_") or ())
        return Star(qualifier, without, self.places.of(node))

    def _read_condition(self, clause: Expr | None) -> tuple[Term, ...]:
        if clause is None:
            return ()
        self.reader.check_parts(clause, "this")
        return (self.reader.read(clause.this),)

    def _read_key(self, node: Expr) -> Term:
        """An expression of GROUP BY or ORDER BY, in which a bare number means the output with this number."""
        term = self.reader.read(node)
        bare = type(node).__name__ == "Literal" and not node.args.get("is_string")
        if not bare:
            return term
        value = constants.read_number(str(node.this), self.places.of(node))
        if not isinstance(value, int):
            raise refusal(self.places.of(node), "This is not the number of an output.", "Use 1, 2, ... or a name.")
        return Ordinal(value, self.places.of(node))

    def _read_limit(self, node: Expr | None, least: int) -> int | None:
        if node is None:
            return None
        word = "LIMIT" if least else "OFFSET"
        self._check_parts(
            node,
            ("expression",),
            dict.fromkeys(
                ("limit_options", "direction"), RefusalReason(f"{word} takes a number of rows.", f"Write {word} 10.")
            ),
        )
        number = node.args.get("expression")
        place = self.places.of(node, word)
        if type(number).__name__ != "Literal" or number is None or number.args.get("is_string"):
            raise refusal(place, f"{word} takes a whole number.", f"Write for example {word} 10.")
        value = constants.read_number(str(number.this), place)
        if not isinstance(value, int) or value < least:
            raise refusal(place, f"{word} takes a whole number from {least} on.", f"Write for example {word} 10.")
        return value


def _list_parts(tree: Expr) -> list[str]:
    """The names of the clauses that a SELECT has."""
    return [part for part, value in tree.args.items() if value]
