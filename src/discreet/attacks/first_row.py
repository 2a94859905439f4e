"""First row: a file without a header, and the values of its first person become the names of columns.

A codebook is public: analysts read it to know what they may ask. Who drafts one from a file takes the first line for
names. If there are none, it is a person's line, and it is published. discreet looks at the line and asks the owner,
without quoting it.
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import numpy as np

from discreet.attacks.fiction import make_coins
from discreet.attacks.outcome import Bar, Outcome, Rate
from discreet.codebook.data_files import inspect
from discreet.errors import UsageError

LESSON = (
    "A draft that believes the first line prints a patient's diagnosis. discreet refuses to draft from a line that "
    "looks like a row, and its words hold nothing of it; the owner says that the line has names, or adds one that does."
)


def run(*, files: int = 20) -> Outcome:
    """Guess the diagnosis of the first person in each file, from the public draft of a codebook."""
    ill = make_coins("first rows", files)
    with tempfile.TemporaryDirectory() as folder:
        written = [_write_file(Path(folder) / f"f{i}.csv", ill=bool(one)) for i, one in enumerate(ill)]
        naive, ours = [_draft_naively(file) for file in written], [_draft_here(file) for file in written]
    raw, private = (Rate.agreement(np.array(["positive" in text for text in texts]), ill) for texts in (naive, ours))
    refused = sum(not text.startswith("columns") for text in ours)
    return Outcome(
        name="first-row",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="first line as names", rate=raw), Bar(label="discreet", rate=private)),
        facts={"files": files, "refused by discreet": refused},
    )


def _write_file(file: Path, *, ill: bool) -> Path:
    rows = [f"{1000 + i},19{10 + i}-03-01,{('negative', 'positive')[ill if i == 0 else i % 2]}" for i in range(30)]
    file.write_text("\n".join(rows) + "\n")
    return file


def _draft_naively(file: Path) -> str:
    """The columns of a draft that takes the first line for names, as many programs do."""
    with file.open(newline="") as lines:
        return "columns: " + ", ".join(next(csv.reader(lines)))


def _draft_here(file: Path) -> str:
    """What is published: the names that a draft would have, or the words of a refusal."""
    try:
        found = inspect(str(file))
    except UsageError as error:
        return str(error)
    return "columns: " + ", ".join(name for schema in found.tables.values() for name in schema)
