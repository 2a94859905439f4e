"""Tables as the catalog describes them: what is read as which type, and what is refused before anything is charged."""

from __future__ import annotations

import datetime as dt
import logging
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.codebook.codebook import TableSource
from discreet.engines.postgres.address import ADDRESS
from discreet.engines.postgres.engine import PostgresEngine
from discreet.engines.postgres.tables import TableName, read_name
from discreet.errors import UsageError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.source_kinds import SourceKind
from discreet.plan.types import LARGEST_REAL, Type
from discreet.privacy import Neighbours, Unit
from tests.engines.postgres.loading import Place, database, load
from tests.engines.worlds import SALT

_NUMBERS = count()


def declare(length: int | None = None, **kinds: Type) -> Catalog:
    facts = {name: (kind, ColumnFacts(max_length=length)) for name, kind in kinds.items()}
    table = TableFacts(name="t", columns=facts, unit=Unit(), limits=ContributionLimits())
    return Catalog(tables={"t": table}, neighbours=Neighbours.ADD_REMOVE)


def open_table(place: Place, catalog: Catalog) -> PostgresEngine:
    return PostgresEngine({"t": place}, catalog, address=database().reader)


def make_table(kind: str, *values: str) -> Place:
    """A table of numbers i and values x of a PostgreSQL type, written as SQL."""
    name = f"clinic.made{next(_NUMBERS)}"
    rows = ", ".join(f"({i}, {value})" for i, value in enumerate(values))
    database().execute(f"CREATE TABLE {name} (i int, x {kind})", f"INSERT INTO {name} VALUES {rows}")
    return Place(name)


def read(place: Place, kind: Type, length: int | None = None) -> list[Any]:
    """The values of x, in the order of i."""
    engine = open_table(place, declare(length, i=Type.INTEGER, x=kind))
    number, column = Column("t", "i", Type.INTEGER), Column("t", "x", kind)
    asked = BoundedPlan(source=Scan("t"), keys=(number, column), domain=None, unit=None,
                        measures=(Measure(counts=Counts.ROWS),))  # fmt: skip
    return [key[1] for key in engine.run(asked, salt=SALT).keys]


STORED: list[tuple[str, tuple[str, ...], Type, list[Any]]] = [
    ("smallint", ("-32768", "NULL"), Type.INTEGER, [-32768, None]),
    ("bigint", ("9223372036854775807", "-9223372036854775808"), Type.INTEGER, [2**63 - 1, -(2**63)]),
    ("real", ("'NaN'", "'Infinity'", "0.5", "'-0'"), Type.REAL, [None, LARGEST_REAL, 0.5, 0.0]),
    ("float8", ("'-Infinity'", "5e-324", "'-0'"), Type.REAL, [-LARGEST_REAL, 5e-324, 0.0]),
    ("numeric", ("1e400", "-1e400", "1e-400", "'NaN'", "'Infinity'", "0.1", "3e-324", "2e-324"), Type.REAL,
     [LARGEST_REAL, -LARGEST_REAL, 0.0, None, LARGEST_REAL, 0.1, 5e-324, 0.0]),
    ("numeric(6,2)", ("1234.56",), Type.REAL, [1234.56]),
    ("numeric(20,0)", ("9223372036854775807", "9223372036854775808", "-9223372036854775808", "'NaN'", "NULL", "2.5"),
     Type.INTEGER, [2**63 - 1, None, -(2**63), None, None, 3]),
    ("numeric(5,-2)", ("1234567",), Type.INTEGER, [1234600]),
    ("numeric(9)", ("7",), Type.REAL, [7.0]),
    ("numeric(9)", ("7",), Type.TEXT, ["7"]),
    ("varchar(9)", ("'a '", "'A'"), Type.TEXT, ["a ", "A"]),
    ("char(5)", ("'a'", "'a  '"), Type.TEXT, ["a", "a"]),
    ("uuid", ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",), Type.TEXT, ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("date", ("'infinity'", "'-infinity'", "'0001-01-01 BC'", "'10000-01-01'", "'9999-12-31'"), Type.DATE,
     [None, None, None, None, dt.date(9999, 12, 31)]),
    ("timestamp", ("'infinity'", "'294276-01-01'", "'4713-01-01 BC'", "'0001-01-01'"), Type.TIMESTAMP,
     [None, None, None, dt.datetime(1, 1, 1)]),  # noqa: DTZ001
    ("timestamptz", ("'infinity'", "'2024-01-02 08:30+09'", "'0001-01-01 00:00+00'", "'294276-01-01+00'"),
     Type.TIMESTAMP, [None, dt.datetime(2024, 1, 1, 23, 30), dt.datetime(1, 1, 1), None]),  # noqa: DTZ001
    ("timestamptz", ("'2024-01-02 08:30+09'",), Type.DATE, [dt.date(2024, 1, 1)]),
    ("boolean", ("true", "NULL"), Type.BOOLEAN, [True, None]),
    ("boolean", ("true", "NULL"), Type.TEXT, ["true", None]),
    ("text", ("'12'", "'x'", "'9223372036854775808'"), Type.INTEGER, [12, None, None]),
    ("text", ("'1e400'", "'1e-400'", "'-inf'", "'nan'"), Type.REAL, [LARGEST_REAL, 0.0, -LARGEST_REAL, None]),
    ("text", ("'2001-02-29'", "'2004-02-29'", "'1900-02-29'", "'0000-01-01'", "'2001-00-10'"), Type.DATE,
     [None, dt.date(2004, 2, 29), None, None, None]),
    ("text", ("'2001-12-31T23:59:59.5'", "'2001-12-31 24:00:00'", "'2001-12-31 23:59:60'", "'2001-12-31'"),
     Type.TIMESTAMP, [dt.datetime(2001, 12, 31, 23, 59, 59, 500000), None, None, dt.datetime(2001, 12, 31)]),  # noqa: DTZ001
    ("text", ("'T'", "'0'", "'yes'"), Type.BOOLEAN, [True, False, None]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "declared", "wanted"), STORED, ids=lambda part: str(part)[:20])
