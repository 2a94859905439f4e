"""The table of an answer before it is dressed: columns of values with both ends of the intervals of their noise.

Answers may have a million rows. So they are kept by columns, and a row of cells is made where somebody looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from discreet.late_dataclass import dataclass
from discreet.plan.types import Type, Value


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of the answer with the interval of its noise; both ends None where there is no number."""

    value: Value
    low: Value = None
    high: Value = None


@dataclass(frozen=True, slots=True)
class CellColumn:
    """The values of one column from the first row to the last, and the ends of their intervals; None without any."""

    values: tuple[Value, ...]
    lows: tuple[Value, ...] | None = None
    highs: tuple[Value, ...] | None = None

    def make_cell(self, row: int) -> Cell:
        """The value in one row, with its interval."""
        return Cell(
            self.values[row],
            None if self.lows is None else self.lows[row],
            None if self.highs is None else self.highs[row],
        )

    @property
    def ends(self) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """Both ends for each row, None where there are none."""
        unknown = (None,) * len(self.values)
        return self.lows or unknown, self.highs or unknown


@dataclass(frozen=True, slots=True)
class Rows:
    """The answer before it is dressed: names, types, which columns have intervals, and the columns."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    measured: tuple[bool, ...]
    columns: tuple[CellColumn, ...]

    @property
    def rows(self) -> RowView:
        """The rows, each made when it is looked at."""
        return RowView(self.columns)


class RowView(Sequence[tuple[Cell, ...]]):
    """The rows of columns. It is equal to a tuple of the same rows."""

    def __init__(self, columns: Sequence[CellColumn]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0].values) if self._columns else 0

    @overload
    def __getitem__(self, place: int) -> tuple[Cell, ...]: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[tuple[Cell, ...], ...]: ...

    def __getitem__(self, place: int | slice) -> tuple[Cell, ...] | tuple[tuple[Cell, ...], ...]:
        if isinstance(place, slice):
            return tuple(self[i] for i in range(*place.indices(len(self))))
        return tuple(column.make_cell(place) for column in self._columns)

    def __iter__(self) -> Iterator[tuple[Cell, ...]]:
        return zip(*(map(Cell, column.values, *column.ends) for column in self._columns))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, RowView | tuple) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as for a list: nobody keeps rows by their hash

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {len(self):,} rows"


def make_column(values: Iterable[Value], lows: Iterable[Value] = (), highs: Iterable[Value] = ()) -> CellColumn:
    """A column; ends that are all unknown are none."""
    known = [ends if any(end is not None for end in ends) else None for ends in (tuple(lows), tuple(highs))]
    return CellColumn(tuple(values), *known)


def make_rows(
    names: Sequence[str], types: Sequence[Type], measured: Sequence[bool], rows: Iterable[Sequence[Cell]]
) -> Rows:
    """A table from its rows.

    >>> table = make_rows(["ward", "n"], [Type.TEXT, Type.INTEGER], [False, True], [(Cell("a"), Cell(5, 3, 7))])
    >>> table.columns[1].highs, table.rows[0][0]
    ((7,), Cell(value='a', low=None, high=None))
    """
    listed = list(rows)
    columns = tuple(
        make_column(*([getattr(row[at], part) for row in listed] for part in ("value", "low", "high")))
        for at in range(len(names))
    )
    return Rows(tuple(names), tuple(types), tuple(measured), columns)


def list_columns(names: Sequence[str], types: Sequence[Type], measured: Sequence[bool]) -> list[tuple[str, Type]]:
    """The columns of the table of an answer: each output, and beside it the ends of its interval.

    >>> [name for name, _ in list_columns(["ward", "n"], [Type.TEXT, Type.INTEGER], [False, True])]
    ['ward', 'n', 'n_low', 'n_high']
    """
    return [
        (name + end, kind)
        for name, kind, has_ends in zip(names, types, measured)
        for end in (("", "_low", "_high") if has_ends else ("",))
    ]
