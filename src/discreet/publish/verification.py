"""Verification: does everything in a bundle follow from its measurements? No data, codebook or ledger is needed."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.errors import DiscreetError
from discreet.late_dataclass import dataclass
from discreet.publish.bundle import ROWS, SDMX, TABLES, Bundle, hash_file, make_rows, stack_tables
from discreet.publish.constraints import Constraint, combine_rules
from discreet.publish.manifest import (
    NoiseSums,
    add_up,
    describe_loss,
    find_best_guess,
    list_tables,
    list_versions,
    write_disclosure,
)
from discreet.publish.page import make_page
from discreet.publish.part_tables import SERIES, make_series_table
from discreet.publish.row_cells import encode_rows, is_folded
from discreet.publish.sdmx import make_sdmx
from discreet.publish.synthetic_rows import find_distance, find_one_way
from discreet.row_formats import to_csv

_TOLERANCE = 1e-6
# How far distances of the same rows may differ (whole numbers are rounded down to the next bin, now and then), and how
# much worse rows that were made elsewhere may fit than those that are made here.
_FIT, _FIT_HERE = 0.002, 0.005


@dataclass(frozen=True)
class Check:
    """One check of a bundle: what was looked at, whether it holds, and what was found."""

    name: str
    holds: bool
    found: str


def verify(folder: str | Path) -> list[Check]:
    """All checks of a bundle. Numbers may differ by rounding; files must have the bytes that the manifest states."""
    bundle = Bundle.load(folder)
    checks = [_check_files(bundle)]
    for name, work in (
        ("loss", _check_loss),
        ("tables", _check_tables),
        ("rows", _check_rows),
        ("series", _check_series),
        ("words", _check_words),
    ):
        try:
            checks.append(work(bundle))
        except (DiscreetError, OSError, ValueError, KeyError, TypeError) as error:
            checks.append(Check(name, holds=False, found=f"cannot be checked: {error}"))
    return checks


def _check_files(bundle: Bundle) -> Check:
    stated: Mapping[str, str] = bundle.manifest.get("files", {})
    there = {path.name for path in bundle.folder.iterdir()} - {"manifest.json"}
    folder = bundle.folder
    changed = [name for name, digest in stated.items() if name not in there or hash_file(folder / name) != digest]
    unknown = sorted(there - set(stated))
    found = f"changed: {changed}; not stated: {unknown}" if changed or unknown else f"{len(stated)} files as stated"
    return Check("files", not changed and not unknown, found)


def _check_loss(bundle: Bundle) -> Check:
    """The stated event costs at least what the measurements cost, and the stated loss is that of the event."""
    allocation = bundle.measurements.allocation
    beside = [events.load(dumped) for part in bundle.manifest["parts"] for dumped in part["mechanisms"]]
    charged = [events.load(dumped) for dumped in bundle.manifest["mechanisms"]] + beside
    drawn = [*bundle.measurements.drawn_events, *beside]
    if not charged:
        return Check("loss", holds=False, found="no mechanism is stated")
    stated, real = add_up(charged), add_up(drawn)
    delta = Fraction(str(bundle.manifest["loss"]["delta"]))
    told = describe_loss(compose(charged).loss, delta)
    same = told["epsilon"] <= bundle.manifest["loss"]["epsilon"] * (1 + 1e-9) and stated.holds(real)
    same = same and bundle.manifest["best_guess"] >= find_best_guess(drawn)
    stated_for = (bundle.manifest["unit"], bundle.manifest["neighbours"])
    whom = stated_for == (str(allocation.unit), str(allocation.neighbours))
    return Check("loss", same and whom, f"{_tell(real)} measured, {_tell(stated)} stated")


def _tell(sums: NoiseSums) -> str:
    return f"ε {float(sums.epsilon):.6g}" if sums.epsilon else f"μ² {float(sums.mu_squared):.6g}"


def _check_tables(bundle: Bundle) -> Check:
    from pyarrow import parquet

    written = parquet.read_table(bundle.folder / TABLES)
    made = stack_tables(bundle.measurements, bundle.columns, bundle.level)
    worst = 0.0
    for name in ("value", "low", "high", "estimate"):
        one, two = written.column(name).to_numpy(), made.column(name).to_numpy()
        worst = max(worst, float(np.abs(one - two).max()) if len(one) == len(two) else np.inf)
    labels = all(written.column(n).equals(made.column(n)) for n in made.column_names if n not in _NUMBERS)
    listed = list_tables(bundle.measurements, bundle.names)
    near = all(
        one["columns"] == two["columns"] and abs(one["deviation"] - two["deviation"]) <= _TOLERANCE * two["deviation"]
        for one, two in zip(bundle.manifest["tables"], listed, strict=True)
    )
    scale = max(1.0, abs(bundle.measurements.total))
    holds = worst <= _TOLERANCE * scale and labels and near and _same_as_csv(bundle.folder / TABLES)
    holds = holds and _same_as_sdmx(bundle, written)
    return Check("tables", holds, f"{len(listed)} tables, off by at most {worst:.2g}")


_NUMBERS = ("value", "low", "high", "estimate")


def _check_rows(bundle: Bundle) -> Check:
    """The same rows come out of the public seed; made elsewhere, they fit as well as is stated, and keep constraints.

    Rows follow from floating-point numbers, which another NumPy or processor may round in other ways. So bytes must be
    the same where versions are, and distances where they are not.
    """
    from pyarrow import parquet

    if "rows" not in bundle.manifest:
        return Check("rows", not (bundle.folder / ROWS).exists(), "none are stated")
    if not _same_as_csv(bundle.folder / ROWS):
        return Check("rows", holds=False, found="the CSV file has other rows")
    made, told = make_rows(bundle.measurements, bundle.measurement_record, bundle.columns, bundle.manifest["plan"])
    written = parquet.read_table(bundle.folder / ROWS)
    stated = bundle.manifest["rows"]
    if told == stated and written.equals(made):
        return Check("rows", holds=True, found=f"{told['count']:,} rows, the same from the public seed")
    if bundle.manifest["versions"] == list_versions() or stated["seed"] != told["seed"]:
        return Check("rows", holds=False, found="other rows come out of the public seed")
    return _compare_rows(bundle, written, told)


def _compare_rows(bundle: Bundle, written: Any, told: Mapping[str, Any]) -> Check:
    """Rows that were made by other versions: as many, as near to the estimates as stated, and all of them allowed."""
    stated, columns = bundle.manifest["rows"], bundle.columns
    cells = encode_rows(written, columns)
    fit = 1000 * (1 - find_distance(cells, bundle.measurements, columns))
    ones = find_one_way(cells, bundle.measurements, columns)
    near = [abs(far - stated["one_way"][column.name]) <= _FIT for far, column in zip(ones, columns, strict=True)]
    folded = any(map(is_folded, columns))
    rule = combine_rules([Constraint.from_dict(each) for each in bundle.manifest["plan"]["constraints"]], columns)
    same = (
        written.num_rows == stated["count"] == told["count"]
        and (folded or (abs(fit - stated["k_marginal"]) <= 1000 * _FIT and all(near)))
        and fit >= told["k_marginal"] - 1000 * _FIT_HERE
        and (rule is None or bool(rule(cells).all()))
    )
    found = f"made by other versions; they fit with {fit:.1f} of 1000, {stated['k_marginal']} stated"
    return Check("rows", same, f"{found}, {told['k_marginal']} by the seed here")


def _check_series(bundle: Bundle) -> Check:
    """The values and intervals of each series follow from what was drawn for it."""
    from pyarrow import parquet

    told = [part for part in bundle.manifest["parts"] if part["kind"] == SERIES]
    for part in told:
        made, written = make_series_table(part), parquet.read_table(bundle.folder / part["file"])
        event = events.load(part["mechanisms"][0])
        same = isinstance(event, events.RoundedGaussian) and event.variance == Fraction(part["variance"])
        same = same and made.column("start").equals(written.column("start"))
        numbers = [(made.column(n).to_numpy(), written.column(n).to_numpy()) for n in ("value", "low", "high")]
        if not same or not all(np.allclose(one, two, rtol=_TOLERANCE, atol=_TOLERANCE) for one, two in numbers):
            return Check("series", holds=False, found=f"{part['name']} does not follow from what was drawn")
    return Check("series", holds=True, found=f"{len(told)} follow from what was drawn" if told else "none are stated")


def _same_as_csv(path: Path) -> bool:
    """Whether a CSV file beside a Parquet file, if there is one, has the same rows."""
    from pyarrow import parquet

    beside = path.with_suffix(".csv")
    return not beside.exists() or beside.read_bytes() == to_csv(parquet.read_table(path))


def _same_as_sdmx(bundle: Bundle, written: Any) -> bool:
    """Whether the SDMX file, if the plan asks for one, has the same tables."""
    if not bundle.manifest["plan"]["sdmx"]:
        return not (bundle.folder / SDMX).exists()
    made = make_sdmx(written, bundle.measurements, bundle.columns, bundle.manifest["name"])
    return (bundle.folder / SDMX).read_bytes() == to_csv(made)


def _check_words(bundle: Bundle) -> Check:
    """The disclosure and the page say what the manifest says."""
    same = (bundle.folder / "disclosure.txt").read_text(encoding="utf-8") == write_disclosure(bundle.manifest)
    page = make_page(bundle.manifest, bundle.measurements, bundle.columns)
    shown = page == (bundle.folder / "index.html").read_text(encoding="utf-8")
    return Check("words", same and shown, "the page and the disclosure follow from the manifest" if same else "changed")


def holds(checks: list[Check]) -> bool:
    """Whether all checks hold."""
    return all(check.holds for check in checks)


def to_rows(checks: list[Check]) -> list[dict[str, Any]]:
    """Checks as plain rows."""
    return [{"check": check.name, "holds": check.holds, "found": check.found} for check in checks]
