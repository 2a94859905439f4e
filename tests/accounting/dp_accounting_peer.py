"""Prices compositions with Google's dp_accounting. Runs in that library's own interpreter, never in ours.

Reads {"step": h, "plans": [{"delta": d, "events": [{"kind": ..., ..., "count": n}, ...]}, ...]} and writes
{"version": v, "epsilons": [...], "seconds": [...]}.
"""

from __future__ import annotations

import json
import math
import sys
import time
from importlib.metadata import version
from typing import Any


def distribution(event: dict[str, Any], step: float) -> Any:
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    grid = {"value_discretization_interval": step}
    rate = {"sampling_prob": event.get("rate", 1.0), "use_connect_dots": True}
    match event["kind"]:
        case "Laplace":
            return pld.from_laplace_mechanism(event["scale"], event["sensitivity"], **grid, **rate)
        case "Gaussian":
            return pld.from_gaussian_mechanism(event["sigma"], event["sensitivity"], **grid, **rate)
        case "DiscreteLaplace":
            return pld.from_discrete_laplace_mechanism(1 / event["scale"], event["sensitivity"], **grid, **rate)
        case "DiscreteGaussian":
            return pld.from_discrete_gaussian_mechanism(event["sigma"], event["sensitivity"], **grid, **rate)
        case "RandomizedResponse":
            k = event["categories"]
            return pld.from_randomized_response(k / (math.exp(event["epsilon"]) + k - 1), k, **grid)
        case "Approximate":
            parameters = common.DifferentialPrivacyParameters(event["epsilon"], event["delta"])
            return pld.from_privacy_parameters(parameters, **grid)
    raise ValueError(event["kind"])


def price(plan: dict[str, Any], step: float) -> float:
    parts = [distribution(event, step).self_compose(event["count"]) for event in plan["events"]]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return float(whole.get_epsilon_for_delta(plan["delta"]))


def main() -> None:
    task = json.load(sys.stdin)
    epsilons, seconds = [], []
    for plan in task["plans"]:
        began = time.perf_counter()
        epsilons.append(price(plan, task["step"]))
        seconds.append(time.perf_counter() - began)
    json.dump({"version": version("dp-accounting"), "epsilons": epsilons, "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    main()
