"""A bounded question in DuckDB's SQL: the steps of ``contributions.py``, one common table expression after the other.

    scan      the declared columns that the question reads, as plan types
    e0, e1 …  expressions, each over the layers below it
    rows      unit u, keys k0 …, integers v0 …; conditions hold and the unit is not NULL
    pairs     one row for each unit and group: n rows, sums s0 … of integers
    placed    a unit's pairs in their secret order, with the rows that are allowed
    answer    sums of partials by group

Overflow is impossible: a row adds less than 2^79 to a sum (``check``), tables have fewer than 2^47 rows, and sums are
HUGEINT, which holds 2^127. The secret order is a keyed hash of unit and key *values*, never of positions or codes,
which would depend on other units; ties fall back to the order of the keys.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from discreet.bounding.contributions import Bounded, Counts, Measure
from discreet.engines.dialect import Layers, cast, identifier
from discreet.engines.kernel import HASH_BITS, NULL, Layout
from discreet.errors import InternalError
from discreet.plan.expressions import Column, Expression, columns
from discreet.plan.relations import split
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type

MAX_ROW = 2**79
"""The most that one row may add to a sum."""

Steps: TypeAlias = tuple[Expression, Fraction, Fraction, int, int]
"""What determines the integer of a row: argument, origin, resolution, first and last step."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows to ask about: what to write after FROM, and how each declared column is read there.

    ``ordinal`` is an integer that is equal for equal units, for sorting; ``identity`` is what the secret order hashes.
    Both are written over the columns of ``source``; empty where the unit's own value serves. ``raw`` gives reals as
    stored, perhaps not finite, for readers that check that themselves.
    """

    source: str
    columns: Mapping[Column, str]
    raw: Mapping[Column, str]
    ordinal: str = ""
    identity: str = ""


def check(bounded: Bounded) -> None:
    """Refuse a question whose integers could overflow; the planner never makes one."""
    for measure in bounded.measures:
        if max(-measure.row_low, measure.row_high) >= MAX_ROW or max(-measure.first, measure.last) >= 2**62:
            raise InternalError("A measure is too wide to be summed without overflow.")
        if measure.counts in (Counts.STEPS, Counts.SQUARES):
            grid(measure)


def grid(measure: Measure) -> tuple[float, float]:
    """Origin and resolution as doubles, which must be able to hold them."""
    try:
        origin, resolution = float(measure.origin), float(measure.resolution)
    except OverflowError:
        raise InternalError("The grid of a measure is beyond doubles.") from None
    if resolution <= 0 or not math.isfinite(resolution):
        raise InternalError("The grid of a measure is beyond doubles.")
    return origin, resolution


class Statement:
    """The common part of all ways to run a bounded question: the rows with their keys and integers."""

    def __init__(self, bounded: Bounded, relation: Relation, salt: bytes) -> None:
        check(bounded)
        self.bounded = bounded
        self._salt = salt
        self._relation = relation
        names = {column: f"c{i}" for i, column in enumerate(_columns(bounded))}
        self._names = names
        self._layers = Layers(names)
        self.steps = _distinct_steps(bounded.measures)
        keys = [f"{self._layers.value(key)} AS k{i}" for i, key in enumerate(bounded.keys)]
        values = [f"{self._integer(steps)} AS v{i}" for i, steps in enumerate(self.steps)]
        conditions = [self._layers.value(condition) for condition in split(bounded.source)[1]]
        units = []
        if bounded.unit is not None:
            conditions.append(f"{self._layers.value(bounded.unit)} IS NOT NULL")
            units = [f"{self._layers.value(bounded.unit)} AS u", "ordinal", "identity"]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        clauses, top = self._layers.ctes("scan", "e")
        items = ", ".join([*units, *keys, *values]) or "1 AS nothing"
        self._rows = [*clauses, f"rows AS NOT MATERIALIZED (SELECT {items} FROM {top}{where})"]

    @property
    def parameters(self) -> dict[str, str]:
        """The texts to bind to every form of this statement."""
        return self._layers.parameters

    @property
    def keys(self) -> list[str]:
        """The names of the keys."""
        return [f"k{i}" for i in range(len(self.bounded.keys))]

    def source_of(self, measure: Measure) -> int | None:
        """The value column that a measure reads; None for those that read none. Counting values reads any of theirs."""
        if not _has_value(measure):
            return None
        if measure.counts is Counts.VALUES:
            return next(i for i, steps in enumerate(self.steps) if steps[0] == measure.argument)
        return self.steps.index(_steps_of(measure))

    def by_rows(self) -> str:
        """The answer where each row is its own unit: plain sums by group. Public keys are filtered afterwards."""
        sums = [self._row_sum(measure) for measure in self.bounded.measures]
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        named = [f"{sql} AS m{i}" for i, sql in enumerate(sums)]
        totals = f"totals AS (SELECT {', '.join([*self.keys, *named])} FROM rows{group})"
        items = ", ".join([*self.keys, *(f"m{i}" for i in range(len(sums)))])
        return self._with([totals], f"SELECT {items} FROM totals{self._semi_join('totals')}")

    def by_units(self) -> str:
        """The answer with a unit's contribution bounded, in SQL alone."""
        bounded, keys = self.bounded, self.keys
        counts = [f"count(v{i}) AS n{i}, sum(v{i}) AS s{i}" for i in range(len(self.steps))]
        counts += [f"sum({self._square(i)}) AS q{i}" for i in self._squared()]
        pair = ", ".join(["u", *keys])
        if self._relation.identity:
            counts.append("any_value(identity) AS identity")
        items = ", ".join([pair, "count(*) AS n", *counts])
        pairs = f"pairs AS (SELECT {items} FROM rows{self._semi_join('rows')} GROUP BY {pair})"
        placed, kept = self._placed()
        sums = [f"coalesce(sum({self._partial(measure)}), 0)" for measure in bounded.measures]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return self._with([pairs, *placed], f"SELECT {', '.join([*keys, *sums])} FROM {kept}{group}")

    def distinct_keys(self) -> str:
        """The groups that occur, with codes that follow the order of the keys."""
        source = "domain" if self.bounded.domain is not None else "rows"
        listed = ", ".join(self.keys)
        distinct = f"(SELECT DISTINCT {listed} FROM {source})"
        coded = f"SELECT {listed}, row_number() OVER (ORDER BY {listed}) - 1 AS code FROM {distinct}"
        return coded if source == "domain" else self._with([], coded)

    def distinct_units(self) -> str:
        """The units that occur, with any codes: for units that are not integers themselves."""
        return self._with([], "SELECT u, row_number() OVER () AS code FROM (SELECT DISTINCT u FROM rows)")

    def layout(self, group_bits: int) -> Layout:
        """How the kernel finds a row's integers. Without a cap there is no order, and no hash is needed."""
        ranges = tuple((first, last) for *_, first, last in self.steps)
        return Layout(HASH_BITS if self._ordered else 0, group_bits, ranges)

    @property
    def needs_units(self) -> bool:
        """Whether units are not integers, so that they need codes from a table ``units``."""
        return not self._relation.ordinal

    def coded(self, layout: Layout, span: str = "") -> str:
        """The rows for the kernel: an integer for the unit, the place, and values beside it where they do not fit.

        ``span`` restricts the scanned rows, over the columns of the relation.
        """
        same = " AND ".join(f"rows.{key} IS NOT DISTINCT FROM groups.{key}" for key in self.keys)
        place = "groups.code"
        if layout.hash_bits:
            place = f"({self._hash('rows.')} << {layout.group_bits}) | groups.code"
        place = f"CAST({place} AS BIGINT)"
        values = [f"coalesce(v{i}, CAST({NULL} AS BIGINT)) AS v{i}" for i in range(len(self.steps))]
        if layout.packed:
            values = []
            for i, ((first, last), width) in enumerate(zip(layout.ranges, layout.widths)):
                place = f"(({place}) << {width}) | coalesce(v{i} - ({first}), {last - first + 1})"
        ordinal, units = ("units.code", " JOIN units ON rows.u = units.u") if self.needs_units else ("ordinal", "")
        items = ", ".join([f"{ordinal} AS u", f"CAST({place} AS BIGINT) AS p", *values])
        return self._with([], f"SELECT {items} FROM rows JOIN groups ON {same}{units}", span)

    @property
    def _ordered(self) -> bool:
        return self.bounded.max_groups is not None or self.bounded.max_rows is not None

    def _with(self, more: Sequence[str], last: str, span: str = "") -> str:
        return f"WITH {', '.join([self._scan(span), *self._rows, *more])} {last}"

    def _scan(self, span: str) -> str:
        relation, unit = self._relation, self.bounded.unit
        items = [f"{relation.columns[column]} AS {identifier(name)}" for column, name in self._names.items()]
        items += [f"{relation.raw[c]} AS {identifier('raw ' + n)}" for c, n in self._names.items() if c in relation.raw]
        if unit is not None:
            items += [f"{relation.ordinal or 'NULL'} AS ordinal", f"{relation.identity or 'NULL'} AS identity"]
        where = f" WHERE {span}" if span else ""
        return f"scan AS NOT MATERIALIZED (SELECT {', '.join(items) or '1 AS nothing'} FROM {relation.source}{where})"

    def _hash(self, prefix: str = "") -> str:
        """The high bits of a keyed hash of the unit and its key. Mixed with the salt last, so that all bits count."""
        low, high = (int.from_bytes(part, "little") for part in (self._salt[:8], self._salt[8:16]))
        unit = f"{prefix}identity" if self._relation.identity else f"{prefix}u"
        salts = [f"CAST({salt} AS UBIGINT)" for salt in (low, high)]
        values = ", ".join([unit, *(prefix + key for key in self.keys), *salts])
        return f"(hash({values}) >> {64 - HASH_BITS})"

    def _semi_join(self, left: str) -> str:
        """Keeps the public groups. A semi join never repeats a row, and NULL is a key like others."""
        if self.bounded.domain is None or not self.keys:
            return ""
        same = " AND ".join(f"{left}.{key} IS NOT DISTINCT FROM domain.{key}" for key in self.keys)
        return f" SEMI JOIN domain ON {same}"

    def _placed(self) -> tuple[list[str], str]:
        """Steps 3 and 4 as expressions over pairs: rows allowed, groups kept."""
        bounded = self.bounded
        each = "n" if bounded.max_rows_per_group is None else f"least(n, {_small(bounded.max_rows_per_group)})"
        clauses = [f"capped AS (SELECT *, CAST({each} AS BIGINT) AS allowed FROM pairs)"]
        if not self._ordered:
            return clauses, "capped"
        window = f"OVER (PARTITION BY u ORDER BY {', '.join(['h', *self.keys])} ROWS UNBOUNDED PRECEDING)"
        clauses.append(f"hashed AS (SELECT *, {self._hash()} AS h FROM capped)")
        clauses.append(
            f"ranked AS (SELECT *, row_number() {window} AS place, sum(allowed) {window} AS used FROM hashed)"
        )
        conditions = []
        if bounded.max_groups is not None:
            conditions.append(f"place <= {_small(bounded.max_groups)}")
        columns = "*"
        if bounded.max_rows is not None:
            left = f"{_small(bounded.max_rows)} - (used - allowed)"
            columns = f"* REPLACE (CAST(least(allowed, {left}) AS BIGINT) AS allowed)"
            conditions.append(f"{left} > 0")
        clauses.append(f"placed AS (SELECT {columns} FROM ranked WHERE {' AND '.join(conditions)})")
        return clauses, "placed"

    def _partial(self, measure: Measure) -> str:
        source = self.source_of(measure)
        match measure.counts:
            case Counts.ROWS:
                return "allowed"
            case Counts.UNITS:
                return "1"
            case Counts.VALUES:
                return f"least(n{source}, allowed)"
        total, count = f"{'s' if measure.counts is Counts.STEPS else 'q'}{source}", f"n{source}"
        # By parts, so that no product comes near 2^127; both divisions truncate towards zero.
        scaled = f"({total} // {count}) * allowed + (({total} % {count}) * allowed) // {count}"
        return f"CASE WHEN {count} > allowed THEN {scaled} ELSE {total} END"

    def _row_sum(self, measure: Measure) -> str:
        source = self.source_of(measure)
        match measure.counts:
            case Counts.ROWS | Counts.UNITS:
                return "count(*)"
            case Counts.VALUES:
                return f"count(v{source})"
            case Counts.STEPS:
                return f"coalesce(sum(v{source}), 0)"
            case Counts.SQUARES:
                return f"coalesce(sum({self._square(source or 0)}), 0)"
            case Counts.DISTINCT | Counts.WEIGHT:
                raise InternalError("not yet")

    def _squared(self) -> list[int]:
        squares = (m for m in self.bounded.measures if m.counts is Counts.SQUARES)
        return sorted({source for m in squares if (source := self.source_of(m)) is not None})

    def _square(self, source: int) -> str:
        *_, first, last = self.steps[source]
        wide = max(-first, last) >= 2**31
        return f"CAST(v{source} AS HUGEINT) * v{source}" if wide else f"v{source} * v{source}"

    def _integer(self, steps: Steps) -> str:
        """Step 2: the integer of a row, NULL where the argument is; the very last thing is the clamp."""
        argument, origin, resolution, _, _ = steps
        value = self._layers.value(argument)
        if not argument.type.is_number:
            return f"CASE WHEN {value} IS NOT NULL THEN 1 END"  # only ever counted
        if argument.type is Type.INTEGER and origin.denominator == resolution.denominator == 1:
            return self._whole_steps(steps)
        if isinstance(argument, Column) and argument in self._relation.raw:
            value = identifier("raw " + self._names[argument])
        return self._real_steps(steps, cast(value, argument.type, Type.REAL))

    def _real_steps(self, grid: Steps, value: str) -> str:
        """In doubles. Most values lie within the bounds and leave at the first branch, which makes this fast."""
        argument, origin, resolution, first, last = grid
        moved = f"{value} - {_double(float(origin))}" if origin else value
        steps = self._layers.define(f"floor(({moved}) / {_double(float(resolution))} + 0.5::DOUBLE)", argument)
        low, high = _double(float(first)), _double(float(last))
        clamped = (
            f"CASE WHEN {steps} >= {low} AND {steps} <= {high} THEN TRY_CAST({steps} AS BIGINT) "
            f"WHEN isfinite({value}) IS NOT TRUE THEN NULL "
            f"WHEN {steps} < {low} THEN {_whole(first)} ELSE {_whole(last)} END"
        )
        if max(-first, last) <= 2**53:
            return clamped  # such bounds are doubles themselves, so the comparisons were exact
        return f"CASE WHEN isfinite({value}) THEN least(greatest({clamped}, {_whole(first)}), {_whole(last)}) END"

    def _whole_steps(self, grid: Steps) -> str:
        """In integers: the value is clamped first, then counted from the lowest step, so that nothing is negative."""
        argument, first, last = grid[0], grid[3], grid[4]
        origin, resolution = int(grid[1]), int(grid[2])
        low, high = origin + first * resolution, origin + last * resolution
        value = self._layers.value(argument)
        clamped = f"least(greatest({value}, {_whole(max(low, INTEGER_MIN))}), {_whole(min(high, INTEGER_MAX))})"
        if low > INTEGER_MAX or high < INTEGER_MIN:
            raise InternalError("The bounds of a measure lie outside 64 bits.")
        wide = max(abs(low), abs(high), (high - low + resolution) * 2) >= 2**62
        number = f"CAST({clamped} AS HUGEINT)" if wide else clamped
        if resolution == 1:
            steps = f"{number} - ({origin})"
        else:
            steps = f"(({number} - ({low})) * 2 + {resolution}) // {2 * resolution} + ({first})"
        return f"CASE WHEN {value} IS NOT NULL THEN CAST({steps} AS BIGINT) END"


