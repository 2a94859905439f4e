"""The codebook: everything it can say reaches the planner exactly, and everything it must not say is refused."""

from __future__ import annotations

import contextlib
import datetime as dt
import inspect
import json
import pickle
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.bounding.relation_facts import Owner
from discreet.bounding.stability import find_relation_facts
from discreet.codebook import Codebook, TableSource
from discreet.codebook.checklist import make_checklist
from discreet.codebook.entries import (
    Bins,
    BudgetEntry,
    CodebookEntry,
    ColumnEntry,
    Document,
    EngineEntry,
    SourceEntry,
    TableEntry,
    did_you_mean,
    make_json_schema,
)
from discreet.codebook.frame_types import types_of
from discreet.errors import CodebookError, ParameterError
from discreet.opening import terms_of
from discreet.plan.catalog import Catalog, ColumnFacts
from discreet.plan.reach import reach
from discreet.plan.source_kinds import SourceKind
from discreet.plan.times import to_days
from discreet.plan.types import Type
from discreet.privacy import Budget, Neighbours, Unit

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

GOOD = """
name = "hospital"
unit = "patient_id"

[budget]
epsilon = 0.3
delta = 1e-6
per_query = 0.1

[tables.visits]
source = "visits.parquet"
max_rows = 20
rows = 60_000
units = 12_000

[tables.visits.columns]
patient_id = "integer"
age = { type = "integer", bounds = [0, 110] }
cost = { type = "real", bounds = [0.1, 1e4], resolution = 0.01, nullable = false }
ward = { type = "text", keys = ["A", "B"], null_key = true }
decade = { type = "integer", bounds = [0, 30], bins = { width = 10 } }
arrival = { type = "date", bounds = [2024-01-15, 2024-04-02], bins = { width = "month" } }
score = { type = "real", bins = { edges = [0, 0.5] } }
flag = { type = "boolean", constant_per_unit = true }
seen = { type = "timestamp", keys = [2024-01-01T10:00:00] }
"""


def wrong(text: str) -> str:
    """What a codebook is refused with."""
    with pytest.raises(CodebookError) as caught:
        Codebook.read(text)
    assert str(caught.value).endswith("Nothing was charged.")
    assert all(problem.entry and problem.rule for problem in caught.value.problems)
    return str(caught.value)


def with_column(line: str) -> str:
    return GOOD + line + "\n"


def test_everything_reaches_the_catalog() -> None:
    """Types, bounds, resolution, keys, bins and limits arrive as exact facts."""
    book = Codebook.read(GOOD)
    catalog = book.catalog()
    assert catalog.neighbours is Neighbours.ADD_REMOVE
    visits = catalog.find_table("VISITS")
    assert visits.unit == Unit("patient_id") == book.unit
    assert (visits.limits.max_rows, visits.limits.max_groups) == (20, None)
    facts = {name: known for name, (_, known) in visits.columns.items()}
    assert facts["patient_id"].constant and not facts["age"].constant and facts["flag"].constant
    assert (facts["age"].low, facts["age"].high, facts["age"].resolution) == (Fraction(0), Fraction(110), Fraction(1))
    assert (facts["cost"].low, facts["cost"].high) == (Fraction(1, 10), Fraction(10_000))
    assert facts["cost"].resolution == Fraction(1, 100) and not facts["cost"].nullable
    assert facts["ward"].keys == ("A", "B", None) and facts["ward"].nullable
    assert facts["decade"].keys == (0, 10, 20, 30)
    assert facts["arrival"].keys == tuple(dt.date(2024, month, 1) for month in (1, 2, 3, 4))
    assert (facts["arrival"].low, facts["arrival"].high) == (to_days(dt.date(2024, 1, 1)), to_days(dt.date(2024, 4, 2)))
    assert facts["score"].keys == (0.0, 0.5) and all(type(key) is float for key in facts["score"].keys or ())
    assert facts["flag"].keys == (False, True)
    assert facts["seen"].keys == (dt.datetime.fromisoformat("2024-01-01T10:00:00"),)
    assert [kind for kind, _ in visits.columns.values()][:4] == [Type.INTEGER, Type.INTEGER, Type.REAL, Type.TEXT]


def test_numbers_are_the_decimals_that_were_written() -> None:
    """0.3 in the file is three tenths, not the nearest double."""
    book = Codebook.read(GOOD)
    assert book.budget.amount() == Fraction(3, 10)
    assert book.budget.slack() == Fraction(1, 10**6)
    assert book.per_query == Fraction(1, 10)
    long = "0.123456789012345678901234567890123"
    assert Codebook.read(GOOD.replace("0.3", long)).budget.amount() == Fraction(long)


@given(st.decimals(min_value=0, max_value=100, places=12, allow_nan=False, allow_infinity=False).filter(bool))
@settings(deadline=None, max_examples=40)
def test_any_decimal_survives(value: Any) -> None:
    """Whatever decimal stands in the file is the ε of the budget, exactly."""
    text = GOOD.replace("epsilon = 0.3", f"epsilon = {value:f}").replace("per_query", "# per_query")
    assert Codebook.read(text).budget.amount() == Fraction(value)


@pytest.mark.parametrize(
    ("spending", "budget"),
    [
        ("epsilon = 1", Budget(epsilon=1)),
        ("epsilon = 1\ndelta = 1e-9", Budget(epsilon=1, delta=Fraction(1, 10**9))),
        ("rho = 0.1", Budget(rho=Fraction(1, 10))),
    ],
)
def test_budgets(spending: str, budget: Budget) -> None:
    """Each form of a budget arrives as itself."""
    text = re.sub(r"epsilon = .*\ndelta = .*\nper_query = .*", spending, GOOD)
    found = Codebook.read(text).budget
    assert (found.notion, found.amount(), found.slack()) == (budget.notion, budget.amount(), budget.slack())


