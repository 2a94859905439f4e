"""Nasty small worlds of the fixtures' tables, their neighbours, and random questions in SQL about them.

Visit ids are shared by several people, ids are NULL or refer to nothing, public keys stand twice, values are huge, tied
or not numbers at all. Limits are small, so that they bite.
"""

# ruff: noqa: S311  # times have no zone, worlds need seeds and not secrets, nobody runs these on real data
from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.engine import Groups
from discreet.engines.memory.engine import MemoryEngine
from discreet.plan.catalog import Catalog, ContributionLimits
from discreet.plan.types import Value
from discreet.privacy import Neighbours
from tests.engines.worlds import ARROW, SALT
from tests.worlds.random_sql import Part, Writer

Row = dict[str, Value]
Tables = dict[str, list[Row]]

COSTS = (None, 0.0, -0.0, 0.1, 0.2, 3.5, 120.0, 1e300, -1e308, float("nan"), float("inf"), 5e-324)
AGES = (None, 0, 35, 35, 60, 111, -1, 2**63 - 1, -(2**63))
WARDS = ("A", "A", "B", "C", "", "é\u200b", None)
TOWNS = ("Aa", "Aa", "Bb", None)
DAYS = (None, dt.date(1, 1, 1), dt.date(2024, 1, 31), dt.date(2024, 1, 31), dt.date(9999, 12, 31))


def a_visit(rng: random.Random, unit: int | None, visit: int | None) -> Row:
    day = rng.choice(DAYS)
    return {
        "visit_id": visit, "patient_id": unit, "ward": rng.choice(WARDS), "age": rng.choice(AGES),
        "cost": rng.choice(COSTS), "day": day, "seen": None if day is None else dt.datetime.combine(day, dt.time()),
        "smoker": rng.choice((True, False, None)), "note": rng.choice(("x", "x", "12", "", "\x7f", None)),
    }  # fmt: skip  # one row


def of_unit(rng: random.Random, unit: int, ids: int, most: int = 5) -> Tables:
    """What one unit brings: rows that name it, and labs of its own visits, whose ids begin at ``ids``."""
    visits = [a_visit(rng, unit, rng.choice((None, *range(ids, ids + 4), ids))) for _ in range(rng.randrange(most + 1))]
    patients: list[Row] = [
        {"patient_id": unit, "born": rng.choice((None, 1899, 1940, 1985, 2**62)), "sex": rng.choice(("f", "m", None)),
         "ward": rng.choice(WARDS), "referred_by": rng.choice((1, 2, unit, 99, None)), "town": rng.choice(TOWNS)}
        for _ in range(rng.choice((0, 1, 1, 2)))
    ]  # fmt: skip  # one row
    labs: list[Row] = [
        {"visit_id": visit["visit_id"], "test": rng.choice(("blood", "urine", "x", None)), "result": rng.choice(COSTS)}
        for visit in visits for _ in range(rng.randrange(3)) if visit["visit_id"] is not None
    ]  # fmt: skip  # one row
    workers: list[Row] = [
        {"person": unit, "firm": rng.choice(("x", "x", "y", None)), "town": rng.choice(TOWNS),
         "wage": rng.choice(COSTS)}
        for _ in range(rng.randrange(4))
    ]  # fmt: skip  # one row
    answers: list[Row] = [{"Income": rng.choice(COSTS), "City name": rng.choice(TOWNS)}]
    own = branch_off(rng)
    treatments: list[Row] = [a_treatment(own, unit, *_a_key(own, ids)) for _ in range(own.randrange(most + 1))]
    doses: list[Row] = [
        a_dose(own, row["clinic"], row["number"])
        for row in treatments for _ in range(own.randrange(3)) if None not in (row["clinic"], row["number"])
    ]  # fmt: skip  # one row
    return {
        "visits": visits, "patients": patients, "labs": labs, "workers": workers, "Answers": answers,
        "treatments": treatments, "doses": doses,
    }  # fmt: skip  # one list


def branch_off(rng: random.Random) -> random.Random:
    """Draws of their own, which take nothing away: what is drawn afterwards stays as it was."""
    branch = random.Random()
    branch.setstate(rng.getstate())
    return branch


