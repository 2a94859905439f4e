"""Error against cost: fewer errors for more, within what is left, in a table for a narrow terminal."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from math import prod
from pathlib import Path

import pytest

import discreet
from discreet.error_curve import WIDTH, ColumnError, CurvePoint, draw_curve, list_shares
from tests.cli.commands import Run
from tests.worlds.visits import curator

ASKED = "SELECT ward, COUNT(*) AS n, AVG(age) AS age, MEDIAN(age) AS middle FROM visits GROUP BY ward"


@pytest.mark.parametrize(
    "budget",
    [
        discreet.Budget(epsilon=4, delta=1e-6),
        discreet.Budget(epsilon=4),
        discreet.Budget(rho=1),
        discreet.Budget(mu=1),
    ],
)
def test_a_curve_falls_and_ends_with_what_is_left(budget: discreet.Budget) -> None:
    """Every point is what its share buys, errors fall with cost, and the last point can be charged.

    With one kind of noise no error grows. Where the kind changes, one may, but not all of them together.
    """
    holder = curator(budget)
    holder.ask("SELECT COUNT(*) AS n FROM visits", share=Fraction(3, 5))
    shown = holder.preview(ASKED, curve=True)
    shares = [point.share for point in shown.curve]
    assert shares == sorted(shares) and shares[-1] == pytest.approx(0.4, rel=1e-6)
    sizes = [[error.size or 0.0 for error in point.errors] for point in shown.curve]
    assert all(size > 0 for point in sizes for size in point)
    for (before, after), (kind, other) in zip(pairwise(sizes), pairwise(point.noise for point in shown.curve)):
        assert prod(after) <= prod(before)
        assert kind != other or all(one >= two for one, two in zip(before, after))
    assert all(first > last for first, last in zip(sizes[0], sizes[-1]))
    assert holder.preview(ASKED, share=shares[-1]).fits
    assert shown.curve[3].errors[0].size == holder.preview(ASKED, share=shares[3]).columns[0].error
    assert [point["share"] for point in shown.to_dict()["curve"]] == [float(share) for share in shares]
    assert "share " in str(shown) and not holder.preview(ASKED, share=shares[0]).curve
    assert len(holder.history()) == 1


def test_what_one_question_may_not_cost_is_not_on_the_curve() -> None:
    """And nothing is where nothing is left."""
    holder = curator(discreet.Budget(epsilon=2), per_query=0.5)
    assert holder.preview("SELECT COUNT(*) AS n FROM visits", curve=True).curve[-1].share == Fraction(1, 5)
    assert list_shares(Fraction(0)) == () and "nothing is left" in draw_curve([])


def test_wide_curves_are_divided() -> None:
    """No line is wider than the terminal that is promised."""
    errors = tuple(ColumnError(f"a_long_name_{i}", f"± {10**i:,}", 10.0**i) for i in range(6))
    drawn = draw_curve([CurvePoint(share, "", "Gaussian", errors) for share in list_shares(Fraction(1))])
    assert max(map(len, drawn.splitlines())) <= WIDTH and drawn.count("share") == 3
    assert all(error.name in drawn for error in errors)


def test_the_shell_shows_a_curve_without_a_price(hospital: Path, run: Run) -> None:
    """As a table and in JSON."""
    question = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    code, out, _ = run("preview", hospital, question, "--curve")
    assert code == 0 and "Error against cost" in out and "1/10 " in out
    code, out, _ = run("preview", hospital, question, "--curve", "--json")
    assert code == 0 and json.loads(out)["curve"][0]["errors"]["n"] > 0