def test_a_row_is_its_own_unit() -> None:
    """With unit = "row" nothing limits rows, and all limits are one."""
    book = Codebook.read(GOOD.replace('unit = "patient_id"', 'unit = "row"').replace("max_rows = 20", ""))
    assert book.unit == Unit()
    limits = book.catalog().find_table("visits").limits
    assert (limits.max_rows, limits.max_groups, limits.max_rows_per_group) == (1, 1, 1)
    assert book.size("visits") == (60_000, 60_000)


def test_groups_and_rows_per_group() -> None:
    """The other way of limiting a unit."""
    book = Codebook.read(GOOD.replace("max_rows = 20", "max_groups = 5\nmax_rows_per_group = 3"))
    limits = book.catalog().find_table("visits").limits
    assert (limits.max_rows, limits.max_groups, limits.max_rows_per_group) == (None, 5, 3)
    assert book.size("visits") == (60_000, 12_000)


def test_sources(tmp_path: Path) -> None:
    """Paths are relative to the codebook, whatever the working directory is."""
    file = tmp_path / "sub" / "hospital.toml"
    file.parent.mkdir()
    more = '[tables.lab]\nsource = {{ duckdb = "lab.duckdb"{} }}\nmax_rows = 1\ncolumns.patient_id = "integer"\n'
    file.write_text(GOOD + more.format(', table = "results"'))
    sources = Codebook.load(file).sources
    assert sources["visits"] == TableSource(kind=SourceKind.PARQUET, path=str(tmp_path / "sub" / "visits.parquet"))
    assert sources["lab"] == TableSource(
        kind=SourceKind.DUCKDB, path=str(tmp_path / "sub" / "lab.duckdb"), table="results"
    )
    file.write_text(GOOD + more.format(""))
    assert Codebook.load(file).sources["lab"].table == "lab"
    file.write_text(
        GOOD.replace('source = "visits.parquet"', "").replace("[budget]", 'source = "all.duckdb"\n[budget]')
    )
    assert Codebook.load(file).sources["visits"].table == "visits"
    file.write_text(GOOD.replace('"visits.parquet"', '{ csv = "part-*.txt" }'))
    assert Codebook.load(file).sources["visits"].kind == "csv"


def test_loading_opens_no_data(tmp_path: Path) -> None:
    """A codebook whose files do not exist loads: nothing is read until an engine is asked."""
    file = tmp_path / "hospital.toml"
    file.write_text(GOOD)
    assert Codebook.load(file).catalog().tables.keys() == {"visits"}


SHAPE = [
    (
        "unknown word",
        GOOD.replace("max_rows = 20", "max_row = 20"),
        "tables.visits.max_row is an unknown word",
        "'max_rows'",
    ),
    ("unknown in budget", GOOD.replace("epsilon", "epsilom"), "budget.epsilom is an unknown word", "'epsilon'"),
    ("unknown type", with_column('x = "float"'), "tables.visits.columns.x.type is not a known word", "'real'"),
    ("unknown neighbours", 'neighbours = "swap"\n' + GOOD, "neighbours is not a known word", "add-remove"),
    ("american", 'neighbors = "replace"\n' + GOOD, "neighbors is an unknown word", "'neighbours'"),
    (
        "unknown in bins",
        with_column("x = { type = 'text', bins = { edge = [1] } }"),
        "bins.edge is an unknown",
        "'edges'",
    ),
    (
        "unknown in source",
        GOOD.replace('"visits.parquet"', '{ parqet = "x" }'),
        "source.parqet is an unknown",
        "'parquet'",
    ),
    ("no unit", GOOD.replace('unit = "patient_id"', ""), "unit is missing", "who is protected"),
    ("no name", GOOD.replace('name = "hospital"', ""), "name is missing", "Give the dataset a name"),
    ("no type", with_column("x = { nullable = true }"), "columns.x.type is missing", "boolean, integer"),
    ("no budget", GOOD.replace("[budget]", "[tables.budget]"), "budget is missing", "may be spent"),
    (
        "text for number",
        GOOD.replace("epsilon = 0.3", 'epsilon = "0.3"'),
        "budget.epsilon must be a number",
        "epsilon = 1",
    ),
    ("truth for number", GOOD.replace("epsilon = 0.3", "epsilon = true"), "budget.epsilon must be a finite number", ""),
    ("infinite", GOOD.replace("epsilon = 0.3", "epsilon = inf"), "budget.epsilon must be a finite number", ""),
    ("nan", GOOD.replace("epsilon = 0.3", "epsilon = nan"), "budget.epsilon must be a finite number", ""),
    ("zero rows", GOOD.replace("max_rows = 20", "max_rows = 0"), "tables.visits.max_rows must be between 1", ""),
    ("half rows", GOOD.replace("max_rows = 20", "max_rows = 2.5"), "tables.visits.max_rows must be", ""),
    ("three bounds", with_column("x = { type = 'real', bounds = [1, 2, 3] }"), "x.bounds must be a list of two", ""),
    ("no list", with_column("x = { type = 'text', keys = 'A' }"), "x.keys must be a list", 'keys = ["A", "B"]'),
    ("time as key", with_column("x = { type = 'text', keys = [10:00:00] }"), "x.keys.0 must be a truth value", ""),
    ("table for text", GOOD.replace('name = "hospital"', "name = 3"), "name must be", ""),
    ("blank", GOOD.replace('unit = "patient_id"', 'unit = "?"'), "unit is still blank", "who is protected"),
    ("unknown file", GOOD.replace("visits.parquet", "visits.docx"), "tables.visits.source needs its kind", ""),
    ("other file", GOOD.replace("visits.parquet", "visits.jsonl"), "questions cannot read", "discreet import visits"),
    ("not TOML", "name = = 1", "is not TOML", "line 1"),
]

