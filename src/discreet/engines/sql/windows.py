"""Windows in SQL: more columns for each row, from the other rows of its part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from discreet.engines.sql import per_unit, real_sums
from discreet.engines.sql.clauses import Clauses, CommonTable, write_order
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Column
from discreet.plan.real_steps import find_summed, is_stepped
from discreet.plan.relations import Feature, FeatureCall, RowFrame, Window
from discreet.plan.types import Type


def write_window(
    clauses: Clauses,
    relation: Window,
    source: CommonTable,
    wanted: Mapping[Column, FeatureCall],
    ties: Sequence[Column],
) -> tuple[str, dict[Column, per_unit.FeatureSql]]:
    """The rows with what features read, and the features. ``ties`` are all columns, where rows must be told apart."""
    layers = clauses.make_layers(source)
    parts = ", ".join(layers.write_value(part) for part in relation.parts)
    frame = _WindowFrame(
        parts=parts,
        order=tuple(write_order(layers.write_value(value), descending=down) for value, down in relation.order),
        ties=tuple(write_order(source.columns[column]) for column in ties),
    )
    read = {column: find_summed(compute) for column, compute in wanted.items()}
    values = {c: "" if argument is None else layers.write_value(argument) for c, argument in read.items()}
    public, unknown = real_sums.find_scales(clauses.dialect, wanted, values)
    told_apart = {values[c] for c, w in wanted.items() if w.feature is Feature.COUNT_DISTINCT and w.frame is None}
    top, scales = _add_scales(clauses, clauses.add_layers(layers, source), frame, unknown)
    scales |= public
    top, steps = real_sums.add_steps(clauses, top, scales)
    top, firsts = _add_firsts(clauses, top, frame, told_apart)
    computed, dialect = {}, clauses.dialect
    for column, compute in wanted.items():
        value = values[column]
        if compute.feature in per_unit.RANKS and not frame.order:
            computed[column] = per_unit.FeatureSql((dialect.literal(1, Type.INTEGER),))  # all rows are peers
        elif compute.feature in per_unit.POSITIONS:
            over = frame.write_over(untied=compute.feature in per_unit.UNTIED)
            computed[column] = per_unit.write_position(dialect, compute, value, over)
        elif is_stepped(compute):
            over = frame.write_over(rows=compute.frame)
            computed[column] = real_sums.write_stepped_sum(dialect, compute, steps[value], scales[value], over)
        elif compute.feature is Feature.COUNT_DISTINCT and compute.frame is None:
            computed[column] = per_unit.FeatureSql((f"count({firsts[value]}){frame.write_over()}",))
        else:
            computed[column] = per_unit.write_aggregate(dialect, compute, value, frame.write_over(rows=compute.frame))
    return top, computed


@dataclass(frozen=True, slots=True)
class _WindowFrame:
    """How rows are divided and ordered. Sums run to the last peer in ``order``; ``ties`` tell peers apart."""

    parts: str
    order: tuple[str, ...]
    ties: tuple[str, ...]

    def write_over(self, *, untied: bool = False, within: str = "", rows: RowFrame | None = None) -> str:
        """The window; ``within`` divides the parts further, and stands for an order where there is none."""
        order = ", ".join((*self.order, *self.ties) if untied or rows is not None else self.order) or within
        parts = ", ".join(filter(None, (self.parts, within)))
        frame = "" if rows is None else _write_frame(rows)
        words = (f"PARTITION BY {parts}" if parts else "", f"ORDER BY {order}" if order else "", frame)
        return f" OVER ({' '.join(filter(None, words))})"


def _write_frame(rows: RowFrame) -> str:
    first, last = _write_end(rows.first, "UNBOUNDED PRECEDING"), _write_end(rows.last, "UNBOUNDED FOLLOWING")
    return f"ROWS BETWEEN {first} AND {last}"


def _write_end(rows: int | None, unbounded: str) -> str:
    if rows is None:
        return unbounded
    return "CURRENT ROW" if rows == 0 else f"{abs(rows)} {'FOLLOWING' if rows > 0 else 'PRECEDING'}"


def _add_firsts(clauses: Clauses, source: str, frame: _WindowFrame, values: Set[str]) -> tuple[str, dict[str, str]]:
    """For each value a column that is not NULL in the first row of the part that holds it, and nowhere else.

    Counted up to a row, it tells how many different values there are.
    """
    if not values:
        return source, {}
    places, firsts = ({value: clauses.make_name("f") for value in sorted(values)} for _ in range(2))
    numbered = (f"row_number(){frame.write_over(within=value)} AS {place}" for value, place in places.items())
    numbered_rows = clauses.add(["*", *numbered], source)
    marked = (f"CASE WHEN {place} = 1 THEN {value} END AS {firsts[value]}" for value, place in places.items())
    return clauses.add(["*", *marked], numbered_rows), firsts


def _add_scales(
    clauses: Clauses, source: str, frame: _WindowFrame, values: Sequence[str]
) -> tuple[str, dict[str, str]]:
    """Rows with how many steps of each value make up 1 in their part: the names of these columns."""
    if not values:
        return source, {}
    largest = {value: clauses.make_name("s") for value in values}
    over = f"OVER (PARTITION BY {frame.parts})" if frame.parts else "OVER ()"
    sizes = (f"{real_sums.write_largest(value)} {over} AS {name}" for value, name in largest.items())
    return real_sums.add_scales(clauses, clauses.add(["*", *sizes], source), largest)
