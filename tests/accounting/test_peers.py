"""Our prices against those of Google's dp_accounting, on random compositions.

A small table of its answers is stored and always checked. The long comparison runs the library itself, in its own
environment, when DISCREET_DP_ACCOUNTING names an interpreter that has it (``make test-long`` does).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from discreet.accounting import events as ev
from discreet.accounting.pld import LossDistribution

HERE = Path(__file__).parent
STORED = HERE / "dp_accounting_values.json"
STEP = 1e-3


def ours(record: dict[str, Any]) -> ev.Event:
    """Our event for a record that the peer's script reads."""
    fields = {name: value for name, value in record.items() if name not in {"kind", "rate"}}
    if record["kind"] == "DiscreteGaussian":
        fields |= {"variance": fields.pop("sigma") ** 2, "squared_sensitivity": fields.pop("sensitivity") ** 2}
    kind = ev.KINDS[record["kind"]]
    if "rate" not in record:
        return kind(**fields)
    count = fields.pop("count")
    return ev.PoissonSampled(event=kind(**fields), rate=record["rate"], count=count)


def random_event(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(
        ["Laplace", "Gaussian", "DiscreteLaplace", "DiscreteGaussian", "RandomizedResponse", "Approximate"]
    )
    record: dict[str, Any] = {"kind": kind, "count": rng.choice([1, 1, 2, 5, 20, 100])}
    match kind:
        case "Laplace":
            record |= {"sensitivity": rng.choice([1, 2]), "scale": rng.choice([2, 5, 12.5, 40])}
        case "Gaussian":
            record |= {"sensitivity": rng.choice([1, 3]), "sigma": rng.choice([2, 4.5, 10, 33])}
        case "DiscreteLaplace":
            record |= {"sensitivity": rng.choice([1, 2, 3]), "scale": rng.choice([2, 4, 10, 32])}
        case "DiscreteGaussian":
            record |= {"sensitivity": rng.choice([1, 2]), "sigma": rng.choice([1, 2, 4, 16])}
        case "RandomizedResponse":
            record |= {"epsilon": rng.choice([0.125, 0.5, 1.0]), "categories": rng.choice([2, 3, 10])}
        case "Approximate":
            record |= {"epsilon": rng.choice([0.125, 0.25, 1.0]), "delta": rng.choice([1e-9, 1e-8])}
    if kind in {"Laplace", "Gaussian", "DiscreteLaplace", "DiscreteGaussian"} and rng.random() < 0.3:
        record["rate"] = rng.choice([0.01, 0.125, 0.5])
    return record


def random_plans(seed: int, size: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)  # noqa: S311  # the same plans every time
    return [
        {"delta": rng.choice([1e-3, 1e-5, 1e-6]), "events": [random_event(rng) for _ in range(rng.randint(1, 4))]}
        for _ in range(size)
    ]


def check(plan: dict[str, Any], theirs: float) -> None:
    """Their upper bound is not below our lower one; ours is not above theirs, and not far below."""
    composition = LossDistribution(tuple(ours(record) for record in plan["events"]))
    low, high = composition.bounds(plan["delta"])
    assert low <= theirs * (1 + 1e-9) + 1e-9, plan
    assert high <= theirs * (1 + 1e-4) + 1e-6, plan
    # They round the losses of randomized response and of (ε,δ) up to their grid, each time, and their grid is wide
    # against the smallest losses here.
    rounded = sum(r["count"] for r in plan["events"] if r["kind"] in {"RandomizedResponse", "Approximate"})
    releases = sum(r["count"] for r in plan["events"])
    assert theirs - high <= 0.01 * high + (rounded + releases / 8) * STEP + 1e-3, plan


def stored() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(STORED.read_text())
    return table


@pytest.mark.parametrize("row", stored()["rows"], ids=range(len(stored()["rows"])))
def test_stored_values(row: dict[str, Any]) -> None:
    """A table of answers of dp_accounting, with its version and date, agrees with ours."""
    check(row, row["epsilon"])


@pytest.mark.long
def test_random_compositions_agree_with_dp_accounting() -> None:
    """On 240 random compositions both libraries agree within their bounds."""
    interpreter = os.environ.get("DISCREET_DP_ACCOUNTING")
    if not interpreter:
        pytest.skip("DISCREET_DP_ACCOUNTING does not name an interpreter that has dp_accounting")
    plans = random_plans(seed=3, size=240)
    script = HERE / "dp_accounting_peer.py"
    task = json.dumps({"step": STEP, "plans": plans})
    done = subprocess.run([interpreter, str(script)], input=task, capture_output=True, text=True, check=True)  # noqa: S603  # our own script in the interpreter the developer named
    answers = json.loads(done.stdout)
    assert len(answers["epsilons"]) == len(plans)
    for plan, theirs in zip(plans, answers["epsilons"]):
        check(plan, theirs)
