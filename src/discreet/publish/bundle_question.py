"""Questions to a bundle: SQL about the table ``release``, answered from what was released.

*Promised*: counts of rows by conditions and groups whose columns lie together in one measured table, where each cell
says whether its rows count. They come from the noisy residuals without bias, with an interval that holds with the
stated confidence. A bin does not say which of its values a row has. A cell of other values says only that a row has
none of the listed ones: it counts in no named group, and not where one of the listed values is demanded.
*Model only*: everything else is computed from the synthetic rows. No error is promised for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from discreet.engines.engine import key_order
from discreet.errors import DiscreetError, UsageError
from discreet.exact import Floats
from discreet.frontends import read_sql
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Call, Column, Expression, Literal, ReleasedValue, find_columns
from discreet.plan.nodes import Question
from discreet.plan.relations import Scan, split
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Value
from discreet.privacy import Neighbours, Unit
from discreet.publish.columns import PublishedColumn
from discreet.publish.intervals import cut
from discreet.publish.measurements import Measurements
from discreet.publish.records import TABLE
from discreet.publish.synthetic_table import SyntheticTable
from discreet.publish.workload import Attributes

# The most cells of a table that a question goes through one by one.
_MOST_CELLS = 200_000


@dataclass(frozen=True)
class BundleAnswer:
    """Rows, whether their errors are promised, and why. Promised counts have ``_low`` and ``_high`` beside them."""

    rows: Any
    promised: bool
    reason: str

    def to_pandas(self) -> Any:
        """The rows as a pandas frame."""
        return self.rows.to_pandas()

    def __repr__(self) -> str:
        kind = "promised" if self.promised else "model only"
        return f"{self.rows.to_pylist()}\n{kind}: {self.reason}"


def answer_question(
    sql: str,
    measured: Measurements,
    columns: Sequence[PublishedColumn],
    level: Fraction,
    synthetic: SyntheticTable | None,
) -> BundleAnswer:
    """The answer to SQL about the table ``release``."""
    reason = "the question is not a count of rows by conditions and groups"
    try:
        question = read_sql.read(sql, _make_catalog(columns))
    except DiscreetError:
        question = None
    if question is not None:
        found = _PromisedCount(question, measured, columns, level).answer()
        if isinstance(found, BundleAnswer):
            return found
        reason = found
    if synthetic is None:
        raise UsageError(f"This cannot be answered from the measured tables ({reason}), and there are no rows to ask.")
    return BundleAnswer(_ask_rows(sql, synthetic), promised=False, reason=f"from synthetic rows, because {reason}")


def _make_catalog(columns: Sequence[PublishedColumn]) -> Catalog:
    known = {
        column.name: (column.kind, ColumnFacts(keys=column.values, nullable=column.nullable)) for column in columns
    }
    facts = TableFacts(name=TABLE, columns=known, unit=Unit(), limits=ContributionLimits(max_rows=1))
    return Catalog(tables={TABLE: facts}, neighbours=Neighbours.ADD_REMOVE)


@dataclass(frozen=True)
class _PromisedCount:
    """A question that may be a linear one about a measured table."""

    question: Question
    measured: Measurements
    columns: Sequence[PublishedColumn]
    level: Fraction

    def answer(self) -> BundleAnswer | str:
        """The answer, or the reason why none can be promised."""
        asked = self.question
        base, conditions = split(asked.source)
        plain = not asked.order and asked.having is None and asked.limit is None and asked.sets is None
        counted = [a for a in asked.aggregates if a.statistic is Statistic.COUNT and a.argument is None]
        if not isinstance(base, Scan) or not plain or len(counted) != len(asked.aggregates) or not counted:
            return "only counts of rows, without order, having and limit, have promised errors"
        used = sorted({self._find_number(c) for e in (*conditions, *asked.keys) for c in find_columns(e)})
        attributes = tuple(used)
        if not self.measured.allocation.covers(attributes):
            return "no measured table has all of its columns"
        if self.measured.allocation.workload.cells(attributes) > _MOST_CELLS:
            return "the measured table is too large to go through"
        groups = self._find_groups(attributes, conditions)
        return groups if isinstance(groups, str) else self._count(attributes, groups)

    def _find_number(self, column: Column) -> int:
        return next(number for number, known in enumerate(self.columns) if known.name == column.name)

    def _find_groups(
        self, attributes: Attributes, conditions: Sequence[Expression]
    ) -> dict[tuple[Value, ...], Floats] | str:
        """For each group the cells that count in it; a text where a cell does not say."""
        shape = self.measured.allocation.workload.shape(attributes)
        groups: dict[tuple[Value, ...], Floats] = {} if self.question.keys else {(): np.zeros(shape)}
        named = [self.columns[number] for number in attributes]
        parts = [part for condition in conditions for part in _split_and(condition)]
        for cells in product(*(range(size) for size in shape)):
            row = _CellRow.make(named, cells)
            told = [row.tell(part) for part in parts]
            if False in told:
                continue
            if None in told or any(row.bins & find_columns(key) for key in self.question.keys):
                return "a cell has more than one value, so its rows cannot be told apart"
            if any(row.others & find_columns(key) for key in self.question.keys):
                continue  # values that are not listed are in no group that could be named
            group = tuple(evaluate(key, row.values) for key in self.question.keys)
            groups.setdefault(group, np.zeros(shape))[cells] = 1.0
        return groups

    def _count(self, attributes: Attributes, groups: dict[tuple[Value, ...], Floats]) -> BundleAnswer:
        import pyarrow as pa

        asked, rows = self.question, []
        counts = [asked.refer_to_aggregate(i) for i in range(len(asked.aggregates))]
        for key in sorted(groups, key=key_order):
            middle, deviation = self.measured.answer(attributes, groups[key])
            low, high = cut(middle, self.measured.allocation.find_half(deviation, self.level))
            released: dict[Column | ReleasedValue, Value] = dict.fromkeys(counts, min(max(middle, low), high))
            released |= {asked.refer_to_key(i): value for i, value in enumerate(key)}
            row: dict[str, Value] = {}
            for output in asked.outputs:
                row[output.name] = evaluate(output.expression, released)
                if output.expression in counts:
                    row |= {f"{output.name}_low": low, f"{output.name}_high": high}
            rows.append(row)
        reason = f"from one measured table, each interval by itself at {float(self.level):.4g}"
        return BundleAnswer(pa.Table.from_pylist(rows), promised=True, reason=reason)


@dataclass(frozen=True)
class _CellRow:
    """A cell as a row: the values that it says, and the columns in which it does not say one."""

    values: Mapping[Column | ReleasedValue, Value]
    others: frozenset[Column]
    bins: frozenset[Column]
    listed: Mapping[Column, tuple[Value, ...]]

    @classmethod
    def make(cls, columns: Sequence[PublishedColumn], cells: Sequence[int]) -> _CellRow:
        """The row of one cell of a table."""
        values: dict[Column | ReleasedValue, Value] = {}
        others: set[Column] = set()
        bins: set[Column] = set()
        listed = {}
        for column, cell in zip(columns, cells):
            name = Column(TABLE, column.name, column.kind)
            single, values[name] = column.find_value(cell)
            if not single:
                (others if cell < column.first else bins).add(name)
            listed[name] = column.values or ()
        return cls(values, frozenset(others), frozenset(bins), listed)

    def tell(self, condition: Expression) -> bool | None:
        """Whether all rows of the cell meet a condition, or none of them; None where the cell does not say."""
        used = find_columns(condition)
        if not used & (self.others | self.bins):
            return evaluate(condition, self.values) is True
        if not isinstance(condition, Call) or condition.function not in ("equal", "in"):
            return None
        column, *wanted = condition.arguments
        if not isinstance(column, Column) or column not in self.others:
            return None
        known = all(isinstance(part, Literal) and part.value in self.listed[column] for part in wanted)
        return False if known else None


def _split_and(condition: Expression) -> list[Expression]:
    """The parts of a condition that must all be true."""
    if isinstance(condition, Call) and condition.function == "and":
        return [part for argument in condition.arguments for part in _split_and(argument)]
    return [condition]


def _ask_rows(sql: str, synthetic: SyntheticTable) -> Any:
    """SQL over the synthetic rows, in a database of its own that sees nothing else."""
    import duckdb

    connection = duckdb.connect(config={"enable_external_access": "false"})
    try:
        connection.register(TABLE, synthetic.rows)
        found = connection.sql(sql)
        if found is None:
            raise UsageError(f"This is no question: it gives no rows. Ask the table {TABLE!r} with SELECT.")
        return found.to_arrow_table()
    except duckdb.Error as error:
        raise UsageError(f"The question cannot be asked of the table {TABLE!r}: {error}") from None
    finally:
        connection.close()
