"""Bad bytes: one person's text is not UTF-8, and every question that reads the column fails with them in the data.

A file can hold any bytes in a column of text. A plain engine stops at the first that are no text, so whether a question
is answered tells whether that person is there. In discreet such a value is NULL, alone, and all else is as it was.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.asking import open_file
from discreet.attacks.fiction import make_coins
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.errors import DiscreetError

CONDITION = "note = 'n1'"
COLUMNS = {"person": "integer", "note": "text"}
LESSON = (
    "A plain engine cannot read the file if the person is in it, and says so. discreet reads what is text, makes NULL "
    "of the rest, and answers both files alike."
)


def run(*, files: int = 10) -> Outcome:
    """Guess for each file whether the person with the strange bytes is in it."""
    there = make_coins("bytes", files)
    with tempfile.TemporaryDirectory() as folder:
        written = [_write_file(Path(folder) / str(i), strange=bool(one)) for i, one in enumerate(there)]
        naive = np.array([_fails_in_engine(file) for file in written])
        ours = np.array([_fails_here(file) for file in written])
    raw, private = Rate.agreement(naive, there), Rate.agreement(ours, there)
    return Outcome(
        name="bad-bytes",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="plain engine", rate=raw), Bar(label="discreet", rate=private)),
        facts={"files": files, "failures of the engine": int(naive.sum()), "failures of discreet": int(ours.sum())},
    )


def _write_file(folder: Path, *, strange: bool) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    notes: list[Any] = [f"n{i % 9}".encode() for i in range(500)] + [b"\xff\xfe"] * strange
    texts = pa.array(notes, pa.binary()).cast(pa.string(), safe=False)
    pq.write_table(pa.table({"person": np.arange(len(notes)), "note": texts}), folder / "people.parquet")
    return folder / "people.parquet"


def _fails_in_engine(file: Path) -> bool:
    import duckdb

    with duckdb.connect() as engine:
        try:
            engine.execute(f"SELECT COUNT(*) FROM read_parquet('{file}') WHERE {CONDITION}").fetchall()
        except duckdb.Error:
            return True
    return False


def _fails_here(file: Path) -> bool:
    try:
        with open_file(file, COLUMNS) as curator:
            curator.ask(f"SELECT COUNT(*) AS n FROM people WHERE {CONDITION}", epsilon=EPSILON)
    except DiscreetError:
        return True
    return False