RULES = [
    ("nothing to spend", GOOD.replace("epsilon = 0.3\ndelta = 1e-6\nper_query = 0.1", ""), "budget must say how much"),
    ("two forms", GOOD.replace("delta = 1e-6", "rho = 1"), "budget must be given in one form"),
    ("delta alone", GOOD.replace("epsilon = 0.3", "rho = 0.1"), "budget.delta goes with epsilon only"),
    ("epsilon 0", GOOD.replace("epsilon = 0.3", "epsilon = 0"), "budget.epsilon must be above 0"),
    ("epsilon below", GOOD.replace("epsilon = 0.3", "epsilon = -1"), "budget.epsilon must be above 0"),
    ("delta 1", GOOD.replace("delta = 1e-6", "delta = 1"), "budget.delta must be at least 0 and below 1"),
    ("delta below", GOOD.replace("delta = 1e-6", "delta = -1e-9"), "budget.delta must be at least 0"),
    ("cap above", GOOD.replace("per_query = 0.1", "per_query = 0.4"), "budget.per_query is larger than the whole"),
    ("no tables", GOOD[: GOOD.index("[tables")] + "[tables]", "tables is empty"),
    (
        "same name",
        GOOD + '[tables.Visits]\nsource = "x.csv"\nmax_rows = 1\ncolumns.patient_id = "text"',
        "in capitals only",
    ),
    ("same column", with_column('AGE = "text"'), "tables.visits.columns.AGE differs from 'age' in capitals only"),
    (
        "unit undeclared",
        GOOD.replace("patient_id =", "patientid ="),
        "lacks the unit column 'patient_id'. Did you mean 'patientid'?",
    ),
    ("unit real", GOOD.replace('patient_id = "integer"', 'patient_id = "real"'), "names the unit and cannot be a real"),
    ("no limit", GOOD.replace("max_rows = 20", ""), "does not say how much one patient_id may contribute"),
    (
        "two limits",
        GOOD.replace("max_rows = 20", "max_rows = 20\nmax_groups = 2\nmax_rows_per_group = 1"),
        "in two ways",
    ),
    ("half a limit", GOOD.replace("max_rows = 20", "max_groups = 2"), "max_rows_per_group is missing"),
    ("other half", GOOD.replace("max_rows = 20", "max_rows_per_group = 2"), "max_groups is missing"),
    ("row limit", GOOD.replace('unit = "patient_id"', 'unit = "row"'), "max_rows limits a unit that is one row"),
    ("more units", GOOD.replace("units = 12_000", "units = 70_000"), "tables.visits.units are more than rows"),
    ("no source", GOOD.replace('source = "visits.parquet"', ""), "tables.visits.source is missing"),
    (
        "two sources",
        GOOD.replace('"visits.parquet"', '{ csv = "a", parquet = "b" }'),
        "must name one of parquet, csv, duckdb, postgres or spark",
    ),
    (
        "an address in a codebook",
        GOOD.replace('"visits.parquet"', '{ postgres = "postgresql://me:secret@host/clinic" }'),
        "tables.visits.source.postgres must not hold an address",
    ),
    (
        "a release of a file",
        GOOD.replace('"visits.parquet"', '{ parquet = "b.parquet", release = "1" }'),
        "tables.visits.source.release is a name for the data of postgres or spark",
    ),
    (
        "a table of Spark without a release",
        GOOD.replace('"visits.parquet"', '{ spark = "lake.clinic.visits" }'),
        "tables.visits.source.release is missing",
    ),
    (
        "an address of Spark in a codebook",
        GOOD.replace('"visits.parquet"', '{ spark = "sc://host/;token=secret", release = "1" }'),
        "tables.visits.source.spark must not hold an address",
    ),
    (
        "a token of Spark in a codebook",
        GOOD + '[engine]\nspark = "sc://host:15002/;token=secret"\n',
        "engine.spark may hold a secret",
    ),
    (
        "a password of Spark",
        GOOD + '[engine]\nspark = "spark://me:secret@host:7077"\n',
        "engine.spark may hold a secret",
    ),
    ("no address of Spark", GOOD + '[engine]\nspark = "host:7077"\n', "engine.spark is not an address of Spark"),
    (
        "a table without its schema",
        GOOD.replace('"visits.parquet"', '{ postgres = "visits" }'),
        "tables.visits.source.postgres must name a schema and a table",
    ),
    (
        "table of a file",
        GOOD.replace('"visits.parquet"', '{ csv = "a", table = "b" }'),
        "source.table goes with duckdb only",
    ),
    ("far away", GOOD.replace('"visits.parquet"', '{ csv = "https://x/y.csv" }'), "source.csv must be a local file"),
    ("shared file", 'source = "x.csv"\n' + GOOD, "source for all tables can only be a DuckDB file"),
    ("high to low", with_column("x = { type = 'real', bounds = [2, 1] }"), "x.bounds go from high to low"),
    (
        "half bounds",
        with_column("x = { type = 'integer', bounds = [0, 1.5] }"),
        "x.bounds must hold values of the type integer",
    ),
    (
        "text bounds",
        with_column("x = { type = 'real', bounds = ['a', 'b'] }"),
        "x.bounds must hold values of the type real",
    ),
    ("bounded text", with_column("x = { type = 'text', bounds = [1, 2] }"), "x.bounds are for numbers"),
    (
        "timestamps as bounds of a date",
        with_column("x = { type = 'date', bounds = [2024-01-01, 2024-01-02T00:00:00] }"),
        "x.bounds must hold values of the type date",
    ),
    (
        "timestamps with a zone",
        with_column("x = { type = 'timestamp', bounds = [2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z] }"),
        "x.bounds must hold values of the type timestamp",
    ),
    (
        "dates from high to low",
        with_column("x = { type = 'timestamp', bounds = [2024-01-02, 2024-01-01T23:00:00] }"),
        "x.bounds go from high to low",
    ),
    (
        "64 bits",
        with_column("x = { type = 'integer', bounds = [0, 9223372036854775808] }"),
        "x.bounds goes beyond 64 bits",
    ),
    ("huge", with_column("x = { type = 'real', bounds = [0, 1e301] }"), "x.bounds goes beyond 1e300"),
    ("resolution 0", with_column("x = { type = 'real', resolution = 0 }"), "x.resolution must be above 0"),
    (
        "half resolution",
        with_column("x = { type = 'integer', resolution = 0.5 }"),
        "x.resolution must be a whole number",
    ),
    ("text resolution", with_column("x = { type = 'text', resolution = 1 }"), "x.resolution is for numbers"),
    ("too fine", with_column("x = { type = 'real', bounds = [0, 1], resolution = 1e-17 }"), "x.resolution is finer"),
    ("key types", with_column("x = { type = 'text', keys = [1, 2] }"), "x.keys must hold values of the type text"),
    (
        "mixed keys",
        with_column("x = { type = 'integer', keys = [1, 'a'] }"),
        "x.keys must hold values of the type integer",
    ),
    (
        "truth is no number",
        with_column("x = { type = 'integer', keys = [true] }"),
        "x.keys must hold values of the type integer",
    ),
    (
        "time is no date",
        with_column("x = { type = 'date', keys = [2024-01-01T00:00:00] }"),
        "x.keys must hold values of the type date",
    ),
    (
        "zones",
        with_column("x = { type = 'timestamp', keys = [2024-01-01T00:00:00Z] }"),
        "x.keys must hold values of the type timestamp",
    ),
    ("no keys", with_column("x = { type = 'text', keys = [] }"), "x.keys is empty"),
    ("key twice", with_column("x = { type = 'text', keys = ['a', 'a'] }"), "x.keys lists a value twice"),
    (
        "keys and bins",
        with_column("x = { type = 'integer', keys = [1], bins = { edges = [1] } }"),
        "x.bins and keys both",
    ),
    (
        "null without keys",
        with_column("x = { type = 'text', null_key = true }"),
        "x.null_key adds NULL to keys that are not there",
    ),
    (
        "null without null",
        with_column("x = { type = 'text', keys = ['a'], null_key = true, nullable = false }"),
        "x.null_key makes NULL",
    ),
    ("no bins", with_column("x = { type = 'integer', bins = {} }"), "x.bins must have either width or edges"),
    (
        "both bins",
        with_column("x = { type = 'integer', bounds = [0, 1], bins = { width = 1, edges = [0] } }"),
        "either width or edges",
    ),
    ("bins from where", with_column("x = { type = 'integer', bins = { width = 1 } }"), "x.bins.width needs bounds"),
    (
        "edges down",
        with_column("x = { type = 'integer', bins = { edges = [2, 1] } }"),
        "x.bins.edges are not in ascending order",
    ),
    (
        "edge types",
        with_column("x = { type = 'integer', bins = { edges = ['a'] } }"),
        "x.bins.edges must hold values of the type integer",
    ),
    ("text width", with_column("x = { type = 'text', bins = { width = 1 } }"), "x.bins.width is for numbers, dates"),
    (
        "width of dates",
        with_column("x = { type = 'date', bounds = [2024-01-01, 2024-01-02], bins = { width = 7 } }"),
        "does not fit the type date",
    ),
    (
        "hours of a date",
        with_column("x = { type = 'date', bounds = [2024-01-01, 2024-01-02], bins = { width = 'hour' } }"),
        "does not fit the type date",
    ),
    (
        "many seconds",
        with_column("x = { type = 'timestamp', bounds = [2024-01-01, 2024-01-03], bins = { width = 'second' } }"),
        "makes more than 100,000 bins",
    ),
    (
        "width of numbers",
        with_column("x = { type = 'integer', bounds = [0, 9], bins = { width = 'day' } }"),
        "does not fit the type integer",
    ),
    (
        "width 0",
        with_column("x = { type = 'integer', bounds = [0, 9], bins = { width = 0 } }"),
        "x.bins.width must be above 0",
    ),
    (
        "half width",
        with_column("x = { type = 'integer', bounds = [0, 9], bins = { width = 0.5 } }"),
        "x.bins.width must be above 0",
    ),
    (
        "many bins",
        with_column("x = { type = 'real', bounds = [0, 1], bins = { width = 1e-6 } }"),
        "makes more than 100,000 bins",
    ),
    (
        "many days",
        with_column("x = { type = 'date', bounds = [1000-01-01, 2000-01-01], bins = { width = 'day' } }"),
        "makes more than 100,000",
    ),
]