def _columns(bounded: Bounded) -> list[Column]:
    """Every column that a question reads, in a fixed order."""
    arguments = [measure.argument for measure in bounded.measures if measure.argument is not None]
    units = () if bounded.unit is None else (bounded.unit,)
    read = (*split(bounded.source)[1], *bounded.keys, *arguments, *units)
    found = {column for expression in read for column in columns(expression)}
    return sorted(found, key=lambda column: (column.table, column.name))


def _has_value(measure: Measure) -> bool:
    return measure.argument is not None and measure.counts not in (Counts.ROWS, Counts.UNITS)


def _distinct_steps(measures: Sequence[Measure]) -> tuple[Steps, ...]:
    """One entry for each integer that a row yields; values that are only counted need one where nothing sums them."""
    having = [measure for measure in measures if _has_value(measure)]
    summed = dict.fromkeys(_steps_of(measure) for measure in having if measure.counts is not Counts.VALUES)
    arguments = {steps[0] for steps in summed}
    counted = dict.fromkeys(_steps_of(measure) for measure in having if measure.argument not in arguments)
    return (*summed, *counted)


def _steps_of(measure: Measure) -> Steps:
    if measure.argument is None:
        raise InternalError("This measure has no argument.")
    return measure.argument, measure.origin, measure.resolution, measure.first, measure.last


def _double(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"


def _whole(value: int) -> str:
    return f"CAST({value} AS BIGINT)"


def _small(limit: int) -> int:
    return min(limit, 2**62)
