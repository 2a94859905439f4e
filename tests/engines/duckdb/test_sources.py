"""Every kind of source gives the same rows, in plan types; what cannot be read is refused before any question."""

# ruff: noqa: DTZ001, S311  # times have no zone here, and worlds need seeds, not secrets
from __future__ import annotations

import datetime as dt
import os
import random
import stat
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.codebook.codebook import TableSource
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.sources import Frame
from discreet.engines.memory.engine import MemoryEngine
from discreet.errors import EngineFailure, UsageError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.csv_form import CsvEncoding, CsvForm, DateOrder
from discreet.plan.expressions import Column
from discreet.plan.functions import make_call, make_literal
from discreet.plan.relations import Scan
from discreet.plan.source_kinds import SourceKind
from discreet.plan.types import LARGEST_REAL, Type
from discreet.privacy import Neighbours, Unit
from tests.engines.answers import as_dict
from tests.engines.conformance.engines import DUCKDB
from tests.engines.worlds import SALT, UNIT, a_world, catalog, frame
from tests.plan.test_csv_form import pack

KINDS = {"who": Type.INTEGER, "ward": Type.TEXT, "cost": Type.REAL, "day": Type.DATE, "ok": Type.BOOLEAN}
COLUMNS = {name: Column("visits", name, kind) for name, kind in KINDS.items()}
TABLE = pa.table(
    {
        "who": pa.array([1, 1, 2, None, 3], pa.int64()),
        "ward": pa.array(["A", 'B, "b"', "A", None, "line\nbreak"], pa.string()),
        "cost": pa.array([1.5, None, 2.25, 3.0, 4.0], pa.float64()),
        "day": pa.array([dt.date(2020, 1, d) for d in (1, 2, 3, 4, 5)], pa.date32()),
        "ok": pa.array([True, False, None, True, True], pa.bool_()),
    }
)


def catalog_of(kinds: dict[str, Type], *, unit: str | None = None, name: str = "visits") -> Catalog:
    columns = {column: (kind, ColumnFacts()) for column, kind in kinds.items()}
    facts = TableFacts(name=name, columns=columns, unit=Unit(unit), limits=ContributionLimits())
    return Catalog(tables={name: facts}, neighbours=Neighbours.ADD_REMOVE)


def question(**more: Any) -> BoundedPlan:
    measures = (
        Measure(counts=Counts.ROWS),
        Measure(counts=Counts.VALUES, argument=COLUMNS["day"]),
        Measure(counts=Counts.VALUES, argument=COLUMNS["ok"]),
        Measure(counts=Counts.STEPS, argument=COLUMNS["cost"], first=0, last=100),
    )
    plain: dict[str, Any] = {
        "source": Scan("visits"),
        "keys": (COLUMNS["ward"],),
        "domain": None,
        "unit": None,
    }
    return BoundedPlan(measures=measures, **{**plain, **more})


WANTED = as_dict(MemoryEngine({"visits": TABLE.to_pylist()}, catalog_of(KINDS)).run(question(), salt=SALT))


@dataclass(frozen=True)
class Place:
    """As a codebook names a source."""

    kind: str
    path: str
    table: str | None = None


def a_source(kind: str, folder: Path) -> Any:
    path = folder / f"visits.{kind}"
    match kind:
        case "arrow":
            return TABLE
        case "batch":
            return TABLE.to_batches()[0]
        case "pandas":
            return TABLE.to_pandas(types_mapper=pd.ArrowDtype)
        case "polars":
            return pl.from_arrow(TABLE)
        case "dataset" | "parquet":
            pq.write_table(TABLE, folder / "visits.parquet")
            return (
                str(folder / "visits.parquet") if kind == "parquet" else pa.dataset.dataset(folder / "visits.parquet")
            )
        case "glob":
            pq.write_table(TABLE.slice(0, 2), folder / "part-1.parquet")
            pq.write_table(TABLE.slice(2), folder / "part-2.parquet")
            return folder / "part-*.parquet"
        case "csv":
            pa.csv.write_csv(TABLE, path)
            return path
        case "duckdb" | "place":
            with duckdb.connect(str(folder / "visits.duckdb")) as connection:
                connection.register("incoming", TABLE)
                connection.execute('CREATE TABLE "visits" AS SELECT * FROM incoming')
                connection.execute("CREATE SCHEMA s; CREATE TABLE s.other AS SELECT * FROM incoming")
            return (
                folder / "visits.duckdb"
                if kind == "duckdb"
                else Place("duckdb", str(folder / "visits.duckdb"), "s.other")
            )
    raise AssertionError(kind)


