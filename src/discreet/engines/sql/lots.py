"""What is chosen from a unit's groups in a secret order, in SQL: named keys, and their weights.

    crowded   the units beyond a limit; of all others every pair is kept
    hashed    the pairs of ``unit_sums`` with their places in the secret order
    placed    the pairs that are kept
    lots      sums by group, to be joined to the totals

Almost everybody is within the limits, so only the pairs of the others are sorted. Where a join would move rows
(``Dialect.moves_rows``), all are.

The secret order is a keyed hash of unit and key *values*, never of positions or codes, which would depend on other
units; ties fall back to the order of the keys.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from discreet.bounding.contributions import Counts
from discreet.engines.sql.clauses import write_order
from discreet.engines.sql.statement import ALL, BoundedStatement, cap_limit
from discreet.plan.relations import JoinKind


def join_lots(statement: BoundedStatement) -> tuple[list[str], str, dict[int, str]]:
    """Clauses over ``pairs``, how to join them to ``totals``, and what each measure by lot is then, by position."""
    if not statement.has_lots:
        return [], "", {}
    clauses, kept = _write_placed(statement)
    named, found = _write_named(statement, kept)
    return [*clauses, *named], f" LEFT JOIN lots ON {statement.write_same_group('totals', 'lots')}", found


def _write_placed(statement: BoundedStatement) -> tuple[list[str], str]:
    """Clauses over pairs, and the name of those that are kept."""
    bounded = statement.bounded
    if statement.one_row or (bounded.max_groups is None and bounded.max_rows is None):
        return [], "pairs"  # the one pair of a unit is within every limit
    order = ", ".join(["h", *map(write_order, statement.keys)])
    window = f"OVER (PARTITION BY u ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
    used = statement.dialect.wide_sum("n")
    if bounded.max_rows is None:
        most = cap_limit(bounded.max_groups or 1)
        beyond, ranked, condition = f"count(*) > {most}", f"row_number() {window} AS place", f"place <= {most}"
    else:
        most = cap_limit(bounded.max_rows)
        beyond, ranked, condition = f"{used} > {most}", f"{used} {window} AS used", f"used - n < {most}"
    apart = not statement.dialect.moves_rows
    crowded = statement.define("crowded", f"SELECT u AS owner FROM pairs GROUP BY u HAVING {beyond}")
    clauses = [crowded] if apart else []
    many = statement.dialect.join("pairs", JoinKind.SEMI, "crowded", "u = owner") if apart else "pairs"
    clauses.append(statement.define("hashed", f"SELECT *, {statement.write_place()} AS h FROM {many}"))
    clauses.append(statement.define("ranked", f"SELECT *, {ranked} FROM hashed"))
    kept = ", ".join(["u", *statement.keys])
    placed = f"SELECT {kept} FROM ranked WHERE {condition}"
    if apart:
        others = statement.dialect.join("pairs", JoinKind.ANTI, "crowded", "u = owner")
        placed = f"SELECT {kept} FROM {others} UNION ALL {placed}"
    clauses.append(statement.define("placed", placed))
    return clauses, "placed"


def _write_named(statement: BoundedStatement, kept: str) -> tuple[list[str], dict[int, str]]:
    """Sums by group over the pairs that are kept: units, and their weights."""
    clauses, sums = [], {}
    for i, measure in enumerate(statement.bounded.measures):
        if measure.counts is Counts.NAMED:
            sums[i] = "1"
        elif measure.counts is Counts.WEIGHT:
            sums[i] = f"w{i}"
    if any(measure.counts is Counts.WEIGHT for measure in statement.bounded.measures):
        own = ", ".join(["u", *statement.keys])
        joined = f"SELECT {own}, count(*) OVER (PARTITION BY u) AS g FROM {kept}"
        if not statement.dialect.moves_rows:
            clauses.append(statement.define("numbers", f"SELECT u, count(*) AS g FROM {kept} GROUP BY u"))
            joined = f"SELECT {own}, numbers.g FROM {kept} JOIN numbers USING (u)"
        clauses.append(statement.define("joined", joined))
        clauses.append(statement.define("shared", "SELECT * FROM joined LEFT JOIN weights USING (g)"))
        kept = "shared"
    items = [*statement.keys, *(f"{statement.write_total(each)} AS l{i}" for i, each in sums.items()), ALL]
    clauses.append(statement.define("lots", f"SELECT {', '.join(items)} FROM {kept}{statement.write_group_by()}"))
    return clauses, {i: f"coalesce(l{i}, 0)" for i in sums}
