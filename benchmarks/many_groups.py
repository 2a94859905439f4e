"""How long whole questions take whose answers have many groups, in process: from the text to the answer on record.

python benchmarks/many_groups.py                       # public groups with counts, released groups with averages
python benchmarks/many_groups.py --only public --groups 1000000
python benchmarks/many_groups.py --profile             # where the time goes

Each question is asked in a process of its own, whose peak of memory is told. CPU seconds are those of all threads.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from cProfile import Profile
from pstats import Stats
from typing import Any

import numpy as np
import pyarrow as pa

import discreet

BUDGET = discreet.Budget(epsilon=100, delta=1e-6)


def ask_public(groups: int) -> discreet.Answer:
    """Counts of a million rows by public groups: two keys, whose combinations are the groups."""
    side = round(groups**0.5)
    numbers = np.random.default_rng(1).integers(0, side, (2, 1_000_000))
    frame = pa.table({"area": numbers[0], "product": numbers[1]})
    keys = {"area": range(side), "product": range(side)}
    curator = discreet.curate({"sales": frame}, budget=BUDGET, keys=keys)
    return time_question(curator, "SELECT area, product, COUNT(*) AS n FROM sales GROUP BY area, product")


def ask_released(groups: int) -> discreet.Answer:
    """Counts and averages of twenty rows of each group, whose keys come from the data."""
    generator = np.random.default_rng(1)
    place = np.repeat(np.arange(groups), 20)
    frame = pa.table({"place": place, "age": generator.integers(0, 111, len(place))})
    curator = discreet.curate({"visits": frame}, budget=BUDGET, bounds={"age": (0, 110)})
    return time_question(curator, "SELECT place, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY place")


QUESTIONS = {"public": ask_public, "released": ask_released}
PROFILED = False


def time_question(curator: discreet.Curator, sql: str) -> discreet.Answer:
    """Ask, and print what it took as JSON."""
    before, started, profile = time.process_time(), time.perf_counter(), Profile()
    if PROFILED:
        profile.enable()
    answer = curator.ask(sql, epsilon=8, delta=1e-7)
    profile.disable()
    cpu, clock = time.process_time() - before, time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(json.dumps({"rows": len(answer), "CPU s": round(cpu, 2), "s": round(clock, 2), "MB": round(peak)}))
    if PROFILED:
        Stats(profile).sort_stats("tottime").print_stats(35)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(QUESTIONS))
    parser.add_argument("--groups", type=int)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    if options.only and options.groups:
        global PROFILED  # noqa: PLW0603  # of this one process
        PROFILED = options.profile
        QUESTIONS[options.only](options.groups)
        return
    found: list[dict[str, Any]] = []
    for kind, sizes in {"public": (10_000, 100_000, 1_000_000), "released": (10_000, 100_000)}.items():
        for groups in sizes:
            if options.only in (None, kind):
                command = [sys.executable, __file__, "--only", kind, "--groups", str(groups)]
                said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                found.append({"question": kind, "groups": groups, **json.loads(said)})
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for row in found:
        print(
            "  ".join(f"{name} {value:,}" if isinstance(value, int | float) else value for name, value in row.items())
        )


if __name__ == "__main__":
    main()
