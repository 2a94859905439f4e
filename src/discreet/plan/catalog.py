"""The catalog: what is publicly known about the tables, as the codebook declares it. Nothing here comes from data."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import UsageError
from discreet.plan.expressions import Column
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """What is publicly known about the values of a column or an expression. The default is: nothing.

    ``low`` and ``high`` bound every value that is not NULL (numbers only). ``keys`` lists every value that counts as a
    group, NULL only if listed. ``resolution`` is the step in which sums are taken. ``constant`` says that all rows of a
    unit hold the same value. ``unique`` says that no two rows hold the same value, and ``frequency`` how many rows with
    the same value take part in a join that does not keep units together.
    """

    nullable: bool = True
    low: Fraction | None = None
    high: Fraction | None = None
    keys: tuple[Value, ...] | None = None
    resolution: Fraction | None = None
    constant: bool = False
    unique: bool = False
    frequency: int | None = None

    @property
    def bounded(self) -> bool:
        return self.low is not None and self.high is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributionLimits:
    """How much one unit may contribute to one question; the rest is left out by a fair, secret choice.

    Either ``max_rows`` in all, or ``max_groups`` with ``max_rows_per_group`` in each. For a row unit, all are 1.
    """

    max_rows: int | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """How the rows of a table reach their unit: ``find_column`` holds a value of ``parent``'s ``key``."""

    column: str
    parent: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """One declared table: its columns with their facts, and the unit that owns its rows.

    A private table names its unit in a column of its own (``owner``, by default the unit's name), or reaches it by a
    ``link``; the rows of a ``public`` table belong to nobody. ``keys`` are all declared foreign keys of the table.
    """

    name: str
    columns: Mapping[str, tuple[Type, ColumnFacts]]
    unit: Unit
    limits: ContributionLimits
    public: bool = False
    owner: str | None = None
    link: Link | None = None
    keys: tuple[Link, ...] = ()

    def find_column(self, name: str) -> Column:
        """A column by its name as declared, whatever its case; refused with what exists."""
        for declared, (kind, _) in self.columns.items():
            if declared.lower() == name.lower():
                return Column(self.name, declared, kind)
        hint = suggest_nearest(name, self.columns)
        raise UsageError(f"The table {self.name!r} has no declared column {name!r}. {hint} Nothing was charged.")

    @property
    def unit_column(self) -> Column | None:
        """The column that names the owner of a row; None where a row is its own unit, or reaches it by a link."""
        if self.public or self.link is not None or self.unit.column is None:
            return None
        return self.find_column(self.owner or self.unit.column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All declared tables of one dataset, and what protecting a unit means there."""

    tables: Mapping[str, TableFacts]
    neighbours: Neighbours

    @property
    def unit(self) -> Unit:
        """Who is protected, in all tables alike."""
        private = [table.unit for table in self.tables.values() if not table.public]
        return private[0] if private else Unit()

    def find_table(self, name: str) -> TableFacts:
        """A table by its name as declared, whatever its case; undeclared tables do not exist."""
        for declared, table in self.tables.items():
            if declared.lower() == name.lower():
                return table
        raise UsageError(
            f"There is no declared table {name!r}. {suggest_nearest(name, self.tables)} Nothing was charged."
        )

    def find_facts(self, column: Column) -> ColumnFacts:
        """The declared facts of a column."""
        return self.tables[column.table].columns[column.name][1]


def suggest_nearest(word: str, known: Iterable[str]) -> str:
    """A hint at what was meant.

    >>> suggest_nearest("wrd", ["ward", "age"])
    "Did you mean 'ward'?"
    """
    names = list(known)
    close = difflib.get_close_matches(word.lower(), [name.lower() for name in names], n=1, cutoff=0.6)
    if close:
        return f"Did you mean {next(name for name in names if name.lower() == close[0])!r}?"
    return f"Declared: {', '.join(sorted(names)[:12])}." if names else "Nothing is declared."
