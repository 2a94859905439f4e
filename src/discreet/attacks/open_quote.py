"""Open quote: one person's field begins with a quote that never ends, and the rest of the file belongs to that field.

A reader of CSV takes everything up to the next quote for one value. So one person moves a count by thousands, and noise
that was made for one person does not hide it. In discreet one line of a file is one row: a line that cannot be read is
left out, alone.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from discreet.attacks.asking import open_file
from discreet.attacks.fiction import make_coins
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.mechanisms.laplace import Laplace

LINES = 2000
COLUMNS = {"person": "integer", "note": "text", "age": "integer"}
LESSON = (
    "The noise is for one person, but a quote of one person takes two thousand rows away. discreet reads lines one by "
    "one; the line with the quote is the only one that is lost."
)


def run(*, files: int = 10) -> Outcome:
    """Guess for each file whether the person with the quote is in it, from one noisy count."""
    there = make_coins("quotes", files)
    with tempfile.TemporaryDirectory() as folder:
        written = [_write_file(Path(folder) / str(i), strange=bool(one)) for i, one in enumerate(there)]
        naive = np.array([_count_naively(file) for file in written])
        ours = np.array([_count_here(file) for file in written])
    raw, private = (Rate.agreement(counts < LINES / 2, there) for counts in (naive, ours))
    return Outcome(
        name="open-quote",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="plain reader, with noise", rate=raw), Bar(label="discreet", rate=private)),
        facts={"lines": LINES, "smallest naive count": int(naive.min()), "smallest count here": int(ours.min())},
    )


def _write_file(folder: Path, *, strange: bool) -> Path:
    folder.mkdir()
    first = '0,"open,40\n' if strange else "0,shut,40\n"
    lines = "".join(f"{i},n{i % 9},{i % 90}\n" for i in range(1, LINES))
    file = folder / "people.csv"
    file.write_text(f"{','.join(COLUMNS)}\n{first}{lines}")
    return file


def _count_naively(file: Path) -> int:
    """A count with the right noise for one person, over what a plain reader makes of the file."""
    import duckdb

    types = ", ".join(f"'{name}': 'VARCHAR'" for name in COLUMNS)
    read = f"read_csv('{file}', header = true, auto_detect = false, columns = {{{types}}}, ignore_errors = true)"
    with duckdb.connect() as engine:
        ((count,),) = engine.execute(f"SELECT COUNT(*) FROM {read}").fetchall()
    return int(Laplace(sensitivity=1, epsilon=EPSILON).release(count))


def _count_here(file: Path) -> int:
    with open_file(file, COLUMNS) as curator:
        return int(curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=EPSILON).table["n"][0].as_py())