ALL = ["arrow", "batch", "pandas", "polars", "dataset", "parquet", "glob", "csv", "duckdb", "place"]


@pytest.mark.parametrize("kind", ALL)
def test_every_source_gives_the_same_answer(kind: str, tmp_path: Path) -> None:
    """Files, databases and frames: the same integers, also by unit and from a prepared table.

    In CSV a line is a row, so the row with a quoted line break is left out there.
    """
    import pyarrow.dataset  # noqa: F401  # makes pa.dataset known

    engine = DuckDBEngine({"visits": a_source(kind, tmp_path)}, catalog_of(KINDS, unit="who"))
    lost = {("line\nbreak",)} if kind == "csv" else set()
    assert as_dict(engine.run(question(), salt=SALT)) == {key: WANTED[key] for key in WANTED.keys() - lost}
    by_unit = question(unit=COLUMNS["who"], max_groups=9, max_rows_per_group=9)
    first = as_dict(engine.run(by_unit, salt=SALT))
    assert (None,) not in first and sum(row[0] for row in first.values()) == 4 - len(lost)
    engine.prepare("visits")
    assert as_dict(engine.run(by_unit, salt=SALT)) == first
    engine.close()


@pytest.mark.parametrize("unit", [None, UNIT], ids=["rows", "units"])
def test_texts_that_the_codebook_lists_are_the_same(unit: Column | None) -> None:
    """A frame holds texts with declared keys as numbers: no integer of an answer differs, whatever is asked of them."""
    known = catalog(unit)
    facts = {name: (kind, ColumnFacts(keys=("A", "none"))) for name, (kind, _) in known.tables["t"].columns.items()}
    listed = replace(known, tables={"t": replace(known.tables["t"], columns=facts)})
    numbered = set()
    for seed in range(40):
        world = a_world(seed, unit=unit)
        rows = frame(world.rows)
        cut = pa.concat_tables([rows.slice(0, 7), rows.slice(7)])
        with closing(DuckDBEngine({"t": rows}, known)) as plain, closing(DuckDBEngine({"t": cut}, listed)) as coded:
            assert coded.run(world.bounded, salt=SALT) == plain.run(world.bounded, salt=SALT), seed
            source = coded._tables.find_source("t")  # how the texts are held
            assert isinstance(source, Frame)
            numbered |= {field.name for field in source.table.schema if pa.types.is_dictionary(field.type)}
    assert numbered == {"name", "Ward"}


SHORT = (("ok",), ("fine",), ("none",))


@pytest.mark.parametrize("domain", [SHORT, (*SHORT, ("too long",)), (*SHORT, (None,)), None], ids=str)
def test_texts_that_are_too_long_are_null(domain: tuple[tuple[str | None, ...], ...] | None) -> None:
    """Also where keys are compared with public groups as they are stored: the integers are the oracle's."""
    texts = ["ok", "too long", None, "ok", "fine", "ok", "too long", "fine"]
    rows = [{"who": who, "ward": text} for who, text in zip((1, 1, 2, 3, 3, 4, 4, 4), texts, strict=True)]
    known = catalog_of({"who": Type.INTEGER, "ward": Type.TEXT}, unit="who").tables["visits"]
    known = replace(known, columns={**known.columns, "ward": (Type.TEXT, ColumnFacts(max_length=5))})
    declared = Catalog(tables={"visits": known}, neighbours=Neighbours.ADD_REMOVE)
    measures = (Measure(counts=Counts.ROWS), Measure(counts=Counts.UNITS))
    limits = {"unit": COLUMNS["who"], "max_groups": 3, "max_rows_per_group": 2, "weight_bits": 3}
    bounded = replace(question(domain=domain, **limits), measures=measures)
    with closing(DuckDBEngine({"visits": pa.Table.from_pylist(rows)}, declared)) as engine:
        found = as_dict(engine.run(bounded, salt=SALT))
    assert found == as_dict(MemoryEngine({"visits": rows}, declared).run(bounded, salt=SALT))
    assert ("too long",) not in found and ((None,) in found) is (domain is None or (None,) in domain)


