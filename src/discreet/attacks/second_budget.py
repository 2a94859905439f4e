"""Second budget: the same data under another name, with a ledger of its own and the whole budget again.

A ledger that is found by the name of a file is lost when the name changes: by a link, a second name, a copy, or by
deleting it. Then the budget is whole again and the answers can be averaged. discreet follows links, refuses second
names and copies beside a ledger of the same dataset, and remembers apart from the ledger that there was one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

from discreet.attacks.asking import ask_column, write_codebook
from discreet.attacks.fiction import Register
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.errors import DiscreetError
from discreet.exact import Integers
from discreet.mechanisms.laplace import Laplace
from discreet.opening import open_codebook

COLUMNS = {"person": "integer", "town": "integer", "born": "integer"}
COST = Fraction(EPSILON, 2)  # of one answer of discreet: the one budget is for two
LESSON = (
    "Where a ledger goes by the name of a file, every new name is a new budget, and sixty of them are as good as no "
    "noise. discreet gives one budget to the data, under all of its names."
)


def run(*, towns: int = 400, names: int = 60) -> Outcome:
    """Guess for each town's mayor whether they are among the debtors, from the budgets of all names."""
    register = Register.of(towns)
    noise = Laplace(sensitivity=1, epsilon=EPSILON)
    naive = [np.asarray(noise.release(register.counts)) for _ in range(names)]  # one whole budget for each name
    ours, refused = _ask_here(register)
    raw, private = (
        Rate.agreement(np.mean(answers, axis=0) - register.others > 0.5, register.listed) for answers in (naive, ours)
    )
    return Outcome(
        name="second-budget",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="a budget for each name", rate=raw), Bar(label="discreet", rate=private)),
        facts={"budgets by name": names, "answers of discreet": len(ours), "names refused": refused},
    )


def _ask_here(register: Register) -> tuple[list[Integers], int]:
    """The answers that all names of one codebook get, and how many names got none."""
    import pyarrow.parquet as pq

    answers, refused = [], 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.parquet"
        pq.write_table(register.to_frame().select(list(COLUMNS)), file)
        book = write_codebook(file, COLUMNS, {"town": range(register.towns)})
        for number, rename in enumerate((_keep, _link, _copy, _link_twice, _forget)):
            # Other words every time, because the same words would get the same answer.
            sql = f"SELECT town, COUNT(*) AS n FROM people WHERE born > {1900 - number} GROUP BY town"
            try:
                with open_codebook(rename(book)) as curator:
                    answers.append(ask_column(curator, sql, epsilon=COST))
            except DiscreetError:
                refused += 1
    return answers, refused


def _keep(book: Path) -> Path:
    return book


def _link(book: Path) -> Path:
    link = book.with_name("link.toml")
    link.symlink_to(book)
    return link


def _copy(book: Path) -> Path:
    return Path(shutil.copy(book, book.with_name("copy.toml")))


def _link_twice(book: Path) -> Path:
    twin = book.with_name("twin.toml")
    os.link(book, twin)
    return twin


def _forget(book: Path) -> Path:
    book.with_name("twin.toml").unlink()
    book.with_suffix(".ledger").unlink()
    return book
