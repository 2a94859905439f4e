"""The synthetic rows of a bundle, in the forms in which people want them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from discreet import parameters
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.publish.chance import PublicChance
from discreet.row_formats import to_csv


@dataclass(frozen=True)
class SyntheticTable:
    """Synthetic rows as an Arrow table. ``effective`` says how many different rows a sample was drawn from."""

    rows: Any
    effective: int | None = None

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
        """The rows that have these values. ``len`` says how many there are; ``sample`` draws as many as are wanted."""
        import pyarrow.compute as pc

        kept = self.rows
        for name, value in values.items():
            if name not in kept.column_names:
                raise UsageError(f"There is no column {name!r} in this release: {', '.join(kept.column_names)}.")
            column = kept.column(name)
            kept = kept.filter(pc.is_null(column) if value is None else pc.equal(column, value))
        return SyntheticTable(kept)

    def sample(self, count: int, *, seed: int = 0, **values: Any) -> SyntheticTable:
        """So many rows that have these values, each drawn about equally often from those that are there.

        A rare condition has few rows to draw from: ``effective`` says how many, and the sample knows no more than
        these. The same seed gives the same rows.
        """
        parameters.read_whole(count, "count")
        parameters.read_whole(seed, "seed", least=0)
        kept = self.filter(**values)
        if not len(kept):
            raise UsageError("No synthetic row has these values, so there is nothing to draw from. Ask for fewer.")
        places = PublicChance(f"sample {seed}".encode()).deal(np.ones(len(kept)), count)
        return SyntheticTable(kept.rows.take(places), effective=min(count, len(kept)))

    def __repr__(self) -> str:
        drawn = "" if self.effective is None else f" drawn from {self.effective:,}, and worth no more than these"
        return f"{len(self):,} synthetic rows of {', '.join(self.rows.column_names)}{drawn}"

    def __len__(self) -> int:
        return int(self.rows.num_rows)
