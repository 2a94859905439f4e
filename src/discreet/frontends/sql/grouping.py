"""Reads GROUP BY: its keys, and several groupings in one question."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from discreet.frontends.sql.reader import ExpressionReader
from discreet.frontends.terms import grouping_sets
from discreet.frontends.terms.grouping_sets import Keys, Sets
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import Term

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

KeyReader: TypeAlias = Callable[["Node"], Term]
SetPositions: TypeAlias = tuple[tuple[int, ...], ...] | None


def read_keys(clause: Node | None, reader: ExpressionReader, read_key: KeyReader) -> tuple[Keys | None, SetPositions]:
    """The keys of GROUP BY (None for GROUP BY ALL), and the sets of them by position (None for one set of all).

    ``read_key`` reads an expression, in which a bare number means the output with this number.
    """
    if clause is None:
        return (), None
    if clause.args.get("all"):
        reader.check_parts(clause, "all")
        return None, None
    place = reader.places.find_word("GROUP BY")
    for word in ("rollup", "cube"):
        if clause.args.get(word):
            rule = f"WITH {word.upper()} is not available."
            raise refusal(reader.places.find_word(word.upper()), rule, f"Write GROUP BY {word.upper()}(a, b).")
    reader.check_parts(clause, "expressions")
    if not clause.expressions:
        raise refusal(place, "GROUP BY names no key.", "Name columns, or leave it out.")
    elements = [_read_sets(node, reader, read_key) for node in clause.expressions]
    return grouping_sets.number_keys(grouping_sets.cross_sets(elements, place))


def _read_sets(node: Node, reader: ExpressionReader, read_key: KeyReader) -> Sets:
    """The sets of keys of one element of GROUP BY."""
    kind = type(node).__name__
    if kind not in {"Rollup", "Cube", "GroupingSets"}:
        return (_read_part(node, reader, read_key),)
    word = "GROUPING SETS" if kind == "GroupingSets" else kind.upper()
    place = reader.places.of(node, word)
    reader.check_parts(node, "expressions")
    if not node.expressions:
        raise refusal(place, f"{word} names no key.", "Name columns, or leave it out.")
    if kind == "GroupingSets":
        return grouping_sets.append_sets([_read_sets(inner, reader, read_key) for inner in node.expressions], place)
    parts = [_read_part(inner, reader, read_key) for inner in node.expressions]
    return grouping_sets.make_rollup(parts, place) if kind == "Rollup" else grouping_sets.make_cube(parts, place)


def _read_part(node: Node, reader: ExpressionReader, read_key: KeyReader) -> Keys:
    """One key, or several keys in parentheses, which stay together."""
    if type(node).__name__ == "Tuple":
        reader.check_parts(node, "expressions")
        return tuple(read_key(inner) for inner in node.expressions)
    bare = node
    while type(bare).__name__ == "Paren":
        bare = bare.this
    return (read_key(bare),)
