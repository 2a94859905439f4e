"""The local model: people a second, privatised and aggregated, here and in two peers; and the error of each.

    python benchmarks/local.py
    python benchmarks/local.py --ldp PATH/TO/python --json

1,000 values, ε = 1, a skewed population. Ours are 10^6 people with cryptographic randomness, reports as bytes of the
wire; the peers (pure-ldp, multi-freq-ldpy, in their own interpreter, with what a fresh install lacks) get as many
people as they manage in seconds, since their cost is the same for each. CPU seconds count, as machines are busy; one
run, the better peer for each ratio. The error is n times the mean squared error of raw shares, over a few runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

VALUES, EPSILON, PEOPLE = 1000, 1.0, 1_000_000
# People that a peer can privatise and aggregate in a few seconds.
PEER_PEOPLE = {"krr": 200_000, "hash": 3_000, "hadamard": 50_000, "unary": 10_000}
TARGETS = {"krr": (10, 10), "hash": (10, 10), "hadamard": (10, 10), "unary": (5, 2)}


def population(people: int) -> Any:
    """A fixed skewed population (Zipf 1.1), as values 0 to 999."""
    import numpy as np

    weights = 1 / np.arange(1, VALUES + 1) ** 1.1
    counts = np.floor(weights / weights.sum() * people).astype(int)
    counts[0] += people - counts.sum()
    # A fixed order that is not sorted: equal answers are spread evenly.
    return np.repeat(np.arange(VALUES), counts)[np.argsort(np.arange(people) * 7919 % people, kind="stable")]


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return max(time.process_time() - start, 1e-9), result


def ours(rounds: int) -> dict[str, dict[str, float]]:
    import numpy as np

    from discreet.local import Aggregator, Reports, Task, encode_many
    from discreet.local.estimation import estimate_frequencies

    answers = population(PEOPLE)
    truth = np.bincount(answers, minlength=VALUES) / PEOPLE
    rows = {}
    for name in ("krr", "hash", "hadamard", "unary", "projective"):
        task = Task.for_epsilon("benchmark", VALUES, epsilon=EPSILON, protocol=name)
        encoding, adding, errors = [], [], []
        for _ in range(rounds):
            took, reports = seconds(lambda task=task: encode_many(task, answers))  # type: ignore[misc]  # bound now
            encoding.append(took)

            def add(task: Task = task, reports: Reports = reports) -> Any:
                total = Aggregator(task)
                total.add(reports, batch="all")
                return estimate_frequencies(total)

            took, found = seconds(add)
            adding.append(took)
            errors.append(PEOPLE * float(((found.values - truth) ** 2).mean()))
        theory = PEOPLE * float(np.mean([task.protocol.unit_variance(f) / PEOPLE for f in truth]))  # type: ignore[attr-defined]  # all have it
        rows[name] = {
            "privatise": PEOPLE / min(encoding),
            "aggregate": PEOPLE / min(adding),
            "error": sum(errors) / rounds,
            "theory": theory,
            "payload_bytes": float(task.protocol.payload_bytes),
        }
    return rows


def pure_ldp() -> dict[str, dict[str, float]]:
    """Runs in the peers' own interpreter."""
    import numpy as np
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def same(value: int) -> int:
        return value

    servers = {
        "krr": DEServer(EPSILON, VALUES, index_mapper=same),
        "hash": LHServer(EPSILON, VALUES, use_olh=True, index_mapper=same),
        "hadamard": HadamardResponseServer(EPSILON, VALUES, index_mapper=same),
        "unary": UEServer(EPSILON, VALUES, use_oue=True, index_mapper=same),
    }
    clients = {
        "krr": DEClient(EPSILON, VALUES, index_mapper=same),
        "hash": LHClient(EPSILON, VALUES, use_olh=True, index_mapper=same),
        "hadamard": HadamardResponseClient(EPSILON, VALUES, servers["hadamard"].get_hash_funcs(), index_mapper=same),
        "unary": UEClient(EPSILON, VALUES, use_oue=True, index_mapper=same),
    }
    rows = {}
    for name, client in clients.items():
        people = PEER_PEOPLE[name]
        answers = population(people)
        truth, plain = np.bincount(answers, minlength=VALUES) / people, answers.tolist()
        server = servers[name]
        took, reports = seconds(lambda c=client, a=plain: [c.privatise(value) for value in a])  # type: ignore[misc]  # bound now

        def add(server: Any = server, reports: Any = reports) -> Any:
            for report in reports:
                server.aggregate(report)
            return np.array([server.estimate(value, suppress_warnings=True) for value in range(VALUES)])

        adding, found = seconds(add)
        error = people * float(((found / people - truth) ** 2).mean())
        rows[name] = {"privatise": people / took, "aggregate": people / adding, "error": error}
    return rows