def test_csv_is_text_until_declared(tmp_path: Path) -> None:
    """Nothing is guessed from values: a CSV's schema is all text, and what does not convert is NULL."""
    (tmp_path / "v.csv").write_text("who,ward,cost,day,ok\n1,A,x,2020-13-01,perhaps\nz,A,1.5,2020-01-01,true\n,,,,\n")
    engine = DuckDBEngine({"visits": tmp_path / "v.csv"}, catalog_of(KINDS))
    assert set(engine.schema("visits").values()) == {Type.TEXT}
    assert as_dict(engine.run(question(keys=()), salt=SALT)) == {(): (3, 1, 1, 2)}


def test_versions_change_with_the_data(tmp_path: Path) -> None:
    """Files by name and time, frames by registration; and a prepared table of an old version is not used."""
    path = a_source("parquet", tmp_path)
    engine = DuckDBEngine({"visits": path}, catalog_of(KINDS, unit="who"))
    engine.prepare("visits")
    before = engine.version("visits")
    assert before == engine.version("visits")
    pq.write_table(TABLE.slice(0, 1), path)
    os.utime(path, ns=(1, 1))
    assert engine.version("visits") != before
    assert engine.run(question(keys=()), salt=SALT).values[0] == (1,)
    frames = [DuckDBEngine({"visits": TABLE}, catalog_of(KINDS)).version("visits") for _ in range(2)]
    assert frames[0] != frames[1]


STORED = {
    "UTINYINT '7'": (Type.INTEGER, 7),
    "UBIGINT '18446744073709551615'": (Type.INTEGER, None),
    "HUGEINT '170141183460469231731687303715884105727'": (Type.INTEGER, None),
    "HUGEINT '5'": (Type.INTEGER, 5),
    "FLOAT '0.1'": (Type.REAL, 0.10000000149011612),
    "FLOAT 'inf'": (Type.REAL, LARGEST_REAL),
    "DOUBLE 'nan'": (Type.REAL, None),
    "DECIMAL(38,10) '1.25'": (Type.REAL, 1.25),
    "DECIMAL(38,0) '1234567890123456789'": (Type.INTEGER, 1234567890123456789),
    "DECIMAL(38,0) '12345678901234567890'": (Type.INTEGER, None),
    "TIMESTAMPTZ_NS '2020-01-01 02:00:00.000000001+02'": (Type.TIMESTAMP, dt.datetime(2020, 1, 1)),
    "ENUM('x','y') 'y'": (Type.TEXT, "y"),
    "UUID '00000000-0000-0000-0000-000000000001'": (Type.TEXT, "00000000-0000-0000-0000-000000000001"),
    "TIMESTAMP_S '2020-01-01 00:00:01'": (Type.TIMESTAMP, dt.datetime(2020, 1, 1, 0, 0, 1)),
    "TIMESTAMP_NS '2020-01-01 00:00:00.000001'": (Type.TIMESTAMP, dt.datetime(2020, 1, 1, 0, 0, 0, 1)),
    "TIMESTAMPTZ '2020-01-01 02:00:00+02'": (Type.TIMESTAMP, dt.datetime(2020, 1, 1)),
    "TIMESTAMPTZ 'infinity'": (Type.TIMESTAMP, None),
    "DATE 'infinity'": (Type.DATE, None),
    "DATE '9999-12-31'": (Type.DATE, dt.date(9999, 12, 31)),
}


@pytest.mark.parametrize("stored", list(STORED))
def test_stored_values_are_brought_to_plan_types(stored: str, tmp_path: Path) -> None:
    """Unsigned, huge, decimal, narrow, enumerated, zoned and infinite values fit a plan type or are NULL."""
    declared, wanted = STORED[stored]
    kind, _, value = stored.rpartition(" '") if "ENUM" not in stored else ("ENUM('x','y')", "", "y'")
    path = tmp_path / "s.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE s AS SELECT CAST('{value} AS {kind}) AS x")
    engine = DuckDBEngine({"s": path}, catalog_of({"x": declared}, name="s"))
    assert engine.schema("s") == {"x": declared}
    count = Measure(counts=Counts.ROWS)
    ask = BoundedPlan(source=Scan("s"), keys=(Column("s", "x", declared),), domain=None, unit=None, measures=(count,))
    assert engine.run(ask, salt=SALT).keys == ((wanted,),)


