"""Peers on the same data: ten columns of UCI Adult, all tables of two columns, ε = 1, δ = 10^-9, CPU time and error.

python benchmarks/publish.py --data data --codes adult.npz       writes the codes
dpmm-venv/bin/python benchmarks/publish_peers.py adult.npz mst   runs in an environment of dpmm 0.1.9: mst, aim
mbi-venv/bin/python benchmarks/publish_peers.py adult.npz tree   in one of mbi 2.0.0

mbi's wheel has the engine and no mechanism. ``tree`` gives it all one-way tables and a spanning tree of pairs, which is
chosen by the exact tables: a gift, so its error is a bound from below for what a private choice of a tree would have.
``dpmm`` runs as it comes, with ``n_iters`` of 1,000 (mst) and 100 (aim, and a model of at most 1 MB).
"""

# Peers are not installed where this is checked.
# mypy: ignore-errors
from __future__ import annotations

import json
import math
import resource
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np

EPSILON, DELTA = 1.0, 1e-9
# μ of a Gaussian mechanism that is (1, 10^-9)-private.
MU = 0.18197


def count(codes, pair, sizes):
    cells = codes[pair[0]].astype(np.int64) * sizes[pair[1]] + codes[pair[1]]
    return np.bincount(cells, minlength=sizes[pair[0]] * sizes[pair[1]]).reshape(sizes[pair[0]], sizes[pair[1]])


def find_error(tables, truth, rows):
    return float(np.mean([np.abs(tables[pair] - truth[pair]).sum() / 2 / rows for pair in truth]))


def run_dpmm(codes, sizes, kind):
    import pandas as pd
    from dpmm.pipelines import AIMPipeline, MSTPipeline

    names = [f"c{i}" for i in range(len(sizes))]
    frame = pd.DataFrame(dict(zip(names, codes)))
    known = {"epsilon": EPSILON, "delta": DELTA, "disable_processing": True}
    if kind == "mst":
        model = MSTPipeline(**known, gen_kwargs={"n_iters": 1000})
    else:
        model = AIMPipeline(**known, max_model_size=1, gen_kwargs={"n_iters": 100})
    model.fit(frame, domain={name: int(size) for name, size in zip(names, sizes)})
    made = model.generate(n_records=len(frame))
    return [made[name].to_numpy() for name in names]


def choose_tree(sizes, truth, rows):
    """A spanning tree of pairs with the largest mutual information of the exact tables."""
    scored = []
    for pair, table in truth.items():
        shares = table / rows
        outer = np.outer(shares.sum(axis=1), shares.sum(axis=0))
        seen = shares > 0
        scored.append((float((shares[seen] * np.log(shares[seen] / outer[seen])).sum()), pair))
    group, tree = list(range(len(sizes))), []
    for _, (one, two) in sorted(scored, reverse=True):
        if group[one] != group[two]:
            tree.append((one, two))
            group = [group[one] if g == group[two] else g for g in group]
    return tree


def run_mbi(codes, sizes, truth):
    from mbi import Domain, LinearMeasurement
    from mbi.estimation import MirrorDescent

    rows, chance = len(codes[0]), np.random.default_rng(0)
    names = [f"c{i}" for i in range(len(sizes))]
    wanted = [(i,) for i in range(len(sizes))] + choose_tree(sizes, truth, rows)
    sigma = math.sqrt(len(wanted)) / MU
    measured = []
    for part in wanted:
        exact = np.bincount(codes[part[0]], minlength=sizes[part[0]]) if len(part) == 1 else count(codes, part, sizes)
        noisy = exact.reshape(-1) + chance.normal(0, sigma, exact.size)
        measured.append(LinearMeasurement(noisy, tuple(names[c] for c in part), stddev=sigma))
    domain = Domain.fromdict(dict(zip(names, map(int, sizes))))
    model = MirrorDescent().estimate(domain, measured, known_total=rows, iters=1000)
    made = model.synthetic_data(rows).to_dict()
    return [np.asarray(made[name]) for name in names]


def main():
    stored = np.load(Path(sys.argv[1]))
    sizes = stored["sizes"].tolist()
    codes = [stored[f"c{i}"] for i in range(len(sizes))]
    truth = {pair: count(codes, pair, sizes) for pair in combinations(range(len(sizes)), 2)}
    start = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    begun = time.perf_counter()
    made = run_mbi(codes, sizes, truth) if sys.argv[2] == "tree" else run_dpmm(codes, sizes, sys.argv[2])
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    rows = len(made[0])
    tables = {pair: count(made, pair, sizes) * (len(codes[0]) / rows) for pair in truth}
    print(
        json.dumps(
            {
                "peer": sys.argv[2],
                "tvd": find_error(tables, truth, len(codes[0])),
                "cpu": sum(sum(each[:2]) for each in own) - start,
                "wall": time.perf_counter() - begun,
                "megabytes": own[0].ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
