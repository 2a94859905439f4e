"""What is chosen from a unit's groups in a secret order, in SQL: named keys, their weights, and distinct values.

    hashed    the pairs of ``unit_sums`` with their places in the secret order
    placed    the pairs that are kept, with the rows that are allowed in each
    lots      sums by group, to be joined to the totals

The secret order is a keyed hash of unit and key *values*, never of positions or codes, which would depend on other
units; ties fall back to the order of the keys.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from discreet.bounding.contributions import Counts
from discreet.engines.sql.clauses import write_order
from discreet.engines.sql.statement import ALL, BoundedStatement, cap_limit


def join_lots(statement: BoundedStatement) -> tuple[list[str], str, dict[int, str]]:
    """Clauses over ``pairs``, how to join them to ``totals``, and what each measure by lot is then, by position."""
    if not statement.has_lots:
        return [], "", {}
    clauses, kept = _write_placed(statement)
    named, found = _write_named(statement, kept)
    joins = ""
    if named:
        clauses += named
        joins = f" LEFT JOIN lots ON {statement.write_same_group('totals', 'lots')}"
    more, brought = _write_distinct_counts(statement, kept)
    for i, measure in enumerate(statement.bounded.measures):
        value = statement.distinct_of(measure)
        if value is not None:
            found[i] = f"coalesce(d{value}, 0)"
    return [*clauses, *more], joins + brought, found


def _write_placed(statement: BoundedStatement) -> tuple[list[str], str]:
    """The groups that are kept and the rows that are allowed, as expressions over pairs."""
    bounded, as_integer = statement.bounded, statement.dialect.as_integer
    each = "n" if bounded.max_rows_per_group is None else f"least(n, {cap_limit(bounded.max_rows_per_group)})"
    # Where ``max_rows`` takes more away afterwards, what each group could have has a name of its own.
    name = "allowed" if bounded.max_rows is None else "most"
    clauses = [statement.define("capped", f"SELECT *, {as_integer(each)} AS {name} FROM pairs", keep=True)]
    if bounded.max_groups is None and bounded.max_rows is None:
        return clauses, "capped"
    order = ", ".join(["h", *map(write_order, statement.keys)])
    window = f"OVER (PARTITION BY u ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
    clauses.append(statement.define("hashed", f"SELECT *, {statement.write_place()} AS h FROM capped"))
    used = statement.dialect.wide_sum(name)
    ranked = f"SELECT *, row_number() {window} AS place, {used} {window} AS used FROM hashed"
    clauses.append(statement.define("ranked", ranked))
    conditions, columns = [], "*"
    if bounded.max_groups is not None:
        conditions.append(f"place <= {cap_limit(bounded.max_groups)}")
    if bounded.max_rows is not None:
        left = f"{cap_limit(bounded.max_rows)} - (used - most)"
        columns = f"*, {as_integer(f'least(most, {left})')} AS allowed"
        conditions.append(f"{left} > 0")
    placed = f"SELECT {columns} FROM ranked WHERE {' AND '.join(conditions)}"
    clauses.append(statement.define("placed", placed, keep=True))
    return clauses, "placed"


def _write_named(statement: BoundedStatement, kept: str) -> tuple[list[str], dict[int, str]]:
    """Sums by group over the pairs that are kept: units, and their weights."""
    clauses, sums = [], {}
    for i, measure in enumerate(statement.bounded.measures):
        if measure.counts is Counts.NAMED:
            sums[i] = "1"
        elif measure.counts is Counts.WEIGHT:
            sums[i] = f"w{i}"
    if not sums:
        return [], {}
    if any(measure.counts is Counts.WEIGHT for measure in statement.bounded.measures):
        joined = f"SELECT *, count(*) OVER (PARTITION BY u) AS g FROM {kept}"
        clauses.append(statement.define("joined", joined))
        clauses.append(statement.define("shared", "SELECT * FROM joined LEFT JOIN weights USING (g)"))
        kept = "shared"
    items = [*statement.keys, *(f"{statement.write_total(each)} AS l{i}" for i, each in sums.items()), ALL]
    clauses.append(statement.define("lots", f"SELECT {', '.join(items)} FROM {kept}{statement.write_group_by()}"))
    return clauses, {i: f"coalesce(l{i}, 0)" for i in sums}


def _write_distinct_counts(statement: BoundedStatement, kept: str) -> tuple[list[str], str]:
    """Clauses that count d0 … distinct values by group, and how to join them to ``totals``.

    Of each unit's values in a kept group, as many as rows are allowed are taken, in the order of a keyed hash of
    the unit, the key and the value itself; ties fall back to the order of the values.
    """
    clauses, joins, define = [], "", statement.define
    pair = ", ".join(["u", *statement.keys])
    for i, argument in enumerate(statement.distinct):
        own, value = f"own{i}", f"x{i}"
        values = f"SELECT DISTINCT {pair}, identity, {value} FROM public WHERE {value} IS NOT NULL"
        clauses.append(define(own, values))
        place = statement.write_place(f"{own}.", (f"{own}.{value}", argument.type))
        same = f"{own}.u = {kept}.u AND {statement.write_same_group(own, kept)}"
        clauses.append(define(f"hashed{i}", f"SELECT {own}.*, allowed, {place} AS h FROM {own} JOIN {kept} ON {same}"))
        first = statement.dialect.first_rows(f"hashed{i}", ["u", *statement.keys], ["h", write_order(value)], "allowed")
        clauses.append(define(f"taken{i}", first))
        named = ", ".join([*statement.keys, f"count(DISTINCT {value}) AS d{i}"])
        clauses.append(define(f"brought{i}", f"SELECT {named} FROM taken{i}{statement.write_group_by()}"))
        joins += f" LEFT JOIN brought{i} ON {statement.write_same_group('totals', f'brought{i}')}"
    return clauses, joins
