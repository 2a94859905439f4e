"""An answer: values with the intervals of their noise, the cost, and a receipt.

Everything in an answer is released, so it may be kept, shown, copied and computed with. The table is an Arrow table;
the text and HTML forms are for people.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from discreet.answer_rows import CellColumn, Rows, list_columns, make_column
from discreet.draw_record import dump_values, load_values
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.picture import answer_to_html, format_table
from discreet.plan.arrow import load_arrow_types
from discreet.plan.types import Type, Value
from discreet.plot import plot_rows
from discreet.privacy import Loss

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

# How many rows the text and HTML forms show. The table has all of them.
_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A released table with its loss, its receipt and its explanation.

    ``table`` has each column under its own name. A measured column x also has ``x_low`` and ``x_high``: with the stated
    confidence the number without noise lies between them. ``spent`` is this answer's loss. ``remaining`` is what was
    left of the budget afterwards. ``replayed`` says that the answer was given before and cost nothing now.
    """

    rows: Rows
    spent: Loss
    remaining: str
    receipt: Mapping[str, Any]
    explanation: str
    replayed: bool = False

    @property
    def table(self) -> pyarrow.Table:
        """The answer as an Arrow table."""
        import pyarrow as pa

        kinds = load_arrow_types()
        return pa.table({name: pa.array(values, kinds[kind]) for name, kind, values in self.columns()})

    def columns(self) -> list[tuple[str, Type, list[Value]]]:
        """Names, types and values, with the ends of intervals beside their columns."""
        values: list[list[Value]] = []
        for column, measured in zip(self.rows.columns, self.rows.measured):
            values += map(list, (column.values, *column.ends) if measured else (column.values,))
        columns = list_columns(self.rows.names, self.rows.types, self.rows.measured)
        return [(name, kind, column) for (name, kind), column in zip(columns, values)]

    def to_arrow(self) -> pyarrow.Table:
        """The answer as an Arrow table, as ``table`` is."""
        return self.table

    def to_pandas(self) -> pandas.DataFrame:
        """The answer as a pandas frame."""
        _check_installed("pandas", "to_pandas()")
        return self.table.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The answer as a polars frame."""
        _check_installed("polars", "to_polars()")
        import polars as pl

        frame = pl.from_arrow(self.table)
        return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The answer for anything that reads Arrow: ``polars.DataFrame(answer)``, ``duckdb``, ``pyarrow.table``."""
        return self.table.__arrow_c_stream__(requested_schema)

    def plot(self, column: str | None = None, *, ax: Axes | None = None) -> Axes:
        """A chart of one column with the intervals of its noise, drawn by matplotlib (``discreet[plots]``).

        Lines where the first key is a time or a number, otherwise bars; a second key makes a series for each value.
        """
        return plot_rows(self.rows, str(self.receipt["level"]), column, ax)

    def explain(self) -> str:
        """The plan, its facts, its sensitivities and its noise, with the reasons."""
        return self.explanation

    def describe_cost(self) -> str:
        """One line that says what the answer cost and what is left of the budget."""
        cost = "given before, free now" if self.replayed else f"cost {self.receipt['cost']}"
        return f"{cost}; left {self.remaining}"

    def list_limits(self) -> list[tuple[str, str]]:
        """What the intervals cover: the limits and bounds that apply, and what lies beyond them, each with its title.

        An answer on record that was given before limits were written down has none.
        """
        receipt = self.receipt
        titled = [
            (title, line)
            for title, key in (("chosen", "chosen"), ("limit", "limits"), ("clamped", "clamped"))
            for line in receipt.get(key, ())
        ]
        return [*titled, ("interval", str(receipt["interval"]))] if "interval" in receipt else titled

    def __len__(self) -> int:
        return len(self.rows.rows)

    def __getitem__(self, item: str | int) -> Any:
        """The values of a column, by name (``answer["n"]``, ``answer["n_low"]``), or a row by its number."""
        if isinstance(item, int):
            return {name: values[item] for name, _, values in self.columns()}
        columns = {name: values for name, _, values in self.columns()}
        if item not in columns:
            raise UsageError(f"The answer has no column {item!r}. It has {', '.join(columns)}.")
        return columns[item]

    def _ipython_key_completions_(self) -> list[str]:
        return [name for name, _, _ in self.columns()]

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """The rows, each as a dict."""
        columns = self.columns()
        names = [name for name, _, _ in columns]
        return (dict(zip(names, row)) for row in zip(*(values for _, _, values in columns)))

    def __str__(self) -> str:
        lines = format_table(self.rows, _SHOWN, str(self.receipt["level"]))
        if len(self) > _SHOWN:
            lines.append(f"... {len(self) - _SHOWN:,} more rows in .table")
        lines += [f"{title:<8}  {line}" for title, line in self.list_limits()]
        lines.append(f"protects  {self.receipt['protects']}")
        lines.append(self.describe_cost())
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cost = "given before, free now" if self.replayed else str(self.receipt["cost"])
        facts = [("protects", str(self.receipt["protects"])), ("cost", cost), ("left", self.remaining)]
        return answer_to_html(self.rows, _SHOWN, str(self.receipt["level"]), [*self.list_limits(), *facts])

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values: rows, receipt, and what is left."""
        return {
            "rows": self.table.to_pylist(),
            "receipt": dict(self.receipt),
            "remaining": self.remaining,
            "replayed": self.replayed,
        }

    def record(self) -> dict[str, Any]:
        """The answer as plain JSON values, for the ledger."""
        return {
            "columns": [
                {"name": name, "type": str(kind), "measured": measured, **_dump_column(column, kind)}
                for name, kind, measured, column in zip(
                    self.rows.names, self.rows.types, self.rows.measured, self.rows.columns
                )
            ],
            "receipt": dict(self.receipt),
            "explanation": self.explanation,
        }


def _check_installed(library: str, what: str) -> None:
    if find_spec(library) is None:
        raise UsageError(f"{what} needs {library}: pip install {library}. Or use .table, which is an Arrow table.")


def read_rows(record: Mapping[str, Any]) -> Rows:
    """The rows that an answer's record holds."""
    columns = record["columns"]
    kinds = tuple(Type(column["type"]) for column in columns)
    loaded = tuple(_load_column(column, kind) for column, kind in zip(columns, kinds))
    return Rows(
        tuple(column["name"] for column in columns),
        kinds,
        tuple(column["measured"] for column in columns),
        loaded,
    )


# The parts of a column on record. Those that it does not have are left out.
_PARTS = ("values", "lows", "highs")


def _dump_column(column: CellColumn, kind: Type) -> dict[str, list[Any]]:
    parts = ((part, getattr(column, part)) for part in _PARTS)
    return {part: dump_values(values, kind) for part, values in parts if values is not None}


def _load_column(record: Mapping[str, Any], kind: Type) -> CellColumn:
    """A column on record; older records have a value and both ends for each row."""
    if "cells" in record:
        parts = zip(*record["cells"]) if record["cells"] else ((), (), ())
        return make_column(*(load_values(part, kind) for part in parts))
    lows, highs = (load_values(record[part], kind) if part in record else None for part in _PARTS[1:])
    return CellColumn(load_values(record["values"], kind), lows, highs)
