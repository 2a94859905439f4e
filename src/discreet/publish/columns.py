"""Columns of a release: values as cells, and cells as values again. Declared facts decide; data never do.

A column's cells are, in order: NULL (where it may be), any other value (where values are listed), and then its own.

- Listed values (declared keys, booleans) are a cell each.
- Numbers lie on a grid within declared bounds, beyond which they are clamped. Where the grid is small, each of its
  points is a cell. Otherwise points are put into bins of equal width (or between stated edges), and the column is also
  counted finely, so that rows keep the spikes of whole and round numbers.
- Dates are days since the first one.
"""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.bounding.contributions import Spread
from discreet.engines.tabulation import FIRST_CODE, NULL_CODE, OTHER_CODE, CellView, count_codes
from discreet.errors import UsageError
from discreet.exact import Flags, Floats, Integers
from discreet.late_dataclass import dataclass
from discreet.plan.arrow import load_arrow_types
from discreet.plan.catalog import ColumnFacts
from discreet.plan.expressions import Expression
from discreet.plan.functions import make_call, make_literal
from discreet.plan.types import Type, Value
from discreet.publish.chance import PublicChance

# So many points are cells of their own; more are put into bins.
MOST_POINTS = 128
DEFAULT_BINS = 32
# The most fine cells of a column.
MOST_FINE = 4096
OTHER_TEXT = "(other)"
# So many keys come from the data, if the plan says no other number.
MOST_KEYS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChoice:
    """What a plan says of a column beyond the codebook: its own expression, keys, bounds and bins."""

    of: str | None = None
    keys: tuple[Value, ...] | None = None
    low: Value = None
    high: Value = None
    resolution: Fraction | None = None
    bins: int | None = None
    edges: tuple[Value, ...] | None = None
    ranges: str | None = None
    # Whether its keys come from the data (``private_keys``), and how many of them there may be.
    private: bool | None = None
    max_keys: int | None = None


