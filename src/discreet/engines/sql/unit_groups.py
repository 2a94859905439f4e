"""Groups of each unit's rows in SQL: one row for each, with features.

A unit may have any number of rows, and no aggregate may hold them all: memory would run out for that unit alone. So
medians are read from numbered rows, which engines sort on disk where memory is short, and reals are summed in steps
(``real_sums``). Where these are not public, the largest value of each group is found first and joined to the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from discreet.engines.sql import per_unit, real_sums
from discreet.engines.sql.clauses import Clauses, CommonTable, write_order
from discreet.plan.expressions import Column, Expression
from discreet.plan.real_steps import find_summed, is_stepped
from discreet.plan.relations import Feature, FeatureCall, JoinKind, PerUnit, Scan, split
from discreet.plan.types import Type


def write_groups(
    clauses: Clauses,
    relation: PerUnit,
    source: CommonTable,
    wanted: Mapping[Column, FeatureCall],
    needed: Set[Column],
) -> CommonTable:
    """The groups, with those of their keys that are needed and the features that are wanted."""
    layers, dialect = clauses.make_layers(source), clauses.dialect
    read = {column: find_summed(compute) for column, compute in wanted.items()}
    values = {c: "" if argument is None else layers.write_value(argument) for c, argument in read.items()}
    keys = {Column(relation.name, name, key.type): key for name, key in relation.keys}
    # Keys get their names before they are grouped by: a constant there would be read as a position.
    names = {column: clauses.make_name("c") for column in keys}
    items = ["*", *(f"{layers.write_value(key)} AS {names[column]}" for column, key in keys.items())]
    by, kinds = list(names.values()), [key.type for key in keys.values()]
    public, unknown = real_sums.find_scales(dialect, wanted, values)
    middles = {values[c]: w.argument for c, w in wanted.items() if w.feature is Feature.MEDIAN and w.argument}
    # Rows are read twice where steps follow from them. A table is read again, and anything else is computed once.
    keep = bool(unknown) and not isinstance(split(relation.source)[0], Scan)
    rows = clauses.add(items, clauses.add_layers(layers, source), keep=keep)
    rows, scales = _add_scales(clauses, rows, list(zip(by, kinds)), unknown)
    rows, steps = real_sums.add_steps(clauses, rows, {**scales, **public})
    rows, places = _add_places(clauses, rows, by, middles)
    computed = {}
    for column, compute in wanted.items():
        value = values[column]
        if is_stepped(compute):
            scale = public[value] if value in public else f"max({scales[value]})"
            computed[column] = real_sums.write_stepped_sum(dialect, compute, steps[value], scale)
        elif compute.feature is Feature.MEDIAN:
            computed[column] = per_unit.write_median(dialect, *places[value])
        else:
            computed[column] = per_unit.write_aggregate(dialect, compute, value)
    group = f" GROUP BY {', '.join(by)}" if by else " HAVING count(*) > 0"
    return clauses.add_features({c: name for c, name in names.items() if c in needed}, computed, rows, group)


def _add_scales(
    clauses: Clauses, rows: str, keys: Sequence[tuple[str, Type]], values: Sequence[str]
) -> tuple[str, dict[str, str]]:
    """Rows with how many steps of each value make up 1 in their group: the names of these columns."""
    if not values:
        return rows, {}
    dialect, by, theirs = clauses.dialect, [own for own, _ in keys], [clauses.make_name("b") for _ in keys]
    largest = {value: clauses.make_name("s") for value in values}
    items = [*(f"{own} AS {other}" for own, other in zip(by, theirs))]
    items += [f"{real_sums.write_largest(value)} AS {name}" for value, name in largest.items()]
    group = f" GROUP BY {', '.join(by)}" if by else ""
    scaled, scales = real_sums.add_scales(clauses, clauses.add(items, rows, group), largest)
    same = " AND ".join(dialect.same(own, other, kind) for (own, kind), other in zip(keys, theirs)) or "true"
    return clauses.add(["*"], dialect.join(rows, JoinKind.INNER, scaled, same)), scales


def _add_places(
    clauses: Clauses, rows: str, by: Sequence[str], values: Mapping[str, Expression]
) -> tuple[str, dict[str, tuple[str, str, str]]]:
    """Rows with values as reals, their places in ascending order in the group, and how many values there are."""
    if not values:
        return rows, {}
    dialect, parts = clauses.dialect, f"PARTITION BY {', '.join(by)} " if by else ""
    found = {v: (clauses.make_name("m"), clauses.make_name("m"), clauses.make_name("m")) for v in sorted(values)}
    reals = (f"{dialect.widen(v, values[v].type, Type.REAL)} AS {real}" for v, (real, _, _) in found.items())
    rows = clauses.add(["*", *reals], rows)
    placed = [
        f"row_number() OVER ({parts}ORDER BY {write_order(real)}) AS {place}" for real, place, _ in found.values()
    ]
    counted = [f"count({real}) OVER ({parts.strip()}) AS {count}" for real, _, count in found.values()]
    return clauses.add(["*", *placed, *counted], rows), found
