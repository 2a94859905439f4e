"""The error of a count whose limit was bought first, against the best limit in hindsight.

    python -m benchmarks.unit_limits
    python -m benchmarks.unit_limits --units 10000 --repeats 100 --json

A quarter of ε = 1 buys max_rows, the rest a COUNT(*) within it. The root-mean-square error of the count (what lies
beyond the limit, and the noise) is divided by that of the best limit, which knows the data and pays for no search: it
has all of ε for the count. Limits by loss and noise, and by the share of 95 % of units, which was the rule of 0.1.0.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import discreet

EPSILON = 1
SEARCH = Fraction(1, 4)
SHARE = Fraction(95, 100)

Rows = NDArray[np.int64]


def make_data(units: int) -> dict[str, Rows]:
    """How many rows each unit has."""
    random = np.random.default_rng(20_261_116)
    return {
        "all equal, 20 rows": np.full(units, 20),
        "geometric, mean 5": random.geometric(0.2, units),
        "lognormal, median 7": np.ceil(random.lognormal(2, 1, units)).astype(np.int64),
        "Zipf, exponent 2": np.minimum(random.zipf(2.0, units), 100_000),
        "Zipf, exponent 3": random.zipf(3.0, units),
        "Poisson, mean 5, and one of 10,000": np.concatenate([1 + random.poisson(4, units - 1), [10_000]]),
        "empty": np.zeros(0, dtype=np.int64),
    }


def find_error(rows: Rows, limit: int, epsilon: float) -> float:
    """The root-mean-square error of a count within a limit: what is lost, and discrete Laplace noise."""
    noise = math.sqrt(2) * limit / epsilon
    return math.hypot(float(np.maximum(rows - limit, 0).sum()), noise)


def find_best(rows: Rows) -> float:
    tried = np.unique(np.concatenate([rows, np.geomspace(1, max(2, rows.max(initial=1)), 500).astype(np.int64)]))
    return min(find_error(rows, int(limit), EPSILON) for limit in tried)


def buy_limit(rows: Rows, share: Fraction | None) -> int | None:
    """A limit from a curator of its own."""
    table = pa.table({"unit": np.repeat(np.arange(len(rows)), rows)})
    budget = discreet.Budget(epsilon=EPSILON)
    with discreet.curate({"t": table}, unit="unit", max_rows=1, budget=budget) as curator:
        return curator.contributions("t", share=share, epsilon=SEARCH).rows


def compare(rows: Rows, share: Fraction | None, repeats: int) -> tuple[float, int]:
    """The error over that of the best limit, and how often no limit was found (then there is no count)."""
    limits = [buy_limit(rows, share) for _ in range(repeats)]
    errors = [find_error(rows, limit, float(EPSILON - SEARCH)) for limit in limits if limit is not None]
    typical = math.sqrt(float(np.mean(np.square(errors)))) if errors else math.nan
    return typical / find_best(rows), limits.count(None)


RULES: dict[str, Fraction | None] = {"loss and noise": None, "95 % of units": SHARE}


def show(found: dict[str, dict[str, tuple[float, int]]], tell: Callable[[str], None]) -> None:
    tell(f"| rows of a unit | {' | '.join(RULES)} |\n|---|{'---|' * len(RULES)}")
    for name, ratios in found.items():
        cells = (
            f"{ratio:.2f}" if not missing else f"{ratio:.2f}, {missing} not found" for ratio, missing in ratios.values()
        )
        tell(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    found = {
        name: {rule: compare(rows, share, options.repeats) for rule, share in RULES.items()}
        for name, rows in make_data(options.units).items()
    }
    if options.json:
        print(json.dumps(found))
    else:
        show(found, print)


if __name__ == "__main__":
    main()
