"""The catalog: what is publicly known about the tables. It comes from the codebook, never from the data."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from fractions import Fraction
from typing import TypeAlias

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Column
from discreet.plan.relations import Relation, Values
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours, Unit

# The length of a text column, in code points, where none is declared, and the largest that can be declared.
DEFAULT_LENGTH = 1_000
MAX_LENGTH = 4_096
# The largest number of public groups. Each is a row of noise, which takes about half a kilobyte while it is answered.
MAX_GROUPS = 1_000_000
# The most values that follow from bounds, as bins do, and the most groups from which something is chosen.
MAX_KEYS = 100_000
# The most numbers of an answer: the noisy integers of all public groups.
MAX_NUMBERS = 5_000_000
# The most rows of one unit in a relation that joins have multiplied, where the codebook says nothing.
DEFAULT_JOINED_ROWS = 10_000


PublicCounter: TypeAlias = Callable[[str, tuple[str, ...]], int]
"""The most rows of a declared public table with the same values, none of them NULL, of some columns."""

PublicRelationReader: TypeAlias = Callable[[Relation], Values | None]
"""The rows of a relation over declared public tables; None where these have too many rows to be read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """What is publicly known about the values of a column or an expression. By default nothing is known.

    ``low`` and ``high`` bound every value that is not NULL: numbers as they are, times in days since 1970
    (``plan.times``). ``keys`` lists every value that is a group;
    NULL is a group only if it is listed. ``resolution`` is the step in which sums are taken. ``constant`` says that all
    rows of a unit have the same value. ``unique`` says that no two rows have the same value. ``frequency`` is how many
    rows with the same value take part in a join that does not keep units together. ``max_length`` bounds the code
    points of a text: longer values of a table are NULL when they are read. ``max_values`` is how many distinct values
    one unit brings to a question that counts them.
    """

    nullable: bool = True
    low: Fraction | None = None
    high: Fraction | None = None
    keys: tuple[Value, ...] | None = None
    resolution: Fraction | None = None
    constant: bool = False
    unique: bool = False
    frequency: int | None = None
    max_length: int | None = None
    max_values: int | None = None

    @property
    def bounded(self) -> bool:
        return self.low is not None and self.high is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributionLimits:
    """How much one unit may contribute to one question. A secret random choice leaves out the rest.

    The limit is either ``max_rows`` in all, or ``max_groups`` with ``max_rows_per_group`` in each. Where a row is the
    unit, all three are 1.
    """

    max_rows: int | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A declared foreign key: ``columns`` hold, together, a key of the table ``parent``, whose columns are ``keys``.

    The columns stand in the order of the keys. A row with a NULL among them refers to nothing.
    """

    columns: tuple[str, ...]
    parent: str
    keys: tuple[str, ...]

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Each column with the column of the other table that it refers to."""
        return tuple(zip(self.columns, self.keys, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """One declared table: its columns with their facts, and the unit to which its rows belong.

    A private table names its unit in a column of its own (``owner``, by default the unit's name), or reaches it by a
    ``link``. The rows of a ``public`` table belong to nobody. ``keys`` are all declared foreign keys of the table.
    Text columns without a ``max_length`` get the default one. ``size`` is roughly how many rows there are, or units
    where only they are known; it is for forecasts of errors alone, and no noise depends on it. ``exact_units`` is
    exactly how many units there are, rows where each is its own unit; it is shown in place of a count.
    """

    name: str
    columns: Mapping[str, tuple[Type, ColumnFacts]]
    unit: Unit
    limits: ContributionLimits
    public: bool = False
    owner: str | None = None
    link: Link | None = None
    keys: tuple[Link, ...] = ()
    size: int | None = None
    exact_units: int | None = None

    def __post_init__(self) -> None:
        """Give every text column a length, so that nothing has to know the default."""
        columns = {
            name: (kind, replace(facts, max_length=DEFAULT_LENGTH))
            if kind is Type.TEXT and facts.max_length is None
            else (kind, facts)
            for name, (kind, facts) in self.columns.items()
        }
        object.__setattr__(self, "columns", columns)

    def find_column(self, name: str) -> Column:
        """A declared column by its name, in any case. An unknown name is refused with what exists."""
        for declared, (kind, _) in self.columns.items():
            if declared.lower() == name.lower():
                return Column(self.name, declared, kind)
        hint = suggest_nearest(name, self.columns)
        raise UsageError(f"The table {self.name!r} has no declared column {name!r}. {hint} Nothing was charged.")

    @property
    def unit_column(self) -> Column | None:
        """The column that names the unit of a row; None where a row is its own unit, or reaches its unit by a link."""
        if self.public or self.link is not None or self.unit.column is None:
            return None
        return self.find_column(self.owner or self.unit.column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All declared tables of one dataset, and the neighbours for which it is protected.

    ``max_joined_rows`` is the most rows that one unit may have in a relation that joins have multiplied.
    ``count_public`` counts rows of public tables; without it, nothing is known of how many have the same key.
    ``read_public`` gives the rows of public relations; without it, only keys that are declared are known. ``gaps`` name
    what the engine of the dataset cannot say (``plan.gaps``).
    """

    tables: Mapping[str, TableFacts]
    neighbours: Neighbours
    max_joined_rows: int = DEFAULT_JOINED_ROWS
    count_public: PublicCounter | None = field(default=None, compare=False, repr=False)
    gaps: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    read_public: PublicRelationReader | None = field(default=None, compare=False, repr=False)

    @property
    def unit(self) -> Unit:
        """Who is protected. It is the same in all tables."""
        private = [table.unit for table in self.tables.values() if not table.public]
        return private[0] if private else Unit()

    def find_table(self, name: str) -> TableFacts:
        """A declared table by its name, in any case. An unknown name is refused with what exists."""
        for declared, table in self.tables.items():
            if declared.lower() == name.lower():
                return table
        raise UsageError(
            f"There is no declared table {name!r}. {suggest_nearest(name, self.tables)} Nothing was charged."
        )

    @property
    def sizes(self) -> dict[str, int]:
        """How many rows tables have, roughly, where it is public."""
        return {name: table.size for name, table in self.tables.items() if table.size is not None}

    def find_facts(self, column: Column) -> ColumnFacts:
        """The declared facts of a column."""
        return self.tables[column.table].columns[column.name][1]


def suggest_nearest(word: str, known: Iterable[str]) -> str:
    """A hint: the name that is nearest to a word, or the names that exist.

    >>> suggest_nearest("wrd", ["ward", "age"])
    "Did you mean 'ward'?"
    """
    names = list(known)
    close = difflib.get_close_matches(word.lower(), [name.lower() for name in names], n=1, cutoff=0.6)
    if close:
        return f"Did you mean {next(name for name in names if name.lower() == close[0])!r}?"
    return f"Declared: {', '.join(sorted(names)[:12])}." if names else "Nothing is declared."
