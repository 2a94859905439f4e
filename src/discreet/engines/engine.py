"""What an engine is: something that runs a bounded question exactly, and knows nothing about noise.

Members: ``memory.MemoryEngine`` (slow, obvious Python over rows: the oracle for every other one),
``duckdb.DuckDBEngine`` (embedded, for real data), ``postgres.PostgresEngine`` (inside a database) and
``spark.SparkEngine`` (on a cluster). ``registry`` says which one opens which kind of source.

An engine is trusted with the rows and with nothing else, and the guarantee rests on these nine points. Each names the
test in ``tests/engines/conformance`` that holds every engine to it. What an engine does not keep yet stands in its
table of gaps there, with the reason.

1. *The steps of* ``bounding/contributions.py``, *exactly.* The integers are those that the oracle computes, and so are
   the choices by the secret order. Checked by ``test_engines_agree_where_limits_bind``.
2. *Every expression is total.* Whatever the data holds, an expression yields a value of its type or NULL, and never an
   error: an error would tell that a value is there. Checked by ``test_no_expression_fails_whatever_the_data``.
3. *Integer sums are exact to 2^127.* They neither wrap nor saturate nor become reals. Checked by
   ``test_sums_beyond_64_bits_neither_wrap_nor_fail``.
4. *The secret order is a function of the salt, the unit and key values only* (``order``): not of positions, codes,
   threads, blocks or other units. Checked by ``test_the_order_of_rows_does_not_matter``.
5. *Groups come in key order* (``key_order``), because the order in which rows are found is a fact about rows. Checked
   by ``test_groups_come_in_key_order``.
6. *A version is free of row facts.* It goes on record, so it is made of names, times and labels, and not of sizes,
   counts or contents. Checked by ``test_a_version_says_nothing_about_rows``.
7. *Its own words never leave.* An engine's messages quote data. They go to the curator's log, and the caller gets one
   constant sentence. Checked by ``test_a_failing_engine_says_one_constant_sentence``.
8. *Read-only and locked down.* It runs only statements that were written from plans, and changes no source. Checked by
   ``test_a_question_changes_no_source``; the tests of each engine check how its connection is locked.
9. *Work is bounded by public facts.* What a row can hold and what joins can make of a unit's rows is bounded before
   anything is read (``bounding.lengths``, ``bounding.fan_out``), and a setting bounds the memory. Time does grow with
   the rows in the tables: see "Time" in ``docs/guarantees.md``. Checked by ``test_a_long_history_is_no_trap``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.tabulation import Tabulation
from discreet.exact import Integers
from discreet.late_dataclass import dataclass
from discreet.plan.gaps import Gap
from discreet.plan.relations import Values
from discreet.plan.types import Type, Value

ProgressCallback: TypeAlias = Callable[[float], None]
"""Called now and then with the share of the work done, between 0 and 1. A public estimate, never a row count."""

GroupHistogram: TypeAlias = tuple[Integers, Integers]
"""Cells in ascending order, and how many rows each holds (at least one)."""

EMPTY: GroupHistogram = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Groups:
    """Exact, private integers: for each observed group its key tuple, for each measure one integer a group, and for
    each spread one histogram a group.

    Only the curator sees this, and only to add noise. Groups come in key order (``key_order``). A group that no row
    fell into may be missing. Without keys there is exactly one group, ``()``.
    """

    keys: tuple[tuple[Value, ...], ...]
    values: tuple[tuple[int, ...], ...]
    spreads: tuple[tuple[GroupHistogram, ...], ...] = ()


def key_order(key: Sequence[Value]) -> tuple[tuple[bool, Any], ...]:
    """What to sort keys by: value after value, ascending, NULL last; texts by code points, false before true.

    >>> sorted([("b", 1), (None, 2), ("b", None), ("a", 3)], key=key_order)
    [('a', 3), ('b', 1), ('b', None), (None, 2)]
    """
    return tuple((value is None, value) for value in key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine can do beyond the contract. None of these may change an integer of an answer."""

    prepares: bool = False  # ``prepare`` makes later questions faster; otherwise it does nothing
    reports_progress: bool = False  # ``watch`` hears shares while the work goes on, not only at its end
    gaps: frozenset[Gap] = frozenset()  # what it cannot say, and the planner refuses
    spills: bool = False  # work beyond the memory that it may use goes through the disk


class Engine(Protocol):
    """Runs bounded questions over the declared tables of one dataset, as the nine points above say."""

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do beyond the contract."""
        ...

    def schema(self, table: str) -> Mapping[str, Type | None]:
        """The columns a source really has, and the plan type each would get (None: a type without one). No values.

        Refused where a declared column is not there, or is not of its type: what is read is as declared.
        """
        ...

    def version(self, table: str) -> str:
        """A text that changes whenever the data may have changed; equal texts allow an answer to be replayed."""
        ...

    def count_public(self, table: str, columns: tuple[str, ...]) -> int:
        """The most rows of a declared public table with the same values of some columns, none of them NULL.

        Without columns: all of its rows. A private table is refused.
        """
        ...

    def read_public(self, table: str) -> Values:
        """All rows of a declared public table, in an order that is the same each time. A private table is refused."""
        ...

    def prepare(self, table: str) -> None:
        """Make a table ready once, where that makes later questions faster; answers stay the same."""
        ...

    def run(
        self, bounded: BoundedPlan, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> Groups:
        """The exact integers of ``contributions.py``. ``salt`` is 16 secret bytes, the key of the secret order.

        ``generous`` asks for more memory and less haste, where an engine has that to give: a run that failed is tried
        once more in this way. The integers are the same.
        """
        ...

    def tabulate(
        self, tabulation: Tabulation, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> tuple[Integers, ...]:
        """The exact tables of ``tabulation.py``, all from one pass over the rows; ``generous`` as for ``run``."""
        ...

    def close(self) -> None:
        """Let go of files and memory."""
        ...