def multi_freq() -> dict[str, dict[str, float]]:
    """Runs in the peers' own interpreter. Its shares are always clipped, so its raw error cannot be had."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    ways: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {
        "krr": (lambda v: GRR_Client(v, VALUES, EPSILON), lambda r: GRR_Aggregator_MI(r, VALUES, EPSILON)),
        "hash": (lambda v: LH_Client(v, VALUES, EPSILON), lambda r: LH_Aggregator_MI(r, VALUES, EPSILON)),
        "unary": (lambda v: UE_Client(v, VALUES, EPSILON), lambda r: UE_Aggregator_MI(r, EPSILON)),
    }
    rows = {}
    for name, (client, server) in ways.items():
        plain = population(PEER_PEOPLE[name]).tolist()
        client(0)  # compiled at the first call
        took, reports = seconds(lambda c=client, a=plain: [c(value) for value in a])  # type: ignore[misc]  # bound now
        server(reports[:10])
        adding, _ = seconds(lambda s=server, r=reports: s(r))  # type: ignore[misc]  # bound now
        rows[name] = {"privatise": len(plain) / took, "aggregate": len(plain) / adding}
    return rows


def measure(interpreter: str | None, rounds: int) -> dict[str, Any]:
    result: dict[str, Any] = {"people": PEOPLE, "values": VALUES, "epsilon": EPSILON, "ours": ours(rounds)}
    if interpreter is None:
        return result
    for peer in ("pure-ldp", "multi-freq"):
        said = subprocess.run([interpreter, __file__, "--as", peer], capture_output=True, text=True, check=True)
        result[peer] = json.loads(said.stdout.strip().splitlines()[-1])
    result["ratios"] = {}
    for name, wanted in TARGETS.items():
        found = {}
        for part, target in zip(("privatise", "aggregate"), wanted):
            best = max(result[peer][name][part] for peer in ("pure-ldp", "multi-freq") if name in result[peer])
            found[part] = result["ours"][name][part] / best
            found[f"{part}_target"] = float(target)
        result["ratios"][name] = found
    return result


def show(result: dict[str, Any]) -> None:
    print(f"{VALUES:,} values, ε = {EPSILON:g}; people a CPU second")
    print(
        f"{'':<12}{'privatise':>14}{'ratio':>9}{'aggregate':>14}{'ratio':>9}{'n·MSE':>9}{'theory':>9}{'peer':>9}{'bytes':>7}"
    )
    for name, row in result["ours"].items():
        ratio = result.get("ratios", {}).get(name, {})
        one, two = (f"{ratio[part]:.1f}×" if part in ratio else "" for part in ("privatise", "aggregate"))
        peer = result.get("pure-ldp", {}).get(name, {}).get("error")
        print(
            f"{name:<12}{row['privatise']:>14,.0f}{one:>9}{row['aggregate']:>14,.0f}{two:>9}{row['error']:>9.4g}"
            f"{row['theory']:>9.4g}{'' if peer is None else f'{peer:.4g}':>9}{row['payload_bytes']:>7.0f}"
        )
    for name, ratio in result.get("ratios", {}).items():
        for part in ("privatise", "aggregate"):
            verdict = "met" if ratio[part] >= ratio[f"{part}_target"] else "MISSED"
            print(f"target {name} {part} {ratio[f'{part}_target']:g}×: {verdict} ({ratio[part]:.1f}×)")


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    reader.add_argument("--ldp", help="the interpreter that has the peers")
    reader.add_argument("--as", dest="peer", choices=("pure-ldp", "multi-freq"), help=argparse.SUPPRESS)
    reader.add_argument("--rounds", type=int, default=3)
    reader.add_argument("--json", action="store_true")
    given = reader.parse_args()
    if given.peer:
        print(json.dumps(pure_ldp() if given.peer == "pure-ldp" else multi_freq()))
        return
    result = measure(given.ldp, given.rounds)
    if given.json:
        json.dump(result, sys.stdout, indent=2)
        print()
    else:
        show(result)


if __name__ == "__main__":
    main()