def _a_key(rng: random.Random, ids: int) -> tuple[Value, Value]:
    """A key whose columns others have, too, but only one by one: the clinic, or the number."""
    return rng.choice((("x", ids), ("x", ids + 1), (f"clinic {ids}", 1), (f"clinic {ids}", 3), ("x", None), (None, 1)))


def a_treatment(rng: random.Random, unit: int | None, clinic: Value, number: Value) -> Row:
    return {"patient_id": unit, "clinic": clinic, "number": number, "hours": rng.choice((None, 0, 5, 25, 2**62))}


def a_dose(rng: random.Random, clinic: Value, treatment: Value) -> Row:
    drug, amount = rng.choice(("a", "b", "c", None)), rng.choice(COSTS)
    return {"clinic": clinic, "treatment": treatment, "drug": drug, "amount": amount}


def some_tables(seed: int, units: int = 3) -> Tables:
    """Units with shared visit ids, rows of nobody, and public tables with repeated keys."""
    rng = random.Random(seed)
    tables: Tables = {"visits": [], "patients": [], "labs": [], "workers": [], "Answers": []}
    tables |= {"treatments": [], "doses": []}
    for unit in range(1, units + 1):
        for name, rows in of_unit(rng, unit, ids=rng.choice((1, 3)), most=6).items():
            tables[name] += rows
    tables["visits"] += [a_visit(rng, None, 1), a_visit(rng, None, None)]
    tables["labs"] += [{"visit_id": visit, "test": "blood", "result": 1.0} for visit in (None, 99, 1, 2)]
    tables["workers"].append({"person": None, "firm": "x", "town": "Aa", "wage": 1.0})
    tables["treatments"].append(a_treatment(random.Random(seed), None, "x", 2))
    loose = (("x", None), (None, 1), ("x", 1), ("x", 3), ("y", 1), ("clinic 1", 3))
    tables["doses"] += [a_dose(random.Random(seed), *key) for key in loose]
    tables["wards"] = [
        {"ward": ward, "floor": floor, "beds": beds, "city": city}
        for ward, floor, beds, city in (
            ("A", 1, 10, "Aa"), ("B", 2, 60, None), ("B", 1, 7, "Bb"), ("C", 2, None, "A"), (None, 1, 2**62, ""),
        )
    ]  # fmt: skip  # one table
    tables["regions"] = [{"town": rng.choice(TOWNS), "region": rng.choice(("north", "south", None))} for _ in range(4)]
    tables["cities"] = [{"City name": town, "country": "X", "twin": rng.choice(TOWNS)} for town in (*TOWNS, "Cc")]
    for rows in tables.values():
        rng.shuffle(rows)
    return tables


def one_busy_unit(seed: int) -> Tables:
    """One unit with many visits, no two alike, beside two others with one each."""
    rng = random.Random(seed)
    tables: Tables = {name: [] for name in some_tables(seed)}
    for i in range(18):
        unit = 1 if i > 1 else i + 2
        more: Row = {"age": 20 + i, "cost": 100.0 * i, "note": f"note {i}", "ward": "ABC"[i % 3]}
        tables["visits"].append({**a_visit(rng, unit, 100 + i), **more})
    return tables


# Neighbours


def owners(tables: Tables, catalog: Catalog, name: str, row: Row) -> set[Value]:
    """The units of a row: what it names, or what the rows it refers to belong to."""
    facts = catalog.tables[name]
    if facts.unit_column is not None:
        return {row[facts.unit_column.name]} - {None}
    link = facts.link
    if facts.public or link is None or any(row[column] is None for column in link.columns):
        return set()
    parents = [parent for parent in tables[link.parent] if all(parent[k] == row[c] for c, k in link.pairs)]
    return {unit for parent in parents for unit in owners(tables, catalog, link.parent, parent)}


def without(tables: Tables, catalog: Catalog, unit: Value) -> Tables:
    """The tables without one unit: its rows, and rows that reached it and now reach nobody."""
    rest = dict(tables)
    for name, facts in catalog.tables.items():
        if (own := facts.unit_column) is not None:
            rest[name] = [row for row in tables[name] if row[own.name] != unit]
    for name, facts in catalog.tables.items():
        if facts.link is not None:
            rest[name] = [
                row
                for row in tables[name]
                if owners(rest, catalog, name, row) or not owners(tables, catalog, name, row)
            ]
    return rest


