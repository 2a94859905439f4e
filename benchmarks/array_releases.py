"""`Laplace(...).release(array)` and `Gaussian` as users call them, against NumPy's unsafe draws and a sum.

python benchmarks/array_releases.py            # CPU seconds of arrays of 10^6, the least of several, taking turns
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

from discreet.mechanisms import Gaussian, Laplace
from discreet.samplers import discrete_gaussian, discrete_laplace

SIZE = 1_000_000
SCALES = (1, 10, 100, 1_000_000)


def list_jobs(scale: int) -> dict[str, Callable[[], object]]:
    """For each law: NumPy's draws and a sum, the sampler by itself, and the release."""
    values = np.arange(SIZE, dtype=np.int64)
    generator = np.random.default_rng(1)
    laplace = Laplace(epsilon=1 / scale, sensitivity=1, neighbours="add-remove")
    gaussian = Gaussian(rho=1 / (2 * scale**2), sensitivity=1, neighbours="add-remove")
    return {
        "NumPy, Laplace": lambda: values + generator.laplace(scale=scale, size=SIZE),
        "Laplace, sampler": lambda: discrete_laplace(scale, SIZE),
        "Laplace": lambda: laplace.release(values),
        "NumPy, Gaussian": lambda: values + generator.normal(scale=scale, size=SIZE),
        "Gaussian, sampler": lambda: discrete_gaussian(scale**2, SIZE),
        "Gaussian": lambda: gaussian.release(values),
    }


def measure(scale: int, repeats: int) -> dict[str, float]:
    """The least CPU seconds of each job. Jobs take turns, so that a busy minute of the machine hits all of them."""
    jobs = list_jobs(scale)
    found = dict.fromkeys(jobs, float("inf"))
    for _ in range(repeats):
        for name, job in jobs.items():
            started = time.process_time()
            job()
            found[name] = min(found[name], time.process_time() - started)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    found = {scale: measure(scale, options.repeats) for scale in SCALES}
    if options.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{'law, scale':<22}{'NumPy, ms':>10}{'sampler':>10}{'release':>10}{'of NumPy':>10}")
    for law in ("Laplace", "Gaussian"):
        for scale, seconds in found.items():
            plain, sampler, ours = (seconds[name] for name in (f"NumPy, {law}", f"{law}, sampler", law))
            name = f"{law} {scale:,}"
            print(f"{name:<22}{plain * 1e3:10.1f}{sampler * 1e3:10.1f}{ours * 1e3:10.1f}{plain / ours:10.2f}")


if __name__ == "__main__":
    main()
