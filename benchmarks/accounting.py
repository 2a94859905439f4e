"""How fast accounting is, beside dp_accounting in its own interpreter.

    python benchmarks/accounting.py [--dp-accounting PATH/TO/python] [--json]

Both libraries price the same plans to the same accuracy; times are the best of a few runs, each from nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PEER = Path(__file__).parent.parent / "tests" / "accounting" / "dp_accounting_peer.py"
DELTA = 1e-6


def plans() -> dict[str, list[dict[str, Any]]]:
    def laplace(scale: float, count: int = 1) -> dict[str, Any]:
        return {"kind": "Laplace", "sensitivity": 1, "scale": scale, "count": count}

    def gaussian(sigma: float, count: int = 1, **more: float) -> dict[str, Any]:
        return {"kind": "Gaussian", "sensitivity": 1, "sigma": sigma, "count": count, **more}

    return {
        "200 different Laplace": [laplace(50 + i / 10) for i in range(200)],
        "1000 different Laplace": [laplace(50 + i / 10) for i in range(1000)],
        "1000 equal Laplace": [laplace(100, 1000)],
        "500 Laplace, 500 Gaussian": [laplace(100, 500), gaussian(100, 500)],
        "1000 sampled Gaussian": [gaussian(1, 1000, rate=0.01)],
    }


def best(action: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return min(times)


def event(record: dict[str, Any]) -> Any:
    from discreet.accounting import events

    fields = {name: value for name, value in record.items() if name not in {"kind", "rate", "count"}}
    inner = events.KINDS[record["kind"]](**fields)
    if "rate" in record:
        return events.PoissonSampled(event=inner, rate=record["rate"], count=record["count"])
    return inner.times(record["count"])


def ours(records: list[dict[str, Any]], runs: int) -> tuple[float, float]:
    """(ε, seconds) of a plan, with every cache emptied before each run."""
    from discreet.accounting import convolve, pld, profiles

    made = tuple(event(record) for record in records)
    caches = (pld._count_pairs, pld._prepare_sum, pld._epsilon, convolve.compute_tilted_sum, profiles._make_pair)  # noqa: SLF001  # to time from nothing

    def price() -> float:
        for cache in caches:
            cache.cache_clear()
        return pld.LossDistribution(made).epsilon(DELTA)

    return price(), best(price, runs)


def theirs(interpreter: str, names: list[str], step: float) -> dict[str, tuple[float, float]]:
    chosen = plans()
    # The first plan is asked twice: the first time pays for imports and is thrown away.
    asked = [{"delta": DELTA, "events": chosen[name]} for name in (names[0], *names)]
    task = json.dumps({"step": step, "plans": asked})
    done = subprocess.run([interpreter, str(PEER)], input=task, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    return dict(zip(names, zip(answer["epsilons"][1:], answer["seconds"][1:])))


def import_time(interpreter: str, module: str) -> float:
    bare = best(lambda: subprocess.run([interpreter, "-c", "pass"], check=True), 3)
    return best(lambda: subprocess.run([interpreter, "-c", f"import {module}"], check=True), 3) - bare


def charge_times(charges: int = 10_000) -> tuple[float, float] | None:
    """Seconds for one charge of a zCDP filter: over the first thousand, and over the last."""
    try:
        from discreet.accounting.filters import Filter
    except ImportError:
        return None
    from discreet.accounting import events
    from discreet.privacy import Budget

    guard = Filter(Budget(rho=10))
    small = events.Gaussian(sensitivity=1, sigma=1000)
    stamps = [time.perf_counter()]
    for _ in range(charges):
        guard.charge(small)
        stamps.append(time.perf_counter())
    return (stamps[1000] - stamps[0]) / 1000, (stamps[-1] - stamps[-1001]) / 1000


def measure(interpreter: str | None, runs: int) -> dict[str, Any]:
    result: dict[str, Any] = {"plans": {}}
    for name, records in plans().items():
        epsilon, seconds = ours(records, runs)
        result["plans"][name] = {"epsilon": epsilon, "seconds": seconds}
    if interpreter:
        # A step of 10^-4 gives them four digits where losses are this small.
        for name, (epsilon, seconds) in theirs(interpreter, list(plans()), 1e-4).items():
            row = result["plans"][name]
            row |= {"peer_epsilon": epsilon, "peer_seconds": seconds, "ratio": seconds / row["seconds"]}
        result["peer_import_seconds"] = import_time(interpreter, "dp_accounting")
    result["import_seconds"] = import_time(sys.executable, "discreet.accounting")
    charged = charge_times()
    if charged is not None:
        result["charge_seconds"] = {"first": charged[0], "after 10,000": charged[1]}
    return result


def show(result: dict[str, Any]) -> None:
    print(f"{'plan':<28}{'ε':>12}{'seconds':>10}{'peer ε':>12}{'seconds':>10}{'ratio':>8}")
    for name, row in result["plans"].items():
        line = f"{name:<28}{row['epsilon']:>12.6f}{row['seconds']:>10.4f}"
        if "ratio" in row:
            line += f"{row['peer_epsilon']:>12.6f}{row['peer_seconds']:>10.3f}{row['ratio']:>8.1f}"
        print(line)
    print(f"import discreet.accounting: {result['import_seconds']:.3f} s", end="")
    print(f"; dp_accounting: {result['peer_import_seconds']:.3f} s" if "peer_import_seconds" in result else "")
    if "charge_seconds" in result:
        first, last = (1e6 * seconds for seconds in result["charge_seconds"].values())
        print(f"filter charge: {first:.1f} µs at first, {last:.1f} µs after 10,000 charges")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dp-accounting", metavar="PYTHON", help="an interpreter that has dp_accounting")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = measure(options.dp_accounting, options.runs)
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        show(result)


if __name__ == "__main__":
    main()
