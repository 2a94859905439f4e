"""Reads lists of constants: x IN UNNEST([1, 2]), x = ANY([1, 2]), and FROM UNNEST([1, 2]) AS x, which has public rows.

The rows of a list are part of the question, so they are public, as those of VALUES are. Lists of columns stay refused:
how long they are depends on the data.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from discreet.frontends.sql.functions import CASTS
from discreet.frontends.sql.intervals import TimeSpan, read_time_span
from discreet.frontends.sql.reader import OPERANDS, ExpressionReader, Form
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import MAX_MEMBERS, Constant, Term, ValuesTerm
from discreet.plan.types import Type, type_of

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

_TYPES = {f"to_{kind}": kind for kind in Type}
_ROWS = {"Struct", "Tuple"}
_EXAMPLE = "Write for example UNNEST(['A', 'B'])."


def is_list(node: Node | None) -> bool:
    """Whether a node is a list that is written out."""
    while node is not None and type(node).__name__ == "Paren":
        node = node.this
    return type(node).__name__ in _LISTS or (
        type(node).__name__ == "Cast" and node is not None and type(node.this).__name__ == "Array"
    )


def read_list(reader: ExpressionReader, node: Node) -> tuple[Constant, ...]:
    """The members of a list of constants."""
    while type(node).__name__ == "Paren":
        node = node.this
    if type(node).__name__ == "Cast":
        return _read_typed_list(reader, node)
    read = _LISTS.get(type(node).__name__)
    if read is None:
        raise refusal(reader.place_of(node), "A list in a question is one of constants.", _EXAMPLE)
    found = tuple(read(reader, node))
    if not found:
        raise refusal(reader.place_of(node), "This list is empty.", _EXAMPLE)
    return found


def _read_typed_list(reader: ExpressionReader, node: Node) -> tuple[Constant, ...]:
    """ARRAY<INT64>[1, 2]: the members must be of that type already, because none is changed."""
    members = read_list(reader, node.this)
    inner = node.args["to"].expressions
    name = str(getattr(inner[0].this, "name", "")) if len(inner) == 1 else ""
    kind = _TYPES.get(CASTS.get(name, ""))
    if kind is None or any(type_of(member.value) not in (None, kind) for member in members):
        rule = "The members of this list are not of the type that it names."
        raise refusal(reader.place_of(node), rule, "Leave the type out.")
    return members


def _read_constant(reader: ExpressionReader, node: Node) -> Constant:
    if type(node).__name__ in _ROWS:
        rule = "A list of several columns stands in FROM UNNEST(...) only."
        raise refusal(reader.place_of(node), rule, _EXAMPLE)
    term = reader.read(node)
    if not isinstance(term, Constant):
        raise refusal(reader.place_of(node), "A list in a question is one of constants.", _EXAMPLE)
    return term


def _count_up(reader: ExpressionReader, node: Node) -> Iterator[Constant]:
    """generate_series(1, 10), GENERATE_ARRAY(1, 10, 2) and range(10), which leaves its end out."""
    reader.check_parts(node, "start", "end", "step", "is_end_exclusive")
    place = reader.place_of(node)
    numbers = [_read_constant(reader, part).value for key in ("start", "end", "step") if (part := node.args.get(key))]
    whole = [n for n in numbers if isinstance(n, int) and not isinstance(n, bool)]
    if len(whole) < len(numbers) or len(whole) < 2 or 0 in whole[2:]:
        raise refusal(place, "A series needs whole numbers that are constants.", "Write generate_series(1, 10).")
    step = whole[2] if len(whole) > 2 else 1
    end = whole[1] if node.args.get("is_end_exclusive") else whole[1] + (1 if step > 0 else -1)
    series = range(whole[0], end, step)
    if len(series) > MAX_MEMBERS:
        raise refusal(place, f"A series has at most {MAX_MEMBERS:,} members.", "Ask for fewer at once.")
    return (Constant(number, place) for number in series)


def _list_days(reader: ExpressionReader, node: Node) -> Iterator[Constant]:
    """GENERATE_DATE_ARRAY(first, last, INTERVAL 1 MONTH); each day is counted from the first."""
    reader.check_parts(node, "start", "end", "step")
    place, step = reader.place_of(node), node.args.get("step")
    first, last = (_read_constant(reader, node.args[key]).value for key in ("start", "end"))
    span = TimeSpan(days=1) if step is None else read_time_span(reader, step)
    forwards = span.months >= 0 and span.days >= 0 and not span.seconds and span != TimeSpan()
    if not isinstance(first, dt.date) or not isinstance(last, dt.date) or not forwards:
        fix = "Write GENERATE_DATE_ARRAY(DATE '2024-01-01', DATE '2024-12-01', INTERVAL 1 MONTH)."
        raise refusal(place, "A series of days needs two constant dates and an interval of days or months.", fix)
    for n in range(MAX_MEMBERS + 1):
        try:
            day = TimeSpan(months=n * span.months, days=n * span.days).add_to(first)
        except (ValueError, OverflowError):
            return
        if day > last:
            return
        if n == MAX_MEMBERS:
            raise refusal(place, f"A series has at most {MAX_MEMBERS:,} members.", "Ask for fewer at once.")
        yield Constant(day, place)


def _read_members(reader: ExpressionReader, node: Node) -> Iterator[Constant]:
    return (_read_constant(reader, member) for member in node.expressions)


_LISTS = {"Array": _read_members, "GenerateSeries": _count_up, "GenerateDateArray": _list_days}


def read_unnest(reader: ExpressionReader, node: Node, alias: str | None, columns: tuple[str, ...]) -> ValuesTerm:
    """The rows of FROM UNNEST(list) AS x, where x is the name of the table and of its column."""
    reader.check_parts(node, "expressions", "alias")
    place = reader.places.of(node, "UNNEST")
    if len(node.expressions) != 1:
        raise refusal(place, "UNNEST takes one list.", _EXAMPLE)
    (inner,) = node.expressions
    members = inner.expressions if type(inner).__name__ == "Array" else []
    if members and type(members[0]).__name__ in _ROWS:
        return _read_rows(reader, members, ValuesTerm((), alias, columns, place))
    if not is_list(inner):
        rule = "UNNEST takes a list of constants: how long another list is depends on the data."
        raise refusal(place, rule, _EXAMPLE)
    rows = tuple((member,) for member in read_list(reader, inner))
    name = alias or (columns[0] if columns else None)
    return ValuesTerm(rows, name, columns or ((alias,) if alias else ("unnest",)), place)


def read_series(reader: ExpressionReader, node: Node, alias: str | None, columns: tuple[str, ...]) -> ValuesTerm:
    """The rows of FROM generate_series(1, 10) AS t (x), or range(10)."""
    rows = tuple((member,) for member in read_list(reader, node))
    exclusive = bool(node.args.get("is_end_exclusive"))
    own = "range" if exclusive else "generate_series"
    return ValuesTerm(rows, alias or own, columns or (own,), reader.place_of(node))


def _read_rows(reader: ExpressionReader, members: list[Node], term: ValuesTerm) -> ValuesTerm:
    """Rows of several columns: UNNEST([STRUCT(1 AS a, 'x' AS b), STRUCT(2, 'y')])."""
    rows: list[tuple[Constant, ...]] = []
    names: list[str] = []
    for member in members:
        if type(member).__name__ not in _ROWS:
            raise refusal(reader.place_of(member), "This list mixes rows and values.", _EXAMPLE)
        cells = []
        for i, cell in enumerate(member.expressions):
            named = type(cell).__name__ in {"PropertyEQ", "Alias"}
            if len(names) <= i:
                names.append(f"col{i}")
            if named and not rows:
                names[i] = str(cell.this.name if type(cell).__name__ == "PropertyEQ" else cell.alias)
            inner = (cell.expression if type(cell).__name__ == "PropertyEQ" else cell.this) if named else cell
            cells.append(_read_constant(reader, inner))
        rows.append(tuple(cells))
    return ValuesTerm(tuple(rows), term.alias or (term.columns[0] if term.columns else None), tuple(names), term.place)


# Conditions


def read_in_unnest(reader: ExpressionReader, node: Node, unnest: Node) -> Term:
    """Whether a value is a member of a list: x IN UNNEST([1, 2])."""
    reader.check_parts(unnest, "expressions")
    if len(unnest.expressions) != 1:
        raise refusal(reader.places.of(unnest, "UNNEST"), "UNNEST takes one list.", _EXAMPLE)
    return read_member(reader, node, node.this, unnest.expressions[0])


def read_member(reader: ExpressionReader, node: Node, tested: Node, members: Node) -> Term:
    """Whether a value is a member of a list."""
    return reader.apply("in", node, reader.read(tested), *read_list(reader, members))


def _make_comparison_form(usual: Form, word: str, *, negated: bool) -> Form:
    """= ANY(list) is IN, and <> ALL(list) is NOT IN; with anything else on the right it is a plain comparison."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        members = _find_list(node.expression, word)
        if members is None:
            return usual.read(reader, node)
        found = read_member(reader, node, node.this, members)
        return reader.apply("not", node, found) if negated else found

    return Form(read, usual.parts)


def _find_list(node: Node, word: str) -> Node | None:
    """The list inside of ANY(...) or ALL(...); the parser knows ALL of a list by name only."""
    called = type(node).__name__ == "Anonymous" and str(node.name).upper() == word.upper()
    inner = node.expressions[0] if called and len(node.expressions) == 1 else node.this
    return inner if (called or type(node).__name__ == word) and is_list(inner) else None


def _read_contains(reader: ExpressionReader, node: Node) -> Term:
    """list_contains([1, 2], x)."""
    return read_member(reader, node, node.expression, node.this)


def add_list_forms(forms: Mapping[str, Form]) -> Mapping[str, Form]:
    """The forms of expressions, together with those of lists of constants."""
    return {
        **forms,
        "EQ": _make_comparison_form(forms["EQ"], "Any", negated=False),
        "NEQ": _make_comparison_form(forms["NEQ"], "All", negated=True),
        "ArrayContains": Form(_read_contains, (*OPERANDS, "ensure_variant", "check_null")),
    }