@pytest.mark.parametrize(
    "kind", ["INTEGER[]", "STRUCT(a INTEGER)", "BLOB", "INTERVAL", "TIME", "MAP(INTEGER, INTEGER)", "BIT"]
)
def test_other_stored_types_have_no_plan_type(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE s (x {kind}, y INTEGER)")
    assert DuckDBEngine({"s": path}, catalog_of({"y": Type.INTEGER}, name="s")).schema("s") == {
        "x": None,
        "y": Type.INTEGER,
    }
    with pytest.raises(UsageError, match="cannot use"):
        DuckDBEngine({"s": path}, catalog_of({"x": Type.INTEGER}, name="s")).schema("s")


def test_whole_reals_are_integers_where_declared(tmp_path: Path) -> None:
    """As pandas stores integers beside missing ones. What is not whole or too large is NULL alone, as by the oracle."""
    values = [3750.0, -0.0, None, float("nan"), float("inf"), 1.5, 2.0**63, -(2.0**63), 2.0**53 + 2, 1e300, 5e-324]
    pq.write_table(pa.table({"x": pa.array(values, pa.float64())}), tmp_path / "n.parquet")
    catalog = catalog_of({"x": Type.INTEGER}, name="n")
    ask = BoundedPlan(
        source=Scan("n"),
        keys=(Column("n", "x", Type.INTEGER),),
        domain=None,
        unit=None,
        measures=(Measure(counts=Counts.ROWS),),
    )
    rows = [{"x": value} for value in values]
    wanted = as_dict(MemoryEngine({"n": rows}, catalog).run(ask, salt=SALT))
    assert as_dict(DuckDBEngine({"n": tmp_path / "n.parquet"}, catalog).run(ask, salt=SALT)) == wanted
    assert wanted == {(3750,): (1,), (0,): (1,), (-(2**63),): (1,), (2**53 + 2,): (1,), (None,): (7,)}


def test_parquet_times_in_nanoseconds_with_a_zone(tmp_path: Path) -> None:
    """Read in UTC, whatever their zone; a moment beyond what can be told is NULL alone."""
    moments = pa.array([1_577_836_800_000_000_000, 2**63 - 1, None], pa.timestamp("ns", tz="Asia/Tokyo"))
    pq.write_table(pa.table({"at": moments}), tmp_path / "n.parquet")
    engine = DuckDBEngine({"n": tmp_path / "n.parquet"}, catalog_of({"at": Type.TIMESTAMP}, name="n"))
    at = Column("n", "at", Type.TIMESTAMP)
    count = (Measure(counts=Counts.ROWS),)
    found = engine.run(BoundedPlan(source=Scan("n"), keys=(at,), domain=None, unit=None, measures=count), salt=SALT)
    assert as_dict(found) == {(dt.datetime(2020, 1, 1),): (1,), (None,): (2,)}


FORMED = "who;ward;cost;day;ok\n1;A;1.234,5;31.12.2020;yes\n2;\xc4;2;1.1.2021 10:00;N\n"
FORM = CsvForm(
    delimiter=";", encoding=CsvEncoding.LATIN1, decimal=",", thousands=".", dates=DateOrder.DMY
)  # fmt: skip


@pytest.mark.parametrize(
    "odd", ["", '3;"A;1;2;3', "3;A", "9" * 40 + ";A;x;y;z", "3;A;1,5,5;2021-01-01;maybe", "\xff;;;;"]
)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".txt.zst"])
def test_files_in_a_declared_form(odd: str, ending: str, tmp_path: Path) -> None:
    """From the codebook's words to answers, with and without an odd line: all other rows are the same."""
    found = []
    for name, text in (("without", FORMED), ("with", f"{FORMED}{odd}\n")):
        path = tmp_path / f"{name}{ending}"
        pack(path, text.encode("latin-1"))
        source = TableSource(kind=SourceKind.CSV, path=str(path), form=FORM)
        engine = DuckDBEngine({"visits": source}, catalog_of(KINDS))
        found.append(as_dict(engine.run(question(), salt=SALT)))
        engine.close()
    assert found[0] == {("A",): (1, 1, 1, 100), ("Ä",): (1, 1, 1, 2)}
    rest = dict(found[1])
    for key in rest.keys() & {("A",), (None,)}:  # the odd row is in one of these
        rest.pop(key)
    assert rest == {key: value for key, value in found[0].items() if key in rest} and ("Ä",) in rest
    if found[1].get(("A",)) != found[0][("A",)]:
        assert found[1][("A",)][0] == 2


