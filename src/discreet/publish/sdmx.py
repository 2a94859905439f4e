"""Tables of a release as SDMX-CSV 2.0, for those who exchange statistics: one dataflow, one line for each cell.

Every column of the release is a dimension. A table of some of them has the code ``_T`` (total) in all others, so that
one file holds all tables, and no two lines have the same key. NULL is ``_U`` (unknown), other values are ``_O``. Values
whose text is no SDMX code are numbered. Heads and codes have their labels beside them ("both" of the standard). The
interval is in LOW and HIGH, the consistent number in ESTIMATE.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from discreet.publish.columns import PublishedColumn
from discreet.publish.measurements import Measurements

TOTAL, UNKNOWN, OTHER = "_T", "_U", "_O"
_CODE = re.compile(r"[A-Za-z0-9_@$-]{1,60}\Z")
_NUMBERS = {"value": "OBS_VALUE", "low": "LOW", "high": "HIGH", "estimate": "ESTIMATE"}


def make_sdmx(stacked: Any, measured: Measurements, columns: Sequence[PublishedColumn], name: str) -> Any:
    """All tables as one Arrow table with the columns of SDMX-CSV; ``stacked`` are the tables with their numbers."""
    import pyarrow as pa

    codes = [_list_codes(column) for column in columns]
    labels = [[f"{code}: {column.label(cell)}" for cell, code in enumerate(own)] for column, own in zip(columns, codes)]
    dimensions: list[list[str]] = [[] for _ in columns]
    for part in measured.allocation.workload.closure:
        shape = measured.allocation.workload.shape(part)
        inner = measured.allocation.workload.cells(part)
        cells = inner
        for number, listed in enumerate(dimensions):
            if number not in part:
                listed.extend([f"{TOTAL}: Total"] * cells)
                continue
            inner //= shape[part.index(number)]
            once = [label for label in labels[number] for _ in range(inner)]
            listed.extend(once * (cells // len(once)))
    heads = _list_heads(columns)
    count = stacked.num_rows
    found: dict[str, Any] = {
        "STRUCTURE": ["dataflow"] * count,
        "STRUCTURE_ID": [f"DISCREET:{_to_code(name, 'RELEASE')}(1.0): {name}"] * count,
        "ACTION": ["I"] * count,
    }
    found |= dict(zip(heads, dimensions))
    return pa.table(found | {head: stacked.column(own) for own, head in _NUMBERS.items()})


def _list_heads(columns: Sequence[PublishedColumn]) -> list[str]:
    """The name of each dimension as a code, with the name as it is; no two are the same."""
    taken = {"STRUCTURE", "STRUCTURE_ID", "ACTION", *_NUMBERS.values()}
    found = []
    for number, column in enumerate(columns):
        code = _to_code(column.name, f"DIM{number + 1}")
        code = f"DIM{number + 1}" if code in taken else code
        taken.add(code)
        found.append(f"{code}: {column.name}")
    return found


def _to_code(text: str, otherwise: str) -> str:
    """A name in the letters of an SDMX code."""
    found = re.sub(r"[^A-Z0-9_]", "_", text.upper())
    return found if found.isascii() and re.match(r"[A-Z]", found) else otherwise


def _list_codes(column: PublishedColumn) -> list[str]:
    """A code for each cell of a column; no two are the same."""
    found: list[str] = []
    for cell in range(column.size):
        if cell < column.first:
            found.append(UNKNOWN if column.nullable and cell == 0 else OTHER)
            continue
        label = column.label(cell)
        known = _CODE.match(label) and label not in (TOTAL, UNKNOWN, OTHER) and not re.match(r"C\d+\Z", label)
        found.append(label if known else f"C{cell + 1}")
    return found
