"""Collects what a caller declares about the columns of frames by name, and assigns it to the columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from discreet.codebook.entries import did_you_mean
from discreet.errors import Problem
from discreet.plan.types import Type


class FactsByName:
    """Facts by the names of columns. A bare name means every table with this column; ``table.column`` overrides it."""

    def __init__(self, types: Mapping[str, Mapping[str, Type | None]], public: Collection[str] = ()) -> None:
        self.problems: list[Problem] = [
            Problem(f"public: {name}", "is not a table", did_you_mean(name, types))
            for name in public
            if name not in types
        ]
        self._types, self._public = types, frozenset(public)
        self._columns: dict[str, dict[str, dict[str, Any]]] = {
            table: {name: {"type": str(kind)} for name, kind in columns.items() if kind is not None}
            for table, columns in types.items()
        }
        self._keys: dict[str, list[dict[str, str]]] = {table: [] for table in types}
        self._sizes: dict[str, dict[str, int]] = {table: {} for table in types}

    def add(self, word: str, values: Mapping[str, Any] | None, *, public: bool | None = None) -> None:
        """Add one kind of fact. ``public`` says whether bare names mean public tables only, or private ones only."""
        for name, value in self._sort(values):
            columns = self._find_columns(name)
            if public is not None and not self._is_full_name(name):
                columns = [(table, column) for table, column in columns if (table in self._public) == public]
            if not columns:
                whose = "" if public is None else " of a public table" if public else " of a private table"
                self._refuse(word, name, f"is not a column{whose}")
            for table, column in columns:
                self._columns[table].setdefault(column, {})[word] = value

    def add_keys(self, keys: Mapping[str, Iterable[Any]]) -> None:
        """Add public keys. None among them makes NULL a group, so that values may be missing."""
        listed = {column: list(values) for column, values in keys.items()}
        self.add("keys", {column: [key for key in values if key is not None] for column, values in listed.items()})
        for word in ("null_key", "nullable"):
            self.add(word, {column: True for column, values in listed.items() if None in values})

    def add_bins(self, bins: Mapping[str, Any]) -> None:
        """Add bins: a width, or a list of starts."""
        listed = {column: isinstance(value, Iterable) and not isinstance(value, str) for column, value in bins.items()}
        self.add("bins", {c: {"edges": list(value)} if listed[c] else {"width": value} for c, value in bins.items()})

    def add_foreign_keys(self, keys: Mapping[str, str] | Collection[Mapping[str, str]]) -> None:
        """Add foreign keys. A bare name means every table except the one that it refers to.

        In a list of mappings, each mapping is one foreign key: its columns refer together.
        """
        if not isinstance(keys, Mapping):
            for together in keys:
                self._add_joint_key(together)
            return
        single: dict[tuple[str, str], str] = {}
        for name, target in self._sort(keys):
            columns = [(table, column) for table, column in self._find_columns(name) if f"{table}.{column}" != target]
            if not columns:
                self._refuse("foreign_keys", name, "is not a column of another table")
            single |= dict.fromkeys(columns, target)
        for (table, column), target in single.items():
            self._keys[table].append({column: target})

    def _add_joint_key(self, together: Mapping[str, str]) -> None:
        """Add one foreign key, to every table that has all of its columns, except the one that they are a key of."""
        places = {name: dict(self._find_columns(name)) for name in together}
        for name in (name for name, found in places.items() if not found):
            self._refuse("foreign_keys", name, "is not a column of another table")
        tables = [
            table
            for table in self._types
            if all(table in found for found in places.values())
            and any(f"{table}.{found[table]}" != together[name] for name, found in places.items())
        ]
        if not tables and all(places.values()):
            fix = "Name columns of one table, each with the column of the other table that it refers to."
            self.problems.append(Problem(f"foreign_keys: {', '.join(together)}", "are not columns of one table", fix))
        for table in tables:
            self._keys[table].append({places[name][table]: target for name, target in together.items()})

    def add_sizes(self, word: str, sizes: Mapping[str, int] | None) -> None:
        """Add a number to tables, by their names."""
        for table, size in (sizes or {}).items():
            if table in self._sizes:
                self._sizes[table][word] = size
            else:
                self.problems.append(Problem(f"{word}: {table}", "is not a table", did_you_mean(table, self._sizes)))

    def to_tables(self, limits: Mapping[str, int]) -> dict[str, dict[str, Any]]:
        """The tables as entries of a codebook. Only private tables have limits."""
        return {
            table: {
                **({"public": True} if table in self._public else limits),
                **self._sizes[table],
                "foreign_keys": self._keys[table],
                "columns": columns,
            }
            for table, columns in self._columns.items()
        }

    def _refuse(self, word: str, name: str, rule: str) -> None:
        known = sorted({column for columns in self._types.values() for column in columns})
        self.problems.append(Problem(f"{word}: {name}", rule, did_you_mean(name, known)))

    def _sort(self, values: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
        """The facts in the order in which they apply: bare names first, so that full names override them."""
        return sorted((values or {}).items(), key=lambda item: self._is_full_name(item[0]))

    def _is_full_name(self, name: str) -> bool:
        table, _, column = name.partition(".")
        return column in self._types.get(table, {})

    def _find_columns(self, name: str) -> list[tuple[str, str]]:
        table, _, column = name.partition(".")
        if self._is_full_name(name):
            return [(table, column)]
        return [(table, name) for table, columns in self._types.items() if name in columns]
