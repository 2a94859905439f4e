"""Common table expressions while they are collected, each with columns of names that nothing else has."""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count as numbers_from

from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.layers import Layers
from discreet.engines.sql.per_unit import FeatureSql
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Column


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A relation as a common table expression: its name, and the names of the columns that it carries."""

    name: str
    columns: Mapping[Column, str]

    def pick_columns(self, needed: Iterable[Column]) -> dict[Column, str]:
        """The names of some columns, as far as they are here."""
        wanted = frozenset(needed)
        return {column: name for column, name in self.columns.items() if column in wanted}


@dataclass(slots=True)
class Clauses:
    """The common table expressions of one statement. ``texts`` are bound to it, under the names given here."""

    dialect: Dialect
    written: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    count: int = 0
    apart: Iterator[int] = field(default_factory=lambda: numbers_from(1))

    def make_name(self, prefix: str) -> str:
        """A name that nothing else has."""
        self.count += 1
        return f"{prefix}{self.count}"

    def add(
        self, items: Iterable[str], source: str, tail: str = "", *, distinct: bool = False, keep: bool = False
    ) -> str:
        """One more expression; its name. Most are read once, so there is nothing to keep."""
        name = self.make_name("r")
        listed = ", ".join(dict.fromkeys(items)) or "1 AS nothing"
        word = "SELECT DISTINCT" if distinct else "SELECT"
        return self._add_query(name, f"{word} {listed} FROM {source}{tail}", keep=keep)

    def add_apart(self, items: Iterable[str], source: str) -> str:
        """One more expression, of columns that are long and named often; its name."""
        name = self.make_name("r")
        self.written.append(
            self.dialect.stacked_table(name, f"SELECT {', '.join(items)} FROM {source}", next(self.apart))
        )
        return name

    def add_first_rows(self, source: str, parts: Sequence[str], order: Sequence[str], most: int) -> str:
        """The first rows of each part of a relation, in an order, with all of its columns."""
        query = self.dialect.first_rows(source, parts, order, min(max(most, 0), 2**62))
        return self._add_query(self.make_name("r"), query)

    def _add_query(self, name: str, query: str, *, keep: bool = False) -> str:
        self.written.append(self.dialect.common_table(name, query, keep=keep))
        return name

    def add_named(self, items: Mapping[Column, str], source: str, tail: str = "") -> CommonTable:
        """Columns with new names, from the SQL of each."""
        names = {column: self.make_name("c") for column in items}
        listed = (f"{sql} AS {names[column]}" for column, sql in items.items())
        return CommonTable(self.add(listed, source, tail), names)

    def make_layers(self, source: CommonTable) -> Layers:
        """Scalar expressions over a relation, to be asked for by ``value`` and then added by ``add_layers``."""
        return Layers(source.columns, self.dialect, self.texts, self.apart)

    def add_layers(self, layers: Layers, source: CommonTable) -> str:
        """The name of the relation with the scalar expressions that were asked for."""
        clauses, top = layers.write_ctes(source.name, self.make_name("e") + "_")
        self.written += clauses
        return top

    def add_features(
        self, kept: Mapping[Column, str], computed: Mapping[Column, FeatureSql], source: str, tail: str = ""
    ) -> CommonTable:
        """Columns that stay, and features: their aggregates in one step, their values in the next."""
        pieces = {column: [self.make_name("p") for _ in feature.pieces] for column, feature in computed.items()}
        aggregates = (f"{sql} AS {name}" for c, names in pieces.items() for sql, name in zip(computed[c].pieces, names))
        below = self.add((*kept.values(), *aggregates), source, tail)
        for stage in range(max((len(feature.stages) for feature in computed.values()), default=0)):
            below = self._add_stage(computed, pieces, stage, below)
        values = {column: computed[column].write_value(names) for column, names in pieces.items()}
        items = {**kept, **values}
        names = {column: self.make_name("c") for column in items}
        listed = [f"{sql} AS {names[column]}" for column, sql in items.items()]
        add = self.add_apart if any(feature.form != "{0}" for feature in computed.values()) else self.add
        return CommonTable(add(listed, below), names)

    def _add_stage(
        self, computed: Mapping[Column, FeatureSql], pieces: Mapping[Column, list[str]], stage: int, below: str
    ) -> str:
        """What features compute at one stage, under names that are added to their pieces."""
        items = ["*"]
        for column, feature in computed.items():
            if stage < len(feature.stages):
                name = self.make_name("p")
                items.append(f"{feature.stages[stage].format(*pieces[column])} AS {name}")
                pieces[column].append(name)
        return self.add_apart(items, below)


def write_order(value: str, *, descending: bool = False) -> str:
    """A value to order by; NULLs come last either way."""
    return f"{value} {'DESC' if descending else 'ASC'} NULLS LAST"
