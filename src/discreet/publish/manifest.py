"""Manifests: what a bundle says about itself, for machines, and the disclosure, for people. Released facts only."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from importlib.metadata import version
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet import parameters
from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.errors import InternalError
from discreet.exact import float_up
from discreet.late_dataclass import dataclass
from discreet.privacy import Loss, Neighbours
from discreet.publish.design import ReleaseDesign
from discreet.publish.measurements import Measurements, find_cells
from discreet.publish.method import Method
from discreet.publish.records import dump_column

FORMAT = 1
# The δ at which ε is stated where the budget has none.
STATED_DELTA = Fraction(1, 10**9)


def describe_loss(loss: Loss, delta: Fraction) -> dict[str, Any]:
    """A loss in every notion in which it is known, and the ε that it is at a δ, rounded up; pure ε is at δ = 0."""
    at = delta or (Fraction(0) if loss.has("pure") else STATED_DELTA)
    return {
        "words": [f"{notion.kind}: {notion.words()}" for notion in loss.notions],
        "epsilon": loss.epsilon(at),
        "delta": float_up(at),
    }


def make_manifest(
    design: ReleaseDesign,
    method: Method,
    measured: Measurements,
    *,
    dataset: str,
    delta: Fraction,
    receipt: Mapping[str, Any],
    released: Iterable[events.Event],
    parts: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Everything that a reader of the bundle must know. ``released`` are the events of all releases of the dataset.

    ``parts`` are its questions and series, each with its own mechanisms.
    """
    allocation, plan = measured.allocation, design.plan
    charged = [*method.events, *(events.load(event) for part in parts for event in part["mechanisms"])]
    dropped = [part for part in design.workload.weights if not allocation.covers(part)]
    return {
        "format": FORMAT,
        "discreet": version("discreet"),
        "name": plan.name,
        "dataset": dataset,
        "plan": plan.to_dict(),
        "plan_digest": plan.digest,
        "supersedes": plan.supersedes,
        "unit": str(design.unit),
        "neighbours": str(design.neighbours),
        "limits": {
            "max_rows": design.max_rows,
            "beyond": "rows of a unit weigh less" if design.unit.column else "",
        },
        "mechanisms": [events.dump(event) for event in method.events],
        "parts": list(parts),
        "loss": describe_loss(compose(charged).loss, delta),
        "best_guess": find_best_guess(charged),
        "cumulative": describe_loss(compose(list(released)).loss, delta),
        "method": {
            "name": method.name,
            "reason": method.reason,
            "rows": method.rows,
            "dropped": [[design.names[column] for column in part] for part in dropped],
            "numbers": count_numbers(measured),
        },
        "level": str(parameters.read_probability(plan.level, "level")),
        "columns": [dump_column(column) for column in design.columns],
        "tables": list_tables(measured, design.names),
        "ranges": [
            {"column": design.names[column], "cells": strategy.cells, "strategy": str(strategy.kind)}
            for column, strategy in allocation.workload.strategies.items()
        ],
        "total": measured.total,
        "metadata": {"croissant": "croissant.json", "dcat:previousVersion": plan.supersedes or None},
        "receipt": dict(receipt),
        "versions": list_versions(),
    }


