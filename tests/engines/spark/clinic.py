"""A clinic in Parquet files, and questions about it, for tests that ask Spark through a curator."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.curator import Curator

PLANTED = "planted-9f3a"
ROWS = 3000
CODEBOOK = """
name = "clinic"
unit = "{unit}"
[budget]
epsilon = 2
[engine]
spark = "{address}"
[tables.visits]
source = "visits.parquet"
{limits}
[tables.visits.columns]
patient_id = "integer"
ward = {{ type = "text", keys = ["A", "B"] }}
days = {{ type = "integer", bounds = [0, 30] }}
note = "text"
"""
QUESTION = "SELECT ward, COUNT(*) AS n, AVG(days) AS days FROM visits WHERE length(note) > 2 GROUP BY ward"
SENTENCE = "The question could not be completed. The charge stands; the curator's log has details."


def write_clinic(
    folder: Path, *, address: str = "local[2]", unit: str = "patient_id", limits: str = "max_rows = 3", files: int = 1
) -> Path:
    """The path of a codebook, beside its data."""
    rows = range(ROWS)
    table = pa.table(
        {
            "patient_id": [i // 4 for i in rows],
            "ward": ["A" if i % 3 else "B" for i in rows],
            "days": [i % 40 for i in rows],
            "note": [f"{PLANTED} {i}" for i in rows],
        }
    )
    source = "visits.parquet" if files == 1 else "visits-*.parquet"
    for number in range(files):
        name = source.replace("*", f"{number:03}")
        pq.write_table(table.slice(number * ROWS // files, ROWS // files), folder / name)
    path = folder / "clinic.toml"
    text = CODEBOOK.format(unit=unit, limits=limits, address=address)
    path.write_text(text.replace("visits.parquet", source))
    return path


def find_left(curator: Curator) -> float:
    """What is left of the budget, in ε."""
    found = re.search(r"[0-9.]+", curator.remaining)
    assert found is not None
    return float(found[0])
