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
from discreet.codebook.codebook import Source
from discreet.codebook.draft import Choices, Found, draft, inspect
from discreet.errors import CodebookError, UsageError
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
    columns = book.catalog().table("visits_2024").columns
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
    assert found.tables == {"visits": dict.fromkeys(("patient_id", "a,ge", "ward"), Type.TEXT)} and not found.typed
    text = draft(found, CHOICES, tmp_path)
    assert "Only the header" in text and '"a,ge" = { type = "text" }' in text
    assert Codebook.read(text, tmp_path / "x.toml").sources["visits"] == Source(kind="csv", path=str(file))


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
    assert book.sources["lab"] == Source(kind="duckdb", path=str(file), table="lab")


def test_patterns_take_the_schema_of_the_first_file(parquet: Path) -> None:
    """A pattern stays a pattern in the codebook."""
    found = inspect(str(parquet.parent / "*.parquet"))
    book = Codebook.read(draft(found, CHOICES, parquet.parent), parquet.parent / "x.toml")
    assert book.sources["visits_2024"].path.endswith("*.parquet")


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
    schema = dict.fromkeys(names, Type.INTEGER) | {"patient_id": Type.INTEGER, "zz hidden\n#": None}
    found = Found(Source(kind="parquet", path="data.parquet"), {names[0]: schema})
    raw = tomllib.loads(draft(found, CHOICES, Path()))
    assert raw["tables"].keys() == {names[0]}
    assert set(raw["tables"][names[0]]["columns"]) == {*names, "patient_id"}
