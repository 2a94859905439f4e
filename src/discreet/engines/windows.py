"""Windows in DuckDB's SQL: more columns for each row, from the other rows of its part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from discreet.engines import features
from discreet.engines.clauses import Clauses, Written
from discreet.plan.expressions import Column
from discreet.plan.relations import Compute, Window


def windowed(
    clauses: Clauses, relation: Window, source: Written, wanted: Mapping[Column, Compute], ties: Sequence[Column]
) -> tuple[str, dict[Column, features.Written]]:
    """The rows with what features read, and the features. ``ties`` are all columns, where rows must be told apart."""
    layers = clauses.over(source)
    parts = ", ".join(layers.value(part) for part in relation.parts)
    frame = _Frame(
        parts=f"PARTITION BY {parts}" if parts else "",
        order=tuple(_sorted(layers.value(value), descending=down) for value, down in relation.order),
        ties=tuple(_sorted(source.columns[column]) for column in ties),
    )
    values = {c: "" if w.argument is None else layers.value(w.argument) for c, w in wanted.items()}
    stepped = {c for c, w in wanted.items() if features.is_stepped(w, running=bool(relation.order))}
    top, steps = _steps(clauses, clauses.layered(layers, source), frame, {values[c] for c in stepped})
    computed = {}
    for column, compute in wanted.items():
        value = values[column]
        if compute.feature in features.POSITIONS:
            over = frame.over(untied=compute.feature in features.UNTIED)
            computed[column] = features.position(compute, value, over)
        elif column in stepped:
            computed[column] = features.running(compute, *steps[value], frame.over())
        else:
            computed[column] = features.aggregate(compute, value, frame.over())
    return top, computed


@dataclass(frozen=True, slots=True)
class _Frame:
    """How rows are divided and ordered. Sums run to the last peer in ``order``; ``ties`` tell peers apart."""

    parts: str
    order: tuple[str, ...]
    ties: tuple[str, ...]

    def over(self, *, untied: bool = False) -> str:
        order = ", ".join((*self.order, *self.ties) if untied else self.order)
        return f" OVER ({' '.join(filter(None, (self.parts, f'ORDER BY {order}' if order else '')))})"


def _sorted(value: str, *, descending: bool = False) -> str:
    return f"{value} {'DESC' if descending else 'ASC'} NULLS LAST"


def _steps(clauses: Clauses, source: str, frame: _Frame, values: Set[str]) -> tuple[str, dict[str, tuple[str, str]]]:
    """Values in whole steps, and how many of these make up 1, for running sums: the names of both columns."""
    if not values:
        return source, {}
    found = {value: (clauses.fresh("s"), clauses.fresh("s")) for value in sorted(values)}
    scales = (f"{features.scale(value, frame.parts)} AS {scale}" for value, (_, scale) in found.items())
    scaled = clauses.add(["*", *scales], source)
    whole = (f"{features.steps(value, scale)} AS {step}" for value, (step, scale) in found.items())
    return clauses.add(["*", *whole], scaled), found
