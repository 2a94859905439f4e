"""The error of discreet at equal privacy, against five peers and the best that theory knows.

    python -m benchmarks.accuracy                        # ours and theory
    python -m benchmarks.accuracy --peers .venvs         # and every peer that has an environment there
    python -m benchmarks.accuracy --rows AVG --json

Same tables, units, neighbours, limits, bounds and total loss for all. Root-mean-square errors over repetitions, or the
number of keys named; the last column is ours over the best of all others (for keys: the best over ours). The goal is
1.05 in every row, 2 where bounds are unknown.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.equal_privacy import data, ours, theory

PEERS = ("opendp", "tumult", "pipelinedp", "smartnoise", "diffprivlib")
SCRIPTS = Path(__file__).parent / "equal_privacy" / "peers"


def ask_peer(name: str, environments: Path, folder: Path, repeats: int) -> dict[str, float]:
    """The errors of a peer in an environment of its own; none where it is not set up or fails, which is said."""
    python = environments / name / "bin" / "python"
    if not python.exists():
        print(f"{name} has no environment in {environments}: make {environments}/{name}", file=sys.stderr)
        return {}
    command = [str(python), str(SCRIPTS / f"{name}_errors.py"), str(folder), str(repeats)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        print(f"{name} failed:", *found.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return {}
    errors: dict[str, float] = json.loads(found.stdout.strip().splitlines()[-1])
    return errors


def compare(row: str, mine: float, others: dict[str, float]) -> float | None:
    """Ours over the best of the others, so that more than 1 means that somebody is better."""
    if not others:
        return None
    return max(others.values()) / mine if row.startswith("keys named") else mine / min(others.values())


def show(table: dict[str, dict[str, float]]) -> None:
    print("| task | ours | theory | peers | ours / best |\n|---|---|---|---|---|")
    for row, found in table.items():
        others = {name: error for name, error in found.items() if name != "ours"}
        peers = ", ".join(f"{name} {error:.4g}" for name, error in others.items() if name != "theory")
        ratio = compare(row, found["ours"], others)
        best = f"{others['theory']:.4g}" if "theory" in others else "–"
        print(f"| {row} | {found['ours']:.4g} | {best} | {peers or '–'} | {'–' if ratio is None else f'{ratio:.2f}'} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, help="the folder of the peers' environments")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rows", default="", help="only rows whose name has these words in it")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data.write_tables(folder)
        others = {"theory": theory.find_best(folder)}
        if options.peers:
            others |= {peer: ask_peer(peer, options.peers, folder, options.repeats) for peer in PEERS}
        table = {}
        for row, error in ours.measure(folder, options.repeats, options.rows):
            table[row] = {"ours": error} | {who: found[row] for who, found in others.items() if row in found}
    if options.json:
        print(json.dumps(table, ensure_ascii=False))
    else:
        show(table)


if __name__ == "__main__":
    main()
