"""How fast exact noise is: beside numpy's unsafe generator, and beside OpenDP where its interpreter is given.

    python benchmarks/samplers.py                                  ours and numpy
    python benchmarks/samplers.py --opendp PATH/TO/python          and OpenDP, from an environment of its own
    python benchmarks/samplers.py --json                           the same figures for a machine

All rounds of all contestants are interleaved, and the best round of each counts, so that ratios mean something on a
busy machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from discreet import samplers

SIZE = 1_000_000
SCALES = (1, 10, 100, 1_000_000)
CANDIDATES = 100_000
SINGLES = 5_000

# Runs in OpenDP's interpreter: reads the name of a case on each line, answers with its rate per second.
OPENDP = """
import sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
vector = dp.vector_domain(dp.atom_domain(T=int))
floats = dp.vector_domain(dp.atom_domain(T=float, nan=False))
def rate(call, count):
    start = time.perf_counter()
    call()
    return count / (time.perf_counter() - start)
zeros, scores = [0] * 20_000, [float(i % 1000) for i in range(100_000)]
def case(name):
    kind, _, scale = name.partition(" ")
    if kind == "laplace":
        m = dp.m.make_laplace(vector, dp.l1_distance(T=int), scale=float(scale))
        return rate(lambda: m(zeros), len(zeros))
    if kind == "gaussian":
        m = dp.m.make_gaussian(vector, dp.l2_distance(T=float), scale=float(scale))
        return rate(lambda: m(zeros), len(zeros))
    if kind == "single":
        m = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=10.0)
        return rate(lambda: [m(0) for _ in range(500)], 500)
    m = dp.m.make_noisy_max(floats, dp.linf_distance(T=float), dp.zero_concentrated_divergence(), scale=10.0)
    return rate(lambda: m(scores), 1)
for line in sys.stdin:
    print(case(line.strip()), flush=True)
"""


class OpenDP:
    """OpenDP in its own interpreter, asked for one case at a time."""

    def __init__(self, interpreter: Path) -> None:
        self._process = subprocess.Popen(
            [str(interpreter), "-c", OPENDP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def rate(self, case: str) -> float:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the pipes of OpenDP's process are missing")
        stdin.write(case + "\n")
        stdin.flush()
        return float(stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def rate(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    call()
    return count / (time.perf_counter() - start)


def contestants() -> dict[str, dict[str, Callable[[], float]]]:
    """For each case: who takes part, and a function that gives one round's rate."""
    unsafe = np.random.default_rng()
    scores = np.arange(CANDIDATES) % 1000
    table: dict[str, dict[str, Callable[[], float]]] = {}
    for scale in SCALES:
        table[f"laplace {scale}"] = {
            "ours": lambda s=scale: rate(lambda: samplers.discrete_laplace(s, SIZE), SIZE),  # type: ignore[misc]  # a default binds the loop's value
            "numpy": lambda s=scale: rate(lambda: unsafe.laplace(0, s, SIZE), SIZE),  # type: ignore[misc]  # as above
        }
    for scale in SCALES:
        table[f"gaussian {scale}"] = {
            "ours": lambda s=scale: rate(lambda: samplers.discrete_gaussian(s * s, SIZE), SIZE),  # type: ignore[misc]  # as above
            "numpy": lambda s=scale: rate(lambda: unsafe.normal(0, s, SIZE), SIZE),  # type: ignore[misc]  # as above
        }
    for scale in SCALES:
        table[f"rounded {scale}"] = {
            "ours": lambda s=scale: rate(lambda: samplers.rounded_gaussian(s * s, SIZE), SIZE),  # type: ignore[misc]  # as above
            "numpy": lambda s=scale: rate(lambda: unsafe.normal(0, s, SIZE), SIZE),  # type: ignore[misc]  # as above
        }
    table["single draw"] = {
        "ours": lambda: rate(lambda: [samplers.discrete_laplace(10) for _ in range(SINGLES)], SINGLES),
        "numpy": lambda: rate(lambda: [unsafe.laplace(0, 10) for _ in range(SINGLES)], SINGLES),
    }
    table["best of 100000"] = {
        "ours": lambda: rate(lambda: [samplers.categorical_exp(scores, 0.1) for _ in range(10)], 10)
    }
    table["flips 100000"] = {"ours": lambda: rate(lambda: [samplers.bernoulli_exp_each(scores, 0.1)], 1)}
    return table


def measure(rounds: int, opendp: Path | None) -> dict[str, dict[str, float]]:
    table = contestants()
    peer = OpenDP(opendp) if opendp else None
    if peer:
        for case in table:
            if case != "flips 100000" and not case.startswith("rounded"):
                table[case]["opendp"] = lambda case=case: peer.rate(case)  # type: ignore[misc]  # a default binds the loop's value
    best: dict[str, dict[str, float]] = {case: dict.fromkeys(row, 0.0) for case, row in table.items()}
    for _ in range(rounds):
        for case, row in table.items():
            for who, run in row.items():
                best[case][who] = max(best[case][who], run())
    if peer:
        peer.close()
    return best


def show(best: dict[str, dict[str, float]]) -> None:
    print(f"{'per second':18}{'ours':>14}{'numpy':>14}{'opendp':>12}{'of numpy':>11}{'x opendp':>11}")
    for case, row in best.items():
        cells = [f"{row[who]:,.0f}" if who in row else "-" for who in ("ours", "numpy", "opendp")]
        ratios = [f"{row['ours'] / row[who]:,.2f}" if who in row else "-" for who in ("numpy", "opendp")]
        print(f"{case:18}{cells[0]:>14}{cells[1]:>14}{cells[2]:>12}{ratios[0]:>11}{ratios[1]:>11}")
    print(f"one single draw: {1e6 / best['single draw']['ours']:.2f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the exact samplers.")
    parser.add_argument("--opendp", type=Path, help="a Python interpreter that has opendp")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    opendp = options.opendp
    if not opendp or not opendp.exists():
        opendp = None
        if not options.json:
            print("OpenDP is left out: give --opendp PATH/TO/python of an environment that has it.")
    best = measure(options.rounds, opendp)
    if options.json:
        print(json.dumps(best, indent=2))
    else:
        show(best)


if __name__ == "__main__":
    main()
