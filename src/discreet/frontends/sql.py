"""SQL to a question: one SELECT of one declared table, read by sqlglot and accepted by an allow-list.

We never run what the analyst wrote: the text is parsed, every clause and every expression is recognised by name or
refused with its place, and a plan is built from our own nodes.

Limits, so that no text can exhaust the stack or the clock: ``MAX_CHARACTERS`` in all, ``MAX_NESTING`` parentheses or
CASEs within each other, ``terms.MAX_DEPTH`` functions within functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from discreet.frontends import constants, sql_refusals
from discreet.frontends.positions import Place, refusal
from discreet.frontends.resolve import resolve
from discreet.frontends.sql_expressions import FORMS, chain
from discreet.frontends.sql_places import Places
from discreet.frontends.sql_reader import Reader
from discreet.frontends.sql_refusals import ONE_SELECT, Reason
from discreet.frontends.terms import MAX_DEPTH, Draft, Item, Name, Ordinal, Sort, Term
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question

if TYPE_CHECKING:
    from sqlglot.expressions import Expr
    from sqlglot.tokenizer_core import Token

MAX_CHARACTERS = 10_000
MAX_NESTING = 30

# The parts of a SELECT that a question can have.
CLAUSES = ("expressions", "from_", "where", "group", "having", "order", "limit", "offset")
# Signs of lists, maps, structs and lambdas, which no question needs.
LISTS = frozenset({"L_BRACKET", "R_BRACKET", "L_BRACE", "R_BRACE", "ARROW", "DARROW", "HASH_ARROW", "DHASH_ARROW"})


def read(text: str, catalog: Catalog) -> Question:
    """The question that a text asks, or a ``QuestionError`` that shows where and why not."""
    try:
        return resolve(draft(text), catalog)
    except RecursionError:
        raise _too_deep(Place(text, 0, 0)) from None


def draft(text: str) -> Draft:
    """The question in terms, before any name is looked up."""
    _check_text(text)
    tokens = _tokens(text)
    places = Places(text, tokens)
    _check_tokens(tokens, places)
    tree = _parse(text, tokens, places)
    _check_depth(tree, places)
    return _Statement(places).read(tree)


# Before and around the parser


def _check_text(text: str) -> None:
    if not isinstance(text, str):
        raise refusal(None, "A question is a text.", "Pass SQL as a str, for example 'SELECT COUNT(*) FROM visits'.")
    if len(text) > MAX_CHARACTERS:
        rule = f"The question is longer than {MAX_CHARACTERS:,} characters."
        raise refusal(None, rule, "Ask for something simpler.")
    constants.text(text, None)
    if not text.strip():
        raise refusal(None, "The question is empty.", "Write for example SELECT COUNT(*) FROM visits.")


def _tokens(text: str) -> list[Token]:
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import SqlglotError

    try:
        return list(DuckDB().tokenize(text))
    except (SqlglotError, ValueError, IndexError):
        raise _unclosed(text) from None


def _unclosed(text: str) -> Exception:
    """The usual reason why a text has no words: a quote that does not end."""
    place = None
    for quote in ("'", '"', "/*", "$$"):
        if text.count(quote) % 2 or (quote == "/*" and text.count("*/") < text.count("/*")):
            at = text.rfind(quote)
            place = Place(text, at, at + len(quote))
            break
    return refusal(place, "A quote or comment is opened and not closed.", "Close it; a ' inside a text is written ''.")


def _check_tokens(tokens: list[Token], places: Places) -> None:
    """What can be said before parsing: one statement, a SELECT, not nested too deeply."""
    statement = [token for token in tokens if token.text != ";"]
    if not statement:
        raise refusal(None, "The question is empty.", "Write for example SELECT COUNT(*) FROM visits.")
    kinds = [token.token_type.name for token in tokens]
    for token, kind, after in zip(tokens, kinds, tokens[1:]):
        if kind == "SEMICOLON" and after.token_type.name != "SEMICOLON":
            raise refusal(
                places.token(after), "Only one statement can be asked.", "Leave out what follows the semicolon."
            )
        if kind == "NUMBER" and after.start == token.end + 1 and after.token_type.name == "VAR":
            raise refusal(places.token(token), "This is not a number.", "Write it like 12, -3.5 or 1e6.")
    for token, kind in zip(tokens, kinds):
        if kind in LISTS:
            raise refusal(places.token(token), sql_refusals.LISTS.rule, sql_refusals.LISTS.fix)
    first = statement[0]
    if first.token_type.name not in {"SELECT", "FROM"}:
        reason = sql_refusals.STATEMENTS.get(first.text.upper())
        rule = reason.rule if reason else "Only SELECT can be asked."
        raise refusal(places.token(first), rule, reason.fix if reason else ONE_SELECT)
    depth = 0
    for token, kind in zip(tokens, kinds):
        depth += (kind in {"L_PAREN", "CASE"}) - (kind in {"R_PAREN", "END"})
        if depth > MAX_NESTING:
            raise _too_deep(places.token(token))


def _too_deep(place: Place) -> Exception:
    rule = f"The question is nested too deeply: at most {MAX_NESTING} parentheses or CASEs within each other."
    return refusal(place, rule, "Ask for something simpler.")


def _parse(text: str, tokens: list[Token], places: Places) -> Expr:
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import ParseError

    try:
        trees = DuckDB().parser().parse(tokens, text)
    except ParseError as error:
        raise _not_read(error, text, tokens, places) from None
    except RecursionError:
        raise _too_deep(places.whole()) from None
    except Exception as error:  # whatever else a parser raises, it could not read the text
        rule = f"This cannot be read as SQL ({type(error).__name__})."
        raise refusal(places.whole(), rule, ONE_SELECT) from None
    found = [tree for tree in trees if tree is not None]
    if len(found) != 1:
        raise refusal(places.whole(), "This cannot be read as one statement.", ONE_SELECT)
    return found[0]


def _not_read(error: Exception, text: str, tokens: list[Token], places: Places) -> Exception:
    """The parser's complaint, at its place and in plain words."""
    details = (getattr(error, "errors", None) or [{}])[0]
    line, column = details.get("line"), details.get("col")
    token = next((t for t in tokens if t.line == line and t.col == column), None)
    place = places.token(token) if token is not None else Place(text, len(text.rstrip()), len(text.rstrip()))
    problem = str(details.get("description") or "")
    if problem.startswith("Expecting ") and len(problem) < 20:
        return refusal(place, f"Here {problem.removeprefix('Expecting ')} was expected.", "Check the parentheses.")
    if problem.startswith(("Required keyword", "Expected")):
        side = "before" if token is not None and token.text == ")" else "after"
        return refusal(place, f"Something is missing {side} this.", "Complete the expression or leave it out.")
    if problem.startswith("The number of provided arguments"):
        return refusal(place, "This function has too many arguments.", "docs/sql.md lists the functions.")
    return refusal(place, "This was not expected here.", "Check for a missing comma, operator or quote before it.")


