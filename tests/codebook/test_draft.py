"""A first codebook from a schema: names and types only, blanks where a person must decide, always TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.codebook import Codebook
from discreet.codebook.codebook import TableSource
from discreet.codebook.data_files import DataFiles, inspect, name_table
from discreet.codebook.draft import Choices, draft
from discreet.errors import CodebookError, UsageError
from discreet.plan.csv_form import CsvForm
from discreet.plan.source_kinds import SourceKind
from discreet.plan.types import Type

TABLE = pa.table({"patient_id": [1], "age": [41], "cost": [1.5], "ward": ["Marker Ward"], "tags": [["x"]]})
CHOICES = Choices(unit="patient_id", max_rows="10", epsilon="1.5", delta="1e-9")


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "Visits 2024.parquet")
    return tmp_path / "Visits 2024.parquet"


def test_a_complete_draft_is_a_codebook(parquet: Path) -> None:
    """With all questions answered, the draft loads and points at the data."""
    folder = parquet.parent / "books"
    text = draft(inspect(str(parquet)), CHOICES, folder)
    book = Codebook.read(text, folder / "visits.toml")
    assert Path(book.sources["visits_2024"].path).resolve() == parquet
    columns = book.catalog().find_table("visits_2024").columns
    assert {name: kind for name, (kind, _) in columns.items()} == {
        "patient_id": "integer", "age": "integer", "cost": "real", "ward": "text",
    }  # fmt: skip
    assert "# tags: of a kind that questions cannot use" in text
    assert str(book.budget) == "Budget(ε = 1.5 at δ = 1e-09)"


def test_blanks_are_refused(parquet: Path) -> None:
    """What was not said is a blank, and a codebook with blanks does not load."""
    text = draft(inspect(str(parquet)), Choices(), parquet.parent)
    with pytest.raises(CodebookError) as caught:
        Codebook.read(text)
    entries = [problem.entry for problem in caught.value.problems]
    assert entries == ["unit", "budget.epsilon", "tables.visits_2024.max_rows"]


def test_no_value_of_the_data_is_in_the_draft(parquet: Path) -> None:
    """The one text value of the table does not appear."""
    assert "Marker" not in draft(inspect(str(parquet)), Choices(), parquet.parent)


def test_rows_need_no_limit_and_rho_no_epsilon(parquet: Path) -> None:
    """A row unit has no max_rows; a budget in ρ has no ε."""
    book = Codebook.read(draft(inspect(str(parquet)), Choices(unit="row", rho="0.1"), parquet.parent))
    assert book.unit.column is None and book.budget.notion == "zcdp"


def test_csv_reads_the_header_only(tmp_path: Path) -> None:
    """All columns are text, the page says so, and broken rows below the header are not seen."""
    file = tmp_path / "visits.csv"
    file.write_bytes('\ufeffpatient_id,"a,ge",ward\n'.encode() + b"\xff\xfe not even text\n")
    found = inspect(str(file))
    assert found.tables == {"visits": dict.fromkeys(("patient_id", "a,ge", "ward"), Type.TEXT)} and found.untyped == [
        "visits"
    ]
    text = draft(found, CHOICES, tmp_path)
    assert "only the header" in text and '"a,ge" = { type = "text" }' in text
    assert Codebook.read(text, tmp_path / "x.toml").sources["visits"] == TableSource(
        kind=SourceKind.CSV, path=str(file), form=CsvForm()
    )


@pytest.mark.parametrize(
    "line",
    ["17,Marker,40", "Marker,2020-01-31", "Marker,", "Marker,Marker", "Marker,01/02/1970", "Marker,a@b.org",
     "true,Marker", "Marker,-1.5e3", "Marker,1 234", "Marker,12:30", "Marker,2020-01-01T10:00:00Z", "",
     '"1","Marker"', "$5,Marker"],
)  # fmt: skip
def test_a_row_in_place_of_a_header_is_refused(line: str, tmp_path: Path) -> None:
    """A person's values must not become names in a public file, nor be quoted in the refusal."""
    file = tmp_path / "visits.csv"
    file.write_text(f"{line}\n18,Other,41\n")
    with pytest.raises(UsageError, match="looks like a row") as caught:
        inspect(str(file))
    assert "Marker" not in str(caught.value) and "--header" in str(caught.value)
    if line:
        assert inspect(str(file), header=True).tables
    else:  # no names at all
        with pytest.raises(UsageError, match="looks like a row"):
            inspect(str(file), header=True)