def list_versions() -> dict[str, str]:
    """What numbers are computed with: rows that the same seed makes are the same where these are."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {"discreet": version("discreet"), "python": python, "numpy": np.__version__, "machine": platform.machine()}


def count_numbers(measured: Measurements) -> int:
    """How many noisy numbers were drawn."""
    before = 0 if measured.first is None else count_numbers(measured.first)
    scores = 0 if measured.scores is None else len(measured.scores.noisy)
    return find_cells(measured.allocation) + before + scores


@dataclass(frozen=True)
class NoiseSums:
    """What noise costs, kind by kind: μ² of normal noise, ε of Laplace noise, and the δ with which something fails."""

    mu_squared: Fraction
    epsilon: Fraction
    failure: Fraction

    def holds(self, other: NoiseSums) -> bool:
        """Whether it is at least as much as another, in each kind."""
        return self.mu_squared >= other.mu_squared and self.epsilon >= other.epsilon and self.failure >= other.failure


def add_up(charged: Iterable[events.Event]) -> NoiseSums:
    """What all events cost together."""
    mu_squared, epsilon, failure = Fraction(0), Fraction(0), Fraction(0)
    for event in charged:
        if isinstance(event, events.RoundedGaussian):
            mu_squared += events.squared_mu(event)
        elif isinstance(event, events.DiscreteLaplace):
            epsilon += event.count * event.sensitivity / events.to_exact(event.scale)
        elif isinstance(event, events.Approximate) and not events.to_exact(event.epsilon):
            failure += Fraction(events.to_exact(event.delta)) * event.count
        else:
            raise InternalError("A release has noise that is neither normal nor Laplace noise.")
    return NoiseSums(mu_squared, epsilon, failure)


def find_best_guess(charged: Iterable[events.Event]) -> float:
    """How often the best guess of whether a unit is in the data is right, if it is a fair coin, rounded up.

    That is Φ(μ/2) for normal noise, and 1/(1 + e^−ε) for Laplace noise. With both, what they add to a coin is added.
    Where something fails with a small probability, the guess is right then at most always.
    """
    sums = add_up(charged)
    normal = NormalDist().cdf(math.sqrt(sums.mu_squared) / 2)
    pure = 1 / (1 + math.exp(-min(700.0, float(sums.epsilon))))
    return math.ceil(1000 * min(1.0, normal + pure - 0.5 + float(sums.failure))) / 1000


def write_promise(manifest: Mapping[str, Any]) -> str:
    """What the release means for whoever it protects, in two sentences."""
    added = manifest["neighbours"] == str(Neighbours.ADD_REMOVE)
    what = f"whether {manifest['unit']} was in the data" if added else f"which of two values {manifest['unit']} had"
    return (
        f"Whoever guesses from this release {what}, when both are equally likely, is right at most "
        f"{100 * manifest['best_guess']:.1f} % of the time; a coin is right 50 %. This holds whatever else they know, "
        "now and later."
    )


def list_tables(measured: Measurements, names: Sequence[str]) -> list[dict[str, Any]]:
    """The measured tables with the standard deviation of each cell."""
    allocation = measured.allocation
    return [
        {
            "columns": [names[column] for column in part],
            "cells": allocation.workload.cells(part),
            "deviation": float(np.sqrt(allocation.cell_variance(part))),
        }
        for part in allocation.workload.closure
    ]


def _name_noise(manifest: Mapping[str, Any]) -> str:
    pure = any(isinstance(events.load(event), events.DiscreteLaplace) for event in manifest["mechanisms"])
    return "Laplace" if pure else "rounded normal"


def write_disclosure(manifest: Mapping[str, Any]) -> str:
    """What was done and what it means, in plain words."""
    loss, method = manifest["loss"], manifest["method"]
    who = manifest["unit"]
    together = manifest["cumulative"]["epsilon"]
    lines = [
        f"{manifest['name']}: a private release of {manifest['dataset']}",
        "",
        "What is in it. Tables of counts with noise, tables made consistent from them, and, if the plan asked for "
        "them, answers to questions, series, and synthetic rows that fit these tables. No row of the private data is "
        "in it.",
        "",
        f"Who is protected. The release protects {who} ({manifest['neighbours']} neighbours). Whatever somebody knows "
        f"already, with or without {who} in the data they see almost the same release: this one is ε = "
        f"{loss['epsilon']:.4g} at δ = {loss['delta']:.4g} ({'; '.join(loss['words'])}). All releases of this dataset "
        f"so far are together ε = {together:.4g} at that δ. Further questions to this bundle cost nothing.",
        "",
    ]
    if manifest["limits"]["beyond"]:
        lines += [
            f"Limits. At most {manifest['limits']['max_rows']} rows of each unit count in full; where a unit has more, "
            "all of its rows count less. Counts and synthetic rows stand for rows weighed in this way.",
            "",
        ]
    lines += [
        f"How. {method['numbers']} whole numbers with {_name_noise(manifest)} noise, drawn once ({method['name']}: "
        f"{method['reason']}).",
        "",
        "Errors. The interval of a count holds the count that was measured with the stated confidence, cell by cell. "
        "Estimates and synthetic rows are smoother and have a bias: small counts tend to be too large, and "
        "dependences too weak. "
        "What no measured table tells is a model, and no error is promised for it.",
        "",
        "What is outside. Exact numbers that are published of the same data elsewhere, totals among them, are not "
        "covered by this guarantee: there is none in this release.",
    ]
    if manifest["plan"]["priors"]:
        listed = "; ".join(" × ".join(prior["columns"]) for prior in manifest["plan"]["priors"])
        lines += ["", f"Public tables. Estimates lean on tables that were public before, where noise hides: {listed}."]
    if method["dropped"]:
        listed = "; ".join(" × ".join(names) for names in method["dropped"])
        lines += ["", f"Not measured. Noise would have hidden these tables, or they told too little: {listed}."]
    if manifest["supersedes"]:
        lines += ["", f"It supersedes {manifest['supersedes']}, which stays paid for."]
    return "\n".join(lines) + "\n"