@dataclass(frozen=True, kw_only=True)
class PublishedColumn:
    """One column of a release: ``origin`` is the first day of dates, ``starts`` the fine cells at which bins begin."""

    name: str
    kind: Type
    expression: Expression
    nullable: bool
    values: tuple[Value, ...] | None = None
    low: Fraction = Fraction(0)
    width: Fraction = Fraction(1)
    points: bool = True
    fine: int = 0
    starts: tuple[int, ...] = ()
    origin: dt.date | None = None

    @property
    def listed(self) -> bool:
        """Whether its values are listed."""
        return self.values is not None

    @property
    def has_other(self) -> bool:
        """Whether there is a cell for values that are not listed."""
        return self.listed and self.kind is not Type.BOOLEAN

    @property
    def first(self) -> int:
        """The position of the first cell that is a value."""
        return self.nullable + self.has_other

    @property
    def size(self) -> int:
        """How many cells it has."""
        return self.first + (len(self.values) if self.values is not None else len(self.starts))

    @property
    def fine_size(self) -> int:
        """How many fine cells are counted beside its cells; 0 where these are fine already."""
        return 0 if self.listed or len(self.starts) == self.fine else self.fine

    @cached_property
    def spread(self) -> Spread:
        """How an engine finds the cells: by the list, or by the fine grid."""
        if self.values is not None:
            return Spread(argument=self.expression, values=self.values, last=len(self.values) - 1)
        start = self.low if self.points else self.low + self.width / 2
        return Spread(argument=self.expression, origin=start, resolution=self.width, first=0, last=self.fine - 1)

    def find_steps(self, low: Value, high: Value) -> tuple[int, int]:
        """The fine cells of a range of values, both ends included, and where cells are wide those that touch it."""
        ends = [float(self._to_number(value)) for value in (low, high)]
        first, last = ((end - float(self.low)) / float(self.width) for end in ends)
        nudge = 1e-9 if self.points else -1e-9
        start = math.ceil(first - nudge) if self.points else math.floor(first + 1e-9)
        return max(0, start), min(self.fine, math.floor(last + nudge) + 1)

    def _to_number(self, value: Value) -> float:
        if self.origin is not None and isinstance(value, dt.date):
            day = value.date() if isinstance(value, dt.datetime) else value
            return float((day - self.origin).days)
        if self.origin is not None or isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"The ends of a range of {self.name!r} are of its own type.")
        return float(value)

    def view(self, spread: int) -> CellView:
        """In which cell each code counts."""
        codes = count_codes(self.spread)
        cells = np.zeros(codes, dtype=np.int64)
        own = np.arange(codes - FIRST_CODE)
        cells[FIRST_CODE:] = self.first + (own if self.listed else np.searchsorted(self.starts, own, "right") - 1)
        cells[OTHER_CODE] = self.nullable if self.has_other else 0
        # Where NULL was declared away, it counts as any other value, or as the first one.
        cells[NULL_CODE] = 0 if self.nullable or not self.has_other else cells[OTHER_CODE]
        return CellView(spread, cells, self.size)

    def fine_view(self, spread: int) -> CellView:
        """In which fine cell each code counts; what has no value counts in a last one, which is left aside."""
        codes = count_codes(self.spread)
        cells = np.full(codes, self.fine, dtype=np.int64)
        cells[FIRST_CODE:] = np.arange(self.fine)
        return CellView(spread, cells, self.fine + 1)

    def label(self, cell: int) -> str:
        """A cell for people."""
        if cell < self.first:
            return "NULL" if self.nullable and cell == 0 else OTHER_TEXT
        if self.values is not None:
            return str(self.values[cell - self.first])
        start = self.starts[cell - self.first]
        end = self.starts[cell - self.first + 1] if cell - self.first + 1 < len(self.starts) else self.fine
        ends = self._value_at(start, 0.0), self._value_at(end - 1, 1.0 if not self.points else 0.0)
        low, high = (f"{value:g}" if isinstance(value, float) else str(value) for value in ends)
        return low if low == high else f"{low} to {high}"

    def find_value(self, cell: int) -> tuple[bool, Value]:
        """The one value that a cell stands for, if it stands for one."""
        if cell < self.first:
            return self.nullable and cell == 0, None
        if self.values is not None:
            return True, self.values[cell - self.first]
        start = self.starts[cell - self.first]
        end = self.starts[cell - self.first + 1] if cell - self.first + 1 < len(self.starts) else self.fine
        single = self.points and end - start == 1
        return single, self._value_at(start, 0.0) if single else None

    def _value_at(self, step: int, share: float) -> Value:
        """The value at a fine step, or a share of the way through it."""
        number = float(self.low) + (step + (0.0 if self.points else share)) * float(self.width)
        if self.origin is not None:
            day = self.origin + dt.timedelta(days=math.floor(number))
            return dt.datetime.combine(day, dt.time()) if self.kind is Type.TIMESTAMP else day
        return math.floor(number + 1e-9) if self.kind is Type.INTEGER else number

    def decode(self, cells: Integers, fine: Floats | None, chance: PublicChance) -> Any:
        """Cells as values of the column's own type, as an Arrow array; within bins as the fine histogram says."""
        import pyarrow as pa

        kind = load_arrow_types()[self.kind]
        missing = np.asarray(cells < self.first)
        if self.values is not None:
            other = OTHER_TEXT if self.kind is Type.TEXT else None
            heads = ([None] if self.nullable else []) + ([other] if self.has_other else [])
            return pa.array([*heads, *self.values], kind).take(pa.array(cells))
        steps = self._choose_steps(np.where(missing, 0, cells - self.first), fine, chance)
        return self._decode_steps(steps, missing, chance)

    def _choose_steps(self, bins: Integers, fine: Floats | None, chance: PublicChance) -> Integers:
        """A fine step for each row, by the weights of the steps in its bin."""
        if len(self.starts) == self.fine:
            return bins
        weights = np.ones(self.fine) if fine is None else fine
        found = np.zeros(len(bins), dtype=np.int64)
        ends = [*self.starts[1:], self.fine]
        for number, (start, end) in enumerate(zip(self.starts, ends)):
            rows = np.nonzero(bins == number)[0]
            if rows.size:
                part = weights[start:end]
                found[rows] = start + chance.deal(part if part.sum() > 0 else np.ones(end - start), rows.size)
        return found

    def _decode_steps(self, steps: Integers, missing: Flags, chance: PublicChance) -> Any:
        import pyarrow as pa

        kind = load_arrow_types()[self.kind]
        shares = 0.0 if self.points else chance.uniform(len(steps))
        numbers = float(self.low) + (steps + shares) * float(self.width)
        if self.kind is Type.REAL:
            return pa.array(numbers, kind, mask=missing)
        whole = np.floor(numbers + 1e-9).astype(np.int64)
        if self.origin is None:
            return pa.array(whole, kind, mask=missing)
        days = np.datetime64(self.origin, "D") + whole.astype("timedelta64[D]")
        unit = "datetime64[us]" if self.kind is Type.TIMESTAMP else "datetime64[D]"
        return pa.array(days.astype(unit), kind, mask=missing)


def stand_in(kind: Type, count: int) -> tuple[Value, ...]:
    """Keys in the place of those that are not known yet, or of none; for texts and whole numbers."""
    return tuple(f"(key {i})" if kind is Type.TEXT else i for i in range(count))


def _read_private(name: str, kind: Type, facts: ColumnFacts, choice: ColumnChoice) -> tuple[Value, ...] | None:
    """The keys of a column that are to come from the data: those that were named, or as many as there may be."""
    if not choice.private:
        return choice.keys if choice.keys is not None else facts.keys
    if kind not in (Type.TEXT, Type.INTEGER) or facts.keys is not None:
        raise UsageError(
            f"Keys from the data are for texts and whole numbers without declared keys; {name!r} is none. Leave "
            'keys = "private" out. Nothing was charged.'
        )
    most = MOST_KEYS if choice.max_keys is None else choice.max_keys
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_FINE:
        raise UsageError(f"max_keys of {name!r} is 1 to {MOST_FINE:,}. Nothing was charged.")
    return stand_in(kind, most) if choice.keys is None else choice.keys