def test_stored_values_become_values_of_the_plan(kind: str, values: Any, declared: Type, wanted: Any) -> None:
    """Every stored type, its extremes, and texts that are declared as something else. Nothing raises."""
    assert read(make_table(kind, *values), declared) == wanted


def test_domains_and_enums_are_what_they_are_made_of() -> None:
    database().execute(
        "CREATE TYPE clinic.ward AS ENUM ('B', 'A')", "CREATE DOMAIN clinic.age AS int CHECK (value > 0)"
    )
    assert read(make_table("clinic.ward", "'A'", "'B'"), Type.TEXT) == ["A", "B"]
    assert read(make_table("clinic.age", "7"), Type.INTEGER) == [7]


def test_a_very_long_text_is_not_unpacked() -> None:
    """It is NULL like every text beyond its length, by its bytes alone."""
    assert read(make_table("text", "repeat('x', 100000000)", "'é'", "'éé'"), Type.TEXT, length=1) == [None, "é", None]


@pytest.fixture(scope="module")
def refused() -> None:
    own = database()
    own.execute(
        "CREATE TABLE clinic.plain (x int)",
        "CREATE VIEW clinic.seen AS SELECT 1 / x AS x FROM clinic.plain",
        "CREATE TABLE clinic.guarded (x int)",
        "ALTER TABLE clinic.guarded ENABLE ROW LEVEL SECURITY",
        "CREATE FOREIGN DATA WRAPPER elsewhere",
        "CREATE SERVER far FOREIGN DATA WRAPPER elsewhere",
        "CREATE FOREIGN TABLE clinic.far (x int) SERVER far",
        "CREATE TABLE clinic.parted (x int) PARTITION BY LIST (x)",
        "CREATE FOREIGN TABLE clinic.part PARTITION OF clinic.parted FOR VALUES IN (1) SERVER far",
        'CREATE TABLE clinic.twice (x int, "X" int)',
        "CREATE TABLE clinic.odd (x jsonb)",
        "CREATE TABLE clinic.hidden (x int)",
        f"REVOKE ALL ON clinic.hidden FROM {own.reader.split('//')[1].split('@')[0]}",
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("clinic.nowhere", "is not in the database"),
        ("clinic.seen", "is a view"),
        ("clinic.far", "is a foreign table"),
        ("clinic.parted", "has a part that is a foreign table"),
        ("clinic.guarded", "has row policies"),
        ("clinic.twice", "in capitals alone"),
        ("clinic.odd", "has a type that questions cannot use"),
        ("clinic.hidden", "no column 'x' that may be read"),
        ("plain", "must be a schema and a table"),
    ],
)
@pytest.mark.usefixtures("refused")
def test_what_could_fail_on_a_value_is_refused(table: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        open_table(Place(table), declare(x=Type.INTEGER))
    assert str(error.value).endswith("Nothing was charged.")


def test_a_materialised_view_is_a_table() -> None:
    place = make_table("int", "5")
    name = f"clinic.kept{next(_NUMBERS)}"
    database().execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM {place.path}")
    assert read(Place(name), Type.INTEGER) == [5]


def test_names_are_taken_as_they_stand() -> None:
    assert read_name('a."b.""c"', "t") == TableName("a", 'b."c')
    assert read_name("Clinic.Visits", "t").sql == '"Clinic"."Visits"'
    for wrong in ("a", "a.b.c", 'a."b', "a.", "", "a.b\0"):
        with pytest.raises(UsageError):
            read_name(wrong, "t")


def test_schemas_are_told_for_the_checklist() -> None:
    engine = open_table(make_table("numeric", "1"), declare(i=Type.INTEGER))
    assert engine.schema("t") == {"i": Type.INTEGER, "x": Type.REAL}


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("numeric(9,0)", Type.INTEGER), ("numeric(1000,0)", Type.INTEGER), ("numeric(3,-5)", Type.INTEGER),
     ("clinic.whole", Type.INTEGER), ("clinic.whole_again", Type.INTEGER), ("clinic.any_number", Type.REAL),
     ("numeric(9,1)", Type.REAL), ("numeric(1000,1000)", Type.REAL), ("numeric", Type.REAL)],
)  # fmt: skip
@pytest.mark.usefixtures("numbers")
def test_a_numeric_without_places_holds_integers(kind: str, wanted: Type) -> None:
    """As decimals do on every other engine; domains are looked through."""
    engine = open_table(make_table(kind, "NULL"), declare(i=Type.INTEGER))
    assert engine.schema("t")["x"] is wanted


