"""The questions of the attackers: they ask a curator, like any analyst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from discreet.curator import Curator
from discreet.exact import Integers
from discreet.opening import curate
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