def test_memory_engine_brings_values_to_plan_types() -> None:
    rows = [{"WHO": 2**70, "ward": 3, "cost": Decimal("1.5"), "day": dt.datetime(2020, 1, 1, 5), "ok": 1}]
    engine = MemoryEngine({"visits": rows}, catalog_of(KINDS))
    assert as_dict(engine.run(question(), salt=SALT)) == {(None,): (1, 1, 0, 2)}
    assert engine.schema("visits")["cost"] is Type.REAL
    assert engine.version("visits") != MemoryEngine({"visits": rows}, catalog_of(KINDS)).version("visits")
    with pytest.raises(UsageError, match="no column 'day'"):
        MemoryEngine({"visits": [{"who": 1, "ward": "", "cost": 1.0}]}, catalog_of(KINDS)).run(question(), salt=SALT)


@pytest.mark.parametrize(
    ("source", "kinds", "words"),
    [
        ("nowhere.parquet", KINDS, "no file"),
        ("visits.xlsx", KINDS, "kind that questions cannot read. Convert it first: pip install"),
        (object(), KINDS, "cannot be a object"),
        (TABLE, {"wrad": Type.TEXT}, "Did you mean 'ward'"),
        (TABLE, {"cost": Type.BOOLEAN}, "declared boolean, but is real"),
        (pl.LazyFrame({"who": [1]}), {"who": Type.INTEGER}, "cannot be a LazyFrame"),
        ([{"who": 1}, {"who": "Jane"}], {"who": Type.INTEGER}, "mixed kinds"),
    ],
)
def test_a_wrong_codebook_is_refused_before_it_is_read(source: Any, kinds: dict[str, Type], words: str) -> None:
    """Missing files, columns and types are told before rows are read, and nothing of the data is in the words."""
    with pytest.raises(UsageError, match=words) as refused:
        DuckDBEngine({"visits": source}, catalog_of(kinds)).schema("visits")
    assert str(refused.value).endswith("Nothing was charged.")
    assert "Jane" not in str(refused.value)


def test_unreadable_files_are_refused_in_our_own_words(tmp_path: Path) -> None:
    (tmp_path / "visits.parquet").write_bytes(b"not parquet: Jane Doe")
    with pytest.raises(UsageError, match="cannot be read") as refused:
        DuckDBEngine({"visits": tmp_path / "visits.parquet"}, catalog_of(KINDS)).schema("visits")
    assert "Jane" not in str(refused.value) and refused.value.__suppress_context__
    (note,) = refused.value.__notes__  # for the one who opens it
    assert note.startswith("For the owner of the data: Invalid Input Error: No magic bytes")
    for content, words in (
        (b"\xff\xfe\n", "utf-8"),
        (b"", "no header"),
        (b",,\n1,2,3\n", "no header"),
    ):
        (tmp_path / "visits.csv").write_bytes(content)
        with pytest.raises(UsageError, match=words):
            DuckDBEngine({"visits": tmp_path / "visits.csv"}, catalog_of(KINDS))
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.csv").write_text("y\n1\n")
    with pytest.raises(UsageError, match="same header"):
        DuckDBEngine({"visits": tmp_path / "?.csv"}, catalog_of(KINDS))


def test_undeclared_tables_do_not_exist() -> None:
    engine = DuckDBEngine({"visits": TABLE}, catalog_of(KINDS))
    with pytest.raises(UsageError, match="no source"):
        engine.version("patients")
    with pytest.raises(UsageError, match="no declared table"):
        engine.prepare("patients")


