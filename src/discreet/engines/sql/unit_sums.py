"""Sums over units in SQL: steps 3 and 4 of ``contributions.py``, where rows beyond a limit weigh less.

Two forms give the same integers. Where ``max_rows`` is the limit and the rows are those of one table, the rows of each
unit are counted, and the counts are joined to the rows:

    counts    one row for each unit: its weight w
    totals    sums of w times integers, by group

Otherwise one row for each unit and group is made first, which joins and several groups need anyway:

    pairs     n rows, counts n0 … and sums s0 … of integers
    owners    one row for each unit: its rows in all, its groups g; or pairs that have these
    weighed   pairs with the weight w of each of their rows, and the weight v of their unit
    totals    sums of w times sums, by group

Where engines sort better than they join, windows over the rows or the pairs of a unit do the work of the joins
(``Dialect.counts_by_window``): between machines rows move twice, once to their unit and once to their group.

No order is needed for this, and nothing is chosen. What is chosen by lot stands beside it (``lots``).
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from discreet.bounding.contributions import Counts, Measure, group_cap, limits_groups
from discreet.engines.sql.lots import (
    has_calm_units,
    join_lots,
    list_calm_columns,
    list_calm_sums,
    share_owners,
)
from discreet.engines.sql.statement import ALL, BoundedStatement, cap_limit, write_items
from discreet.errors import InternalError
from discreet.plan.relations import Scan, split
from discreet.plan.types import Type

# Public groups that are named in less time outside of an engine than it takes to plan a join for it.
MOST_NAMED = 1024
# Measures for which values are counted in each pair.
_COUNTING = (Counts.VALUES, Counts.UNITS)


def write_by_units(statement: BoundedStatement, span: str = "", *, numbered: bool = False) -> str:
    """The answer with a unit's contribution bounded. ``span`` restricts the scanned rows to those of some units.

    ``numbered``: public groups (``is_coded``) have their number in place of their keys.
    """
    lots, joins, found = join_lots(statement)
    items = [f"totals.{key}" for key in statement.keys]
    if is_coded(statement):
        items = ["totals.code"] if numbered else [f"domain.{key}" for key in statement.keys]
        joins += "" if numbered else " JOIN domain USING (code)"
    # Distinct values are counted elsewhere (``distinct_values``).
    found |= {i: "0" for i, measure in enumerate(statement.bounded.measures) if measure.matched}
    items += [found.get(i, f"m{i}") for i in range(len(statement.bounded.measures))]
    return statement.write_query(
        [write_public_rows(statement, once=not _counts_in_memory(statement)), *_write_totals(statement), *lots],
        f"SELECT {write_items(items)} FROM totals{joins}",
        span,
    )


def write_public_rows(statement: BoundedStatement, *, once: bool) -> str:
    """The rows in public groups. Those of a stored table are cheap to read twice; others are kept, if they are."""
    query = f"SELECT * FROM {statement.write_public('rows')}"
    if is_coded(statement):
        query = f"SELECT rows.*, domain.code FROM rows JOIN domain ON {statement.write_same_group('rows', 'domain')}"
    cheap = _is_scan(statement) and not statement.relation.in_memory
    return statement.define("public", query, keep=not (once or cheap))


def _counts_in_memory(statement: BoundedStatement) -> bool:
    """Whether rows in memory are read twice, for their counts and for their sums. Then their groups are found once."""
    twice = joins_counts(statement) and not statement.dialect.counts_by_window
    return statement.relation.in_memory and twice


def is_coded(statement: BoundedStatement) -> bool:
    """Whether groups are told apart by a number: where they are public and nothing is chosen by their values."""
    return bool(statement.keys) and statement.bounded.domain is not None and not statement.has_lots


def has_few_groups(statement: BoundedStatement) -> bool:
    """Whether units are asked about so few public groups that these are named and sorted outside of the engine."""
    bounded = statement.bounded
    return bounded.unit is not None and is_coded(statement) and len(bounded.domain or ()) <= MOST_NAMED


def _names_groups(statement: BoundedStatement) -> list[str]:
    """The columns that tell groups apart."""
    return ["code"] if is_coded(statement) else statement.keys


def write_same_pair(statement: BoundedStatement, left: str, right: str) -> str:
    """Whether two rows are of the same unit and group."""
    same = f"{left}.{statement.owner} = {right}.{statement.owner}"
    if is_coded(statement):
        return f"{same} AND {left}.code = {right}.code"
    return f"{same} AND {statement.write_same_group(left, right)}"


def _group_by(statement: BoundedStatement) -> str:
    names = _names_groups(statement)
    return f" GROUP BY {', '.join(names)}" if names else ""


def write_unit_counts(statement: BoundedStatement) -> str:
    """One row for each unit with the weight of its rows, where ``max_rows`` is the limit."""
    owner = statement.owner
    weight = _write_share(statement, statement.bounded.max_rows or 1, "count(*)")
    return statement.define("counts", f"SELECT {owner}, {weight} AS w FROM public GROUP BY {owner}")


def weigh_rows(statement: BoundedStatement) -> tuple[list[str], str]:
    """Clauses, and what to write after FROM for public rows under this name with their weights w, by ``max_rows``."""
    if not statement.dialect.counts_by_window:
        return [write_unit_counts(statement)], f"public JOIN counts USING ({statement.owner})"
    rows = f"count(*) OVER (PARTITION BY {statement.owner})"
    weight = _write_share(statement, statement.bounded.max_rows or 1, rows)
    return [statement.define("counted", f"SELECT *, {weight} AS w FROM public")], "counted AS public"


def write_cell_weights(statement: BoundedStatement) -> list[str]:
    """One row for each unit and group with the weight w that its rows have in spreads."""
    pair = ", ".join([statement.owner, *_names_groups(statement)])
    query = f"SELECT {pair}, count(*) AS n FROM {_gather_rows(statement, [])} GROUP BY {pair}"
    clauses = [_define_pairs(statement, query)]
    weight, source = _write_group_weight(statement, "n"), "pairs"
    if limits_groups(statement.bounded):
        clauses.append(_write_owners(statement))
        source = _join_owners(statement)
        most = statement.bounded.max_groups or 1
        parts = statement.dialect.trunc_divide(f"g + {most - 1}", str(most))
        each = statement.dialect.trunc_divide(_whole(statement), parts)
        weight = _shift(statement, f"({weight}) * ({each})")
    names = ", ".join(f"pairs.{name}" for name in (statement.owner, *_names_groups(statement)))
    return [*clauses, statement.define("weighed", f"SELECT {names}, {weight} AS w FROM {source}")]


def _is_scan(statement: BoundedStatement) -> bool:
    return isinstance(split(statement.bounded.source)[0], Scan)


def joins_counts(statement: BoundedStatement) -> bool:
    """Whether the rows of a unit are counted and the counts are joined to its rows."""
    bounded = statement.bounded
    rows_only = not any(measure.by_lot or measure.by_unit for measure in bounded.measures)
    return bounded.max_rows is not None and bool(bounded.keys) and rows_only and _is_scan(statement)


def _write_totals(statement: BoundedStatement) -> list[str]:
    """Sums by group; where nothing is summed, the groups alone."""
    if not any(measure.weighed or measure.by_lot for measure in statement.bounded.measures):
        names = ", ".join([*_names_groups(statement), ALL])
        return [statement.define("totals", f"SELECT {names} FROM public{_group_by(statement)}")]
    return _write_counts(statement) if joins_counts(statement) else _write_pairs(statement)


def _write_counts(statement: BoundedStatement) -> list[str]:
    measures = [(i, m) for i, m in enumerate(statement.bounded.measures) if m.weighed]
    sums = [f"{_write_row_sum(statement, m)} AS m{i}" for i, m in measures]
    clauses, source = weigh_rows(statement)
    totals = f"SELECT {', '.join([*_names_groups(statement), *sums, ALL])} FROM {source}{_group_by(statement)}"
    return [*clauses, statement.define("totals", totals)]


def _write_row_sum(statement: BoundedStatement, measure: Measure) -> str:
    """A sum of weighted integers over rows."""
    value = f"v{statement.source_of(measure)}"
    match measure.counts:
        case Counts.ROWS:
            each = "w"
        case Counts.VALUES:
            each = f"CASE WHEN {value} IS NOT NULL THEN w END"
        case Counts.STEPS | Counts.SQUARES:
            wide = max(-measure.row_low, measure.row_high) << statement.bounded.weight_bits >= 2**62
            each = f"{statement.dialect.to_wide('w') if wide else 'w'} * {value}"
            each += f" * {value}" if measure.counts is Counts.SQUARES else ""
            if wide:
                return statement.write_total(each)
        case Counts.UNITS | Counts.NAMED | Counts.WEIGHT | Counts.DISTINCT:
            raise InternalError("Only integers of rows are summed over rows.")
        case Counts.DISTINCT_STEPS | Counts.DISTINCT_SQUARES:
            raise InternalError("Only integers of rows are summed over rows.")
        case _:
            assert_never(measure.counts)
    return statement.write_total(each, max(-measure.row_low, measure.row_high) << statement.bounded.weight_bits)


def _write_pairs(statement: BoundedStatement) -> list[str]:
    if statement.one_row:
        return [_write_single_pairs(statement), *_weigh_pairs(statement, "pairs")]
    owner = statement.owner
    sizes = [max(-steps.first, steps.last) for steps in statement.steps]
    counts = [f"count(v{i}) AS n{i}" for i in _find_counted(statement)]
    found = {f"s{i}": _write_pair_sum(statement, Counts.STEPS, i, f"v{i}", sizes[i]) for i in _find_summed(statement)}
    for i in statement.find_squared():
        found[f"q{i}"] = _write_pair_sum(statement, Counts.SQUARES, i, statement.write_square(i), sizes[i] ** 2)
    counts += [f"{total} AS {name}" for name, total in found.items()]
    pair, read = ", ".join([owner, *_names_groups(statement)]), [f"v{i}" for i in range(len(sizes))]
    if statement.relation.identity and owner == "u":
        counts.append("min(identity) AS identity")  # all are equal
        read.append("identity")
    items = ", ".join([pair, "count(*) AS n", *counts])
    query = f"SELECT {items} FROM {_gather_rows(statement, read)} GROUP BY {pair}"
    clauses = [_define_pairs(statement, query)]
    source = "pairs"
    if has_calm_units(statement):
        clauses += [_write_owners(statement), share_owners(statement)]
        source = _join_owners(statement, "shared_owners")
    elif statement.keys and (statement.bounded.max_rows is not None or limits_groups(statement.bounded)):
        clauses.append(_write_owners(statement))
        source = _join_owners(statement)
    return [*clauses, *_weigh_pairs(statement, source)]


def _write_single_pairs(statement: BoundedStatement) -> str:
    """The pairs where a unit has one row at most: a pair is a row, and there is nothing to bring together."""
    one, nothing = (statement.dialect.literal(number, Type.INTEGER) for number in (1, 0))
    items = [statement.owner, *_names_groups(statement), *(f"{one} AS {name}" for name in ("n", "everywhere", "g"))]
    items += [f"CASE WHEN v{i} IS NOT NULL THEN {one} ELSE {nothing} END AS n{i}" for i in _find_counted(statement)]
    sums = {f"s{i}": (Counts.STEPS, i, f"v{i}") for i in _find_summed(statement)}
    sums |= {f"q{i}": (Counts.SQUARES, i, statement.write_square(i)) for i in statement.find_squared()}
    for name, (counts, source, value) in sums.items():
        low = _reads_low(statement, counts, source)
        items.append(f"{value if low else statement.dialect.to_wide(value)} AS {name}")
    if statement.relation.identity and statement.owner == "u":
        items.append("identity")
    return statement.define("pairs", f"SELECT {', '.join(items)} FROM public", keep=statement.has_lots)


def _weigh_pairs(statement: BoundedStatement, source: str) -> list[str]:
    """The pairs with their weights, and the sums by group. ``source`` has what limits need to know of their unit."""
    clauses = []
    weights = [f"{_write_pair_weight(statement)} AS w", f"{_write_unit_weight(statement)} AS v"]
    items = ", ".join(["pairs.*", *weights, *list_calm_columns(statement)])
    clauses.append(statement.define("weighed", f"SELECT {items} FROM {source}"))
    measures = [(i, m) for i, m in enumerate(statement.bounded.measures) if m.weighed]
    sums = [f"{_write_unit_total(statement, m)} AS m{i}" for i, m in measures] + list_calm_sums(statement)
    totals = f"SELECT {', '.join([*_names_groups(statement), *sums, ALL])} FROM weighed{_group_by(statement)}"
    return [*clauses, statement.define("totals", totals)]


def _write_pair_sum(statement: BoundedStatement, counts: Counts, source: int, value: str, most: int) -> str:
    """The sum of integers of one pair; its lowest bits alone, where nothing reads more of it.

    Doubles do where no weighed sum reaches 2^53: a sum of more rows than a weight of 1 or more allows is multiplied by
    0, and all others, with every part of them, are less than the weighed sum may be.
    """
    largest = _bound_products(statement, counts, source)
    double = statement.find_double(source, largest) if counts is Counts.STEPS else None
    if double is not None:
        return statement.dialect.real_sum(double)
    if _reads_low(statement, counts, source):
        return statement.dialect.low_sum(value)
    return statement.dialect.bounded_sum(value, most)


def _reads_low(statement: BoundedStatement, counts: Counts, source: int | None) -> bool:
    """Whether all that reads a sum of pairs is its product with a weight, which is less than 2^62 in size."""
    largest = _bound_products(statement, counts, source)
    return largest is not None and largest < 2**62


def _bound_products(statement: BoundedStatement, counts: Counts, source: int | None) -> int | None:
    """The most of ``_bound_product`` of all measures that read a sum; None where one of them has none."""
    reading = (m for m in statement.bounded.measures if m.counts is counts and statement.source_of(m) == source)
    found = [_bound_product(statement, measure) for measure in reading]
    return max((most for most in found if most is not None), default=0) if None not in found else None


def _bound_product(statement: BoundedStatement, measure: Measure) -> int | None:
    """The most that the rows of a pair add together, weighed; None where that is not known, or is bounded as a whole.

    The rows of a pair weigh together at most their limit, so it is that times a row's most, although the sum of its
    rows may be anything.
    """
    bounded = statement.bounded
    limit = bounded.max_rows or bounded.max_rows_per_group
    if limit is None or measure.partial is not None:
        return None
    return limit * max(-measure.row_low, measure.row_high) << bounded.weight_bits


def _find_counted(statement: BoundedStatement) -> list[int]:
    """The integers of which a pair must know how many there are: where they are counted, or units that have one."""
    counting = (m for m in statement.bounded.measures if m.partial is not None or m.counts in _COUNTING)
    return sorted({source for m in counting if (source := statement.source_of(m)) is not None})


def _find_summed(statement: BoundedStatement) -> list[int]:
    """The integers of which a pair must know the sum."""
    summing = (m for m in statement.bounded.measures if m.counts is Counts.STEPS)
    return sorted({source for m in summing if (source := statement.source_of(m)) is not None})


def _write_owners(statement: BoundedStatement) -> str:
    """One row for each unit, its rows and its groups as limits need them; or one for each pair, where windows count."""
    owner, bounded = statement.owner, statement.bounded
    counts = {} if bounded.max_rows is None else {"everywhere": statement.dialect.wide_sum("n")}
    counts |= {"g": "count(*)"} if limits_groups(bounded) or has_calm_units(statement) else {}
    over = f" OVER (PARTITION BY {owner})" if statement.dialect.counts_groups_by_window else ""
    found = ", ".join(f"{statement.dialect.as_integer(sql + over)} AS {name}" for name, sql in counts.items())
    if over:
        return statement.define("owners", f"SELECT *, {found} FROM pairs")
    return statement.define("owners", f"SELECT {owner}, {found} FROM pairs GROUP BY {owner}")


def _join_owners(statement: BoundedStatement, owners: str = "owners") -> str:
    """What to write after FROM for pairs under this name with what their unit has."""
    by_window = statement.dialect.counts_groups_by_window
    return f"{owners} AS pairs" if by_window else f"pairs JOIN {owners} USING ({statement.owner})"


def _gather_rows(statement: BoundedStatement, read: Sequence[str]) -> str:
    """What to write after FROM for public rows, to be grouped by unit and group; ``read`` are columns besides these."""
    pair = [statement.owner, *_names_groups(statement)]
    return statement.dialect.gather("public", [*pair, *read], pair)


def _define_pairs(statement: BoundedStatement, query: str) -> str:
    """The pairs. They are kept where they are read more than once, and otherwise stay in the order that they have."""
    once = statement.dialect.counts_groups_by_window and not statement.has_lots
    return statement.define("pairs", query, keep=None if once else True)


def _write_pair_weight(statement: BoundedStatement) -> str:
    """W of the rows of a pair."""
    bounded = statement.bounded
    if bounded.max_rows is not None:
        return _write_share(statement, bounded.max_rows, "everywhere" if statement.keys else "pairs.n")
    weight = _write_group_weight(statement, "pairs.n")
    if not limits_groups(bounded):
        return weight
    return _shift(statement, f"({weight}) * ({_write_share(statement, bounded.max_groups or 1, 'g')})")


def _write_group_weight(statement: BoundedStatement, rows: str) -> str:
    return _write_share(statement, statement.bounded.max_rows_per_group or 1, rows)


def _write_unit_weight(statement: BoundedStatement) -> str:
    """V of a unit."""
    cap = group_cap(statement.bounded)
    if cap is None or not limits_groups(statement.bounded):
        return _whole(statement)
    return _write_share(statement, cap, "g")


def _whole(statement: BoundedStatement) -> str:
    return statement.dialect.literal(1 << statement.bounded.weight_bits, Type.INTEGER)


def _write_share(statement: BoundedStatement, most: int, count: str) -> str:
    """The least of 2^b and ⌊most·2^b/count⌋, in 64 bits."""
    dialect, bits = statement.dialect, statement.bounded.weight_bits
    limit = cap_limit(most) << bits
    if limit < 2**62:
        return f"least({_whole(statement)}, {dialect.trunc_divide(dialect.literal(limit, Type.INTEGER), count)})"
    shared = dialect.trunc_divide(dialect.wide_literal(limit), count, wide=True)
    return dialect.as_integer(f"least({dialect.wide_literal(1 << bits)}, {shared})")


def _shift(statement: BoundedStatement, product: str) -> str:
    """A product of two weights as a weight."""
    return statement.dialect.trunc_divide(product, _whole(statement))


def _write_unit_total(statement: BoundedStatement, measure: Measure) -> str:
    """The sum over a group of what its units add."""
    each = _write_partial(statement, measure)
    if measure.counts is Counts.UNITS:
        return statement.write_total(each, 1 << statement.bounded.weight_bits)
    return statement.write_total(each, _bound_product(statement, measure))


def _write_partial(statement: BoundedStatement, measure: Measure) -> str:
    """What a unit adds to a group."""
    source, dialect = statement.source_of(measure), statement.dialect
    total = count = "n" if measure.counts is Counts.ROWS else f"n{source}"
    match measure.counts:
        case Counts.UNITS:
            return "v" if source is None else f"CASE WHEN {total} > 0 THEN v ELSE 0 END"
        case Counts.ROWS | Counts.VALUES:
            pass
        case Counts.STEPS:
            total = f"s{source}"
        case Counts.SQUARES:
            total = f"q{source}"
        case Counts.DISTINCT | Counts.DISTINCT_STEPS | Counts.DISTINCT_SQUARES | Counts.NAMED | Counts.WEIGHT:
            raise InternalError("What is chosen or matched is not weighed.")
        case _:
            assert_never(measure.counts)
    if measure.partial is not None:
        clamped = f"v * {statement.write_clamp(f'coalesce({total}, 0)', measure.partial)}"
        return f"CASE WHEN {count} > 0 THEN {clamped} ELSE 0 END"
    counted = measure.counts in (Counts.ROWS, Counts.VALUES)
    known = total if counted else f"coalesce({total}, 0)"
    if not _reads_low(statement, measure.counts, source):
        return f"w * {dialect.to_wide(known)}"
    return f"w * {known}" if counted else dialect.low_product("w", known)