def publish_column(name: str, expression: Expression, facts: ColumnFacts, choice: ColumnChoice) -> PublishedColumn:
    """A column from what is declared of it; refused where neither codebook nor plan says what its values are."""
    kind = expression.type
    keys = _read_private(name, kind, facts, choice)
    common: dict[str, Any] = {"name": name, "kind": kind}
    if kind is Type.BOOLEAN:
        keys = (False, True)
    if keys is not None and choice.bins is None and choice.edges is None:
        listed = tuple(dict.fromkeys(value for value in keys if value is not None))
        if not listed:
            raise UsageError(f"The column {name!r} of the release lists no values. Nothing was charged.")
        nullable = facts.nullable or None in keys
        return PublishedColumn(**common, expression=expression, nullable=nullable, values=listed)
    if kind.is_time:
        return _publish_dates(name, expression, facts, choice)
    low, high = (_read_bound(own, known) for own, known in ((choice.low, facts.low), (choice.high, facts.high)))
    if not kind.is_number or low is None or high is None:
        fix = "bounds (low and high)" if kind.is_number else "keys"
        raise UsageError(
            f"Nothing is declared of the values of {name!r}. Declare its {fix} in the codebook, or in the plan under "
            f"[columns.{name}], or leave it out. Nothing was charged."
        )
    return _publish_numbers(name, expression, facts, choice, (low, high))


def _read_bound(own: Value, known: Fraction | None) -> Fraction | None:
    if own is None:
        return known
    if isinstance(own, bool) or not isinstance(own, int | float) or not math.isfinite(own):
        raise UsageError("The low and high of a number in a plan are numbers. Nothing was charged.")
    return Fraction(str(own))


def _publish_numbers(
    name: str, expression: Expression, facts: ColumnFacts, choice: ColumnChoice, ends: tuple[Fraction, Fraction]
) -> PublishedColumn:
    low, high = ends
    if not low < high:
        raise UsageError(f"The bounds of {name!r} must be low < high. Nothing was charged.")
    step = choice.resolution or facts.resolution or (Fraction(1) if expression.type is Type.INTEGER else None)
    count = 0 if step is None else math.floor((high - low) / step) + 1
    if step is not None and 0 < count <= MOST_FINE:
        width, points = step, True
    else:
        count, points = max(MOST_FINE // 4, min(choice.bins or 0, MOST_FINE)), False
        width = (high - low) / count
    starts = _choose_starts(name, low, width, count, choice)
    return PublishedColumn(
        name=name,
        kind=expression.type,
        expression=expression,
        nullable=facts.nullable,
        low=low,
        width=width,
        points=points,
        fine=count,
        starts=starts,
    )


def _choose_starts(name: str, low: Fraction, width: Fraction, count: int, choice: ColumnChoice) -> tuple[int, ...]:
    """At which fine cells bins begin: each is its own where they are few."""
    if choice.edges is not None:
        inner = [math.ceil((Fraction(str(edge)) - low) / width) for edge in choice.edges]
        found = sorted({0, *(place for place in inner if 0 < place < count)})
        return tuple(found)
    if choice.bins is None and count <= MOST_POINTS:
        return tuple(range(count))
    bins = DEFAULT_BINS if choice.bins is None else choice.bins
    if not 1 <= bins <= MOST_FINE:
        raise UsageError(f"The column {name!r} can have 1 to {MOST_FINE:,} bins. Nothing was charged.")
    return tuple(sorted({number * count // bins for number in range(bins)}))


def _publish_dates(name: str, expression: Expression, facts: ColumnFacts, choice: ColumnChoice) -> PublishedColumn:
    low, high = choice.low, choice.high
    if not isinstance(low, dt.date) or not isinstance(high, dt.date):
        raise UsageError(
            f"Nothing is declared of the days of {name!r}. Say under [columns.{name}] low = 2020-01-01 and high = "
            "2024-12-31, or leave it out. Nothing was charged."
        )
    first, last = (day.date() if isinstance(day, dt.datetime) else day for day in (low, high))
    start = make_literal(first if expression.type is Type.DATE else dt.datetime.combine(first, dt.time()))
    days = make_call("date_diff", make_literal("day"), start, expression)
    whole = ColumnChoice(low=0, high=(last - first).days, bins=choice.bins)
    numbers = publish_column(name, days, ColumnFacts(nullable=facts.nullable), whole)
    return PublishedColumn(
        name=name,
        kind=expression.type,
        expression=days,
        nullable=facts.nullable,
        width=numbers.width,
        points=numbers.points,
        fine=numbers.fine,
        starts=numbers.starts,
        origin=first,
    )