def test_the_private_folder_goes_away(tmp_path: Path) -> None:
    """Spilled and prepared rows are in a folder that only the owner can read, and closing removes it."""
    engine = DuckDBEngine({"visits": TABLE}, catalog_of(KINDS, unit="who"), temp_directory=tmp_path)
    engine.prepare("visits")
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700 and list(folder.glob("prepared-*"))
    engine.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seed", range(12))
def test_broken_csv_lines_are_left_out_and_never_fail(seed: int, tmp_path: Path) -> None:
    """Damaged lines (quotes, commas, bytes that are no text, line ends of all kinds) cost rows, never an error."""
    rng = random.Random(seed)
    pieces = [
        b"1,A,1.5,2020-01-01,true\n",
        b'"',
        b",",
        b"\xff",
        b"\r\n",
        b"\r",
        b"\n\n",
        b"\0",
        b'"a""b",',
        b"x" * 3000,
        b"\xc3",
    ]
    body = b"".join(rng.choice(pieces) if rng.random() < 0.3 else pieces[0] for _ in range(200))
    (tmp_path / "v.csv").write_bytes(b"who,ward,cost,day,ok\n" + body)
    engine = DuckDBEngine({"visits": tmp_path / "v.csv"}, catalog_of(KINDS))
    assert engine.run(question(keys=()), salt=SALT).values[0][0] >= 0


def test_5_narrow_floats_are_widened_first() -> None:
    """A 32-bit column is read as doubles, so that arithmetic near its end does not become infinite."""
    table = pa.table({"x": pa.array([3e38, 3e38, float("nan")], pa.float32())})
    column = Column("n", "x", Type.REAL)
    engine = DuckDBEngine({"n": table}, catalog_of({"x": Type.REAL}, name="n"))
    ten = make_call("multiply", column, make_literal(10.0))
    measures = (
        Measure(counts=Counts.VALUES, argument=ten),
        Measure(counts=Counts.STEPS, argument=make_call("divide", ten, make_literal(1e38)), first=0, last=100),
    )
    assert engine.run(
        BoundedPlan(source=Scan("n"), keys=(), domain=None, unit=None, measures=measures), salt=SALT
    ).values == ((2,), (60,))


def test_the_ends_of_time_are_null_beyond_python() -> None:
    """Dates before year 1 and beyond 9999, and infinite ones, cannot be said in Python and are NULL."""
    source = duckdb.connect()
    days = "(DATE '0001-01-01'), (DATE '9999-12-31'), (DATE '0001-01-01' - 1), (DATE '9999-12-31' + 1)"
    table = source.sql(f"SELECT * FROM (VALUES {days}) v(d)").to_arrow_table()
    engine = DuckDBEngine({"n": table}, catalog_of({"d": Type.DATE}, name="n"))
    day = Column("n", "d", Type.DATE)
    found = engine.run(
        BoundedPlan(source=Scan("n"), keys=(day,), domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),)),
        salt=SALT,
    )
    assert dict(zip(found.keys, found.values[0])) == {
        (dt.date(1, 1, 1),): 1, (dt.date(9999, 12, 31),): 1, (None,): 2,
    }  # fmt: skip


def test_copies_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Whatever an engine keeps of private rows has the rights 0600, in a folder with 0700."""
    before = os.umask(0o022)
    try:
        engine = DuckDBEngine({"visits": TABLE}, catalog_of(KINDS, unit="who"), temp_directory=tmp_path)
        engine.prepare("visits")
        rights = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
        engine.close()
    finally:
        os.umask(before)
    assert any(name.startswith("prepared-") for name in rights)
    assert set(rights.values()) == {0o700, 0o600}, rights


def test_a_table_that_cannot_be_prepared_says_one_constant_sentence(tmp_path: Path) -> None:
    """A file that turns out damaged while it is copied: no word of DuckDB's leaves."""
    wide = pa.concat_tables([TABLE] * 10_000)
    fault = DUCKDB.make_fault(tmp_path, wide)
    engine = DuckDBEngine({"visits": fault.source}, catalog_of(KINDS, unit="who"))
    fault.damage()
    with pytest.raises(EngineFailure) as failure:
        engine.prepare("visits")
    assert str(failure.value) == str(EngineFailure()) and failure.value.__suppress_context__
    engine.close()