@pytest.fixture(scope="module")
def numbers() -> None:
    database().execute(
        "CREATE DOMAIN clinic.whole AS numeric(7)",
        "CREATE DOMAIN clinic.whole_again AS clinic.whole",
        "CREATE DOMAIN clinic.any_number AS numeric",
    )


def test_a_declared_release_is_the_version() -> None:
    place = make_table("int", "1")
    source = TableSource(kind=SourceKind.POSTGRES, path=place.path, release="2024-06")
    engine = PostgresEngine({"t": source}, declare(x=Type.INTEGER), address=database().reader)
    database().execute(f"INSERT INTO {place.path} VALUES (2, 2)")
    assert engine.version("t") == "release 2024-06"


def test_versions_move_with_every_write_and_with_nothing_else() -> None:
    place = make_table("int", "1")
    engine = open_table(place, declare(x=Type.INTEGER))
    first = engine.version("t")
    assert engine.version("t") == first
    database().execute(f"INSERT INTO {place.path} VALUES (2, 2)")
    assert engine.version("t") != first


@pytest.mark.parametrize("address", ["postgresql://nobody:hidden-word@127.0.0.1:1/x", "no address at all"])
def test_an_address_is_never_shown(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """The words of a refusal name the variable and not what it holds; the driver's words go to the log."""
    monkeypatch.setenv(ADDRESS, address)
    with caplog.at_level(logging.ERROR, "discreet.curator"), pytest.raises(UsageError, match=ADDRESS) as error:
        PostgresEngine({"t": Place("clinic.x")}, declare(x=Type.INTEGER))
    assert "hidden-word" not in str(error.value) and "no address at all" not in str(error.value)
    assert error.value.__cause__ is None and error.value.__context__ is None
    assert capfd.readouterr() == ("", "")
    monkeypatch.delenv(ADDRESS)
    with pytest.raises(UsageError, match=f"set {ADDRESS}"):
        PostgresEngine({"t": Place("clinic.x")}, declare(x=Type.INTEGER))


def test_a_column_of_another_type_is_noticed_after_opening() -> None:
    """A type that changed would be cast in a way that fails on values: the question ends by its constant sentence."""
    place = load(pa.table({"i": [1], "x": [5]}))
    engine = open_table(place, declare(i=Type.INTEGER, x=Type.INTEGER))
    database().execute(f"ALTER TABLE {place.path} ALTER x TYPE jsonb USING to_jsonb(x)")
    asked = BoundedPlan(source=Scan("t"), keys=(Column("t", "x", Type.INTEGER),), domain=None, unit=None,
                        measures=(Measure(counts=Counts.ROWS),))  # fmt: skip
    with pytest.raises(Exception, match="could not be completed"):
        engine.run(asked, salt=SALT)
