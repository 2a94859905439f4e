"""A bounded question in SQL: the steps of ``contributions.py``, one common table expression after the other.

    scan      the declared columns that the question reads, as plan types
    e0, e1 …  expressions, each over the layers below it
    rows      unit u, keys k0 …, integers v0 …, some of them as doubles d0 …, values x0 … to tell apart; conditions
              hold, the unit is not NULL
    totals    sums by group: here where each row is its own unit, otherwise in ``unit_sums``

Beside them stand what is chosen by lot (``lots``), and the cells of spreads (``spreads``). Overflow is impossible: a
row adds less than 2^79 to a sum (``check``), tables have fewer than 2^47 rows, and sums are wide, to 2^127
(``Dialect.wide_sum``).
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import assert_never

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.order import EngineHash
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.implied_conditions import find_implied
from discreet.engines.sql.integers import EXACT, write_integer, write_whole_real
from discreet.engines.sql.layers import Layers
from discreet.engines.steps import check, collect_steps, source_of
from discreet.errors import InternalError
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Column, Expression, find_columns
from discreet.plan.relations import JoinKind, PerUnit, split
from discreet.plan.types import Type

# What is counted of values that repeat in several groups, so that groups cannot be added up.
_OF_VALUES = (Counts.DISTINCT, Counts.DISTINCT_STEPS, Counts.DISTINCT_SQUARES)
# Makes one row of all rows where there are no keys, whatever else is summed.
ALL = "count(*) AS everything"


@dataclass(frozen=True, slots=True)
class UncheckedText:
    """What to group by in place of a text that is checked for each group, and no longer for each row.

    ``sql`` is the text itself where it may be a key, of any other one something that may not be, and about as long as a
    key may be at most. ``check`` writes the key of a group over the name of that: NULL where it may be none.
    """

    sql: str
    check: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class RowSource:
    """Rows to ask about: what to write after FROM, and how each declared column is read there.

    ``ordinal`` is an integer that is equal for equal units, for readers that sort by it; ``identity`` is what stands
    for a unit in the secret order (``Dialect.identity``), where it is stored. Both are written over the columns of
    ``source``, and empty where there is none. ``raw`` gives reals as stored, perhaps not finite, for readers that check
    that themselves. ``texts`` names the texts that ``source`` binds. ``tested`` are conditions that hold in every row,
    and ``condition`` is one to be written where the rows are read (``sunk_conditions``); empty where there is none.
    ``in_memory``: the rows lie in memory anyway, so that those of a question may be kept there as well. ``most_rows``
    is as many as there are or more, where that is known. ``unchecked`` gives texts to readers that group by them first,
    and check them afterwards.
    """

    source: str
    columns: Mapping[Column, str]
    raw: Mapping[Column, str]
    ordinal: str = ""
    identity: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    tested: frozenset[Expression] = frozenset()
    condition: str = ""
    in_memory: bool = False
    most_rows: int | None = None
    unchecked: Mapping[Column, UncheckedText] = field(default_factory=dict)


class BoundedStatement:
    """The common part of all ways to run a bounded question: the rows with their keys and integers."""

    def __init__(
        self, bounded: BoundedPlan, relation: RowSource, dialect: Dialect, order: EngineHash, salt: bytes
    ) -> None:
        check(bounded)
        self.bounded = bounded
        self.relation = relation
        self.dialect = dialect
        self.order = order
        self._salt = salt
        names = {column: f"c{i}" for i, column in enumerate(_list_columns(bounded))}
        self._names = names
        self._layers = Layers(names, dialect, dict(relation.texts))
        self.steps = collect_steps(bounded)
        told_apart = (m.argument for m in bounded.measures if m.matched and m.argument is not None)
        self.distinct = tuple(dict.fromkeys(told_apart))
        self._rows = self._write_row_clauses()

    def _write_row_clauses(self) -> list[str]:
        bounded, layers = self.bounded, self._layers
        raw: dict[Expression, str] = {c: f"raw_{name}" for c, name in self._names.items() if c in self.relation.raw}
        items = [f"{layers.write_value(key)} AS k{i}" for i, key in enumerate(bounded.keys)]
        items += [f"unchecked_{self._names[key]} AS p{i}" for i, (key, _) in self._find_unchecked().items()]
        items += [f"{write_integer(steps, i, layers, raw)} AS v{i}" for i, steps in enumerate(self.steps)]
        alone = bounded.unit is None
        doubles = {i: write_whole_real(steps, layers, raw, alone=alone) for i, steps in enumerate(self.steps)}
        self._doubles = frozenset(i for i, sql in doubles.items() if sql is not None)
        items += [f"{doubles[i]} AS d{i}" for i in sorted(self._doubles)]
        items += [f"{layers.write_value(value)} AS x{i}" for i, value in enumerate(self.distinct)]
        given = [condition for condition in split(bounded.source)[1] if condition not in self.relation.tested]
        implied = [more for condition in given for more in find_implied(condition)]
        conditions = [layers.write_value(condition) for condition in (*given, *implied)]
        if bounded.unit is not None:
            conditions.append(f"{layers.write_value(bounded.unit)} IS NOT NULL")
            items = [f"{layers.write_value(bounded.unit)} AS u", "ordinal", "identity", *items]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        listed = [(i, steps.argument) for i, steps in enumerate(self.steps) if steps.values is not None]
        joins = "".join(f" LEFT JOIN listed{i} ON {layers.write_value(a)} = listed{i}.listed" for i, a in listed)
        clauses, top = layers.write_ctes("scan", "e")
        query = f"SELECT {write_items(items)} FROM {top}{joins}{where}"
        return [*clauses, self.dialect.common_table("rows", query, keep=False)]

    @property
    def parameters(self) -> dict[str, str]:
        """The texts to bind to every form of this statement."""
        return self._layers.parameters

    @property
    def keys(self) -> list[str]:
        """The names of the keys."""
        return [f"k{i}" for i in range(len(self.bounded.keys))]

    def source_of(self, measure: Measure) -> int | None:
        """The integers v0 … that a measure reads; None for those that read none."""
        return source_of(measure, self.steps)

    def distinct_of(self, measure: Measure) -> int | None:
        """The values x0 … that a measure tells apart; None for those that do not."""
        return self.distinct.index(measure.argument) if measure.matched and measure.argument is not None else None

    def _find_unchecked(self) -> dict[int, tuple[Column, UncheckedText]]:
        """The keys that can be grouped by before they are checked, p0 …, where each row is its own unit."""
        if self.bounded.unit is not None or any(measure.counts in _OF_VALUES for measure in self.bounded.measures):
            return {}
        columns = {i: key for i, key in enumerate(self.bounded.keys) if isinstance(key, Column)}
        unchecked = self.relation.unchecked
        return {i: (key, unchecked[key]) for i, key in columns.items() if key in unchecked}

    def write_by_rows(self) -> str:
        """The answer where each row is its own unit: plain sums by group. Public keys are filtered afterwards."""
        named = [f"{self._write_row_sum(measure)} AS m{i}" for i, measure in enumerate(self.bounded.measures)]
        unchecked, measures = self._find_unchecked(), [f"m{i}" for i in range(len(named))]
        by = [f"p{i}" if i in unchecked else key for i, key in enumerate(self.keys)]
        keys, group_by = [f"{name} AS {key}" for name, key in zip(by, self.keys)], f" GROUP BY {', '.join(by)}"
        totals = f"SELECT {', '.join([*keys, *named, ALL])} FROM rows{group_by if by else ''}"
        clauses = [self.define("totals" if not unchecked else "unchecked_totals", totals)]
        if unchecked:
            clauses += self._check_groups(unchecked, measures)
        items = write_items([*self.keys, *measures])
        return self.write_query(clauses, f"SELECT {items} FROM {self.write_public('totals')}")

    def _check_groups(
        self, unchecked: Mapping[int, tuple[Column, UncheckedText]], measures: Sequence[str]
    ) -> list[str]:
        """Totals, of those by unchecked texts: groups of texts that may be no keys are one, that of NULL.

        An engine reads fewer texts than there are rows then. No key takes much more room while rows are grouped than it
        may have.
        """
        checked = {i: text.check(f"k{i}") for i, (_, text) in unchecked.items()}
        keys = [f"{checked.get(i, key)} AS {key}" for i, key in enumerate(self.keys)]
        if not self._joins_checked(unchecked):
            return [self.define("totals", f"SELECT {', '.join([*keys, *measures])} FROM unchecked_totals")]
        sums = [f"{self.dialect.wide_sum(measure)} AS {measure}" for measure in measures]
        fitted = self.define("fitted", f"SELECT {', '.join([*keys, *measures])} FROM unchecked_totals")
        joined = f"SELECT {', '.join([*self.keys, *sums])} FROM fitted{self.write_group_by()}"
        return [fitted, self.define("totals", joined)]

    def _joins_checked(self, unchecked: Iterable[int]) -> bool:
        """Whether groups of NULL are added up here.

        If NULL is in no public group, they are dropped. Where that would move all groups once more, ``make_groups``
        adds them up: one row then makes one group at most, as it does with a text that may be a key.
        """
        if self.bounded.domain is None:
            return not self.dialect.moves_rows
        return not all(map(self._is_known, unchecked))

    @property
    def has_lots(self) -> bool:
        """Whether something is chosen from a unit's groups in their secret order."""
        return any(measure.by_lot for measure in self.bounded.measures)

    @property
    def one_row(self) -> bool:
        """Whether a unit has one row at most: where rows are groups of what each unit has, by the unit alone.

        Groups by one expression have different values of it, and conditions above them only take rows away.
        """
        base, _ = split(self.bounded.source)
        if not isinstance(base, PerUnit) or len(base.keys) != 1:
            return False
        ((name, key),) = base.keys
        return self.bounded.unit == Column(base.name, name, key.type)

    @property
    def owner(self) -> str:
        """The column that tells units apart: an integer where there is one and the unit's own value is not needed."""
        return "ordinal" if self.relation.ordinal and not self.has_lots else "u"

    def write_query(self, more: Sequence[str], last: str, span: str = "") -> str:
        """A statement over rows: more clauses, and what is selected from them."""
        return f"WITH {', '.join([self._write_scan(span), *self._rows, *more])} {last}"

    def define(self, name: str, query: str, *, keep: bool | None = None) -> str:
        """A common table expression."""
        return self.dialect.common_table(name, query, keep=keep)

    def _write_scan(self, span: str) -> str:
        relation, unit = self.relation, self.bounded.unit
        items = [f"{relation.columns[column]} AS {name}" for column, name in self._names.items()]
        items += [f"{relation.raw[c]} AS raw_{n}" for c, n in self._names.items() if c in relation.raw]
        items += [f"{text.sql} AS unchecked_{self._names[key]}" for key, text in self._find_unchecked().values()]
        if unit is not None:
            items += [f"{relation.ordinal or 'NULL'} AS ordinal", f"{relation.identity or 'NULL'} AS identity"]
        conditions = " AND ".join(filter(None, (relation.condition, span)))
        where = f" WHERE {conditions}" if conditions else ""
        return self.define("scan", f"SELECT {write_items(items)} FROM {relation.source}{where}", keep=False)

    def write_place(self, prefix: str = "", *more: tuple[str, Type]) -> str:
        """Where a unit's group, or with ``more`` one of its values there, stands in the unit's secret order."""
        unit = self.bounded.unit
        if unit is None:
            raise InternalError("Rows that are their own units have no secret order.")
        identity = f"{prefix}identity" if self.relation.identity else self.dialect.identity(f"{prefix}u", unit.type)
        values = [(prefix + name, key.type) for name, key in zip(self.keys, self.bounded.keys)]
        return self.dialect.place_of_group(identity, [*values, *more], self._salt, self.order.bits)

    def write_public(self, source: str) -> str:
        """The rows of a relation that are in public groups, to write after FROM. No row is repeated."""
        if self.bounded.domain is None or not self.keys:
            return source
        return self.dialect.join(source, JoinKind.SEMI, "domain", self.write_same_group(source, "domain"))

    def write_same_group(self, left: str, right: str) -> str:
        """Whether two rows are of the same group; NULL is a key like others."""
        written = [
            f"{left}.{name} = {right}.{name}"
            if right == "domain" and self._is_known(i)
            else self.dialect.same(f"{left}.{name}", f"{right}.{name}", key.type)
            for i, (name, key) in enumerate(zip(self.keys, self.bounded.keys))
        ]
        return " AND ".join(written) or "true"

    def _is_known(self, place: int) -> bool:
        """Whether no public group has NULL as its key there, so that what is NULL is in none of them."""
        return all(group[place] is not None for group in self.bounded.domain or ())

    def write_group_by(self, *more: str) -> str:
        """By group, and by more."""
        return f" GROUP BY {', '.join([*self.keys, *more])}" if self.keys or more else ""

    def _write_row_sum(self, measure: Measure) -> str:
        """What a measure adds up where each row is its own unit, in one group of its own."""
        value = f"v{self.source_of(measure)}"
        if measure.partial is not None:
            each = self.write_clamp(value if measure.counts is Counts.STEPS else "1", measure.partial)
            if measure.counts is not Counts.ROWS:
                each = f"CASE WHEN {value} IS NOT NULL THEN {each} ELSE 0 END"
            return self.write_total(each)
        most = max(-measure.row_low, measure.row_high)
        match measure.counts:
            case Counts.ROWS:
                return "count(*)"
            case Counts.UNITS if measure.argument is None:
                return "count(*)"
            case Counts.VALUES | Counts.UNITS:
                return f"count({value})"
            case Counts.STEPS:
                return self._write_sum_of_steps(self.source_of(measure), most)
            case Counts.SQUARES:
                return self.write_total(self.write_square(self.source_of(measure) or 0), most)
            case Counts.DISTINCT:
                return f"count(DISTINCT x{self.distinct_of(measure)})"
            case Counts.DISTINCT_STEPS | Counts.DISTINCT_SQUARES:
                return "0"  # of values, not of rows: ``distinct_values`` sums them
            case Counts.NAMED:
                return "count(*)"
            case Counts.WEIGHT:
                return f"count(*) * {self.dialect.wide_literal(measure.last)}"
            case _:
                assert_never(measure.counts)

    def _write_sum_of_steps(self, source: int | None, most: int) -> str:
        """The sum of integers v0 … that are at most ``most`` in size, over rows."""
        rows = self.relation.most_rows
        double = self.find_double(source, None if rows is None else most * rows)
        if double is None:
            return self.write_total(f"v{source}", most)
        return f"coalesce({self.dialect.as_integer(self.dialect.real_sum(double))}, 0)"

    def find_double(self, source: int | None, most: int | None) -> str | None:
        """The name of an integer v0 … as a double, if sums of it are exact: ``most`` is the size of the largest."""
        exact = source in self._doubles and most is not None and most < EXACT
        return f"d{source}" if exact else None

    def find_squared(self) -> list[int]:
        """The integers of which squares are summed."""
        squares = (m for m in self.bounded.measures if m.counts is Counts.SQUARES)
        return sorted({source for m in squares if (source := self.source_of(m)) is not None})

    def write_square(self, source: int) -> str:
        """The square of an integer v0 …, as wide as it must be."""
        wide = max(-self.steps[source].first, self.steps[source].last) >= 2**31
        return f"{self.dialect.to_wide(f'v{source}')} * v{source}" if wide else f"v{source} * v{source}"

    def write_total(self, value: str, most: int | None = None) -> str:
        """The sum over a group, 0 without values. ``most`` is their size, where it is known."""
        total = self.dialect.wide_sum(value) if most is None else self.dialect.bounded_sum(value, most)
        return f"coalesce({total}, 0)"

    def write_clamp(self, total: str, ends: tuple[int, int]) -> str:
        """A unit's sum within bounds of its own; wide, because it has not been scaled."""
        low, high = map(self.dialect.wide_literal, ends)
        return f"least(greatest({total}, {low}), {high})"


def _list_columns(bounded: BoundedPlan) -> list[Column]:
    """Every column that a question reads, in a fixed order."""
    arguments = [measure.argument for measure in bounded.measures if measure.argument is not None]
    arguments += [spread.argument for spread in bounded.spreads]
    units = () if bounded.unit is None else (bounded.unit,)
    read = (*split(bounded.source)[1], *bounded.keys, *arguments, *units)
    found = {column for expression in read for column in find_columns(expression)}
    return sorted(found, key=lambda column: (column.table, column.name))


def write_items(items: Sequence[str]) -> str:
    """What to select; there must be something."""
    return ", ".join(items) or "1 AS nothing"


def cap_limit(limit: int) -> int:
    """A limit that is as good as the given one, and fits 64 bits."""
    return min(limit, 2**62)