def _check_depth(tree: Expr, places: Places) -> None:
    """No tree deeper than our own recursion can bear; a AND b AND c is one level."""
    waiting: list[tuple[Expr, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > 2 * MAX_DEPTH:
            raise _too_deep(places.whole())
        flat = type(node).__name__ in {"And", "Or", "DPipe"}
        inner = chain(node) if flat else node.iter_expressions()
        waiting += [(part, depth + 1) for part in inner]


class _Statement:
    """Reads the clauses of one SELECT."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.reader = Reader(places, FORMS)

    def read(self, tree: Expr) -> Draft:
        if type(tree).__name__ != "Select":
            self.reader.refuse(tree)
        self._only(tree, CLAUSES, sql_refusals.CLAUSES)
        if tree.args.get("from_") is None:
            raise refusal(self.places.whole(), "The question names no table.", "Add FROM and a declared table.")
        table, alias = self._table(tree.args["from_"].this)
        where, having = tree.args.get("where"), tree.args.get("having")
        order = tree.args.get("order")
        return Draft(
            table=table,
            table_alias=alias,
            where=self._condition(where),
            group=self._group(tree.args.get("group")),
            select=self._select(tree),
            having=self._condition(having),
            order=tuple(self._sort(part) for part in order.expressions) if order is not None else (),
            limit=self._limit(tree.args.get("limit"), 1),
            offset=self._limit(tree.args.get("offset"), 0) or 0,
        )

    def _only(self, node: Expr, parts: tuple[str, ...], reasons: Mapping[str, Reason]) -> None:
        """Refuses parts of a clause that are not accepted, with their own reasons where there are some."""
        for part, value in node.args.items():
            if value and part not in parts:
                self._refuse(node, part, value, reasons.get(part))

    def _refuse(self, node: Expr, part: str, value: object, reason: Reason | None) -> NoReturn:
        from sqlglot.expressions import Expr

        inner = value[0] if isinstance(value, list) else value
        shown = inner if isinstance(inner, Expr) else node  # a flag, such as WITH TOTALS, has no place of its own
        place = self.places.of(shown, reason.word if reason else "")
        if reason is None:
            word = part.strip("_").replace("_", " ").upper()
            raise refusal(place, f"{word} is not available in a question.", ONE_SELECT)
        raise refusal(place, reason.rule, reason.fix)

    def _table(self, node: Expr) -> tuple[Name, str | None]:
        if type(node).__name__ != "Table":
            self.reader.refuse(node)
        self._only(node, ("this", "alias"), sql_refusals.TABLE_PARTS)
        if type(node.this).__name__ != "Identifier":
            rule = "A question reads a declared table only, not a file or a function."
            raise refusal(self.places.of(node), rule, "The codebook lists the tables.")
        alias = node.args.get("alias")
        if alias is not None:
            self._only(alias, ("this",), {})
        return Name(node.this.name, None, self.places.of(node.this)), alias.name if alias is not None else None

    def _select(self, tree: Expr) -> tuple[Item, ...]:
        if not tree.expressions:
            raise refusal(self.places.whole(), "The question asks for nothing.", "Add an aggregate, such as COUNT(*).")
        return tuple(self._item(node) for node in tree.expressions)

    def _item(self, node: Expr) -> Item:
        if type(node).__name__ != "Alias":
            return Item(self.reader.read(node), None, self.places.of(node))
        self.reader.only(node, "this", "alias")
        return Item(self.reader.read(node.this), node.alias, self.places.of(node.args["alias"]))

    def _condition(self, clause: Expr | None) -> tuple[Term, ...]:
        if clause is None:
            return ()
        self.reader.only(clause, "this")
        return (self.reader.read(clause.this),)

    def _group(self, clause: Expr | None) -> tuple[Term, ...] | None:
        if clause is None:
            return ()
        if clause.args.get("all"):
            self.reader.only(clause, "all")
            return None
        self._only(clause, ("expressions",), {})
        if not clause.expressions:
            raise refusal(self.places.word("GROUP BY"), "GROUP BY names no key.", "Name columns, or leave it out.")
        return tuple(self._numbered(node) for node in clause.expressions)

    def _sort(self, node: Expr) -> Sort:
        if type(node).__name__ != "Ordered":
            self.reader.refuse(node)
        if node.args.get("nulls_first"):
            rule = "NULLS FIRST is not available: NULLs come last."
            raise refusal(self.places.of(node, "NULLS"), rule, "Leave it out.")
        self.reader.only(node, "this", "desc")
        return Sort(self._numbered(node.this), bool(node.args.get("desc")))

    def _numbered(self, node: Expr) -> Term:
        """An expression of GROUP BY or ORDER BY, in which a bare number counts the outputs."""
        term = self.reader.read(node)
        bare = type(node).__name__ == "Literal" and not node.args.get("is_string")
        if not bare:
            return term
        value = constants.number(str(node.this), self.places.of(node))
        if not isinstance(value, int):
            raise refusal(self.places.of(node), "This is not the number of an output.", "Use 1, 2, ... or a name.")
        return Ordinal(value, self.places.of(node))

    def _limit(self, node: Expr | None, least: int) -> int | None:
        if node is None:
            return None
        word = "LIMIT" if least else "OFFSET"
        self._only(
            node, ("expression",), {"limit_options": Reason(f"{word} takes a number of rows.", f"Write {word} 10.")}
        )
        number = node.args.get("expression")
        place = self.places.of(node, word)
        if type(number).__name__ != "Literal" or number is None or number.args.get("is_string"):
            raise refusal(place, f"{word} takes a whole number.", f"Write for example {word} 10.")
        value = constants.number(str(number.this), place)
        if not isinstance(value, int) or value < least:
            raise refusal(place, f"{word} takes a whole number from {least} on.", f"Write for example {word} 10.")
        return value
