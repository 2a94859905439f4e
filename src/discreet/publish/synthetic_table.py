"""The synthetic rows of a bundle, in the forms in which people want them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.row_formats import to_csv


@dataclass(frozen=True)
class SyntheticTable:
    """Synthetic rows as an Arrow table."""

    rows: Any

    def to_arrow(self) -> Any:
        """As an Arrow table."""
        return self.rows

    def to_pandas(self) -> Any:
        """As a pandas frame; pandas must be installed."""
        return self.rows.to_pandas()

    def to_polars(self) -> Any:
        """As a polars frame; polars must be installed."""
        import polars

        return polars.from_arrow(self.rows)

    def write_csv(self, path: str | Path) -> None:
        """As a CSV file."""
        Path(path).write_bytes(to_csv(self.rows))

    def filter(self, **values: Any) -> SyntheticTable:
        """The rows that have these values: a sample under conditions. ``len`` says how many it rests on."""
        import pyarrow.compute as pc

        kept = self.rows
        for name, value in values.items():
            if name not in kept.column_names:
                raise UsageError(f"There is no column {name!r} in this release: {', '.join(kept.column_names)}.")
            column = kept.column(name)
            kept = kept.filter(pc.is_null(column) if value is None else pc.equal(column, value))
        return SyntheticTable(kept)

    def __len__(self) -> int:
        return int(self.rows.num_rows)