def with_another(tables: Tables, catalog: Catalog, unit: int, rng: random.Random) -> Tables:
    """The tables with one more unit, who shares visit ids and keys of treatments with others."""
    more = of_unit(rng, unit, ids=50, most=8)
    more["visits"] += [a_visit(rng, unit, rng.randrange(1, 5)) for _ in range(rng.randrange(3))]
    own = branch_off(rng)
    more["treatments"] += [a_treatment(own, unit, "x", own.randrange(1, 5)) for _ in range(own.randrange(3))]
    joined = dict(tables)
    for name, facts in catalog.tables.items():
        if not facts.public and name in more and facts.unit.column is not None:
            joined[name] = [*tables[name], *more[name]]
            rng.shuffle(joined[name])
    return joined


@dataclass
class Data:
    """One dataset, with an engine of each kind over it."""

    tables: Tables
    catalog: Catalog

    @cached_property
    def memory(self) -> MemoryEngine:
        return MemoryEngine({name: self.tables[name] for name in self.catalog.tables}, self.catalog)

    @cached_property
    def duckdb(self) -> DuckDBEngine:
        return DuckDBEngine(frames(self.tables, self.catalog), self.catalog, threads=1)

    @cached_property
    def statement(self) -> DuckDBEngine:
        """DuckDB's other way, without blocks."""
        return DuckDBEngine(frames(self.tables, self.catalog), self.catalog, threads=1)

    def run(self, kind: str, bounded: BoundedPlan) -> Groups:
        engine: MemoryEngine | DuckDBEngine = getattr(self, kind)
        return engine.run(bounded, salt=SALT)


@dataclass(frozen=True)
class Neighbour:
    """A neighbouring dataset, how it differs, and the units that are not the same in both."""

    data: Data
    relation: Neighbours
    differ: frozenset[int]


def frames(tables: Tables, catalog: Catalog) -> dict[str, Any]:
    return {
        name: pa.table(
            {column: pa.array([row[column] for row in tables[name]], ARROW[k]) for column, (k, _) in f.columns.items()}
        )
        for name, f in catalog.tables.items()
    }


def unit_neighbours(data: Data, seed: int) -> Iterator[Neighbour]:
    """Each unit removed, and replaced by another."""
    rng = random.Random(seed)
    catalog = data.catalog
    named = [(name, f.unit_column.name) for name, f in catalog.tables.items() if f.unit_column is not None]
    units = {unit for name, own in named for row in data.tables[name] if isinstance(unit := row[own], int)}
    for unit in sorted(units):
        rest = without(data.tables, catalog, unit)
        yield Neighbour(Data(rest, catalog), Neighbours.ADD_REMOVE, frozenset({unit}))
        other = rng.choice((unit, 77))
        changed = with_another(rest, catalog, other, rng)
        yield Neighbour(Data(changed, catalog), Neighbours.REPLACE, frozenset({unit, other}))


def row_neighbours(data: Data, table: str, seed: int) -> Iterator[Neighbour]:
    """Each row of a table removed, and replaced by another."""
    rng = random.Random(seed)
    rows = data.tables[table]
    for i in range(len(rows)):
        rest = rows[:i] + rows[i + 1 :]
        yield Neighbour(Data({**data.tables, table: rest}, data.catalog), Neighbours.ADD_REMOVE, frozenset())
        new = of_unit(rng, 1, 1)[table][0]
        yield Neighbour(Data({**data.tables, table: [*rest, new]}, data.catalog), Neighbours.REPLACE, frozenset())


def tight(catalog: Catalog, seed: int) -> Catalog:
    """The same tables with small limits, and with joins of different units cut to very few rows."""
    rng = random.Random(seed)
    tables = {}
    for name, facts in catalog.tables.items():
        limits = facts.limits
        if not facts.public and facts.unit.column is not None:
            limits = rng.choice((
                ContributionLimits(max_rows=rng.randrange(1, 5)),
                ContributionLimits(max_groups=rng.randrange(1, 3), max_rows_per_group=rng.randrange(1, 4)),
            ))  # fmt: skip  # two kinds
        columns = {
            column: (kind, known if known.frequency is None else replace(known, frequency=rng.randrange(1, 3)))
            for column, (kind, known) in facts.columns.items()
        }
        tables[name] = replace(facts, limits=limits, columns=columns)
    return replace(catalog, tables=tables)