def test_real_headers_are_taken(tmp_path: Path) -> None:
    """Names may have digits, spaces and signs."""
    file = tmp_path / "visits.csv"
    file.write_text("patient_id,age 2020,q1,1st visit,cost (EUR),e,t1,Größe,x.y\n")
    assert len(inspect(str(file)).tables["visits"]) == 9


def test_broken_headers_are_our_own_errors(tmp_path: Path) -> None:
    file = tmp_path / "visits.csv"
    for line in (b"a\rb\n", b'a,"b\n', b"\0\n"):
        file.write_bytes(line)
        with pytest.raises(UsageError, match="cannot be read"):
            inspect(str(file))


def test_duckdb_files_have_many_tables(tmp_path: Path) -> None:
    """Every table of the file is declared; units can only be columns that all of them have."""
    file = tmp_path / "hospital.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute('CREATE TABLE visits (patient_id BIGINT, day DATE, "odd ""name" ENUM (\'a\'))')
        connection.execute("CREATE TABLE lab (patient_id BIGINT, value DECIMAL(9, 2), raw BLOB)")
    found = inspect(str(file))
    assert found.tables["lab"] == {"patient_id": Type.INTEGER, "value": Type.REAL, "raw": None}
    assert found.tables["visits"]['odd "name'] == Type.TEXT
    assert found.columns == ["patient_id"]
    book = Codebook.read(draft(found, CHOICES, tmp_path), tmp_path / "x.toml")
    assert book.sources["lab"] == TableSource(kind=SourceKind.DUCKDB, path=str(file), table="lab")


def several(folder: Path) -> DataFiles:
    tables = {
        "patients": pa.table({"patient_id": [1], "sex": ["f"]}),
        "visits": pa.table({"visit_id": [1], "patient_id": [1], "ward": ["Marker"]}),
        "labs": pa.table({"lab_id": [1], "visit_id": [1], "value": [1.5]}),
        "wards": pa.table({"ward": ["Marker"], "beds": [3]}),
    }
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return inspect(*(str(folder / f"{name}.parquet") for name in tables))


def test_several_files(tmp_path: Path) -> None:
    """Each file is a table with its own source; relations are proposed, and nothing is decided."""
    found = several(tmp_path)
    text = draft(found, Choices(unit="patients.patient_id", max_rows="9", epsilon="1"), tmp_path)
    assert '# foreign_keys = { visit_id = "visits.visit_id" }' in text.partition("[tables.labs]")[2]
    assert (
        '# foreign_keys = { ward = "wards.ward" }' in text.partition("[tables.visits]")[2].partition("[tables.labs]")[0]
    )
    assert text.count("# public = true") == 2 and text.count("do not name the unit") == 2 and "Marker" not in text
    assert "patients.patient_id" not in text.partition("[tables.patients]")[2]
    with pytest.raises(CodebookError) as caught:
        Codebook.read(text)
    assert [problem.entry for problem in caught.value.problems] == ["tables.labs.columns", "tables.wards.columns"]
    decided = text.replace('# foreign_keys = { visit_id = "visits', 'foreign_keys = { visit_id = "visits')
    head, _, wards = decided.partition("[tables.wards]")
    book = Codebook.read(
        head + "[tables.wards]" + wards.replace("# public", "public").replace("max_rows", "# max_rows")
    )
    assert book.catalog().tables["labs"].link is not None and book.catalog().tables["wards"].public
    assert book.name == "patients" and len(book.sources) == 4


def test_what_to_propose_as_the_unit(tmp_path: Path) -> None:
    """Columns about people first, then other identities; and any column by its full name."""
    found = several(tmp_path)
    assert found.columns == [] and found.likely[:3] == ["patients.patient_id", "visits.patient_id", "visits.visit_id"]
    assert not {"labs.value", "wards.beds"} & set(found.likely)
    assert "labs.value" in found.units
    two = inspect(str(tmp_path / "patients.parquet"), str(tmp_path / "visits.parquet"))
    assert two.likely == ["patient_id"] and "visits.ward" in two.units


def test_ids_by_the_name_of_their_table() -> None:
    """``patient_id`` may be the id of patients; ids of two tables, or of other types, are unrelated."""
    tables: dict[str, dict[str, Type | None]] = {
        "patients": {"name": Type.TEXT, "id": Type.INTEGER},
        "visits": {"id": Type.INTEGER, "patient_id": Type.INTEGER, "name": Type.INTEGER},
    }
    found = DataFiles(tables, dict.fromkeys(tables, TableSource(kind=SourceKind.PARQUET, path="x.parquet")))
    text = draft(found, Choices(unit="patients.id"), Path())
    assert text.count("# foreign_keys") == 1 and '# foreign_keys = { patient_id = "patients.id" }' in text
    assert "do not name the unit" in text.partition("[tables.visits]")[2]
    assert "do not name" not in draft(found, Choices(), Path()) and "do not" not in draft(
        found, Choices(unit="row"), Path()
    )


