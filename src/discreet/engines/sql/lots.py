"""What is chosen from a unit's groups in a secret order, in SQL: named keys, and their weights.

Almost everybody is within the limits, and keeps every pair of ``unit_sums``: these *calm* units are added up where
everything else of them is, among the totals. What is left to do is for the others:

    crowded   the units beyond a limit
    hashed    their pairs with their places in the secret order
    placed    the pairs that are kept
    lots      sums by group, to be joined to the totals

Where a join would move rows (``Dialect.moves_rows``), or a unit has one group at most, all are treated like these.

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
    sums = _list_sums(statement)
    calm = {i: f"coalesce(c{i}, 0) + " if has_calm_units(statement) else "" for i in sums}
    found = {i: f"{calm[i]}coalesce(l{i}, 0)" for i in sums}
    joined = f" LEFT JOIN lots ON {statement.write_same_group('totals', 'lots')}"
    return [*clauses, *_write_lots(statement, kept)], joined, found


def has_calm_units(statement: BoundedStatement) -> bool:
    """Whether units within the limits are told from the others, by what ``unit_sums`` counts of each."""
    bounded = statement.bounded
    limited = bounded.max_groups is not None or bounded.max_rows is not None
    several = bool(statement.keys) and not statement.one_row
    return statement.has_lots and limited and several and not statement.dialect.moves_rows


def share_owners(statement: BoundedStatement) -> str:
    """A clause: what is counted of each unit, with the weights that its groups have if it is calm."""
    joined = " LEFT JOIN weights USING (g)" if _has_weights(statement) else ""
    return statement.define("shared_owners", f"SELECT * FROM owners{joined}")


def list_calm_columns(statement: BoundedStatement) -> list[str]:
    """What pairs must know of their unit, to be selected from them and ``share_owners``."""
    if not has_calm_units(statement):
        return []
    weights = (i for i, measure in enumerate(statement.bounded.measures) if measure.counts is Counts.WEIGHT)
    return [f"NOT ({_write_beyond(statement)}) AS calm", *(f"w{i} AS share{i}" for i in weights)]


def list_calm_sums(statement: BoundedStatement) -> list[str]:
    """The sums by group of what calm units are given, over such pairs."""
    if not has_calm_units(statement):
        return []
    each = {i: "1" if one == "1" else f"share{i}" for i, one in _list_sums(statement).items()}
    return [f"{statement.write_total(f'CASE WHEN calm THEN {value} END')} AS c{i}" for i, value in each.items()]


def _has_weights(statement: BoundedStatement) -> bool:
    return any(measure.counts is Counts.WEIGHT for measure in statement.bounded.measures)


def _list_sums(statement: BoundedStatement) -> dict[int, str]:
    """What each unit adds to its groups that are kept, by measure: 1, or its weight."""
    measures = enumerate(statement.bounded.measures)
    return {i: "1" if m.counts is Counts.NAMED else f"w{i}" for i, m in measures if m.by_lot}


def _write_beyond(statement: BoundedStatement) -> str:
    """Whether a unit is beyond the limit, by what is counted of it."""
    bounded = statement.bounded
    if bounded.max_rows is None:
        return f"g > {cap_limit(bounded.max_groups or 1)}"
    return f"everywhere > {cap_limit(bounded.max_rows)}"


def _write_placed(statement: BoundedStatement) -> tuple[list[str], str]:
    """Clauses over pairs, and the name of those that are kept."""
    bounded = statement.bounded
    if statement.one_row or (bounded.max_groups is None and bounded.max_rows is None):
        return [], "pairs"  # the one pair of a unit is within every limit
    order = ", ".join(["h", *map(write_order, statement.keys)])
    window = f"OVER (PARTITION BY u ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
    used = statement.dialect.wide_sum("n")
    if bounded.max_rows is None:
        ranked, condition = f"row_number() {window} AS place", f"place <= {cap_limit(bounded.max_groups or 1)}"
    else:
        ranked, condition = f"{used} {window} AS used", f"used - n < {cap_limit(bounded.max_rows)}"
    clauses, pairs = _find_crowded(statement)
    kept = ", ".join(["u", *statement.keys])
    return [
        *clauses,
        statement.define("hashed", f"SELECT *, {statement.write_place()} AS h FROM {pairs}"),
        statement.define("ranked", f"SELECT *, {ranked} FROM hashed"),
        statement.define("placed", f"SELECT {kept} FROM ranked WHERE {condition}"),
    ], "placed"


def _find_crowded(statement: BoundedStatement) -> tuple[list[str], str]:
    """Clauses, and what to write after FROM for the pairs of units that are not calm."""
    if not has_calm_units(statement):
        return [], "pairs"
    beyond = _write_beyond(statement)
    if statement.dialect.counts_groups_by_window:
        return [statement.define("crowded", f"SELECT * FROM owners WHERE {beyond}")], "crowded"
    crowded = statement.define("crowded", f"SELECT u AS owner FROM owners WHERE {beyond}")
    return [crowded], statement.dialect.join("pairs", JoinKind.SEMI, "crowded", "u = owner")


def _write_lots(statement: BoundedStatement, kept: str) -> list[str]:
    """Sums by group over the pairs that are kept: units, and their weights."""
    clauses = []
    if _has_weights(statement):
        own = ", ".join(["u", *statement.keys])
        joined = f"SELECT {own}, count(*) OVER (PARTITION BY u) AS g FROM {kept}"
        if statement.one_row:
            joined = f"SELECT {own}, g FROM {kept}"
        elif not statement.dialect.moves_rows:
            clauses.append(statement.define("numbers", f"SELECT u, count(*) AS g FROM {kept} GROUP BY u"))
            joined = f"SELECT {own}, numbers.g FROM {kept} JOIN numbers USING (u)"
        clauses.append(statement.define("joined", joined))
        clauses.append(statement.define("shared", "SELECT * FROM joined LEFT JOIN weights USING (g)"))
        kept = "shared"
    sums = (f"{statement.write_total(each)} AS l{i}" for i, each in _list_sums(statement).items())
    lots = f"SELECT {', '.join([*statement.keys, *sums, ALL])} FROM {kept}{statement.write_group_by()}"
    return [*clauses, statement.define("lots", lots)]
