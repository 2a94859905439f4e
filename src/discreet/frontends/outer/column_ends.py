"""Names the columns of a computation, writes out its stars, and carries the ends of intervals along.

A released question with an output n has the columns n, n_low and n_high. Where a SELECT shows n as it is, row by row,
its interval is still that of the same number, so n_low and n_high are added after all outputs. An expression, an
aggregate, a group and SELECT DISTINCT make other numbers, for which nothing is promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from discreet.frontends.outer.computation import OuterColumn
from discreet.late_dataclass import dataclass

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

OuterColumns: TypeAlias = tuple[OuterColumn, ...]
ENDS = ("low", "high")


@dataclass(frozen=True, slots=True)
class _NamedSource:
    """A source of a FROM: its name, and its columns; None where these are not known."""

    name: str
    columns: OuterColumns | None


def settle_columns(tree: Expr, tables: Mapping[str, OuterColumns]) -> OuterColumns | None:
    """Write out the stars of a statement and add the ends of intervals; the columns of its answer.

    ``tables`` are the columns of the tables in the schema ``main``. None where a star cannot be written out.
    """
    return _Settler(tables).settle(tree, {}, root=True)


class _Settler:
    def __init__(self, tables: Mapping[str, OuterColumns]) -> None:
        self.tables = tables

    def settle(
        self, node: Expr, names: Mapping[str, OuterColumns | None], *, root: bool = False
    ) -> OuterColumns | None:
        """Settle a query in FROM or WITH, or the whole statement; its columns, of which some have ends added."""
        found = self.find(node, names, root=root)
        ends = frozenset(i for i, column in enumerate(found or ()) if column.origins)
        if ends and found is not None:
            _add_ends(node, ends, found)
        return found

    def find(self, node: Expr, names: Mapping[str, OuterColumns | None], *, root: bool = False) -> OuterColumns | None:
        """The columns of a query, and of which ends could be added; stars are written out on the way."""
        names = dict(names)
        clause = node.args.get("with_")
        for part in clause.expressions if clause is not None else ():
            columns = self.settle(part.this, names)
            names[part.alias.lower()] = _rename(columns, part.args.get("alias"))
        match type(node).__name__:
            case "Subquery":
                return self.find(node.this, names, root=root)
            case "Union" | "Intersect" | "Except":
                return self._find_set(node, names, root=root)
            case "Select":
                return self._find_select(node, names, root=root)
            case _:
                return None

    def _find_set(self, node: Expr, names: Mapping[str, OuterColumns | None], *, root: bool) -> OuterColumns | None:
        """Rows of both sides, under the names of the first. Ends are kept where UNION ALL has them on both sides."""
        left, right = self.find(node.this, names, root=root), self.find(node.expression, names)
        if left is None or right is None or len(left) != len(right):
            return left if left is None else _without_ends(left)
        kept = type(node).__name__ == "Union" and not node.args.get("distinct")
        pairs = [(a, b, kept and a.origins and b.origins) for a, b in zip(left, right)]
        return tuple(OuterColumn(a.name, (*a.origins, *b.origins) if both else ()) for a, b, both in pairs)

    def _find_select(self, node: Expr, names: Mapping[str, OuterColumns | None], *, root: bool) -> OuterColumns | None:
        sources = self._list_sources(node, names)
        if not _expand_stars(node, sources):
            return None
        grouped = node.args.get("group") is not None or node.args.get("distinct") is not None
        found = []
        for position, output in enumerate(node.expressions, start=1):
            name = _name_output(output, position)
            origin = None if grouped else _find_origin(_strip_alias(output), sources)
            found.append(OuterColumn(name, () if origin is None else origin.origins))
        found = _check_ends(_make_unique(found) if root else found)
        _write_aliases(node, found)
        return tuple(found)

    def _list_sources(self, node: Expr, names: Mapping[str, OuterColumns | None]) -> list[_NamedSource]:
        start = node.args.get("from_")
        if start is None:
            return []
        found = self._read_source(start.this, names)
        for join in node.args.get("joins") or ():
            found += self._read_source(join.this, names)
        return found

    def _read_source(self, node: Expr, names: Mapping[str, OuterColumns | None]) -> list[_NamedSource]:
        alias = node.args.get("alias")
        match type(node).__name__:
            case "Table":
                qualified = node.args.get("db") is not None
                columns = self.tables.get(node.name) if qualified else names.get(node.name.lower())
                found = [_NamedSource((node.alias or node.name).lower(), _rename(columns, alias))]
            case "Subquery" if type(node.this).__name__ in {"Table", "Subquery"} and alias is None:
                found = self._read_source(node.this, names)
            case "Subquery":
                found = [_NamedSource(str(node.alias).lower(), _rename(self.settle(node.this, names), alias))]
            case "Values" if alias is not None and alias.args.get("columns"):
                columns = tuple(OuterColumn(str(column.name)) for column in alias.args["columns"])
                found = [_NamedSource(str(node.alias).lower(), columns)]
            case _:
                found = [_NamedSource(str(node.alias).lower(), None)]
        for join in node.args.get("joins") or ():
            found += self._read_source(join.this, names)
        return found


def _rename(columns: OuterColumns | None, alias: Expr | None) -> OuterColumns | None:
    """Columns with the new names of t (a, b). Where some have ends, which keep old names, nothing is certain."""
    renamed = [] if alias is None else [str(column.name) for column in alias.args.get("columns") or ()]
    if not renamed or columns is None:
        return columns
    if any(column.origins for column in columns):
        return None
    return tuple(OuterColumn(name) for name in [*renamed, *(column.name for column in columns[len(renamed) :])])


def _without_ends(columns: OuterColumns) -> OuterColumns:
    return tuple(OuterColumn(column.name) for column in columns)


def _expand_stars(node: Expr, sources: Sequence[_NamedSource]) -> bool:
    """Write out * and t.*; whether that was possible."""
    outputs: list[Expr] = []
    for output in node.expressions:
        bare = output.this if type(output).__name__ == "Column" else output
        if type(bare).__name__ != "Star":
            outputs.append(output)
            continue
        owner = _name_owner(output).lower() if type(output).__name__ == "Column" else ""
        named = [source for source in sources if source.name == owner] if owner else list(sources)
        merged = _list_merged(node)
        if bare.args.get("except_") or bare.args.get("replace") or bare.args.get("rename") or merged is None:
            return False
        written = _write_star(named, merged if not owner else frozenset())
        if written is None:
            return False
        outputs += written
    node.set("expressions", outputs)
    return True


def _list_merged(node: Expr) -> frozenset[str] | None:
    """The columns that USING makes one of; None for NATURAL, which does not name them."""
    joins = node.args.get("joins") or ()
    if any(str(join.args.get("method") or "").upper() == "NATURAL" for join in joins):
        return None
    return frozenset(str(column.name).lower() for join in joins for column in join.args.get("using") or ())


def _write_star(sources: Sequence[_NamedSource], merged: frozenset[str]) -> list[Expr] | None:
    from sqlglot.expressions import column

    written: list[Expr] = []
    seen: set[str] = set()
    for source in sources:
        if source.columns is None or (not source.name and len(sources) > 1):
            return None
        for known in source.columns:
            once = known.name.lower() in merged
            if not (once and known.name.lower() in seen):
                table = None if once or not source.name else source.name
                written.append(column(known.name, table=table, quoted=True))
            seen.add(known.name.lower())
    return written or None


def _name_owner(column: Expr) -> str:
    """The table before the name of a column; empty where there is none."""
    table = column.args.get("table")
    return "" if table is None else str(table.name)


def _strip_alias(node: Expr) -> Expr:
    return node.this if type(node).__name__ == "Alias" else node


def _find_origin(node: Expr, sources: Sequence[_NamedSource]) -> OuterColumn | None:
    """The column that an output shows as it is; None for an expression, and where it is not certain."""
    if type(node).__name__ != "Column":
        return None
    owner, name = _name_owner(node).lower(), str(node.name).lower()
    named = [source for source in sources if not owner or source.name == owner]
    if any(source.columns is None for source in named):
        return None
    found = [column for source in named for column in source.columns or () if column.name.lower() == name]
    return found[0] if len(found) == 1 else None


def _name_output(node: Expr, position: int) -> str:
    """The name of an output: its alias, the column it shows, the function it applies to a column, or its position."""
    if type(node).__name__ in {"Alias", "Column"}:
        return str(node.alias_or_name)
    names = type(node).sql_names() if hasattr(node, "sql_names") else []
    columns = [part for part in node.iter_expressions() if type(part).__name__ == "Column"]
    if names and type(node).__name__ == "Count":
        return "count" if not columns else f"count_{columns[0].name}"
    if names and len(columns) == 1:
        return f"{str(names[0]).lower()}_{columns[0].name}"
    return f"column{position}"


def _make_unique(columns: Sequence[OuterColumn]) -> list[OuterColumn]:
    """Columns of different names, which an answer needs; a second n is n_2."""
    found: list[OuterColumn] = []
    taken: set[str] = set()
    for column in columns:
        name, number = column.name, 1
        while name.lower() in taken:
            number += 1
            name = f"{column.name}_{number}"
        taken.add(name.lower())
        found.append(OuterColumn(name, column.origins))
    return found


def _check_ends(columns: Sequence[OuterColumn]) -> list[OuterColumn]:
    """The columns, of which those keep their ends whose ends have names that are free."""
    taken = {column.name.lower() for column in columns}
    free = [not {f"{column.name}_{end}".lower() for end in ENDS} & taken for column in columns]
    return [column if kept else OuterColumn(column.name) for column, kept in zip(columns, free)]


def _write_aliases(node: Expr, columns: Sequence[OuterColumn]) -> None:
    from sqlglot.expressions import alias_

    outputs = [
        output if str(output.alias_or_name) == column.name else alias_(_strip_alias(output), column.name, quoted=True)
        for output, column in zip(node.expressions, columns)
    ]
    node.set("expressions", outputs)


def _add_ends(node: Expr, ends: frozenset[int], columns: OuterColumns) -> None:
    """Add the ends of some columns to every SELECT that makes the rows of a query, after all of its outputs."""
    match type(node).__name__:
        case "Subquery":
            _add_ends(node.this, ends, columns)
        case "Union":
            _add_ends(node.this, ends, columns)
            _add_ends(node.expression, ends, columns)
        case _:
            from sqlglot.expressions import alias_, column

            added = []
            for at in sorted(ends):
                shown = _strip_alias(node.expressions[at])
                for end in ENDS:
                    original = column(f"{shown.name}_{end}", table=_name_owner(shown) or None, quoted=True)
                    added.append(alias_(original, f"{columns[at].name}_{end}", quoted=True))
            node.set("expressions", [*node.expressions, *added])
