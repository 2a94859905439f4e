"""How many rows a computation over released answers looks at, at most, from the numbers of rows in its tables.

Every SELECT looks at no more rows than the product of what it reads from, and a subquery in an expression is computed
once for each of them. UNION adds. So a chain of WITHs that pair everything with itself is seen to explode before it
runs: the work is bounded by the sizes of released tables and public ones, which are no secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from discreet.late_dataclass import dataclass

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

MAX_ROWS = 5_000_000

QUERIES = frozenset({"Select", "Union", "Intersect", "Except"})


@dataclass(frozen=True, slots=True)
class RowRule:
    """The rows of a query: those of ``adds`` together, or the product of ``multiplies``, and never above ``most``.

    ``repeats`` are queries in its expressions, all of whose work is done again for each row.
    """

    multiplies: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()
    most: int | None = None
    repeats: tuple[str, ...] = ()


def count_rows(rules: Iterable[tuple[str, RowRule]], sizes: Mapping[str, int]) -> int:
    """The number of rows that a computation looks at, at most; a little above ``MAX_ROWS`` for any more.

    >>> count_rows([("a", RowRule(("t", "t"))), ("b", RowRule(("a", "a")))], {"t": 10})
    10200
    """
    rows, work = dict(sizes), dict[str, int]()
    last = 0
    for name, rule in rules:
        parts = rule.adds or rule.multiplies
        found = _limit(sum(rows.get(part, 1) for part in parts)) if rule.adds else _multiply(rows, parts)
        rows[name] = found if rule.most is None else min(found, rule.most)
        own = _multiply({"": found, **work}, ("", *rule.repeats))
        last = work[name] = _limit(own + sum(work.get(part, 0) for part in parts))
    return last


def _multiply(numbers: Mapping[str, int], names: Iterable[str]) -> int:
    product = 1
    for name in names:
        product = _limit(product * max(1, numbers.get(name, 1)))
    return product


def _limit(number: int) -> int:
    return min(number, MAX_ROWS + 1)


def list_rules(tree: Expr) -> tuple[tuple[str, RowRule], ...]:
    """The rules of a statement whose tables stand in the schema ``main``; each comes after those that it names."""
    lister = _RuleLister()
    lister.add_query(tree, {})
    return tuple(lister.rules)


class _RuleLister:
    """Numbers the queries of a statement, innermost first. Names of WITH are those around a query."""

    def __init__(self) -> None:
        self.rules: list[tuple[str, RowRule]] = []

    def add_query(self, node: Expr, names: Mapping[str, str]) -> str:
        """Add a query and everything in it; the name of its rule."""
        names = dict(names)
        clause = node.args.get("with_")
        for part in clause.expressions if clause is not None else ():
            names[part.alias.lower()] = self.add_query(part.this, names)
        match type(node).__name__:
            case "Subquery":
                return self._add(RowRule((self.add_query(node.this, names),), most=_read_limit(node)))
            case "Union" | "Intersect" | "Except":
                sides = (self.add_query(node.this, names), self.add_query(node.expression, names))
                return self._add(RowRule(adds=sides, most=_read_limit(node)))
            case "Values":
                return self._add(RowRule(adds=tuple("" for _ in node.expressions)))
            case "Table":
                return self._name_table(node, names)
            case _:
                return self._add_select(node, names)

    def _add_select(self, node: Expr, names: Mapping[str, str]) -> str:
        found = [self._name_source(source, names) for source in _list_sources(node)]
        inside = [self.add_query(query, names) for query in _list_subqueries(node)]
        most = 1 if node.args.get("group") is None and _has_aggregate(node) else _read_limit(node)
        return self._add(RowRule(tuple(found), most=most, repeats=tuple(inside)))

    def _name_source(self, node: Expr, names: Mapping[str, str]) -> str:
        """What a part of FROM is called: a table, a name of WITH, or a query, with what it is joined to."""
        joined = [self._name_source(join.this, names) for join in node.args.get("joins") or ()]
        if type(node).__name__ == "Table":
            first = self._name_table(node, names)
        elif type(node).__name__ == "Subquery" and type(node.this).__name__ in {"Table", "Subquery"}:
            first = self._name_source(node.this, names)
        else:
            first = self.add_query(node, names)
        return self._add(RowRule((first, *joined))) if joined else first

    def _name_table(self, node: Expr, names: Mapping[str, str]) -> str:
        name = str(node.name)
        return name if node.args.get("db") is not None else names.get(name.lower(), name)

    def _add(self, rule: RowRule) -> str:
        name = f"query {len(self.rules)}"
        self.rules.append((name, rule))
        return name


def _list_sources(select: Expr) -> list[Expr]:
    start = select.args.get("from_")
    joins = [join.this for join in select.args.get("joins") or ()]
    return [*([start.this] if start is not None else []), *joins]


def _list_subqueries(select: Expr) -> list[Expr]:
    """The queries in expressions of a SELECT: not those in FROM or WITH, nor those inside of others."""
    found: list[Expr] = []
    pending = [part for name, part in _list_parts(select) if name not in {"from_", "with_"}]
    while pending:
        node = pending.pop()
        if type(node).__name__ in QUERIES:
            found.append(node)
        else:
            pending += [part for name, part in _list_parts(node) if not (_is_join(node) and name == "this")]
    return found


def _is_join(node: Expr) -> bool:
    return type(node).__name__ == "Join"


def _list_parts(node: Expr) -> list[tuple[str, Expr]]:
    from sqlglot.expressions import Expr as Node

    return [
        (name, part)
        for name, value in node.args.items()
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, Node)
    ]


def _has_aggregate(select: Expr) -> bool:
    """Whether an output is an aggregate that is not over a window. Without GROUP BY the answer is one row then."""
    from sqlglot.expressions import AggFunc, Select, Window

    pending = list(select.expressions)
    while pending:
        node = pending.pop()
        if isinstance(node, Window | Select):
            continue
        if isinstance(node, AggFunc):
            return True
        pending += [part for _, part in _list_parts(node)]
    return False


def _read_limit(node: Expr) -> int | None:
    limit = node.args.get("limit")
    number = None if limit is None else limit.args.get("expression")
    text = "" if number is None or type(number).__name__ != "Literal" else str(number.this)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
