"""Synthetic rows: finds out who was in the data, from rows that were made up.

Rows that a generator made up are nobody's rows. But a generator that fits exact tables tells those tables, and a person
who is the only one of a kind in a town is in them. What protects is the noise in what the generator learned.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from discreet import publish
from discreet.attacks.fiction import make_coins, make_frame, make_numbers
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.exact import Flags, Floats, Integers
from discreet.opening import curate
from discreet.privacy import Budget

NEIGHBOURS = 20
LESSON = (
    "Made-up rows that fit exact tables give away everybody who is the only one of a kind. Rows that fit noisy tables "
    "do not, and neither do the noisy tables beside them."
)


def run(*, towns: int = 600) -> Outcome:
    """Guess for each town whether the one person with the rare trait is in the data."""
    inside = make_coins("rare people", towns)
    town, rare = _make_people(inside)
    naive = _make_up_rows(town, rare, towns)
    rows, tables = _publish(town, rare, towns)
    rates = {
        "rows that fit exact tables": Rate.agreement(naive > 0, inside),
        "rows of discreet": Rate.agreement(rows > 0, inside),
        "its noisy tables": Rate.agreement(tables > 1 / 2, inside),
    }
    return Outcome(
        name="synthetic-rows",
        raw=rates["rows that fit exact tables"],
        private=rates["its noisy tables"],
        lesson=LESSON,
        bars=tuple(Bar(label=label, rate=rate) for label, rate in rates.items()),
        facts={"towns": towns, "people in each town": NEIGHBOURS},
    )


def _make_people(inside: Flags) -> tuple[Integers, Flags]:
    """In each town twenty people without the trait, and where the coin says so one with it."""
    towns = np.arange(len(inside))
    town = np.concatenate([np.repeat(towns, NEIGHBOURS), towns[inside]])
    return town, np.arange(len(town)) >= NEIGHBOURS * len(inside)


def _make_up_rows(town: Integers, rare: Flags, towns: int) -> Integers:
    """A generator without noise: it learns each town's share of the trait and makes up as many rows with it."""
    shares = np.bincount(town[rare], minlength=towns) / np.bincount(town, minlength=towns)
    made = np.bincount(town, minlength=towns) * shares
    return np.asarray(np.round(made).astype(np.int64))


def _publish(town: Integers, rare: Flags, towns: int) -> tuple[Integers, Floats]:
    """How many rows of a release have the trait, in each town; and what its table says of that, without bias."""
    income = make_numbers("incomes", len(town), 5)
    people = make_frame(
        {"person": np.arange(len(town)), "town": town, "trait": rare.astype(np.int64), "income": income}
    )
    keys: dict[str, Any] = {"town": range(towns), "trait": (0, 1), "income": range(5)}
    curator = curate(
        {"people": people}, budget=Budget(epsilon=EPSILON, delta=1e-9), unit="person", max_rows=1, keys=keys
    )
    # No size is stated, so that no table is left out: that is best for the attacker.
    plan = {"name": "people", "table": "people", "columns": list(keys), "epsilon": EPSILON}
    with curator, tempfile.TemporaryDirectory() as folder:
        bundle = publish(plan, curator=curator, out=Path(folder) / "bundle")
        rows = bundle.synthetic.to_arrow()
        table = bundle.table("town", "trait")
    seen = np.array(rows.column("trait").to_pylist(), dtype=object) == 1
    where = np.array([-1 if t is None else t for t in rows.column("town").to_pylist()], dtype=np.int64)
    kept = where[seen & (where >= 0)]
    values = dict(zip(zip(table["town"].to_pylist(), table["trait"].to_pylist()), table["value"].to_pylist()))
    return np.bincount(kept, minlength=towns), np.array([values[str(t), "1"] for t in range(towns)])
