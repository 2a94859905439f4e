"""One table says which engine reads which kind of source; what is unknown is refused with what exists."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from discreet.codebook import TableSource
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.registry import DUCKDB, ENGINES, RegisteredEngine, find_engine, open_engine
from discreet.errors import UsageError
from discreet.plan.catalog import Catalog
from discreet.plan.source_kinds import ENDINGS, SourceKind, kind_of_path, kind_of_source
from discreet.privacy import Neighbours

NOTHING = Catalog(tables={}, neighbours=Neighbours.ADD_REMOVE)
SOURCE = Path(__file__).resolve().parents[2] / "src" / "discreet"


@dataclass(frozen=True)
class Place:
    """As a codebook names a source."""

    kind: str
    path: str = "somewhere"


def test_every_kind_has_an_engine() -> None:
    assert set(ENGINES) == set(SourceKind)
    assert set(ENDINGS.values()) == set(SourceKind) - {SourceKind.FRAME, SourceKind.POSTGRES, SourceKind.SPARK}


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("a/b.parquet", SourceKind.PARQUET),
        (Path("part-*.PQ"), SourceKind.PARQUET),
        ("v.csv", SourceKind.CSV),
        ("v.db", SourceKind.DUCKDB),
        (Place("duckdb"), SourceKind.DUCKDB),
        (pa.table({"a": [1]}), SourceKind.FRAME),
        ([{"a": 1}], SourceKind.FRAME),
    ],
    ids=str,
)
def test_kinds_of_sources(source: Any, kind: SourceKind) -> None:
    assert kind_of_source(source, "t") is kind
    assert find_engine({"t": source}) is DUCKDB


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("v.docx", "'v.docx' is of a kind that questions cannot read. Use .parquet, .csv or .duckdb"),
        (Place("oracle"), "'oracle', which is not known. There are parquet, csv, duckdb, postgres, spark, frame"),
    ],
)
def test_unknown_kinds_are_refused(source: Any, words: str) -> None:
    assert kind_of_path("v.docx") is None
    with pytest.raises(UsageError, match=re.escape(words)) as refused:
        open_engine({"t": source}, NOTHING)
    assert str(refused.value).endswith("Nothing was charged.")


def test_kinds_without_an_engine_are_refused_with_those_that_have_one() -> None:
    only = {SourceKind.CSV: DUCKDB, SourceKind.FRAME: DUCKDB}
    with pytest.raises(UsageError, match=r"There are engines for csv, frame\. Nothing was charged"):
        find_engine({"t": "v.parquet"}, only)


def test_where_spark_runs_makes_it_read_files() -> None:
    source = TableSource(kind=SourceKind.PARQUET, path="t.parquet", address="spark://host:7077")
    assert find_engine({"t": source}).name == "spark"
    assert find_engine({"t": TableSource(kind=SourceKind.PARQUET, path="t.parquet")}).name == "duckdb"


def test_one_dataset_has_one_engine() -> None:
    """Tables that would need two engines are refused; where there are none, the embedded one answers."""
    another = RegisteredEngine("another", DUCKDB.open, DUCKDB.count_unread)
    both = {**ENGINES, SourceKind.CSV: another}
    with pytest.raises(UsageError, match=re.escape("'a' and 'b' need different engines (duckdb, another)")):
        find_engine({"a": "v.parquet", "b": "v.csv"}, both)
    assert find_engine({"b": "v.csv"}, both) is another
    assert find_engine({}) is DUCKDB


def test_an_engine_is_opened() -> None:
    engine = open_engine({"t": pa.table({"a": [1]})}, NOTHING, threads=1)
    assert isinstance(engine, DuckDBEngine) and list(engine.schema("t")) == ["a"]
    engine.close()


# Nobody needs to name an engine: values and the contract are in ``engine``, and the registry opens one.
NAMED = re.compile(r"^\s*(?:from|import) +discreet\.engines\.(?:duckdb|memory|sql)\b", re.MULTILINE)


def test_nobody_else_names_an_engine() -> None:
    """Openers, the command line and the codebook ask the registry.

    Only the audit goes by the engines themselves: it compares them with the oracle, and plants bugs in them.
    """
    files = [path for path in SOURCE.rglob("*.py") if {"engines", "audit"}.isdisjoint(path.relative_to(SOURCE).parts)]
    assert len(files) > 100 and [path.name for path in files if NAMED.search(path.read_text())] == []
    assert NAMED.search("def f():\n    from discreet.engines.duckdb.engine import DuckDBEngine\n")
    assert not NAMED.search("from discreet.engines.registry import open_engine  # not discreet.engines.duckdb\n")


def test_engines_load_late() -> None:
    """Neither the registry nor the openers load DuckDB before a source is opened."""
    words = "import sys, discreet.opening, discreet.engines.registry; assert 'duckdb' not in sys.modules"
    late = f"{words}; import pyarrow as pa; from tests.engines.test_registry import NOTHING, open_engine"
    late += "; open_engine({'t': pa.table({'a': [1]})}, NOTHING).schema('t'); assert 'duckdb' in sys.modules"
    subprocess.run([sys.executable, "-c", late], check=True, cwd=SOURCE.parents[1])  # noqa: S603  # our own words