@pytest.mark.parametrize(("text", "rule", "fix"), [case[1:] for case in SHAPE], ids=[case[0] for case in SHAPE])
def test_wrong_shapes_are_refused(text: str, rule: str, fix: str) -> None:
    """Unknown words, missing entries and wrong kinds are refused with the entry, the rule and the fix."""
    message = wrong(text)
    assert rule in message and fix in message


@pytest.mark.parametrize(("text", "rule"), [case[1:] for case in RULES], ids=[case[0] for case in RULES])
def test_wrong_meanings_are_refused(text: str, rule: str) -> None:
    """Entries that contradict each other are refused."""
    assert rule in wrong(text)


def test_all_problems_come_at_once() -> None:
    """A curator mends a file once, not ten times."""
    message = wrong(GOOD.replace("epsilon = 0.3", "epsilon = 0").replace("[0, 110]", "[110, 0]"))
    assert "2 problems" in message and "budget.epsilon" in message and "tables.visits.columns.age.bounds" in message


def test_errors_survive_pickling() -> None:
    """An error that crosses a process keeps its parts."""
    with pytest.raises(CodebookError) as caught:
        Codebook.read(GOOD.replace("epsilon = 0.3", "epsilon = 0"))
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  # our own bytes
    assert str(again) == str(caught.value) and again.problems == caught.value.problems and again.code == "codebook"


