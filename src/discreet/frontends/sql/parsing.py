"""Parses the text of a question: checks its limits, splits it into words, and makes the tree of sqlglot.

The limits make sure that no text exhausts the stack or takes long: ``MAX_CHARACTERS`` in all, ``MAX_NESTING``
parentheses or CASEs within each other, and ``terms.syntax.MAX_DEPTH`` functions within functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from discreet.frontends.sql import refusals
from discreet.frontends.sql.expression_forms import split_chain
from discreet.frontends.sql.places import Places
from discreet.frontends.sql.refusals import ONE_SELECT
from discreet.frontends.sql.schema_names import check_schemas
from discreet.frontends.terms import constants
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import MAX_DEPTH

if TYPE_CHECKING:
    from sqlglot import Dialect
    from sqlglot.expressions import Expr
    from sqlglot.tokenizer_core import Token

MAX_CHARACTERS = 10_000
MAX_NESTING = 30

# The signs of maps, structs and lambdas, which are refused, and of lists, which may hold constants.
SIGNS = frozenset({"L_BRACE", "R_BRACE", "ARROW", "DARROW", "HASH_ARROW", "DHASH_ARROW"})
# What a list of constants stands behind: UNNEST([1, 2]), f(x, [1, 2]), ARRAY[1, 2], ARRAY<INT64>[1, 2].
BEFORE_LISTS = frozenset({"L_PAREN", "COMMA", "ARRAY", "GT"})
# Words between two SELECTs, and what stands before a value, where they can only be meant as columns.
SET_WORDS = frozenset({"UNION", "INTERSECT", "EXCEPT"})
BEFORE_VALUES = frozenset({"SELECT", "COMMA", "GROUP_BY", "ORDER_BY", "WHERE", "AND", "OR", "NOT"})


class ParsedStatement(NamedTuple):
    """The tree of a statement, and the places of its nodes."""

    tree: Expr
    places: Places


def split_words(text: str, *, google: bool = False) -> list[Token]:
    """The words of a text, in the dialect of DuckDB or in GoogleSQL."""
    from sqlglot.errors import SqlglotError

    _check_text(text)
    try:
        return list(_make_dialect(google=google).tokenize(text))
    except (SqlglotError, ValueError, IndexError):
        raise _explain_unclosed(text) from None


def parse(text: str, tokens: list[Token], *, google: bool = False) -> ParsedStatement:
    """The tree of one statement. A text that is not one statement, or is nested too deeply, is refused."""
    places = Places(text, tokens)
    _check_tokens(tokens, places)
    kept, most = _cut_top(tokens)
    tree = _parse(text, kept, places, google=google)
    _read_fetch(tree)
    if most is not None:
        _add_limit(tree, most, places)
    _check_depth(tree, places)
    check_schemas(tree, places)
    return ParsedStatement(tree, places)


def _cut_top(tokens: list[Token]) -> tuple[list[Token], Token | None]:
    """The words without TOP n behind the first SELECT, where other systems write LIMIT, and the word n."""
    words = [bare_word_of(token) for token in tokens]
    at = words.index("SELECT") + 1 if "SELECT" in words else len(words)
    at += words[at : at + 1] == ["DISTINCT"]
    if words[at : at + 1] != ["TOP"] or "(" in words[:at]:
        return tokens, None
    bracketed = words[at + 1 : at + 2] == ["("] and words[at + 3 : at + 4] == [")"]
    number = at + 2 if bracketed else at + 1
    if number >= len(tokens) or tokens[number].token_type.name != "NUMBER":
        return tokens, None
    return [*tokens[:at], *tokens[number + 1 + bracketed :]], tokens[number]


def _add_limit(tree: Expr, number: Token, places: Places) -> None:
    from sqlglot.expressions import Limit, Literal

    if tree.args.get("limit") is not None:
        raise refusal(places.of_token(number), "TOP and LIMIT say the same.", "Keep one of them.")
    literal = Literal.number(number.text)
    literal.meta.update(start=number.start, end=number.end)
    tree.set("limit", Limit(expression=literal))


def _read_fetch(tree: Expr) -> None:
    """Write FETCH FIRST n ROWS ONLY as LIMIT n, which means the same. A share of rows and WITH TIES stay."""
    from sqlglot.expressions import Limit

    fetch = tree.args.get("limit")
    if fetch is None or type(fetch).__name__ != "Fetch" or fetch.args.get("count") is None:
        return
    options = fetch.args.get("limit_options")
    if options is None or not any(options.args.get(part) for part in ("percent", "with_ties")):
        tree.set("limit", Limit(expression=fetch.args["count"]))


def unwrap(tree: Expr) -> Expr:
    """A statement without parentheses around all of it."""
    while type(tree).__name__ == "Subquery" and not any(value for part, value in tree.args.items() if part != "this"):
        tree = tree.this
    return tree


def _make_dialect(*, google: bool) -> Dialect:
    if not google:
        from sqlglot.dialects.duckdb import DuckDB

        return DuckDB()
    from sqlglot.dialects.bigquery import BigQuery

    dialect = BigQuery()
    dialect.NULL_ORDERING = "nulls_are_last"  # as in every answer here; GoogleSQL itself sorts them first
    return dialect


def _check_text(text: str) -> None:
    if not isinstance(text, str):
        raise refusal(None, "A question is a text.", "Pass SQL as a str, for example 'SELECT COUNT(*) FROM visits'.")
    if len(text) > MAX_CHARACTERS:
        rule = f"The question is longer than {MAX_CHARACTERS:,} characters."
        raise refusal(None, rule, "Ask for something simpler.")
    constants.check_text(text, None)
    if not text.strip():
        raise refusal(None, "The question is empty.", "Write for example SELECT COUNT(*) FROM visits.")


def _explain_unclosed(text: str) -> Exception:
    """The refusal of a text that cannot be split into words. The usual reason is a quote that is not closed."""
    place = None
    for quote in ("'", '"', "/*", "$$"):
        if text.count(quote) % 2 or (quote == "/*" and text.count("*/") < text.count("/*")):
            at = text.rfind(quote)
            place = Place(text, at, at + len(quote))
            break
    return refusal(place, "A quote or comment is opened and not closed.", "Close it; a ' inside a text is written ''.")


def _check_tokens(tokens: list[Token], places: Places) -> None:
    """Refuse, before parsing, what is not one SELECT, has lists, or is nested too deeply."""
    statement = [token for token in tokens if token.text != ";"]
    if not statement:
        raise refusal(None, "The question is empty.", "Write for example SELECT COUNT(*) FROM visits.")
    kinds = [token.token_type.name for token in tokens]
    for token, kind, after in zip(tokens, kinds, tokens[1:]):
        if kind == "SEMICOLON" and after.token_type.name != "SEMICOLON":
            raise refusal(
                places.of_token(after), "Only one statement can be asked.", "Leave out what follows the semicolon."
            )
        if kind == "NUMBER" and after.start == token.end + 1 and after.token_type.name == "VAR":
            raise refusal(places.of_token(token), "This is not a number.", "Write it like 12, -3.5 or 1e6.")
    for token, kind, before in zip(tokens, kinds, ["", *kinds]):
        if kind in SET_WORDS and before in BEFORE_VALUES:  # sqlglot would read an empty SELECT before it
            word = token.text.upper()
            fix = f'A column called {token.text} is written "{token.text}": {word} is a word of SQL.'
            raise refusal(places.of_token(token), f"{word} joins two SELECTs, and here is none before it.", fix)
        if kind in SIGNS or kind == "L_BRACKET":
            why = _find_list_reason(tokens, token)
            if kind in SIGNS or before not in BEFORE_LISTS or why is refusals.QUANTILES:
                raise refusal(places.of_token(token), why.rule, why.fix)
    first = statement[0]
    if first.token_type.name not in {"SELECT", "FROM", "WITH", "L_PAREN"}:
        reason = refusals.STATEMENTS.get(first.text.upper())
        rule = reason.rule if reason else "Only SELECT can be asked."
        raise refusal(places.of_token(first), rule, reason.fix if reason else ONE_SELECT)
    depth = 0
    for token, kind in zip(tokens, kinds):
        depth += (kind in {"L_PAREN", "L_BRACKET", "CASE"}) - (kind in {"R_PAREN", "R_BRACKET", "END"})
        if depth > MAX_NESTING:
            raise explain_too_deep(places.of_token(token))


def bare_word_of(token: Token) -> str:
    """A word or sign in capital letters; empty for a text or a name in quotes."""
    kind = token.token_type.name
    return "" if kind == "IDENTIFIER" or "STRING" in kind else token.text.upper()


def _find_list_reason(tokens: Sequence[Token], sign: Token) -> refusals.RefusalReason:
    """The reason why a list is refused. For QUANTILE(x, [0.25, 0.5]) it says what to write instead."""
    called: list[str] = [""]
    before = ""
    for token in tokens:
        if token.start >= sign.start:
            break
        if bare_word_of(token) == "(":
            called.append(before)
        elif bare_word_of(token) == ")" and len(called) > 1:
            called.pop()
        before = bare_word_of(token)
    return refusals.QUANTILES if "QUANTILE" in called[-1] or "PERCENTILE" in called[-1] else refusals.LISTS


def explain_too_deep(place: Place) -> Exception:
    """The refusal of a text that is nested too deeply."""
    rule = f"The question is nested too deeply: at most {MAX_NESTING} parentheses or CASEs within each other."
    return refusal(place, rule, "Ask for something simpler.")


def _parse(text: str, tokens: list[Token], places: Places, *, google: bool) -> Expr:
    from sqlglot.errors import ParseError

    try:
        trees = _make_dialect(google=google).parser().parse(tokens, text)
    except ParseError as error:
        raise _explain_parse_error(error, text, tokens, places) from None
    except RecursionError:
        raise explain_too_deep(places.find_first_word()) from None
    except Exception as error:  # whatever else a parser raises, it could not read the text
        rule = f"This cannot be read as SQL ({type(error).__name__})."
        raise refusal(places.find_first_word(), rule, ONE_SELECT) from None
    # A comment after the semicolon is a tree of its own.
    found = [tree for tree in trees if tree is not None and type(tree).__name__ != "Semicolon"]
    if len(found) != 1:
        raise refusal(places.find_first_word(), "This cannot be read as one statement.", ONE_SELECT)
    return found[0]


def _explain_parse_error(error: Exception, text: str, tokens: list[Token], places: Places) -> Exception:
    """The parser's error, at its place and in plain words."""
    details = (getattr(error, "errors", None) or [{}])[0]
    line, column = details.get("line"), details.get("col")
    token = next((t for t in tokens if t.line == line and t.col == column), None)
    place = places.of_token(token) if token is not None else Place(text, len(text.rstrip()), len(text.rstrip()))
    problem = str(details.get("description") or "")
    quote = next((other for other in tokens if other.text == "`"), None)
    if quote is not None:
        rule = "Names do not stand between backticks here."
        raise refusal(places.of_token(quote), rule, 'Leave them out, or write double quotes: hospital."visits".')
    if problem.startswith("Expecting ") and len(problem) < 20:
        return refusal(place, f"Here {problem.removeprefix('Expecting ')} was expected.", "Check the parentheses.")
    if problem.startswith(("Required keyword", "Expected")):
        side = "before" if token is not None and token.text == ")" else "after"
        fix = f"Complete the expression or leave it out.{_explain_keyword(token, tokens)}"
        return refusal(place, f"Something is missing {side} this.", fix)
    if problem.startswith("The number of provided arguments"):
        return refusal(place, "This function has too many arguments.", "`discreet help sql` lists the functions.")
    return refusal(place, "This was not expected here.", "Check for a missing comma, operator or quote before it.")


# Words of SQL that nobody takes for a column.
_STRUCTURE = frozenset({"SELECT", "FROM", "WHERE", "BY", "AND", "OR", "NOT", "AS", "ON", "HAVING", "LIMIT", "JOIN"})


def _explain_keyword(token: Token | None, tokens: list[Token]) -> str:
    """What to do where a word of SQL at the place, or right before it, may have been meant as a column."""
    at = next((number for number, other in enumerate(tokens) if other is token), None)
    for other in [] if at is None else tokens[at::-1][:2]:
        word = bare_word_of(other)
        if word.isalpha() and other.token_type.name not in {"VAR", *_STRUCTURE} and word not in _STRUCTURE:
            return f' A column called {other.text} is written "{other.text}": {word} is a word of SQL.'
    return ""


def _check_depth(tree: Expr, places: Places) -> None:
    """Refuse a tree that is too deep for our own recursion. A chain such as a AND b AND c is one level."""
    pending: list[tuple[Expr, int]] = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        if depth > 2 * MAX_DEPTH:
            raise explain_too_deep(places.find_first_word())
        flat = type(node).__name__ in {"And", "Or", "DPipe"}
        inner = split_chain(node) if flat else node.iter_expressions()
        pending += [(part, depth + 1) for part in inner]
