"""The rules for private keys under audit: one unit more, one unit instead of another, with and without ``min_units``.

Keys are named by ``release``, the way that questions go. Many keys with the same units are decided at once; they are
independent, so each of them is an output of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from discreet.audit.exact_checks import check_law
from discreet.audit.findings import Finding, Verdict
from discreet.audit.subject import Subject, make_joint_probability
from discreet.exact import Integers, Interval
from discreet.mechanisms.threshold import GaussianThreshold, KeySelection, LaplaceThreshold, NoisyThreshold
from discreet.mechanisms.weighted_selection import WeightedSelection
from discreet.privacy import Neighbours

REPLACE = Neighbours.REPLACE


def list_keys() -> list[Subject]:
    """Every rule for keys, under both relations."""
    return [*_list_selections(), *_list_weighted(), *_list_thresholds()]


def _list_selections() -> list[Subject]:
    rule, least = KeySelection(epsilon=1, delta=0.01), KeySelection(epsilon=1, delta=0.01, min_units=3)
    moved = KeySelection(epsilon=1, delta=0.01, neighbours=REPLACE)
    found = [
        _make_named(one, (n,), (n + 1,), label)
        for one, n, label in (
            (rule, 0, "0 or 1 units"),
            (rule, 3, "3 or 4 units"),
            (least, 2, "2 or 3 units of 3"),
            (least, 5, "5 or 6 units of 3"),
        )
    ]
    return [*found, _make_named(moved, (2, 12), (3, 11), "replace")]


def _list_weighted() -> list[Subject]:
    weighted = WeightedSelection(rho=0.2, delta=0.01, max_groups=2)
    moved = WeightedSelection(rho=0.2, delta=0.01, neighbours=REPLACE)
    alone, shared, whole = weighted.weight(1), weighted.weight(2), moved.weight(1)
    return [
        _make_named(weighted, (0, 0), (shared, shared), "two new keys"),
        _make_named(weighted, (0, 4 * alone), (alone, 4 * alone), "a new key"),
        _make_named(weighted, (5 * alone, 5 * alone), (5 * alone + shared, 5 * alone + shared), "known keys"),
        _make_named(moved, (5 * whole, 6 * whole), (6 * whole, 5 * whole), "replace"),
    ]


def _list_thresholds() -> list[Subject]:
    found = []
    for kind, stated in ((LaplaceThreshold, {"epsilon": 1}), (GaussianThreshold, {"rho": 0.2})):
        one: Any = kind(delta=0.01, **stated)
        least: Any = kind(delta=0.01, min_units=3, **stated)
        moved: Any = kind(delta=0.01, neighbours=REPLACE, **stated)
        found += [
            _make_counted(one, (1,), (2,), ""),
            _make_counted(one, (0,), (1,), "a new key"),
            _make_counted(least, (2,), (3,), "2 or 3 units of 3"),
            _make_counted(moved, (9, 10), (10, 9), "replace"),
        ]
    return found


def _make_named(rule: Any, x: tuple[int, ...], y: tuple[int, ...], label: str) -> Subject:
    """A rule that names keys; an output says for each key of ``x`` or ``y`` whether it is named."""
    return Subject(
        mechanism=rule,
        x=x,
        y=y,
        draw=_make_draw(rule, lambda released: dict.fromkeys(released, 1)),
        probability=make_joint_probability(lambda output, given: rule.probability(bool(output), given)),
        outputs=list(product((0, 1), repeat=len(x))),
        whole=True,
        label=label,
        fit=4_000,
        runs=10_000,
    )


def _make_counted(rule: Any, x: tuple[int, ...], y: tuple[int, ...], label: str) -> Subject:
    """A rule that also tells the noisy number of units; 0 where a key is not published."""
    bar = int(rule.bar)
    told = [0, *range(bar, bar + (25 if len(x) == 1 else 12))]
    return Subject(
        mechanism=rule,
        x=x,
        y=y,
        draw=_make_draw(rule, dict),
        probability=make_joint_probability(
            lambda output, given: _probability_of(rule, int(output), given),
        ),
        outputs=list(product(told, repeat=len(x))),
        label=label,
        fit=4_000,
        runs=10_000,
    )


def _probability_of(rule: Any, output: int, given: int) -> Interval:
    found: Interval = rule.probability(None if output == 0 else output, given)
    return found


def _make_draw(rule: Any, read: Callable[[Any], dict[int, int]]) -> Callable[[Any, int], Integers]:
    """Outputs of n independent groups of keys, all of them decided in one release."""

    def draw(given: tuple[int, ...], n: int) -> Integers:
        size = len(given)
        units = dict(enumerate(given * n))
        found = np.zeros(n * size, dtype=np.int64)
        for key, value in read(rule.release(units)).items():
            found[key] = value
        return found if size == 1 else found.reshape(n, size)

    return draw


def check_key_order() -> Iterator[Finding]:
    """Named keys come in their own order, whatever their units: any other order is a fact about rows."""
    given = {"south": 900, "east": 400, "west": 700, "north": 500}
    rules: tuple[Any, ...] = (
        KeySelection(epsilon=50, delta=0.1),
        LaplaceThreshold(epsilon=50, delta=0.1),
        GaussianThreshold(rho=50, delta=0.1),
        WeightedSelection(rho=50, delta=0.1, whole=1),
    )
    for rule in rules:
        found = [list(rule.release(dict(order))) for order in (given.items(), reversed(given.items()))]
        problem = "" if found == [sorted(given)] * 2 else f"keys came as {', '.join(found[0])}"
        yield Finding(
            name=f"{type(rule).__name__}: order of keys",
            method="exact",
            verdict=Verdict.BROKEN if problem else Verdict.HOLDS,
            detail=problem or "sorted",
        )


def check_new_keys() -> Iterator[Finding]:
    """Keys that one unit brings alone are named with probability δ at most, however large ε is."""
    delta, groups = Fraction(1, 100), 2
    weighted = WeightedSelection(rho=0.2, delta=delta, max_groups=groups)
    cases: tuple[tuple[Any, int], ...] = (
        (KeySelection(epsilon=1, delta=delta, max_groups=groups), 1),
        (LaplaceThreshold(epsilon=1, delta=delta, max_groups=groups), 1),
        (GaussianThreshold(rho=0.2, delta=delta, max_groups=groups), 1),
        (weighted, weighted.weight(groups)),
    )
    for rule, given in cases:
        none = None if isinstance(rule, NoisyThreshold) else False

        def probability(output: str, units: int, rule: Any = rule, none: Any = none) -> Interval:
            silent = make_joint_probability(rule.probability)(
                np.array([none] * groups, dtype=object), (units,) * groups
            )
            return silent if output == "none" else Interval.of(1) - silent

        name = f"{type(rule).__name__}: keys of one unit alone"
        yield check_law(probability, 0, given, ("none", "some"), (0, delta), name=name, whole=True)


def check_key_noise() -> Iterator[Finding]:
    """The noise of rules for keys covers all that changes: the keys of one unit, or of two under replace."""
    groups, rho = 3, Fraction(1, 5)
    for relation in Neighbours:
        units = 2 if relation is REPLACE else 1
        stated: dict[str, Any] = {"delta": Fraction(1, 100), "max_groups": groups, "neighbours": relation}
        laplace, gaussian = LaplaceThreshold(epsilon=1, **stated), GaussianThreshold(rho=rho, **stated)
        weighted = WeightedSelection(rho=rho, **stated)
        costs = {
            "LaplaceThreshold": (units * groups / laplace.noise_scale, Fraction(1)),
            "GaussianThreshold": (units * groups / (2 * gaussian.noise_variance), rho),
            "WeightedSelection": (units * weighted.whole**2 / (2 * weighted.noise_variance), rho),
        }
        for name, (cost, claimed) in costs.items():
            problem = "" if cost <= claimed else f"the noise costs {float(cost):g}, claimed {float(claimed):g}"
            yield Finding(
                name=f"{name}: noise under {relation}",
                method="exact",
                verdict=Verdict.BROKEN if problem else Verdict.HOLDS,
                detail=problem or "covers every key that changes",
            )
    rule = KeySelection(epsilon=1, delta=Fraction(1, 100), neighbours=REPLACE)
    law = make_joint_probability(rule.probability)
    outputs = [np.array(pair, dtype=object) for pair in product((False, True), repeat=2)]
    for n, m in product(range(0, 12, 2), range(2, 14, 2)):
        found = check_law(law, (n, m), (n + 1, m - 1), outputs, (1, Fraction(1, 100)), name="KeySelection: replace")
        if not found:
            break
    yield found
