"""Keys that repeat, known before a question is asked: what is capped to one row of a key needs no counting.

An engine may keep, for each version of a table, the rows whose values of some columns other rows have, too
(``Repeats``). There are few of them, because they break what the codebook declares. Then a cap to one row by these
columns is written in two parts.

The claim: let R be a relation that reads the scan S, where each row of R has the columns of one row of S and no row of
S is used twice, and where R of two parts of S together is R of the one and R of the other (``row_origins.trace_rows``).
Let S′ be the rows of S whose values nobody else has, and S″ the others. Then the capped R is R(S′) and, beside it, the
capped R(S″). Why: no two rows of R(S′) have the same values, so nothing is taken away there; and a row of R(S′) and one
of R(S″) never have the same values. In the same way DISTINCT takes away nothing of S′.

Time: both parts are always written and S′ is always looked for, whoever has repeated keys, so a statement is decided by
public facts. The rows of S″ are left out where S is *read*: they meet no other row before they are capped, so a unit
with many equal keys adds work in proportion to its rows. The kept keys are never empty (``Repeats``): an engine that
skips a join with nothing would tell that there is nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeAlias

from discreet.engines.sql.clauses import Clauses
from discreet.late_dataclass import dataclass
from discreet.plan.relations import JoinKind
from discreet.plan.types import Type


class ScanPart(StrEnum):
    """Which rows of a scan are read."""

    ALONE = "alone"  # those whose values nobody else has
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class Repeats:
    """The rows of a table whose values of some columns repeat.

    ``keys`` is what to write after FROM for these values, in columns b0 …, without duplicates; there are always some,
    also if no row has them. ``rows`` is the same for the rows, which have every declared column under its own name.
    ``columns`` names the columns whose values these are, in the order of b0 ….
    """

    keys: str
    rows: str
    columns: tuple[str, ...]


KnownRepeats: TypeAlias = Callable[[str, tuple[str, ...]], Repeats | None]
"""What is kept of a table for some of its columns; None where nothing is."""


def know_nothing(table: str, columns: tuple[str, ...]) -> Repeats | None:  # noqa: ARG001  # one of several
    """Nothing is kept: each question counts for itself."""
    return None


def add_alone(clauses: Clauses, rows: str, values: Mapping[str, tuple[str, Type]], known: Repeats) -> str:
    """The rows whose values are not among those that repeat. ``values`` gives their names in ``rows`` by column.

    An engine takes most conditions to leave out most of a table, and would order joins by that. Here it should see a
    whole table, so the condition is one of which it expects nothing: that something computed is not NULL.
    """
    names, mark = [clauses.make_name("b") for _ in known.columns], clauses.make_name("m")
    keys = clauses.add([*(f"b{i} AS {name}" for i, name in enumerate(names)), f"true AS {mark}"], known.keys)
    same = [clauses.dialect.same(values[c][0], name, values[c][1]) for c, name in zip(known.columns, names)]
    joined = clauses.dialect.join(rows, JoinKind.LEFT, keys, " AND ".join(same))
    own = [name for name, _ in values.values()]
    return clauses.add(own, joined, f" WHERE CASE WHEN {mark} IS NULL THEN true END IS NOT NULL")
