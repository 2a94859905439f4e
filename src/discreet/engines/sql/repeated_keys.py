"""Limits by keys that are known to repeat: units of whom nothing repeats need none.

An engine may keep, for a version of a table, the values of some columns that more than so many of its rows have
(``KnownRepeats``). A cap to so many rows with the same values takes nothing away from a unit, and DISTINCT finds
nothing twice, unless the unit has such values: where no row of the table is used for two rows of the capped relation
(``row_origins.trace_rows``), at least as many rows of the table have the same values. So a question is written twice.
Units without any such values are read without these limits, as plain joins, which an engine may order as it likes.
The others, whom ``units`` lists, are read with all limits. What a relation has of a unit depends on the rows of that
unit and on public rows alone, so the rows of both parts together are those of the whole; and every row is in one part.

Where nothing repeats, the second part is not written. So the time of a question may tell whether somebody has repeated
keys in the tables that it reads: one bit for each version of the data, whatever the question asks of whom. Time told
as much before, and did so for each question, because an engine skips joins with an empty side; ``answer_after`` hides
it. Rows are told apart by an outer join, because DuckDB orders joins badly around an anti-join.

Keys of public tables that repeat match nothing in a look-up; where none repeats, nothing is said about it.
"""

# all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, assert_never

from discreet.engines.sql.clauses import Clauses
from discreet.late_dataclass import dataclass
from discreet.plan.relations import (
    Capped,
    Distinct,
    Join,
    JoinKind,
    PerUnit,
    Projection,
    Relation,
    Scan,
    Union,
    Values,
    Where,
    Window,
)
from discreet.plan.types import Type


@dataclass(frozen=True, slots=True)
class Repeats:
    """What to write after FROM for values of columns, b0 …; ``none`` says that there are none."""

    source: str
    none: bool = False


KnownRepeats: TypeAlias = Callable[[str, tuple[str, ...], int], Repeats | None]
"""The values of columns of a table that more than so many rows have; None where they are not kept."""


def know_nothing(table: str, columns: tuple[str, ...], most: int) -> Repeats | None:  # noqa: ARG001  # one of many
    """Nothing is kept: each question counts for itself."""
    return None


def keeps_units_apart(relation: Relation) -> bool:
    """Whether no join pairs rows of different units, so that a relation is the sum of what it is for each unit."""
    match relation:
        case Scan() | Values():
            return True
        case Join():
            return relation.caps is None and keeps_units_apart(relation.left) and keeps_units_apart(relation.right)
        case Union():
            return all(map(keeps_units_apart, relation.sources))
        case Where() | Projection() | PerUnit() | Window() | Distinct() | Capped():
            return keeps_units_apart(relation.source)
        case _:
            assert_never(relation)


def add_units(clauses: Clauses, listed: Iterable[str]) -> str:
    """The units of whom something repeats, in a column ``owner``, from queries that each give one column."""
    return clauses.add(["owner"], f"({' UNION '.join(listed)}) AS found (owner)")


def add_others(clauses: Clauses, rows: str, keys: Sequence[tuple[str, Type]], known: str) -> str:
    """The rows whose keys are not among those of ``known``, which has them in columns b0 …"""
    names, mark = [clauses.make_name("b") for _ in keys], clauses.make_name("m")
    items = [*(f"b{i} AS {name}" for i, name in enumerate(names)), f"true AS {mark}"]
    marked = clauses.add(items, known, distinct=True)
    same = " AND ".join(clauses.dialect.same(key, name, kind) for (key, kind), name in zip(keys, names))
    both = clauses.dialect.join(rows, JoinKind.LEFT, marked, same)
    return clauses.add([f"{rows}.*"], both, f" WHERE {mark} IS NULL")