def test_two_files_of_one_name(tmp_path: Path) -> None:
    """They would be one table under one name: refused."""
    (tmp_path / "visits.csv").write_text("a\n")
    pq.write_table(TABLE, tmp_path / "Visits.parquet")
    with pytest.raises(UsageError, match=r"Two files would be the table 'visits'.*charged\.$"):
        inspect(str(tmp_path / "visits.csv"), str(tmp_path / "Visits.parquet"))


def test_a_database_beside_a_file(tmp_path: Path) -> None:
    """Tables of a DuckDB file then name it one by one."""
    with duckdb.connect(str(tmp_path / "hospital.duckdb")) as connection:
        connection.execute("CREATE TABLE visits (patient_id BIGINT)")
    (tmp_path / "notes.csv").write_text("patient_id,text\n")
    found = inspect(str(tmp_path / "hospital.duckdb"), str(tmp_path / "notes.csv"))
    text = draft(found, CHOICES, tmp_path)
    assert text.count("only the header") == 1 and found.untyped == ["notes"]
    sources = Codebook.read(text.replace('"text" }', '"integer" }', 1), tmp_path / "x.toml").sources
    assert sources["visits"].table == "visits" and sources["notes"].kind == "csv"


def test_patterns_take_the_schema_of_the_first_file(parquet: Path) -> None:
    """A pattern stays a pattern in the codebook, and the table is called after it, not after one of its files."""
    found = inspect(str(parquet.parent / "Visits*.parquet"))
    book = Codebook.read(draft(found, CHOICES, parquet.parent), parquet.parent / "x.toml")
    assert book.sources["visits"].path.endswith("*.parquet")
    assert name_table("/srv/*/*.csv") == "srv" and name_table("*.csv") == "data" == name_table("???.parquet")


@pytest.mark.parametrize("name", ["missing.parquet", "data.xlsx", "broken.parquet", "broken.duckdb", "binary.csv"])
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    """Missing, unknown and broken files are refused, without quoting what is in them."""
    if name != "missing.parquet":
        (tmp_path / name).write_bytes(b"\xff\xfeMarker" * 100)
    with pytest.raises(UsageError, match=r"charged\.$") as caught:
        inspect(str(tmp_path / name))
    assert "Marker" not in str(caught.value)


def test_only_the_footer_of_a_parquet_file_is_read(tmp_path: Path) -> None:
    """With every byte of the data pages overwritten, the draft is the same."""
    file = tmp_path / "visits.parquet"
    pq.write_table(TABLE, file)
    before = draft(inspect(str(file)), CHOICES, tmp_path)
    raw = bytearray(file.read_bytes())
    footer = int.from_bytes(raw[-8:-4], "little") + 8
    raw[4:-footer] = b"\x00" * (len(raw) - 4 - footer)
    file.write_bytes(bytes(raw))
    assert draft(inspect(str(file)), CHOICES, tmp_path) == before


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=5, unique_by=str.lower))
@settings(deadline=None, max_examples=100)
def test_any_names_make_toml(names: list[str]) -> None:
    """Quotes, newlines, hashes and emoji in names cannot break out of their place."""
    schema = {**dict.fromkeys(names, Type.INTEGER), "patient_id": Type.INTEGER, "zz hidden\n#": None}
    other = f"{names[0]}s"
    tables: dict[str, dict[str, Type | None]] = {names[0]: schema, other: dict.fromkeys(names, Type.INTEGER)}
    found = DataFiles(tables, dict.fromkeys(tables, TableSource(kind=SourceKind.PARQUET, path="data.parquet")))
    raw = tomllib.loads(draft(found, CHOICES, Path()))
    assert raw["tables"].keys() == {names[0], other}
    assert set(raw["tables"][names[0]]["columns"]) == {*names, "patient_id"}
    # What is proposed in comments is TOML, too.
    text = "\n".join(line.removeprefix("# ") for line in draft(found, CHOICES, Path()).splitlines() if "_keys" in line)
    assert all(isinstance(target, str) for target in tomllib.loads(text.partition("\n")[0])["foreign_keys"].values())
