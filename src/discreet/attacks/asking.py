"""The questions of the attackers: they ask a curator, like any analyst, or a plain engine without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.outcome import EPSILON
from discreet.curator import Curator
from discreet.errors import DiscreetError
from discreet.exact import Flags, Integers
from discreet.opening import curate, open_codebook
from discreet.privacy import Budget


def curator_of(
    table: Any, *, epsilon: Any, keys: Mapping[str, Iterable[Any]], max_rows: int = 1, **declared: Any
) -> Curator:
    """A curator of one table, ``people``, that protects one person with a budget of ``epsilon``."""
    budget = Budget(epsilon=epsilon)
    return curate({"people": table}, budget=budget, unit="person", max_rows=max_rows, keys=keys, **declared)


def ask_column(
    curator: Curator, sql: str, name: str = "n", *, by: tuple[str, ...] = ("town",), **offer: Any
) -> Integers:
    """One measured column of an answer, in the order of its keys."""
    return ask_columns(curator, sql, [name], by=by, **offer)[0]


def ask_columns(
    curator: Curator, sql: str, names: Iterable[str], *, by: tuple[str, ...] = ("town",), **offer: Any
) -> list[Integers]:
    """Measured columns of an answer, in the order of its keys."""
    table = curator.ask(sql, **offer).table
    order = np.lexsort([np.asarray(table[key].to_pylist()) for key in reversed(by)])
    return [np.asarray(table[name].to_numpy())[order] for name in names]


def write_codebook(file: Path, columns: Mapping[str, str], keys: Mapping[str, Iterable[int]] | None = None) -> Path:
    """A codebook beside a file of people, with a budget of ``EPSILON`` for one person."""
    listed = "".join(
        f'{name} = {{ type = "{kind}"' + (f", keys = {list(keys[name])}" if keys and name in keys else "") + " }\n"
        for name, kind in columns.items()
    )
    book = file.with_suffix(".toml")
    book.write_text(
        f'name = "people"\nunit = "person"\n[budget]\nepsilon = {EPSILON}\n[tables.people]\n'
        f'source = {{ {file.suffix[1:]} = "{file.name}" }}\nmax_rows = 1\n[tables.people.columns]\n{listed}'
    )
    return book


def open_file(file: Path, columns: Mapping[str, str]) -> Curator:
    """A curator of a file, with a codebook that is written beside it."""
    return open_codebook(write_codebook(file, columns))


def fails_in_engine(table: Any, questions: Sequence[str], *, memory: str = "1GB") -> Flags:
    """Which questions fail where the errors of the engine are shown."""
    import duckdb

    with duckdb.connect(config={"memory_limit": memory, "threads": 1, "temp_directory": ""}) as engine:
        engine.register("people", table)
        return np.array([_fails(engine, question) for question in questions])


def _fails(engine: Any, question: str) -> bool:
    import duckdb

    try:
        engine.execute(question).fetchall()
    except duckdb.Error:
        return True
    return False


def fails_at_curator(table: Any, questions: Sequence[str]) -> Flags:
    """Which questions fail or are refused at the curator, where each has an equal share of the budget."""
    failed = []
    with curator_of(table, epsilon=EPSILON, keys={}) as curator:
        for question in questions:
            try:
                curator.ask(question, epsilon=Fraction(EPSILON, len(questions)))
                failed.append(False)
            except DiscreetError:
                failed.append(True)
    return np.array(failed)
