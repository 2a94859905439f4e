"""Choosing among 10, 1,000 and 100,000 candidates: calls a second here and, if its interpreter is given, in OpenDP.

    python benchmarks/selection.py
    python benchmarks/selection.py --opendp PATH/TO/python --json

Both libraries get the same scores and the same scale, in turns within one run; the best of several rounds counts.
OpenDP is given lists of floats, its fastest input. Ours is given an array, and once more the same list.
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

SIZES = (10, 1_000, 100_000)
SECONDS = 0.3
TARGET = 20.0


def scores_for(size: int) -> list[float]:
    """Repeatable scores with many near the best, as whole numbers in floats."""
    return [float(i * 7919 % 1009) for i in range(size)]


def rate(call: Callable[[], object], seconds: float = SECONDS) -> float:
    """Calls a second over a short while."""
    call()
    calls, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        call()
        calls += 1
    return calls / passed


def ours() -> dict[str, float]:
    import numpy as np

    from discreet.mechanisms import Exponential, NoisyMax, PermuteAndFlip

    exponential, flip = Exponential(sensitivity=1, epsilon=1), PermuteAndFlip(sensitivity=1, epsilon=1)
    noisy = NoisyMax(sensitivity=1, epsilon=1)
    rates = {}
    for size in SIZES:
        row = scores_for(size)
        array, whole = np.array(row), np.array(row, dtype=np.int64)
        rates[f"exponential {size}"] = rate(lambda array=array: exponential.release(array))  # type: ignore[misc]  # bound now
        rates[f"exponential, list {size}"] = rate(lambda row=row: exponential.release(row))  # type: ignore[misc]  # bound now
        rates[f"permute and flip {size}"] = rate(lambda array=array: flip.release(array))  # type: ignore[misc]  # bound now
        rates[f"noisy max {size}"] = rate(lambda whole=whole: noisy.release(whole))  # type: ignore[misc]  # bound now
    return rates


def opendp() -> dict[str, float]:
    """Runs in OpenDP's own interpreter, where discreet is not installed."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    # Gumbel noise of this scale is exp(score/scale): the scale 2Δ/ε of ε = 1, Δ = 1.
    exponential = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=2.0)
    flip = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2.0)
    rates = {}
    for size in SIZES:
        row = scores_for(size)
        rates[f"exponential {size}"] = rate(lambda row=row: exponential(row))  # type: ignore[misc]  # bound now
        rates[f"permute and flip {size}"] = rate(lambda row=row: flip(row))  # type: ignore[misc]  # bound now
    return rates


def measured(python: str, library: str) -> dict[str, float]:
    command = [python, str(Path(__file__).resolve()), "--measure", library]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def best_of(rounds: int, python: str | None) -> dict[str, dict[str, float]]:
    """The best rate of each case, the two libraries taking turns."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for library, interpreter in (("discreet", sys.executable), ("opendp", python)):
            if interpreter:
                for case, value in measured(interpreter, library).items():
                    known = best.setdefault(library, {})
                    known[case] = max(value, known.get(case, 0.0))
    return best


def report(best: dict[str, dict[str, float]]) -> dict[str, Any]:
    peer = best.get("opendp", {})
    rows: list[dict[str, Any]] = [
        {
            "case": case,
            "discreet": value,
            "opendp": peer.get(case),
            "ratio": value / peer[case] if case in peer else None,
        }
        for case, value in best["discreet"].items()
    ]
    goal = next((row["ratio"] for row in rows if row["case"] == f"exponential {SIZES[-1]}"), None)
    return {"rows": rows, "target": TARGET, "reached": None if goal is None else bool(goal >= TARGET)}


def table(result: dict[str, Any]) -> str:
    lines = [f"{'calls a second':<28}{'discreet':>12}{'opendp':>12}{'ratio':>8}"]
    for row in result["rows"]:
        peer, ratio = row["opendp"], row["ratio"]
        lines.append(
            f"{row['case']:<28}{row['discreet']:>12,.0f}"
            + (f"{peer:>12,.0f}{ratio:>7.1f}×" if peer is not None else f"{'':>12}{'':>8}")
        )
    if result["reached"] is not None:
        word = "reached" if result["reached"] else "missed"
        lines.append(f"target: {TARGET:.0f} × at {SIZES[-1]:,} candidates, {word}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--opendp", metavar="PYTHON", help="an interpreter in which opendp is installed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--measure", choices=["discreet", "opendp"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps({"discreet": ours, "opendp": opendp}[options.measure]()))
        return
    result = report(best_of(options.rounds, options.opendp))
    print(json.dumps(result, indent=1) if options.json else table(result))


if __name__ == "__main__":
    main()
