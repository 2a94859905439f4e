"""Bundles: a release as a folder that anybody can open, without the data, the codebook or the ledger.

manifest.json       what was released, of whom, at which loss, with which receipt
disclosure.txt      the same in plain words
measurements.json   the noisy integers, before anything was made of them
tables.parquet      every measured table: value without bias, interval, consistent estimate
synthetic.parquet   synthetic rows, if the plan asks for them; both also as CSV, if it says csv = true
tables.sdmx.csv     the tables for those who exchange statistics, if the plan says sdmx = true
croissant.json      metadata for catalogs
index.html          a page that opens offline
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet.engines.engine import ProgressCallback
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import suggest_nearest
from discreet.publish.bundle_question import BundleAnswer, answer_question
from discreet.publish.chance import PublicChance
from discreet.publish.columns import PublishedColumn
from discreet.publish.constraints import Constraint
from discreet.publish.intervals import cut, round_cells, suppress_cells, tabulate_rows
from discreet.publish.manifest import write_disclosure
from discreet.publish.measurements import Measurements
from discreet.publish.metadata import make_croissant
from discreet.publish.page import make_page
from discreet.publish.records import hash_measurements, load_column, load_measurements
from discreet.publish.sdmx import make_sdmx
from discreet.publish.synthetic_rows import decode_rows, find_one_way, make_cells
from discreet.publish.synthetic_table import SyntheticTable
from discreet.publish.workload import Attributes
from discreet.row_formats import to_csv, to_parquet

MANIFEST, MEASUREMENTS, TABLES, ROWS = "manifest.json", "measurements.json", "tables.parquet", "synthetic.parquet"
SDMX = "tables.sdmx.csv"


@dataclass(frozen=True)
class Bundle:
    """A release that was written to a folder. Everything in it was paid for: reading it is free."""

    folder: Path
    manifest: Mapping[str, Any]

    @classmethod
    def load(cls, folder: str | Path) -> Bundle:
        """A bundle from its folder."""
        place = Path(folder)
        try:
            manifest = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
            known = manifest["format"] == 1
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UsageError(f"{place} is no bundle: its {MANIFEST} cannot be read.") from error
        if not known:
            raise UsageError(f"{place} was written by a later version of discreet.")
        return cls(place, manifest)

    @cached_property
    def measurements(self) -> Measurements:
        """What was drawn."""
        return load_measurements(self.measurement_record)

    @cached_property
    def measurement_record(self) -> Mapping[str, Any]:
        """What was drawn, as it is written."""
        try:
            found: Mapping[str, Any] = json.loads((self.folder / MEASUREMENTS).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{self.folder} has no {MEASUREMENTS} that can be read.") from error
        return found

    @cached_property
    def columns(self) -> tuple[PublishedColumn, ...]:
        """The columns of the release."""
        return tuple(load_column(column) for column in self.manifest["columns"])

    @property
    def level(self) -> Fraction:
        """The confidence of intervals."""
        return Fraction(self.manifest["level"])

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def table(self, *names: str, suppress: float | None = None, whole: bool = False) -> Any:
        """A measured table by the names of its columns, as Arrow: value, low, high and estimate of each cell.

        ``suppress=0.5`` leaves out the numbers of cells whose interval is wider than half of the estimate to each side.
        That is decided by released numbers alone, so it hides nothing and costs nothing. ``whole=True`` adds values
        that are rounded to whole numbers, none below zero. They have a bias, which the table's metadata state.
        """
        attributes = self.find_attributes(names)
        found = tabulate_rows(self.measurements, self.columns, attributes, self.level)
        if whole:
            found = round_cells(found, math.sqrt(self.measurements.allocation.cell_variance(attributes)))
        return found if suppress is None else suppress_cells(found, suppress)

    def ranges(self, name: str, *ends: tuple[Any, Any]) -> Any:
        """How many rows have a value from ``low`` to ``high``, for each pair of ends, with its interval, as Arrow.

        For columns whose plan says ``ranges``. Both ends belong to a range. Values beyond the declared bounds count at
        the bounds. ``value`` has no bias; ``low`` and ``high`` hold the measured count at the plan's level.
        """
        import pyarrow as pa

        number = self.names.index(name) if name in self.names else -1
        if number not in self.measurements.allocation.workload.strategies:
            raise UsageError(f"No ranges of {name!r} were measured: its plan says nothing of ranges.")
        column, rows = self.columns[number], []
        for start, end in ends:
            first, last = column.find_steps(start, end)
            wanted = np.zeros(column.fine)
            wanted[first:last] = 1
            value, deviation = self.measurements.answer_fine(number, wanted)
            low, high = cut(value, self.measurements.allocation.find_half(deviation, self.level))
            rows.append({"from": start, "to": end, "value": value, "low": low, "high": high})
        return pa.Table.from_pylist(rows)

    def find_attributes(self, names: Sequence[str]) -> Attributes:
        """The numbers of columns by their names; refused where the table was not measured."""
        unknown = [name for name in names if name not in self.names]
        attributes = tuple(sorted(self.names.index(name) for name in names if name not in unknown))
        if unknown or not self.measurements.allocation.covers(attributes):
            raise UsageError(
                f"The table of {', '.join(names)} was not measured in this release. Ask for smaller ones, or use "
                "ask(), which says what is a model only."
            )
        return attributes

    @cached_property
    def synthetic(self) -> SyntheticTable:
        """The synthetic rows."""
        path = self.folder / ROWS
        if not path.exists():
            raise UsageError("This release has no synthetic rows: its plan has no columns, or synthetic = false.")
        from pyarrow import parquet

        return SyntheticTable(parquet.read_table(path))

    def part(self, name: str) -> Any:
        """A question or series of the plan by its name, with its intervals, as Arrow."""
        from pyarrow import parquet

        known = {part["name"]: part["file"] for part in self.manifest["parts"] if part["file"]}
        if name not in known:
            raise UsageError(f"There is no question or series {name!r} in this release. {suggest_nearest(name, known)}")
        return parquet.read_table(self.folder / known[name])

    def ask(self, sql: str) -> BundleAnswer:
        """The answer to SQL about the table ``release``. Free: nothing private is left to be read."""
        rows = self.synthetic if (self.folder / ROWS).exists() else None
        return answer_question(sql, self.measurements, self.columns, self.level, rows)

    def __repr__(self) -> str:
        rows = self.manifest.get("rows", {}).get("count", 0)
        loss = self.manifest["loss"]
        tables = len(self.manifest["tables"])
        return (
            f"Bundle {self.manifest['name']!r} of {self.manifest['dataset']}: {tables} tables, {rows:,} synthetic rows"
            f"; ε {loss['epsilon']:.4g} at δ {loss['delta']:.4g}"
        )


def make_rows(
    measured: Measurements,
    record: Mapping[str, Any],
    columns: Sequence[PublishedColumn],
    plan: Mapping[str, Any],
    watch: ProgressCallback | None = None,
) -> tuple[Any, dict[str, Any]]:
    """The synthetic rows as Arrow, and what the manifest says of them. The seed follows from what was drawn."""
    seed = hash_measurements(record)
    chance = PublicChance(bytes.fromhex(seed))
    constraints = [Constraint.from_dict(each) for each in plan["constraints"]]
    cells, distance = make_cells(measured, columns, constraints, chance, watch)
    rows = decode_rows(cells, measured, columns, chance)
    digest = hashlib.sha256(cells.astype("<i4").tobytes()).hexdigest()
    return rows, {
        "count": int(cells.shape[1]),
        "seed": seed,
        "sha256": digest,
        "constraints": plan["constraints"],
        "k_marginal": round(1000 * (1 - distance), 1),
        "one_way": {c.name: round(far, 6) for c, far in zip(columns, find_one_way(cells, measured), strict=True)},
    }


def check_place(folder: Path) -> None:
    """Refuse a place that cannot be written, while nothing is charged yet. Making a folder is what tells."""
    try:
        part = _find_part(folder)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        part.rmdir()
    except OSError as error:
        words = f"{folder} cannot be written: {error.strerror}. Give another --out. Nothing was charged."
        raise UsageError(words) from error


def _find_part(folder: Path) -> Path:
    """Where a bundle is made, until it is whole."""
    return folder.with_name(folder.name + ".part")


def write_bundle(
    folder: Path,
    manifest: dict[str, Any],
    record: Mapping[str, Any],
    parts: Mapping[str, Any] | None = None,
    watch: ProgressCallback | None = None,
) -> Bundle:
    """Make everything that follows from what was drawn, and write it; the folder appears when it is whole.

    ``parts`` are the tables of questions and series, by their files. ``watch`` hears how far rows are.
    """
    part = _find_part(folder)
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        measured = load_measurements(record)
        columns = tuple(load_column(column) for column in manifest["columns"])
        if manifest["plan"]["synthetic"] and columns:
            rows, manifest["rows"] = make_rows(measured, record, columns, manifest["plan"], watch)
            _write_table(part / ROWS, rows, csv=manifest["plan"]["csv"])
        for name, table in (parts or {}).items():
            _write_table(part / name, table, csv=manifest["plan"]["csv"])
        _write_rest(part, manifest, record, measured, columns)
        os.replace(part, folder)
        return Bundle(folder, manifest)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}. What was drawn is on record and stays paid for; the same "
            "plan again, with another --out, is free."
        ) from error


def _write_rest(
    part: Path,
    manifest: dict[str, Any],
    record: Mapping[str, Any],
    measured: Measurements,
    columns: tuple[PublishedColumn, ...],
) -> None:
    """Everything but rows and parts; the manifest comes last, with the hashes of all others."""
    (part / MEASUREMENTS).write_text(json.dumps(record), encoding="utf-8")
    tables = stack_tables(measured, columns, Fraction(manifest["level"]))
    _write_table(part / TABLES, tables, csv=manifest["plan"]["csv"])
    if manifest["plan"]["sdmx"]:
        (part / SDMX).write_bytes(to_csv(make_sdmx(tables, measured, columns, manifest["name"])))
    (part / "disclosure.txt").write_text(write_disclosure(manifest), encoding="utf-8")
    (part / "index.html").write_text(make_page(manifest, measured, columns), encoding="utf-8")
    hashes = {path.name: hash_file(path) for path in sorted(part.glob("*.parquet"))}
    (part / "croissant.json").write_text(json.dumps(make_croissant(manifest, hashes), indent=1), encoding="utf-8")
    manifest["files"] = {path.name: hash_file(path) for path in sorted(part.iterdir())}
    (part / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False), encoding="utf-8")


def _write_table(path: Path, table: Any, *, csv: bool) -> None:
    """A table as Parquet, and as CSV beside it where the plan says so."""
    path.write_bytes(to_parquet(table))
    if csv:
        path.with_suffix(".csv").write_bytes(to_csv(table))


def stack_tables(measured: Measurements, columns: tuple[PublishedColumn, ...], level: Fraction) -> Any:
    """All measured tables in one: which table, the labels of its cell, and its numbers."""
    import pyarrow as pa

    widest = max(len(part) for part in measured.allocation.workload.closure)
    stacked = []
    for part in measured.allocation.workload.closure:
        table = tabulate_rows(measured, columns, part, level)
        names = [columns[column].name for column in part]
        head = {"table": pa.array([" × ".join(names)] * table.num_rows, pa.string())}
        for place in range(widest):
            cells = table.column(names[place]) if place < len(names) else pa.nulls(table.num_rows, pa.string())
            head[f"cell{place + 1}"] = cells
        numbers = {name: table.column(name) for name in ("value", "low", "high", "estimate")}
        stacked.append(pa.table(head | numbers))
    return pa.concat_tables(stacked)


def is_whole(bundle: Bundle) -> bool:
    """Whether all files that the manifest states are there, as it states them."""
    stated: Mapping[str, str] = bundle.manifest.get("files", {})
    there = {path.name for path in bundle.folder.iterdir()}
    return all(name in there and hash_file(bundle.folder / name) == digest for name, digest in stated.items())


def hash_file(path: Path) -> str:
    """The hash of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
