"""Cells: counts of conditions that exclude each other, judged by conditions alone, and never a claim too small."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from discreet.bounding.bound import bound
from discreet.bounding.cells import are_exclusive, list_cell_forms
from discreet.bounding.contributions import Counts, Measure
from discreet.bounding.joint_measures import JointMeasure, joint_sensitivity
from discreet.frontends.read_sql import read
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Call, Expression, ReleasedValue
from discreet.plan.nodes import Question
from discreet.privacy import Neighbours
from tests.worlds.hospital import ROWS, catalog, column
from tests.worlds.prices import PURE, ZCDP, priced

CONDITIONS = [
    "age > 50",
    "NOT age > 50",
    "age <= 50",
    "age BETWEEN 18 AND 64",
    "age < 18",
    "age >= 65",
    "age = 50",
    "age <> 50",
    "age + 1 > 50",
    "cost > 3",
    "cost <= 3",
    "cost = 3",
    "cost = 4",
    "sex = 'f'",
    "sex = 'm'",
    "sex <> 'f'",
    "sex IS NULL",
    "sex IS NOT NULL",
    "sex IN ('f', 'x')",
    "sex = 'f' AND age > 50",
    "sex = 'm' OR age > 50",
    "age > 49.5",
]
VALUES: dict[str, list[Any]] = {
    "age": [None, 0, 17, 18, 49, 50, 51, 64, 65, 110],
    "cost": [None, 0.0, 3.0, 3.25, 4.0],
    "sex": [None, "f", "m", "x"],
}


def ask_counts(*conditions: str, more: str = "") -> Question:
    counts = ", ".join(f"COUNT(*) FILTER (WHERE {c}) AS c{i}" for i, c in enumerate(conditions))
    return read(f"SELECT {counts}{more} FROM visits", catalog())


def find_condition(text: str) -> Expression:
    (aggregate,) = ask_counts(text).aggregates
    assert isinstance(aggregate.argument, Call)
    return aggregate.argument.arguments[0]


def make_rows() -> list[dict[Any, Any]]:
    return [{column(name): value for name, value in zip(VALUES, row)} for row in product(*VALUES.values())]


def test_conditions_that_are_said_to_exclude_each_other_do() -> None:
    """No row among all combinations of telling values makes both true; and the usual pairs are found."""
    rows, found = make_rows(), set()
    for one, two in product(CONDITIONS, repeat=2):
        first, second = find_condition(one), find_condition(two)
        if are_exclusive(first, second):
            found.add((one, two))
            assert not any(evaluate(first, row) is True and evaluate(second, row) is True for row in rows)
    assert all((two, one) in found for one, two in found)
    assert {
        ("age > 50", "NOT age > 50"),
        ("age < 18", "age >= 65"),
        ("age BETWEEN 18 AND 64", "age >= 65"),
        ("age = 50", "age <> 50"),
        ("cost > 3", "cost <= 3"),
        ("sex = 'f'", "sex <> 'f'"),
        ("sex IS NULL", "sex IS NOT NULL"),
        ("sex = 'f' AND age > 50", "age < 18"),
    } <= found


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("age > 50", "age < 65"),
        ("age > 50", "sex = 'f'"),
        ("age <> 50", "age <> 51"),
        ("cost = 3", "cost = 4"),
        ("sex = 'f'", "sex = 'F'"),
    ],
)
def test_what_may_hold_together_is_not_exclusive(one: str, two: str) -> None:
    """Also reals, which may be equal as doubles, and texts, which a collation may equate."""
    assert not are_exclusive(find_condition(one), find_condition(two))


def find_forms(question: Question) -> tuple[tuple[Measure, ...], list[Any]]:
    bounded = bound(question, catalog(limits=ROWS))
    return bounded.bounded.measures, list_cell_forms(bounded.bounded.measures, bounded.measured)


def test_cells_are_found_with_and_without_the_rest() -> None:
    """Three ranges of an age are one form; with COUNT(*), so is what lies in none of them."""
    three = "age < 18", "age BETWEEN 18 AND 64", "age >= 65"
    _, forms = find_forms(ask_counts(*three))
    assert [len(form.positions) for form in forms] == [3]
    measures, forms = find_forms(ask_counts(*three, more=", COUNT(*) AS n"))
    assert sorted(len(form.positions) for form in forms) == [3, 4]
    assert sum(measure == Measure(counts=Counts.ROWS) for measure in measures) == 1
    assert not find_forms(ask_counts("age > 50", "sex = 'f'"))[1]


def worst_share(joint: JointMeasure, question: Question, neighbours: Neighbours, divisor: int = 1) -> Fraction:
    """The largest part of the claim that random units reach in L1 or L2², by the definition of the measures."""
    form = bound(question, catalog(limits=ROWS, neighbours=neighbours))
    plan, rng = form.bounded, random.Random(5)  # noqa: S311  # worlds need seeds, not secrets
    claim = joint_sensitivity(plan, joint, neighbours)
    rows, whole, cap = make_rows(), 1 << plan.weight_bits, plan.max_rows or 1
    conditions = {p: m.argument for p, m in enumerate(plan.measures)}

    def add_up() -> list[int]:
        own = [rng.choice(rows) for _ in range(rng.choice((1, 2, cap, cap + 3)))]
        weight = min(whole, cap * whole // len(own))
        told = {
            p: sum(weight for row in own if a is None or evaluate(a, row) is not None) for p, a in conditions.items()
        }
        return [sum(factor * told[p] for p, factor in part) for part in joint.parts]

    worst = Fraction(0)
    for _ in range(300):
        other = add_up() if neighbours is Neighbours.REPLACE else [0] * len(joint.parts)
        moved = [a - b for a, b in zip(add_up(), other)]
        l1, l2 = sum(map(abs, moved)), sum(m * m for m in moved)
        worst = max(worst, Fraction(l1 * divisor, claim.l1), Fraction(l2 * divisor, claim.l2_squared))
    return worst


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("more", ["", ", COUNT(*) AS n"])
def test_no_unit_moves_cells_further_than_claimed(neighbours: Neighbours, more: str) -> None:
    """The claim holds and is reached; half of it would not hold."""
    question = ask_counts("age < 18", "age BETWEEN 18 AND 64", "age >= 65", more=more)
    _, forms = find_forms(question)
    for form in forms:
        assert Fraction(9, 10) < worst_share(form.joint, question, neighbours) <= 1
        assert worst_share(form.joint, question, neighbours, divisor=2) > 1


def test_counts_that_overlap_would_break_the_claim() -> None:
    """The same claim for conditions that hold together is exceeded: so it matters that they exclude each other."""
    question = ask_counts("age > 17", "age < 65")
    _, (form,) = find_forms(ask_counts("age < 18", "age >= 65"))
    assert worst_share(form.joint, question, Neighbours.ADD_REMOVE) > 1


@pytest.mark.parametrize(("budget", "offer", "gain"), [(PURE, {"epsilon": 1}, 2), (ZCDP, {"rho": 1}, 2**0.5)])
def test_two_cells_cost_what_one_costs(budget: Any, offer: Any, gain: float) -> None:
    """FILTER (a) and FILTER (NOT a): each as exact as alone, and 2 (or √2) times as exact as in halves."""
    alone = priced(ask_counts("age > 50"), budget, **offer)
    both = priced(ask_counts("age > 50", "NOT age > 50"), budget, **offer)
    apart = priced(ask_counts("age > 50", "age > 60"), budget, **offer)

    def error(release: Any) -> float:
        index = release.bounded.question.outputs[0].expression
        assert isinstance(index, ReleasedValue)
        return float(release.deviation({release.bounded.estimates[index.index].count: Fraction(1)}))

    assert error(both) == pytest.approx(error(alone), rel=0.02)
    assert error(apart) == pytest.approx(gain * error(both), rel=0.02)