def test_files_that_are_not_codebooks(tmp_path: Path) -> None:
    """A missing file and a binary one are refused in the same way."""
    with pytest.raises(CodebookError, match="cannot be read"):
        Codebook.load(tmp_path / "missing.toml")
    (tmp_path / "data.toml").write_bytes(b"PAR1\xff\xfe\x00")
    with pytest.raises(CodebookError, match="is not text"):
        Codebook.load(tmp_path / "data.toml")


@given(st.text(max_size=200))
@settings(deadline=None, max_examples=100)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever stands in a file, the answer is a codebook or a CodebookError."""
    try:
        assert isinstance(Codebook.read(text), Codebook)
    except CodebookError as refused:
        told = str(refused)
        assert told.endswith("Nothing was charged.")  # either outcome is right, and no other one


WIDE = """
name = "hospital"
unit = "patients.patient_id"
analysts = ["ana"]
projects = ["thesis"]
ledger = "postgresql://host/database"
[budget]
epsilon = 0.3
per_analyst = { ana = 0.2, "*" = 0.1 }
per_project = 0.2
per_month = 0.1
[tables.patients]
source = "patients.parquet"
max_rows = 1
columns.patient_id = "integer"
[tables.visits]
source = "visits.parquet"
foreign_keys = { person = "patients.patient_id", ward = "wards.ward" }
max_rows = 20
[tables.visits.columns]
visit_id = "integer"
person = "integer"
ward = { type = "text", max_frequency = 50 }
[tables.labs]
source = "labs.parquet"
foreign_keys = { visit_id = "visits.visit_id" }
max_rows = 20
[tables.labs.columns]
visit_id = "integer"
[tables.wards]
source = "wards.parquet"
public = true
columns.ward = { type = "text", unique = true }
"""
PLAIN = ["1", "-1", "0.5", "true", '"x"', '"?"', "[]", "[1, 2]", '["a"]', "{}", "2024-01-01", "inf", "nan", "10:00:00"]
WIDER = """
{ a = 1 }
{ "*" = -1 }
{ visit_id = "visits.visit_id" }
{ visit_id = "labs.visit_id" }
{ person = "labs.visit_id" }
{ ward = "labs.visit_id" }
{ type = "integer", unique = true }
{ type = "text", max_frequency = 2 }
{ type = "text", max_length = 2 }
"labs.visit_id"
"patients.patient_id"
"integer"
"row"
"postgres://a:b@c"
"*"
["*"]
"."
""
"""
TOML_VALUES = st.sampled_from([*PLAIN, *WIDER.split("\n")[1:-1]])


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_mutated_codebooks_are_read_or_refused(data: st.DataObject) -> None:
    """Any value in any place: no other error comes out, and what is read makes a catalog."""
    lines = data.draw(st.sampled_from([GOOD, WIDE])).splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from([i for i, line in enumerate(lines) if "=" in line]))
        word = lines[at].partition("=")[0]
        lines[at] = f"{word}= {data.draw(TOML_VALUES)}"
    with contextlib.suppress(CodebookError):
        book = Codebook.read("\n".join(lines))
        catalog = book.catalog()
        everybody_is_reached(catalog)
        assert terms_of(book).unit == catalog.unit == book.unit
        assert all(line.finding for line in make_checklist(book))


def everybody_is_reached(catalog: Catalog) -> None:
    """Whatever a codebook says, each private row names its unit, or is joined to rows that do."""
    for name, table in catalog.tables.items():
        reached = reach(name, catalog)
        assert (reached.unit is None) == (table.public or table.unit.column is None)
        assert find_relation_facts(reached.relation, catalog).owner is (
            Owner.NOBODY if table.public else Owner.ROW if table.unit.column is None else Owner.UNIT
        )


def test_the_fuzz_starts_from_codebooks_that_are_right() -> None:
    """Negative control: both load, so that a mutation can be what is refused; and both are reached."""
    for text in (GOOD, WIDE):
        everybody_is_reached(Codebook.read(text).catalog())


def test_date_bins() -> None:
    """Every start of a week, month, quarter or year that the bounds touch, also where the calendar ends."""

    def keys(width: str, first: str, last: str) -> list[str]:
        line = f"x = {{ type = 'date', bounds = [{first}, {last}], bins = {{ width = '{width}' }} }}"
        found = Codebook.read(with_column(line)).catalog().find_table("visits").columns["x"][1].keys
        return [str(key) for key in found or ()]

    assert keys("day", "2024-02-28", "2024-03-01") == ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert keys("week", "2024-01-03", "2024-01-15") == ["2024-01-01", "2024-01-08", "2024-01-15"]
    assert keys("quarter", "2023-11-05", "2024-04-01") == ["2023-10-01", "2024-01-01", "2024-04-01"]
    assert keys("year", "2023-11-05", "2024-04-01") == ["2023-01-01", "2024-01-01"]
    assert keys("month", "9999-11-05", "9999-12-31") == ["9999-11-01", "9999-12-01"]
    assert len(keys("month", "2000-01-31", "2009-12-01")) == 120


def test_bounds_of_times_are_exact() -> None:
    """Dates and timestamps have bounds like numbers, in days; a date as a bound of timestamps is its midnight."""
    lines = """
