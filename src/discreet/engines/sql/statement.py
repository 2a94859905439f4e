"""A bounded question in DuckDB's SQL: the steps of ``contributions.py``, one common table expression after the other.

    scan      the declared columns that the question reads, as plan types
    e0, e1 …  expressions, each over the layers below it
    rows      unit u, keys k0 …, integers v0 …, values x0 … to tell apart; conditions hold, the unit is not NULL
    pairs     one row for each unit and group: n rows, sums s0 … of integers
    placed    a unit's pairs in their secret order, with the rows that are allowed
    answer    sums of partials by group; beside them the distinct values, and spreads (module ``spreads``)

Overflow is impossible: a row adds less than 2^79 to a sum (``check``), tables have fewer than 2^47 rows, and sums are
HUGEINT, which holds 2^127. The secret order is a keyed hash of unit and key *values*, never of positions or codes,
which would depend on other units; ties fall back to the order of the keys.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb.blocks.kernel import HASH_BITS, NULL, RowLayout
from discreet.engines.sql.layers import Layers, quote_name
from discreet.engines.steps import check, collect_steps, source_of, write_integer
from discreet.plan.expressions import Column, Expression, find_columns
from discreet.plan.relations import split

# Makes one row of all rows where there are no keys, whatever else is summed.
_ALL = "count(*) AS everything"


@dataclass(frozen=True, slots=True)
class RowSource:
    """Rows to ask about: what to write after FROM, and how each declared column is read there.

    ``ordinal`` is an integer that is equal for equal units, for sorting; ``identity`` is what the secret order hashes.
    Both are written over the columns of ``source``; empty where the unit's own value serves. ``raw`` gives reals as
    stored, perhaps not finite, for readers that check that themselves. ``texts`` names the texts that ``source`` binds.
    """

    source: str
    columns: Mapping[Column, str]
    raw: Mapping[Column, str]
    ordinal: str = ""
    identity: str = ""
    texts: dict[str, str] = field(default_factory=dict)


class BoundedStatement:
    """The common part of all ways to run a bounded question: the rows with their keys and integers."""

    def __init__(self, bounded: BoundedPlan, relation: RowSource, salt: bytes) -> None:
        check(bounded)
        self.bounded = bounded
        self._salt = salt
        self._relation = relation
        names = {column: f"c{i}" for i, column in enumerate(_list_columns(bounded))}
        self._names = names
        self._layers = Layers(names, dict(relation.texts))
        self.steps = collect_steps(bounded)
        told_apart = (m.argument for m in bounded.measures if m.counts is Counts.DISTINCT and m.argument is not None)
        self.distinct = tuple(dict.fromkeys(told_apart))
        self._rows = self._write_row_clauses()

    def _write_row_clauses(self) -> list[str]:
        bounded, layers = self.bounded, self._layers
        raw: dict[Expression, str] = {
            column: quote_name("raw " + name) for column, name in self._names.items() if column in self._relation.raw
        }
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
        return [*clauses, f"rows AS NOT MATERIALIZED (SELECT {_write_items(items)} FROM {top}{joins}{where})"]

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
        totals = f"totals AS (SELECT {', '.join([*self.keys, *named, _ALL])} FROM rows{self.write_group_by()})"
        items = _write_items([*self.keys, *(f"m{i}" for i in range(len(named)))])
        return self.write_query([totals], f"SELECT {items} FROM totals{self.write_public_join('totals')}")

    def write_by_units(self) -> str:
        """The answer with a unit's contribution bounded, in SQL alone."""
        clauses, kept = self.write_bounding()
        measures = self.bounded.measures
        if any(measure.counts is Counts.WEIGHT for measure in measures):
            clauses.append(f"joined AS (SELECT *, count(*) OVER (PARTITION BY u) AS g FROM {kept})")
            clauses.append("weighed AS (SELECT * FROM joined LEFT JOIN weights USING (g))")
        source = "weighed" if any(measure.counts is Counts.WEIGHT for measure in measures) else kept
        summed = [(i, m) for i, m in enumerate(measures) if m.counts is not Counts.DISTINCT]
        sums = [f"coalesce(sum({self._write_partial(i, measure)}), 0) AS m{i}" for i, measure in summed]
        clauses.append(
            f"totals AS (SELECT {', '.join([*self.keys, *sums, _ALL])} FROM {source}{self.write_group_by()})"
        )
        more, joins = self._write_distinct_counts(kept)
        items = [f"totals.{key}" for key in self.keys]
        for i, measure in enumerate(measures):
            value = self.distinct_of(measure)
            items.append(f"m{i}" if value is None else f"coalesce(d{value}, 0)")
        return self.write_query([*clauses, *more], f"SELECT {_write_items(items)} FROM totals{joins}")

    def write_bounding(self) -> tuple[list[str], str]:
        """Steps 3 and 4: the clauses, and the name of the one that holds each unit's kept groups and allowed rows."""
        counts = [f"count(v{i}) AS n{i}, sum(v{i}) AS s{i}" for i in range(len(self.steps))]
        counts += [f"sum({self._write_square(i)}) AS q{i}" for i in self._find_squared()]
        pair = ", ".join(["u", *self.keys])
        if self._relation.identity:
            counts.append("any_value(identity) AS identity")
        items = ", ".join([pair, "count(*) AS n", *counts])
        pairs = f"pairs AS (SELECT {items} FROM rows{self.write_public_join('rows')} GROUP BY {pair})"
        placed, kept = self._write_placed()
        return [pairs, *placed], kept

    def _write_distinct_counts(self, kept: str) -> tuple[list[str], str]:
        """Clauses that count d0 … distinct values by group, and how to join them to ``totals``.

        Of each unit's values in a kept group, as many as rows are allowed are taken, in the order of a keyed hash of
        the unit, the key and the value itself; ties fall back to the order of the values.
        """
        clauses, joins = [], ""
        pair = ", ".join(["u", *self.keys])
        for i in range(len(self.distinct)):
            own, value = f"own{i}", f"x{i}"
            values = f"SELECT DISTINCT {pair}, identity, {value} FROM rows{self.write_public_join('rows')}"
            clauses.append(f"{own} AS ({values} WHERE {value} IS NOT NULL)")
            clauses.append(
                f"hashed{i} AS (SELECT {own}.*, allowed, {self.write_hash(f'{own}.', f'{own}.{value}')} AS h "
                f"FROM {own} JOIN {kept} ON {own}.u = {kept}.u AND {self.write_same_group(own, kept)})"
            )
            place = f"row_number() OVER (PARTITION BY {pair} ORDER BY h, {value})"
            clauses.append(f"taken{i} AS (SELECT * FROM hashed{i} QUALIFY {place} <= allowed)")
            named = ", ".join([*self.keys, f"count(DISTINCT {value}) AS d{i}"])
            clauses.append(f"brought{i} AS (SELECT {named} FROM taken{i}{self.write_group_by()})")
            joins += f" LEFT JOIN brought{i} ON {self.write_same_group('totals', f'brought{i}')}"
        return clauses, joins

    def write_distinct_keys(self) -> str:
        """The groups that occur, with codes that follow the order of the keys."""
        if not self.keys:
            return "SELECT CAST(0 AS BIGINT) AS code"
        source = "domain" if self.bounded.domain is not None else "rows"
        listed = ", ".join(self.keys)
        distinct = f"(SELECT DISTINCT {listed} FROM {source})"
        coded = f"SELECT {listed}, row_number() OVER (ORDER BY {listed}) - 1 AS code FROM {distinct}"
        return coded if source == "domain" else self.write_query([], coded)

    def write_distinct_units(self) -> str:
        """The units that occur, with any codes: for units that are not integers themselves."""
        return self.write_query([], "SELECT u, row_number() OVER () AS code FROM (SELECT DISTINCT u FROM rows)")

    def make_layout(self, group_bits: int) -> RowLayout:
        """How the kernel finds a row's integers. Without a cap there is no order, and no hash is needed."""
        ranges = tuple((steps.first, steps.last) for steps in self.steps)
        return RowLayout(HASH_BITS if self._ordered else 0, group_bits, ranges, separate=bool(self.distinct))

    @property
    def needs_units(self) -> bool:
        """Whether units are not integers, so that they need codes from a table ``units``."""
        return not self._relation.ordinal

    def write_coded_rows(self, layout: RowLayout, span: str = "", more: Sequence[str] = (), joins: str = "") -> str:
        """The rows for the kernel: an integer for the unit, the place, and values beside it where they do not fit.

        ``span`` restricts the scanned rows, over the columns of the relation. ``more`` is selected beside them.
        """
        place = "groups.code"
        if layout.hash_bits:
            place = f"({self.write_hash('rows.')} << {layout.group_bits}) | groups.code"
        place = f"CAST({place} AS BIGINT)"
        values = [f"coalesce(v{i}, CAST({NULL} AS BIGINT)) AS v{i}" for i in range(len(self.steps))]
        if layout.packed:
            values = []
            for i, ((first, last), width) in enumerate(zip(layout.ranges, layout.widths)):
                place = f"(({place}) << {width}) | coalesce(v{i} - ({first}), {last - first + 1})"
        ordinal, units = ("units.code", " JOIN units ON rows.u = units.u") if self.needs_units else ("ordinal", "")
        items = ", ".join([f"{ordinal} AS u", f"CAST({place} AS BIGINT) AS p", *values, *more])
        return self.write_query(
            [], f"SELECT {items} FROM rows JOIN groups ON {self.write_same_group('rows', 'groups')}{units}{joins}", span
        )

    @property
    def _ordered(self) -> bool:
        return self.bounded.max_groups is not None or self.bounded.max_rows is not None

    def write_query(self, more: Sequence[str], last: str, span: str = "") -> str:
        """A statement over rows: more clauses, and what is selected from them."""
        return f"WITH {', '.join([self._write_scan(span), *self._rows, *more])} {last}"

    def _write_scan(self, span: str) -> str:
        relation, unit = self._relation, self.bounded.unit
        items = [f"{relation.columns[column]} AS {quote_name(name)}" for column, name in self._names.items()]
        items += [f"{relation.raw[c]} AS {quote_name('raw ' + n)}" for c, n in self._names.items() if c in relation.raw]
        if unit is not None:
            items += [f"{relation.ordinal or 'NULL'} AS ordinal", f"{relation.identity or 'NULL'} AS identity"]
        where = f" WHERE {span}" if span else ""
        return f"scan AS NOT MATERIALIZED (SELECT {_write_items(items)} FROM {relation.source}{where})"

    def write_hash(self, prefix: str = "", *more: str) -> str:
        """The high bits of a keyed hash of the unit, its key and more. Mixed with the salt last, so all bits count."""
        low, high = (int.from_bytes(part, "little") for part in (self._salt[:8], self._salt[8:16]))
        unit = f"{prefix}identity" if self._relation.identity else f"{prefix}u"
        salts = [f"CAST({salt} AS UBIGINT)" for salt in (low, high)]
        values = ", ".join([unit, *(prefix + key for key in self.keys), *more, *salts])
        return f"(hash({values}) >> {64 - HASH_BITS})"

    def write_public_join(self, left: str) -> str:
        """Keeps the public groups. A semi join never repeats a row."""
        if self.bounded.domain is None or not self.keys:
            return ""
        return f" SEMI JOIN domain ON {self.write_same_group(left, 'domain')}"

    def write_same_group(self, left: str, right: str) -> str:
        """Whether two rows are of the same group; NULL is a key like others."""
        return " AND ".join(f"{left}.{key} IS NOT DISTINCT FROM {right}.{key}" for key in self.keys) or "true"

    def write_group_by(self, *more: str) -> str:
        """By group, and by more."""
        return f" GROUP BY {', '.join([*self.keys, *more])}" if self.keys or more else ""

    def _write_placed(self) -> tuple[list[str], str]:
        """Steps 3 and 4 as expressions over pairs: rows allowed, groups kept."""
        bounded = self.bounded
        each = "n" if bounded.max_rows_per_group is None else f"least(n, {_cap_limit(bounded.max_rows_per_group)})"
        clauses = [f"capped AS MATERIALIZED (SELECT *, CAST({each} AS BIGINT) AS allowed FROM pairs)"]
        if not self._ordered:
            return clauses, "capped"
        window = f"OVER (PARTITION BY u ORDER BY {', '.join(['h', *self.keys])} ROWS UNBOUNDED PRECEDING)"
        clauses.append(f"hashed AS (SELECT *, {self.write_hash()} AS h FROM capped)")
        clauses.append(
            f"ranked AS (SELECT *, row_number() {window} AS place, sum(allowed) {window} AS used FROM hashed)"
        )
        conditions = []
        if bounded.max_groups is not None:
            conditions.append(f"place <= {_cap_limit(bounded.max_groups)}")
        columns = "*"
        if bounded.max_rows is not None:
            left = f"{_cap_limit(bounded.max_rows)} - (used - allowed)"
            columns = f"* REPLACE (CAST(least(allowed, {left}) AS BIGINT) AS allowed)"
            conditions.append(f"{left} > 0")
        clauses.append(f"placed AS MATERIALIZED (SELECT {columns} FROM ranked WHERE {' AND '.join(conditions)})")
        return clauses, "placed"

    def _write_partial(self, position: int, measure: Measure) -> str:
        source = self.source_of(measure)
        total, count = f"{'q' if measure.counts is Counts.SQUARES else 's'}{source}", f"n{source}"
        match measure.counts:
            case Counts.ROWS:
                return _write_clamp("n", measure.partial) if measure.partial else "allowed"
            case Counts.UNITS:
                return "1" if source is None else f"CAST({count} > 0 AS BIGINT)"
            case Counts.VALUES:
                return _write_clamp(count, measure.partial) if measure.partial else f"least({count}, allowed)"
            case Counts.WEIGHT:
                return f"w{position}"
            case _ if measure.partial is not None:
                return _write_clamp(f"coalesce({total}, 0)", measure.partial)
        # By parts, so that no product comes near 2^127; both divisions truncate towards zero.
        scaled = f"({total} // {count}) * allowed + (({total} % {count}) * allowed) // {count}"
        return f"CASE WHEN {count} > allowed THEN {scaled} ELSE {total} END"

    def _write_row_sum(self, measure: Measure) -> str:
        """What a measure adds up where each row is its own unit, in one group of its own."""
        value = f"v{self.source_of(measure)}"
        if measure.partial is not None:
            own = {Counts.ROWS: "1", Counts.VALUES: f"CAST({value} IS NOT NULL AS BIGINT)"}
            each = own.get(measure.counts, f"coalesce({value}, 0)")
            return f"coalesce(sum({_write_clamp(each, measure.partial)}), 0)"
        match measure.counts:
            case Counts.ROWS:
                return "count(*)"
            case Counts.UNITS if measure.argument is None:
                return "count(*)"
            case Counts.VALUES | Counts.UNITS:
                return f"count({value})"
            case Counts.STEPS:
                return f"coalesce(sum({value}), 0)"
            case Counts.SQUARES:
                return f"coalesce(sum({self._write_square(self.source_of(measure) or 0)}), 0)"
            case Counts.DISTINCT:
                return f"count(DISTINCT x{self.distinct_of(measure)})"
            case Counts.WEIGHT:
                return f"count(*) * CAST({measure.last} AS HUGEINT)"

    def _find_squared(self) -> list[int]:
        squares = (m for m in self.bounded.measures if m.counts is Counts.SQUARES)
        return sorted({source for m in squares if (source := self.source_of(m)) is not None})

    def _write_square(self, source: int) -> str:
        wide = max(-self.steps[source].first, self.steps[source].last) >= 2**31
        return f"CAST(v{source} AS HUGEINT) * v{source}" if wide else f"v{source} * v{source}"


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


def _write_clamp(total: str, ends: tuple[int, int]) -> str:
    """A unit's sum within bounds of its own; at 128 bits, because it has not been scaled."""
    low, high = (f"CAST({end} AS HUGEINT)" for end in ends)
    return f"least(greatest({total}, {low}), {high})"


def _cap_limit(limit: int) -> int:
    return min(limit, 2**62)
