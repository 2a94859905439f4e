"""The rows of an answer: put in key order, by the engine or here, and read into groups."""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.engine import Groups, key_order
from discreet.engines.lookups import list_public
from discreet.engines.sql.clauses import write_order
from discreet.engines.steps import round_totals
from discreet.plan.evaluate import settle


def sort_groups(query: str, keys: Sequence[str]) -> str:
    """An answer in the order of ``key_order``: the order in which an engine finds groups is that of the rows.

    The engine sorts, because it does so on disk where memory is short.
    """
    return f"SELECT * FROM ({query}) AS answer ORDER BY {', '.join(map(write_order, keys))}" if keys else query


def name_groups(found: Iterable[tuple[Any, ...]], bounded: BoundedPlan) -> list[tuple[Any, ...]]:
    """Rows that begin with the number of a public group, as rows that begin with its keys, in their order.

    For few groups: these are named and sorted here in less time than an engine takes to plan it.
    """
    names = [
        tuple(settle(value, key.type) for value, key in zip(group, bounded.keys)) for group in list_public(bounded)
    ]
    rows = [(*names[number], *totals) for number, *totals in found]
    return sorted(rows, key=lambda row: key_order(row[: len(bounded.keys)]))


def make_groups(found: Iterable[tuple[Any, ...]], bounded: BoundedPlan) -> Groups:
    """Groups from sorted rows that are read one by one, so that no more is in memory than the groups themselves.

    One unit adds at most as many as it has rows, with keys that are no longer than declared. Rows of one group are
    added up.
    """
    keys = len(bounded.keys)
    names: list[tuple[Any, ...]] = []
    values: list[list[int]] = [[] for _ in bounded.measures]
    for row in found:
        name = row[:keys]
        if names and names[-1] == name:
            for column, value in zip(values, row[keys:]):
                column[-1] += int(value)
        else:
            names.append(name)
            for column, value in zip(values, row[keys:]):
                column.append(int(value))
    rounded = (round_totals(bounded, measure, column) for measure, column in zip(bounded.measures, values))
    return Groups(tuple(names), tuple(map(tuple, rounded)))
