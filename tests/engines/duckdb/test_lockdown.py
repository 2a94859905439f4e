"""The connection of the DuckDB engine is closed to everything but the question's own tables (checklist 26)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from discreet.engines.duckdb.session import Session, Settings
from discreet.engines.duckdb.sources import Frame


def session(tmp_path: Path, **columns: list[Any]) -> Session:
    settings = Settings(threads=1, memory_limit="200MB", temp_directory=tmp_path / "spill")
    return Session(settings, [Frame(pa.table(columns), number=0)])


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM '{file}'",
        "COPY (SELECT 1) TO '{file}.out'",
        "ATTACH '{file}.db' AS other",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 8",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "SELECT * FROM local_frame",
        "CREATE PERSISTENT SECRET s (TYPE http)",
        "SELECT getenv('HOME')",
    ],
)
def test_26_the_connection_has_no_side_doors(statement: str, tmp_path: Path) -> None:
    """Files, settings, extensions and variables of the program stay closed, even for SQL that we would never write."""
    import duckdb

    file = tmp_path / "other.csv"
    file.write_text("a\n1\n")
    local_frame = pa.table({"a": [1]})
    with session(tmp_path, a=[1]) as locked:
        assert locked.run('SELECT a FROM "frame 0"') == [(1,)]
        with pytest.raises(duckdb.Error):
            locked.run(statement.format(file=file))
    assert local_frame.num_rows == 1 and sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["other.csv"]
