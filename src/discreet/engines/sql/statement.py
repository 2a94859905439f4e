"""A bounded question in SQL: the steps of ``contributions.py``, one common table expression after the other.

    scan      the declared columns that the question reads, as plan types
    e0, e1 …  expressions, each over the layers below it
    rows      unit u, keys k0 …, integers v0 …, values x0 … to tell apart; conditions hold, the unit is not NULL
    pairs     one row for each unit and group: n rows, sums s0 … of integers
    placed    a unit's pairs in their secret order, with the rows that are allowed
    answer    sums of partials by group; beside them the distinct values, and spreads (module ``spreads``)

Overflow is impossible: a row adds less than 2^79 to a sum (``check``), tables have fewer than 2^47 rows, and sums are
wide (``Dialect.wide_sum``), to 2^127. The secret order is a keyed hash of unit and key *values*, never of positions or
codes, which would depend on other units; ties fall back to the order of the keys.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.order import EngineHash
from discreet.engines.sql.clauses import write_order
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.integers import write_integer
from discreet.engines.sql.layers import Layers
from discreet.engines.steps import check, collect_steps, source_of
from discreet.errors import InternalError
from discreet.plan.expressions import Column, Expression, find_columns
from discreet.plan.relations import JoinKind, split
from discreet.plan.types import Type

# Makes one row of all rows where there are no keys, whatever else is summed.
_ALL = "count(*) AS everything"


@dataclass(frozen=True, slots=True)
class RowSource:
    """Rows to ask about: what to write after FROM, and how each declared column is read there.

    ``ordinal`` is an integer that is equal for equal units, for readers that sort by it; ``identity`` is what stands
    for a unit in the secret order (``Dialect.identity``), where it is stored. Both are written over the columns of
    ``source``, and empty where there is none. ``raw`` gives reals as stored, perhaps not finite, for readers that check
    that themselves. ``texts`` names the texts that ``source`` binds.
    """

    source: str
    columns: Mapping[Column, str]
    raw: Mapping[Column, str]
    ordinal: str = ""
    identity: str = ""
    texts: dict[str, str] = field(default_factory=dict)


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
        told_apart = (m.argument for m in bounded.measures if m.counts is Counts.DISTINCT and m.argument is not None)
        self.distinct = tuple(dict.fromkeys(told_apart))
        self._rows = self._write_row_clauses()

    def _write_row_clauses(self) -> list[str]:
        bounded, layers = self.bounded, self._layers
        raw: dict[Expression, str] = {c: f"raw_{name}" for c, name in self._names.items() if c in self.relation.raw}
        items = [f"{layers.write_value(key)} AS k{i}" for i, key in enumerate(bounded.keys)]
        items += [f"{write_integer(steps, i, layers, raw)} AS v{i}" for i, steps in enumerate(self.steps)]
        items += [f"{layers.write_value(value)} AS x{i}" for i, value in enumerate(self.distinct)]
        conditions = [layers.write_value(condition) for condition in split(bounded.source)[1]]
        if bounded.unit is not None:
            conditions.append(f"{layers.write_value(bounded.unit)} IS NOT NULL")
            items = [f"{layers.write_value(bounded.unit)} AS u", "ordinal", "identity", *items]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        listed = [(i, steps.argument) for i, steps in enumerate(self.steps) if steps.values is not None]
        joins = "".join(f" LEFT JOIN listed{i} ON {layers.write_value(a)} = listed{i}.listed" for i, a in listed)
        clauses, top = layers.write_ctes("scan", "e")
        query = f"SELECT {_write_items(items)} FROM {top}{joins}{where}"
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
        counted = measure.counts is Counts.DISTINCT and measure.argument is not None
        return self.distinct.index(measure.argument) if counted else None

    def write_by_rows(self) -> str:
        """The answer where each row is its own unit: plain sums by group. Public keys are filtered afterwards."""
        named = [f"{self._write_row_sum(measure)} AS m{i}" for i, measure in enumerate(self.bounded.measures)]
        totals = self._define(
            "totals", f"SELECT {', '.join([*self.keys, *named, _ALL])} FROM rows{self.write_group_by()}"
        )
        items = _write_items([*self.keys, *(f"m{i}" for i in range(len(named)))])
        return self.write_query([totals], f"SELECT {items} FROM {self.write_public('totals')}")

    def write_by_units(self) -> str:
        """The answer with a unit's contribution bounded, in SQL alone."""
        clauses, kept = self.write_bounding()
        measures = self.bounded.measures
        if any(measure.counts is Counts.WEIGHT for measure in measures):
            clauses.append(self._define("joined", f"SELECT *, count(*) OVER (PARTITION BY u) AS g FROM {kept}"))
            clauses.append(self._define("weighed", "SELECT * FROM joined LEFT JOIN weights USING (g)"))
        source = "weighed" if any(measure.counts is Counts.WEIGHT for measure in measures) else kept
        summed = [(i, m) for i, m in enumerate(measures) if m.counts is not Counts.DISTINCT]
        sums = [f"{self._write_total(self._write_partial(i, measure))} AS m{i}" for i, measure in summed]
        totals = f"SELECT {', '.join([*self.keys, *sums, _ALL])} FROM {source}{self.write_group_by()}"
        clauses.append(self._define("totals", totals))
        more, joins = self._write_distinct_counts(kept)
        items = [f"totals.{key}" for key in self.keys]
        for i, measure in enumerate(measures):
            value = self.distinct_of(measure)
            items.append(f"m{i}" if value is None else f"coalesce(d{value}, 0)")
        return self.write_query([*clauses, *more], f"SELECT {_write_items(items)} FROM totals{joins}")

    def write_bounding(self) -> tuple[list[str], str]:
        """Steps 3 and 4: the clauses, and the name of the one that holds each unit's kept groups and allowed rows."""
        wide_sum = self.dialect.wide_sum
        counts = [f"count(v{i}) AS n{i}, {wide_sum(f'v{i}')} AS s{i}" for i in range(len(self.steps))]
        counts += [f"{wide_sum(self._write_square(i))} AS q{i}" for i in self._find_squared()]
        pair = ", ".join(["u", *self.keys])
        if self.relation.identity:
            counts.append("min(identity) AS identity")  # all are equal
        items = ", ".join([pair, "count(*) AS n", *counts])
        pairs = self._define("pairs", f"SELECT {items} FROM {self.write_public('rows')} GROUP BY {pair}")
        placed, kept = self._write_placed()
        return [pairs, *placed], kept

    def _write_distinct_counts(self, kept: str) -> tuple[list[str], str]:
        """Clauses that count d0 … distinct values by group, and how to join them to ``totals``.

        Of each unit's values in a kept group, as many as rows are allowed are taken, in the order of a keyed hash of
        the unit, the key and the value itself; ties fall back to the order of the values.
        """
        clauses, joins = [], ""
        pair = ", ".join(["u", *self.keys])
        for i, argument in enumerate(self.distinct):
            own, value = f"own{i}", f"x{i}"
            values = f"SELECT DISTINCT {pair}, identity, {value} FROM {self.write_public('rows')}"
            clauses.append(self._define(own, f"{values} WHERE {value} IS NOT NULL"))
            place = self.write_place(f"{own}.", (f"{own}.{value}", argument.type))
            same = f"{own}.u = {kept}.u AND {self.write_same_group(own, kept)}"
            hashed = f"SELECT {own}.*, allowed, {place} AS h FROM {own} JOIN {kept} ON {same}"
            clauses.append(self._define(f"hashed{i}", hashed))
            first = self.dialect.first_rows(f"hashed{i}", ["u", *self.keys], ["h", write_order(value)], "allowed")
            clauses.append(self._define(f"taken{i}", first))
            named = ", ".join([*self.keys, f"count(DISTINCT {value}) AS d{i}"])
            clauses.append(self._define(f"brought{i}", f"SELECT {named} FROM taken{i}{self.write_group_by()}"))
            joins += f" LEFT JOIN brought{i} ON {self.write_same_group('totals', f'brought{i}')}"
        return clauses, joins

    @property
    def ordered(self) -> bool:
        """Whether a unit's groups are taken in their secret order."""
        return self.bounded.max_groups is not None or self.bounded.max_rows is not None

    def write_query(self, more: Sequence[str], last: str, span: str = "") -> str:
        """A statement over rows: more clauses, and what is selected from them."""
        return f"WITH {', '.join([self._write_scan(span), *self._rows, *more])} {last}"

    def _define(self, name: str, query: str, *, keep: bool | None = None) -> str:
        return self.dialect.common_table(name, query, keep=keep)

    def _write_scan(self, span: str) -> str:
        relation, unit = self.relation, self.bounded.unit
        items = [f"{relation.columns[column]} AS {name}" for column, name in self._names.items()]
        items += [f"{relation.raw[c]} AS raw_{n}" for c, n in self._names.items() if c in relation.raw]
        if unit is not None:
            items += [f"{relation.ordinal or 'NULL'} AS ordinal", f"{relation.identity or 'NULL'} AS identity"]
        where = f" WHERE {span}" if span else ""
        return self._define("scan", f"SELECT {_write_items(items)} FROM {relation.source}{where}", keep=False)

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
        return " AND ".join(self.dialect.same(f"{left}.{key}", f"{right}.{key}") for key in self.keys) or "true"

    def write_group_by(self, *more: str) -> str:
        """By group, and by more."""
        return f" GROUP BY {', '.join([*self.keys, *more])}" if self.keys or more else ""

    def _write_placed(self) -> tuple[list[str], str]:
        """Steps 3 and 4 as expressions over pairs: rows allowed, groups kept."""
        bounded = self.bounded
        each = "n" if bounded.max_rows_per_group is None else f"least(n, {_cap_limit(bounded.max_rows_per_group)})"
        as_integer = self.dialect.as_integer
        # Where ``max_rows`` takes more away afterwards, what each group could have has a name of its own.
        name = "allowed" if bounded.max_rows is None else "most"
        clauses = [self._define("capped", f"SELECT *, {as_integer(each)} AS {name} FROM pairs", keep=True)]
        if not self.ordered:
            return clauses, "capped"
        order = ", ".join(["h", *map(write_order, self.keys)])
        window = f"OVER (PARTITION BY u ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
        clauses.append(self._define("hashed", f"SELECT *, {self.write_place()} AS h FROM capped"))
        ranked = f"SELECT *, row_number() {window} AS place, {self.dialect.wide_sum(name)} {window} AS used FROM hashed"
        clauses.append(self._define("ranked", ranked))
        conditions, columns = [], "*"
        if bounded.max_groups is not None:
            conditions.append(f"place <= {_cap_limit(bounded.max_groups)}")
        if bounded.max_rows is not None:
            left = f"{_cap_limit(bounded.max_rows)} - (used - most)"
            columns = f"*, {as_integer(f'least(most, {left})')} AS allowed"
            conditions.append(f"{left} > 0")
        placed = f"SELECT {columns} FROM ranked WHERE {' AND '.join(conditions)}"
        clauses.append(self._define("placed", placed, keep=True))
        return clauses, "placed"

    def _write_partial(self, position: int, measure: Measure) -> str:
        source = self.source_of(measure)
        total, count = f"{'q' if measure.counts is Counts.SQUARES else 's'}{source}", f"n{source}"
        match measure.counts:
            case Counts.ROWS:
                return self._write_clamp("n", measure.partial) if measure.partial else "allowed"
            case Counts.UNITS:
                return "1" if source is None else f"CASE WHEN {count} > 0 THEN 1 ELSE 0 END"
            case Counts.VALUES:
                return (
                    self._write_known(count, count, measure.partial) if measure.partial else f"least({count}, allowed)"
                )
            case Counts.WEIGHT:
                return f"w{position}"
            case Counts.STEPS | Counts.SQUARES if measure.partial is not None:
                return self._write_known(count, total, measure.partial)
            case Counts.STEPS | Counts.SQUARES:
                return self._write_scaled(total, count)
            case Counts.DISTINCT:
                raise InternalError("Distinct values are counted, not summed.")
            case _:
                assert_never(measure.counts)

    def _write_known(self, count: str, total: str, ends: tuple[int, int]) -> str:
        """What a unit adds within bounds of its own: nothing, where it has no value."""
        return f"CASE WHEN {count} > 0 THEN {self._write_clamp(total, ends)} ELSE 0 END"

    def _write_scaled(self, total: str, count: str) -> str:
        """A sum scaled down to the allowed rows: by parts, so that no product comes near 2^127, and towards zero."""
        divide, remainder = self.dialect.trunc_divide, self.dialect.trunc_remainder(total, count)
        scaled = f"({divide(total, count)}) * allowed + {divide(f'({remainder}) * allowed', count)}"
        return f"CASE WHEN {count} > allowed THEN {scaled} ELSE {total} END"

    def _write_row_sum(self, measure: Measure) -> str:
        """What a measure adds up where each row is its own unit, in one group of its own."""
        value = f"v{self.source_of(measure)}"
        if measure.partial is not None:
            each = self._write_clamp(value if measure.counts is Counts.STEPS else "1", measure.partial)
            if measure.counts is not Counts.ROWS:
                each = f"CASE WHEN {value} IS NOT NULL THEN {each} ELSE 0 END"
            return self._write_total(each)
        match measure.counts:
            case Counts.ROWS:
                return "count(*)"
            case Counts.UNITS if measure.argument is None:
                return "count(*)"
            case Counts.VALUES | Counts.UNITS:
                return f"count({value})"
            case Counts.STEPS:
                return self._write_total(value)
            case Counts.SQUARES:
                return self._write_total(self._write_square(self.source_of(measure) or 0))
            case Counts.DISTINCT:
                return f"count(DISTINCT x{self.distinct_of(measure)})"
            case Counts.WEIGHT:
                return f"count(*) * {self.dialect.wide_literal(measure.last)}"
            case _:
                assert_never(measure.counts)

    def _find_squared(self) -> list[int]:
        squares = (m for m in self.bounded.measures if m.counts is Counts.SQUARES)
        return sorted({source for m in squares if (source := self.source_of(m)) is not None})

    def _write_square(self, source: int) -> str:
        wide = max(-self.steps[source].first, self.steps[source].last) >= 2**31
        return f"{self.dialect.to_wide(f'v{source}')} * v{source}" if wide else f"v{source} * v{source}"

    def _write_total(self, value: str) -> str:
        return f"coalesce({self.dialect.wide_sum(value)}, 0)"

    def _write_clamp(self, total: str, ends: tuple[int, int]) -> str:
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


def _write_items(items: Sequence[str]) -> str:
    """What to select; there must be something."""
    return ", ".join(items) or "1 AS nothing"


def _cap_limit(limit: int) -> int:
    return min(limit, 2**62)