# Random questions


@dataclass
class Asker(Writer):
    """Writes questions with every kind of aggregate and grouping over random rows."""

    def ask(self, depth: int) -> str:
        rng = self.rng
        part = self.mixed() if rng.random() < 0.12 else self.source(depth)
        google = rng.random() < 0.2
        items = [f"{self.aggregate(part, google=google)} AS m{i}" for i in range(rng.randrange(1, 4))]
        keys = self.keys(part)
        group = self.grouping(keys)
        start = "SELECT "
        if google:
            options = rng.choice(("", "max_groups_contributed=2", "max_rows_contributed=3", "max_groups_contributed=1"))
            start += f"WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) "
        where = self.where(part) if part.units else ""
        return f"{start}{', '.join([*keys, *items])} FROM {part.text}{where}{group}"

    def mixed(self) -> Part:
        """A join that pairs people of one town, or workers of one firm."""
        left, right = self.name("m"), self.name("m")
        one, two, on = self.rng.choice(
            (("patients", "workers", "town"), ("workers", "workers", "firm"), ("patients", "patients", "town"),
             ("workers", "patients", "town"))
        )  # fmt: skip  # a list of pairs
        text = f"{one} {left} JOIN {two} {right} ON {left}.{on} = {right}.{on}"
        numbers = tuple(f"{a}.{c}" for a, t in ((left, one), (right, two)) for c in {"patients": ("born",)}.get(t, ()))
        texts = tuple(f"{a}.{c}" for a, t in ((left, one), (right, two)) for c in {"patients": ("sex",)}.get(t, ()))
        return Part(text, (), numbers, texts)

    def keys(self, part: Part) -> list[str]:
        if not part.texts or self.rng.random() < 0.3:
            return []
        return self.rng.sample(part.texts, min(len(part.texts), self.rng.choice((1, 1, 2))))

    def grouping(self, keys: list[str]) -> str:
        if not keys:
            return ""
        listed = ", ".join(keys)
        sets = f"GROUPING SETS (({listed}), ({keys[0]}), ())"
        return f" GROUP BY {self.rng.choice((listed, listed, f'ROLLUP ({listed})', f'CUBE ({listed})', sets))}"

    def aggregate(self, part: Part, *, google: bool) -> str:
        rng = self.rng
        number = self.number(part)
        text = rng.choice(part.texts) if part.texts else "'z'"
        bounded = f"clamp({number}, {rng.choice(('-3', '0', '1'))}, {rng.choice(('7', '40', '2000'))})"
        if google:
            bounds = rng.choice(("(0, 2)", "(-3, 3)", "(2, 5)", "(0, 1)", "(-9, -1)"))
            word = rng.choice((f"SUM({number}", "COUNT(*", f"COUNT({text}"))
            return f"{word}, contribution_bounds_per_group => {bounds})"
        unit = rng.choice(part.units) if part.units else "*"
        return rng.choice((
            "COUNT(*)", f"COUNT({text})", f"COUNT(DISTINCT {text})", f"COUNT(DISTINCT {number})",
            "COUNT(*)" if unit == "*" else f"COUNT(DISTINCT {unit})", f"SUM({bounded})", f"AVG({bounded})",
            f"VAR_POP({bounded})", f"SUM(DISTINCT {bounded})", f"VAR_POP(DISTINCT {bounded})",
            f"MEDIAN({bounded})", f"QUANTILE({bounded}, 0.9)", f"MAX({bounded})",
            f"MODE({text})", f"SUM({bounded}) FILTER (WHERE {number} > 1)",
        ))  # fmt: skip  # a list of aggregates


def a_question(seed: int) -> str:
    """A random question; not all of them are accepted."""
    rng = random.Random(seed)
    return Asker(rng).ask(rng.randrange(4))