born = { type = "date", bounds = [1970-01-02, 1970-01-04] }
left_at = { type = "timestamp", bounds = [1970-01-02, 1970-01-03T06:00:00] }
hour = { type = "timestamp", bounds = [1970-01-02, 1970-01-02T02:30:00], bins = { width = "hour" } }
"""
    columns = Codebook.read(with_column(lines)).catalog().find_table("visits").columns
    assert (columns["born"][1].low, columns["born"][1].high) == (Fraction(1), Fraction(3))
    assert (columns["left_at"][1].low, columns["left_at"][1].high) == (Fraction(1), Fraction(9, 4))
    assert [key.hour for key in columns["hour"][1].keys or () if isinstance(key, dt.datetime)] == [0, 1, 2]


def test_times_of_other_libraries_are_bounds() -> None:
    """Those of NumPy and pandas mean what those of Python mean; a missing one means nothing."""
    frame = pa.table({"seen": pa.array([DAY], pa.timestamp("ns")), "day": pa.array([DAY.date()], pa.date32())})
    start, end = dt.date(2024, 1, 1), dt.date(2024, 12, 31)

    def facts_of(column: str, low: Any, high: Any) -> ColumnFacts:
        book = Codebook.from_frames({"t": frame}, bounds={column: (low, high)}, budget=Budget(epsilon=1))
        return book.catalog().find_table("t").columns[column][1]

    plain = facts_of("seen", start, end)
    for kind in (pd.Timestamp, np.datetime64, lambda day: np.datetime64(day).astype("datetime64[ns]")):
        assert facts_of("seen", kind(start), kind(end)) == plain
    assert facts_of("day", np.datetime64(start), np.datetime64(end)) == facts_of("day", start, end)
    with pytest.raises(CodebookError, match="must not be missing"):
        facts_of("seen", pd.NaT, end)


def test_frames_have_bins_and_say_what_is_never_missing() -> None:
    """By an argument as in a file; an Arrow schema says it, too, and a key NULL wins over it."""
    fields = [pa.field(name, pa.int64(), nullable=name == "c") for name in "abcd"]
    frame = pa.table({name: [1] for name in "abcd"}, schema=pa.schema(fields))
    book = Codebook.from_frames(
        {"t": frame, "u": pa.table({"x": [1], "day": [DAY]})},
        keys={"b": [1, None]},
        not_null=["x"],
        bounds={"d": (0, 20), "day": (DAY.date(), dt.date(2024, 3, 31))},
        bins={"d": 10, "x": [1, 5], "day": "month"},
        budget=Budget(epsilon=1),
    )
    tables = book.catalog().tables
    assert [tables["t"].columns[name][1].nullable for name in "abcd"] == [False, True, True, False]
    assert tables["t"].columns["d"][1].keys == (0, 10, 20) and tables["u"].columns["x"][1].keys == (1, 5)
    assert not tables["u"].columns["x"][1].nullable
    assert [key.month for key in tables["u"].columns["day"][1].keys or () if isinstance(key, dt.date)] == [1, 2, 3]


DAY = dt.datetime.fromisoformat("2024-01-01")
VALUES = {"patient_id": [1], "age": [2], "cost": [1.5], "ward": ["A"], "day": [DAY]}
FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame(VALUES),
    "polars": pl.DataFrame(VALUES),
    "lazy": pl.LazyFrame(VALUES),
    "arrow": pa.table(VALUES),
    "dataset": ds.dataset(pa.table(VALUES)),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_frames(frame: Any) -> None:
    """The same codebook comes from every kind of frame, with the types of its schema."""
    book = Codebook.from_frames(
        {"visits": frame},
        unit="patient_id",
        max_groups=5,
        max_rows_per_group=3,
        bounds={"age": (0, 110), "visits.cost": (0.1, 9)},
        resolution={"cost": 0.01},
        keys={"ward": ["A", "B", None]},
        constant_per_unit=["age"],
        budget=Budget(epsilon=3, delta=1e-6),
        per_query=0.5,
    )
    table = book.catalog().find_table("visits")
    assert [kind for kind, _ in table.columns.values()] == ["integer", "integer", "real", "text", "timestamp"]
    assert table.columns["cost"][1].low == Fraction(1, 10) and table.columns["cost"][1].resolution == Fraction(1, 100)
    assert table.columns["ward"][1].keys == ("A", "B", None)
    assert table.columns["age"][1].constant
    assert book.sources == {} and book.path is None and book.per_query == Fraction(1, 2)
    assert book.budget.slack() == Fraction(1, 10**6)


def test_names_with_a_table_win() -> None:
    """A bare name means the column in every table; a full one means one table and wins."""
    frame = pa.table({"age": [1]})
    book = Codebook.from_frames(
        {"a": frame, "b": frame}, bounds={"b.age": (0, 9), "age": (0, 99)}, budget=Budget(rho=1), name="two"
    )
    tables = book.catalog().tables
    assert tables["a"].columns["age"][1].high == 99 and tables["b"].columns["age"][1].high == 9
    assert book.unit == Unit() and book.name == "two"


def test_frames_are_refused_like_files() -> None:
    """The rules are the same in Python; unknown columns and budgets are named."""
    frame = FRAMES["arrow"]
    with pytest.raises(CodebookError, match=r"bounds: agee is not a column. Did you mean 'age'\?"):
        Codebook.from_frames({"visits": frame}, bounds={"agee": (0, 1)}, budget=Budget(epsilon=1))
    with pytest.raises(CodebookError, match="go from high to low"):
        Codebook.from_frames({"visits": frame}, bounds={"age": (1, 0)}, budget=Budget(epsilon=1))
    with pytest.raises(CodebookError, match="does not say how much one patient_id"):
        Codebook.from_frames({"visits": frame}, unit="patient_id", budget=Budget(epsilon=1))
    assert Codebook.from_frames({"visits": frame}, budget=Budget(mu=1)).budget == Budget(mu=1)
    with pytest.raises(CodebookError, match="must be in epsilon or rho or mu"):
        Codebook.from_frames({"visits": frame}, budget=3)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ParameterError, match="plain mapping"):
        Codebook.from_frames({"visits": {"age": [1]}}, budget=Budget(epsilon=1))
    with pytest.raises(ParameterError, match="hold a int"):
        Codebook.from_frames({"visits": 3}, budget=Budget(epsilon=1))


class Silent:
    """A frame that has a schema and explodes when a value is touched."""

    __module__ = "polars.frame"

    def collect_schema(self) -> dict[str, str]:
        return {"age": "Int64", "list": "List(Int64)"}

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was looked at")


def test_only_the_schema_of_a_frame_is_read() -> None:
    """No value is touched, and columns that no question can use are left out."""
    assert types_of(Silent()) == {"age": Type.INTEGER, "list": None}
    book = Codebook.from_frames({"t": Silent()}, budget=Budget(epsilon=1))
    assert list(book.catalog().find_table("t").columns) == ["age"]


def test_types_of_unusual_columns() -> None:
    """Categories, nullable types, decimals, dates, and what has no type."""
    frame = pd.DataFrame(
        {
            "category": pd.Categorical(["a"]),
            "numbers": pd.Categorical([1]),
            "nullable": pd.array([1], dtype="Int64"),
            "truth": pd.array([True], dtype="boolean"),
            "arrow": pd.array([1.5], dtype=pd.ArrowDtype(pa.float32())),
            "object": pd.Series([object()], dtype=object),
            "span": pd.to_timedelta(["1D"]),
        }
    )
    assert list(types_of(frame).values()) == ["text", "integer", "integer", "boolean", "real", "text", None]
    schema = pa.schema(
        [
            ("a", pa.dictionary(pa.int8(), pa.string())),
            ("b", pa.decimal128(10, 2)),
            ("c", pa.date32()),
            ("d", pa.large_string()),
            ("e", pa.binary()),
            ("f", pa.list_(pa.int8())),
            ("g", pa.bool_()),
            ("h", pa.timestamp("ns")),
        ]
    )
    assert list(types_of(schema.empty_table()).values()) == [
        "text",
        "real",
        "date",
        "text",
        None,
        None,
        "boolean",
        "timestamp",
    ]
    polars = pl.DataFrame(
        schema={"a": pl.Categorical, "b": pl.Decimal(9, 2), "c": pl.Date, "d": pl.Datetime("us"), "e": pl.Binary}
    )
    assert list(types_of(polars).values()) == ["text", "real", "date", "timestamp", None]


def test_did_you_mean() -> None:
    """A near word, a word of another system, or the whole list."""
    assert did_you_mean("wards", ["ward", "age"]) == "Did you mean 'ward'?"
    assert did_you_mean("domain", ["keys", "bounds"]) == "Did you mean 'keys'?"
    assert did_you_mean("xyz", ["ward", "age"]) == "Use one of: ward, age."


def test_the_package_stays_light() -> None:
    """Importing discreet does not load pydantic; the codebook does so when it is needed."""
    code = "import sys, discreet; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603  # our own words


def json_schema() -> str:
    """The published schema of codebook files."""
    return json.dumps(make_json_schema(), indent=2) + "\n"


def reference() -> str:
    """The tables of docs/codebook.md, from the descriptions of the entries."""
    lines = []
    sections: list[tuple[str, type[CodebookEntry]]] = [
        ("At the top", Document),
        ("`[budget]`", BudgetEntry),
        ("`[engine]`", EngineEntry),
        ("`[tables.NAME]`", TableEntry),
        ("`source`", SourceEntry),
        ("`[tables.NAME.columns]`", ColumnEntry),
        ("`bins`", Bins),
    ]
    for title, model in sections:
        lines += [
            "",
            f"### {title}",
            "",
            (model.__doc__ or "").replace("``", "`"),
            "",
            "| entry | default | meaning |",
            "|---|---|---|",
        ]
        for name, field in model.model_fields.items():
            default = (
                "required" if field.is_required() else "" if field.default is None else f"`{json.dumps(field.default)}`"
            )
            lines.append(f"| `{name}` | {default} | {field.description} |")
    return "\n".join(lines) + "\n"


BEGIN, END = "<!-- entries: written by `python -m tests.codebook.test_codebook` -->\n", "<!-- end of entries -->\n"


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ('{ type = "integer", max_length = 5 }', r"max_length is for texts; a integer has none"),
        ('{ type = "text", max_length = 4097 }', r"max_length is above 4,096"),
        ('{ type = "text", max_length = 0 }', r"max_length must be between 1"),
        ('{ type = "text", max_length = 2, keys = ["a", "abc"] }', r"max_length is below the 3 characters of a key"),
        ('{ type = "text", keys = ["' + "a" * 1001 + '"] }', r"max_length is below the 1,001 characters of a key"),
    ],
)
def test_lengths_of_texts_are_checked(column: str, words: str) -> None:
    """Only texts have one, within the limit, and no key is longer."""
    text = WIDE.replace('{ type = "text", max_frequency = 50 }', column)
    assert text != WIDE
    with pytest.raises(CodebookError, match=words):
        Codebook.read(text)


def test_lengths_of_texts_are_facts() -> None:
    """As declared, or the default; from frames too."""
    text = WIDE.replace("max_frequency = 50", "max_frequency = 50, max_length = 7")
    tables = Codebook.read(text).catalog().tables
    assert tables["visits"].columns["ward"][1].max_length == 7
    assert tables["wards"].columns["ward"][1].max_length == 1_000
    frames = {"t": pa.table({"a": ["x"], "b": ["y"], "n": [1]})}
    given = Codebook.from_frames(frames, budget=Budget(epsilon=1), max_length={"a": 5}).catalog().tables["t"].columns
    assert [given[name][1].max_length for name in "abn"] == [5, 1_000, None]


def test_where_spark_runs_is_said_of_what_spark_reads() -> None:
    text = GOOD + '[engine]\nspark = "spark://host:7077"\n'
    assert Codebook.read(text).sources["visits"].address == "spark://host:7077"
    assert Codebook.read(text.replace("visits.parquet", "visits.csv")).sources["visits"].address is None
    assert Codebook.read(GOOD).sources["visits"].address is None


def test_numbers_of_values_are_facts() -> None:
    """As declared, or unknown; from frames too, where public tables have none."""
    text = WIDE.replace("max_frequency = 50", "max_frequency = 50, max_values = 3")
    tables = Codebook.read(text).catalog().tables
    assert tables["visits"].columns["ward"][1].max_values == 3
    assert tables["wards"].columns["ward"][1].max_values is None
    frames = {"t": pa.table({"who": [1], "a": ["x"]}), "p": pa.table({"a": ["x"]})}
    book = Codebook.from_frames(
        frames, budget=Budget(epsilon=1), unit="who", max_rows=2, public=["p"], max_values={"a": 5}
    )
    assert [book.catalog().tables[name].columns["a"][1].max_values for name in "tp"] == [5, None]


def test_the_published_schema_is_current() -> None:
    """docs/codebook.schema.json is what the code reads; `python -m tests.codebook.test_codebook` writes it anew."""
    assert (DOCS / "codebook.schema.json").read_text() == json_schema()


def test_the_reference_is_current() -> None:
    """The tables in docs/codebook.md come from the code, and every entry has a description."""
    page = (DOCS / "codebook.md").read_text()
    assert page.partition(BEGIN)[2].partition(END)[0] == reference()
    assert all(
        f.description
        for m in (Document, BudgetEntry, EngineEntry, TableEntry, SourceEntry, ColumnEntry, Bins)
        for f in m.model_fields.values()
    )


def test_the_example_in_the_docs_is_a_codebook() -> None:
    """The full example in docs/codebook.md loads, and uses every entry that there is."""
    examples = re.findall(r"```toml\n(.*?)```", (DOCS / "codebook.md").read_text(), re.S)
    assert examples
    book = Codebook.read(examples[0])
    used = set(re.findall(r"(\w+) =", examples[0]))
    words = {w for m in (Document, BudgetEntry, TableEntry, SourceEntry, ColumnEntry, Bins) for w in m.model_fields}
    replaced = {"exact_rows", "exact_units"}  # the example hides who is there
    replaced |= {"postgres", "spark", "release", "engine"}  # its tables are in files
    assert words - used <= {"rho", "mu", "columns", "tables", "budget", "csv", "edges"} | replaced
    assert book.catalog().tables


def test_curate_takes_the_parameters_of_from_frames() -> None:
    """``help(discreet.curate)`` shows every parameter, and a wrong argument is refused under curate's own name."""
    ours, theirs = inspect.signature(discreet.curate), inspect.signature(Codebook.from_frames)
    assert ours.parameters == theirs.parameters and len(ours.parameters) > 15
    assert ours.return_annotation == "Curator"
    with pytest.raises(TypeError, match=r"^curate\(\): missing a required argument: 'budget'"):
        discreet.curate({})  # type: ignore[call-arg]  # what is tested
    with pytest.raises(TypeError, match=r"^curate\(\): got an unexpected keyword argument 'bugdet'"):
        discreet.curate({}, budget=Budget(epsilon=1), bugdet=1)  # type: ignore[call-arg]  # what is tested


def write_docs() -> None:
    """Write the schema and the tables of the reference anew."""
    (DOCS / "codebook.schema.json").write_text(json_schema())
    page = DOCS / "codebook.md"
    head, _, rest = page.read_text().partition(BEGIN)
    page.write_text(head + BEGIN + reference() + END + rest.partition(END)[2])


if __name__ == "__main__":
    write_docs()
