"""How long does a command take to start? Processor time of whole commands on the demo, against importing NumPy.

    python benchmarks/start.py [--runs 9] [--json]

Each command runs in a process of its own, right after ``python -c "import numpy"``, and the ratio of the two is taken:
what else the machine does slows down both. Bytecode is kept in a folder of its own, as an installed package has it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

QUESTION = "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward ORDER BY n DESC"
NUMPY = ["-c", "import numpy"]
DISCREET = ["-m", "discreet.cli.main"]
# The processor seconds that issue 15 asks for, of a machine on which NumPy takes a tenth of a second.
GOALS = {"--version": 0.1, "--help": None, "budget": 0.4, "preview": 0.5, "ask": 0.7, "import discreet": None}


def list_commands(codebook: Path) -> dict[str, list[str]]:
    offer = [str(codebook), QUESTION, "--epsilon", "0.1"]
    return {
        "--version": [*DISCREET, "--version"],
        "--help": [*DISCREET, "--help"],
        "budget": [*DISCREET, "budget", str(codebook)],
        "preview": [*DISCREET, "preview", *offer],
        "ask": [*DISCREET, "ask", *offer],
        "import discreet": ["-c", "import discreet"],
    }


def measure(arguments: list[str], environment: dict[str, str]) -> float:
    """User and system seconds of a process and its threads."""
    child = subprocess.Popen([sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed")
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, dict[str, float | None]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        measure([*DISCREET, "demo", "--folder", str(folder / "demo")], environment)
        codebook = folder / "demo" / "hospital.toml"
        fresh = folder / "fresh"
        shutil.copytree(codebook.parent, fresh, ignore=shutil.ignore_patterns("*ledger*", "*.head"))
        for title, arguments in list_commands(codebook).items():
            measure(NUMPY, environment)
            seconds, ratios = [], []
            for _ in range(options.runs + 1):  # the first one writes bytecode
                if title == "ask":  # a question that nobody has asked
                    shutil.rmtree(codebook.parent)
                    shutil.copytree(fresh, codebook.parent)
                reference = measure(NUMPY, environment)
                seconds.append(measure(arguments, environment))
                ratios.append(seconds[-1] / reference)
            found[title] = {
                "seconds": round(statistics.median(seconds[1:]), 3),
                "ratio": round(statistics.median(ratios[1:]), 2),
                "goal": GOALS[title],
            }
    if options.json:
        print(json.dumps(found))
        return
    print("| command | CPU seconds | × importing NumPy | goal, seconds where NumPy takes 0.1 |")
    print("|---|---|---|---|")
    for title, row in found.items():
        print(f"| `{title}` | {row['seconds']} | {row['ratio']} | {'' if row['goal'] is None else row['goal']} |")


if __name__ == "__main__":
    main()
