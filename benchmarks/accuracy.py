"""The error of discreet at equal privacy, against five peers and the best that theory knows.

    python -m benchmarks.accuracy                        # ours and theory
    python -m benchmarks.accuracy --peers .venvs         # and every peer that has an environment there
    python -m benchmarks.accuracy --rows AVG --json

Same tables, units, neighbours, limits, bounds and total loss for all. Root-mean-square errors, or the number of keys
named, each with its standard error. *drawn* is the plan that the system chooses, its noise drawn many times through
the code that every answer goes through; *asked* are a few questions from end to end, which have to agree with it.

The last column is ours over the best of all others (for keys: the best over ours). The best is the one whose error
plus two standard errors is least, so that nobody wins by a lucky run. The goal is 1.05 in every row, 2 where bounds are
unknown.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.equal_privacy import data, ours, theory
from benchmarks.equal_privacy.figures import Figure
from benchmarks.equal_privacy.ours import Measured

PEERS = ("opendp", "tumult", "pipelinedp", "smartnoise", "diffprivlib")
ROOT = Path(__file__).resolve().parent.parent
# Drawn and asked must not be further apart than this, in standard errors.
MOST_APART = 5


def ask_peer(name: str, environments: Path, folder: Path, repeats: int) -> dict[str, Figure]:
    """The errors of a peer in an environment of its own; none where it is not set up or fails, which is said."""
    python = environments.resolve() / name / "bin" / "python"
    if not python.exists():
        print(f"{name} has no environment in {environments}: make {environments}/{name}", file=sys.stderr)
        return {}
    command = [str(python), "-m", f"benchmarks.equal_privacy.peers.{name}_errors", str(folder), str(repeats)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if found.returncode:
        print(f"{name} failed:", *found.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return {}
    errors = json.loads(found.stdout.strip().splitlines()[-1])
    return {row: Figure(**figure) for row, figure in errors.items()}


def compare(row: str, mine: Figure, others: Mapping[str, Figure]) -> Figure | None:
    """Ours over the best of the others, so that more than 1 means that somebody is better."""
    if not others:
        return None
    if row.startswith("keys named"):
        return max(others.values(), key=lambda figure: figure.value - 2 * figure.scatter).over(mine)
    return mine.over(min(others.values(), key=lambda figure: figure.value + 2 * figure.scatter))


def format_row(row: str, mine: Measured, others: Mapping[str, Figure]) -> str:
    peers = ", ".join(f"{name} {figure}" for name, figure in others.items() if name != "theory")
    ratio = compare(row, mine.best, others)
    cells = [
        row,
        "–" if mine.drawn is None else str(mine.drawn),
        f"{mine.asked} ({mine.asked.draws:,})",
        str(others.get("theory", "–")),
        peers or "–",
        "–" if ratio is None else f"{ratio.value:.3f} ± {ratio.scatter:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, help="the folder of the peers' environments")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rows", default="", help="only rows whose name has these words in it")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    table: dict[str, dict[str, dict[str, float]]] = {}
    apart: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data.write_tables(folder)
        found = {"theory": theory.find_best(folder)}
        if options.peers:
            found |= {peer: ask_peer(peer, options.peers, folder, options.repeats) for peer in PEERS}
        if not options.json:
            print("| task | drawn | asked (errors) | theory | peers | ours / best |\n|---|---|---|---|---|---|")
        for row, mine in ours.measure(folder, options.repeats, options.rows):
            others = {who: figures[row] for who, figures in found.items() if row in figures}
            both = {"drawn": mine.best, "asked": mine.asked}
            table[row] = {who: figure.to_json() for who, figure in (both | others).items()}
            apart += [row] if mine.disagreement > MOST_APART else []
            if not options.json:
                print(format_row(row, mine, others), flush=True)
    if options.json:
        print(json.dumps(table, ensure_ascii=False))
    if apart:
        sys.exit(f"drawn and asked are more than {MOST_APART} standard errors apart: {'; '.join(apart)}")


if __name__ == "__main__":
    main()
