"""Constraints: what holds in every row of a release, as a public fact. They hold in all synthetic rows.

- ``forbid``: a combination of values that does not occur, such as sex = 'm' with pregnant = true;
- ``order``: one column is at most another, such as admitted and discharged; NULL on either side is allowed;
- ``determines``: a column that follows from another by a stated table, such as the region of a town.

A constraint is a claim of the curator about the world, not a fact that was read from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from discreet.draw_record import to_plain
from discreet.errors import UsageError
from discreet.exact import Flags, Integers
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import suggest_nearest
from discreet.publish.columns import PublishedColumn

CellRule: TypeAlias = Callable[[Integers], Flags]
"""Which rows of cells keep a constraint."""


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """One constraint: exactly one of ``forbid``, ``order`` and ``determines`` is said."""

    forbid: Mapping[str, Any] | None = None
    order: tuple[str, str] | None = None
    determines: tuple[str, str] | None = None
    pairs: tuple[tuple[Any, Any], ...] = ()

    @classmethod
    def from_dict(cls, words: Any) -> Constraint:
        """A constraint as a plan writes it."""
        if isinstance(words, Constraint):
            return words
        if not isinstance(words, Mapping) or not set(words) <= {"forbid", "order", "determines", "pairs"}:
            raise UsageError(
                "A constraint says forbid = {...}, order = ['a', 'b'], or determines = ['a', 'b'] with pairs. "
                "Nothing was charged."
            )
        stated = dict(words)
        for name in ("order", "determines"):
            if name in stated:
                stated[name] = tuple(stated[name])
        if "pairs" in stated:
            stated["pairs"] = tuple(tuple(map(_settle, pair)) for pair in stated["pairs"])
        if isinstance(stated.get("forbid"), Mapping):
            stated["forbid"] = {name: _settle(value) for name, value in stated["forbid"].items()}
        return cls(**stated)

    def to_dict(self) -> dict[str, Any]:
        """The constraint as plain values."""
        forbid = None if self.forbid is None else {name: to_plain(value) for name, value in self.forbid.items()}
        order, determines = (None if sides is None else list(sides) for sides in (self.order, self.determines))
        pairs = [[to_plain(value) for value in pair] for pair in self.pairs] or None
        stated = {"forbid": forbid, "order": order, "determines": determines, "pairs": pairs}
        return {word: value for word, value in stated.items() if value is not None}

    def check(self, columns: Mapping[str, object]) -> None:
        """Refuse what names columns that are not published, or says nothing or too much."""
        if sum(said is not None for said in (self.forbid, self.order, self.determines)) != 1:
            raise UsageError("A constraint says one thing: forbid, order or determines. Nothing was charged.")
        sides = self.order or self.determines or ("", "")
        if self.forbid is None and (len(sides) != 2 or sides[0] == sides[1]):
            raise UsageError("A constraint of order or dependence names two columns. Nothing was charged.")
        for name in self.names:
            if name not in columns:
                hint = suggest_nearest(name, columns)
                raise UsageError(f"A constraint names {name!r}, which is not published. {hint} Nothing was charged.")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return tuple(self.forbid) if self.forbid is not None else (self.order or self.determines or ())

    def to_rule(self, columns: Sequence[PublishedColumn]) -> CellRule:
        """Which rows of cells keep it. Refused where the cells are too coarse to tell."""
        place = {column.name: position for position, column in enumerate(columns)}
        if self.forbid is not None:
            cells = [(place[n], find_cell(columns[place[n]], value)) for n, value in self.forbid.items()]
            return lambda rows: ~np.logical_and.reduce([rows[at] == cell for at, cell in cells])
        first, second = (columns[place[name]] for name in self.names)
        left, right = (place[name] for name in self.names)
        allowed = _compare(first, second) if self.order is not None else self._follow(first, second)
        return lambda rows: np.asarray(allowed[rows[left], rows[right]])

    def _follow(self, first: PublishedColumn, second: PublishedColumn) -> Flags:
        """For each pair of cells whether the second follows from the first; unlisted cells are free."""
        allowed = np.ones((first.size, second.size), dtype=np.bool_)
        for one, two in self.pairs:
            row, column = find_cell(first, one), find_cell(second, two)
            if not allowed[row].all():
                raise UsageError("A dependence gives one value two partners. Nothing was charged.")
            allowed[row] = False
            allowed[row, column] = True
        return allowed


def _settle(value: Any) -> Any:
    """A value of a plan: reals come from TOML as fractions."""
    return float(value) if isinstance(value, Fraction) else value


def find_cell(column: PublishedColumn, value: Any) -> int:
    """The cell of a value, as the plan writes it or as its record does: days and times are texts there."""
    plain = to_plain(value)
    for cell in range(column.size):
        single, known = column.find_value(cell)
        if single and type(to_plain(known)) is type(plain) and to_plain(known) == plain:
            return cell
    raise UsageError(
        f"The plan names the value {value!r} of {column.name!r}, which is no cell of its own. Nothing was charged."
    )


def _compare(first: PublishedColumn, second: PublishedColumn) -> Flags:
    """For each pair of cells whether the first is at most the second; only single values can be compared."""
    sides: list[list[Any]] = []
    if first.kind is not second.kind:
        raise UsageError("A constraint of order compares columns of one type. Nothing was charged.")
    for column in (first, second):
        known = [column.find_value(cell) for cell in range(column.size)]
        if not all(single for single, _ in known):
            raise UsageError(
                f"The cells of {column.name!r} are bins, or have others among them, so rows cannot be held to an "
                "order. Give it bounds with few points. Nothing was charged."
            )
        sides.append([value for _, value in known])
    return np.array([[a is None or b is None or a <= b for b in sides[1]] for a in sides[0]], dtype=np.bool_)


def combine_rules(constraints: Sequence[Constraint], columns: Sequence[PublishedColumn]) -> CellRule | None:
    """All constraints together; None where there are none."""
    rules = [constraint.to_rule(columns) for constraint in constraints]
    if not rules:
        return None
    return lambda rows: np.logical_and.reduce([rule(rows) for rule in rules])


def find_allowed_row(columns: Sequence[PublishedColumn], constraints: Sequence[Constraint]) -> Integers:
    """One row of cells that keeps all constraints, or a refusal where there is none. Nothing private is looked at.

    Columns get their cells one after the other; a constraint is checked as soon as all of its columns have one.
    """
    place = {column.name: position for position, column in enumerate(columns)}
    rules = [(frozenset(place[name] for name in each.names), each.to_rule(columns)) for each in constraints]
    order = sorted({at for places, _ in rules for at in places}, key=lambda at: (columns[at].size, at))
    row = np.zeros(len(columns), dtype=np.int64)
    tried = 0

    def settle(depth: int) -> bool:
        nonlocal tried
        if depth == len(order):
            return True
        at, known = order[depth], frozenset(order[: depth + 1])
        rows = np.repeat(row[:, None], columns[at].size, axis=1)
        rows[at] = np.arange(columns[at].size)
        kept = np.ones(columns[at].size, dtype=np.bool_)
        for places, rule in rules:
            if at in places and places <= known:
                kept &= rule(rows)
        for cell in np.nonzero(kept)[0]:
            tried += 1
            if tried > _MOST_TRIED:
                raise UsageError(
                    f"No row that keeps all constraints was found among {_MOST_TRIED:,}. Say fewer of them, or give "
                    f"their columns fewer cells. Nothing was charged."
                )
            row[at] = cell
            if settle(depth + 1):
                return True
        return False

    if not settle(0):
        raise UsageError(
            "The constraints contradict each other: there is no row that keeps all of them. Change them. "
            "Nothing was charged."
        )
    return row


_MOST_TRIED = 200_000
