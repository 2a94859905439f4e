"""What is chosen from a unit's groups in a secret order, in SQL: named keys, and their weights.

    hashed    the pairs of ``unit_sums`` with their places in the secret order
    placed    the pairs that are kept
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
    return [*clauses, *named], f" LEFT JOIN lots ON {statement.write_same_group('totals', 'lots')}", found


def _write_placed(statement: BoundedStatement) -> tuple[list[str], str]:
    """Clauses over pairs, and the name of those that are kept."""
    bounded = statement.bounded
    if bounded.max_groups is None and bounded.max_rows is None:
        return [], "pairs"
    order = ", ".join(["h", *map(write_order, statement.keys)])
    window = f"OVER (PARTITION BY u ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
    clauses = [statement.define("hashed", f"SELECT *, {statement.write_place()} AS h FROM pairs")]
    if bounded.max_rows is None:
        ranked, condition = f"row_number() {window} AS place", f"place <= {cap_limit(bounded.max_groups or 1)}"
    else:
        used = statement.dialect.wide_sum("n")
        ranked, condition = f"{used} {window} AS used", f"used - n < {cap_limit(bounded.max_rows)}"
    clauses.append(statement.define("ranked", f"SELECT *, {ranked} FROM hashed"))
    clauses.append(statement.define("placed", f"SELECT * FROM ranked WHERE {condition}"))
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
        joined = f"SELECT *, count(*) OVER (PARTITION BY u) AS g FROM {kept}"
        clauses.append(statement.define("joined", joined))
        clauses.append(statement.define("shared", "SELECT * FROM joined LEFT JOIN weights USING (g)"))
        kept = "shared"
    items = [*statement.keys, *(f"{statement.write_total(each)} AS l{i}" for i, each in sums.items()), ALL]
    clauses.append(statement.define("lots", f"SELECT {', '.join(items)} FROM {kept}{statement.write_group_by()}"))
    return clauses, {i: f"coalesce(l{i}, 0)" for i in sums}
