"""Rates, pictures and the JSON of an outcome."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from discreet.attacks.outcome import Bar, Outcome, Rate
from discreet.errors import ParameterError


def made(right: int, n: int, **more: object) -> Outcome:
    raw, private = Rate.of(n, n), Rate.of(right, n)
    bars = (Bar(label="plain", rate=raw), Bar(label="discreet", rate=private))
    return Outcome(name="made up", raw=raw, private=private, lesson="Nothing.", bars=bars, **more)  # type: ignore[arg-type]  # keywords of Outcome


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_intervals_are_clopper_and_pearsons(data: st.DataObject) -> None:
    """Slow oracle: scipy's exact binomial interval."""
    n = data.draw(st.integers(1, 500))
    right = data.draw(st.integers(0, n))
    rate, oracle = Rate.of(right, n), binomtest(right, n).proportion_ci(0.95, method="exact")
    assert (rate.low, rate.high) == pytest.approx((oracle.low, oracle.high), abs=1e-9)
    assert rate.low <= rate.value <= rate.high


@pytest.mark.parametrize(("right", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_impossible_counts_are_refused(right: int, n: int) -> None:
    """More successes than attempts, or no attempts, are a mistake of the caller."""
    with pytest.raises(ParameterError):
        Rate.of(right, n)


def test_agreement_counts_equal_places() -> None:
    """Guesses are compared with secrets one by one."""
    assert Rate.agreement([1, 0, 1, 1], [1, 1, 1, 0]) == Rate.of(2, 4)


def test_an_outcome_holds_up_to_three_standard_errors() -> None:
    """The bound plus three standard errors at the bound, and not one guess more."""
    n = 10_000
    bound = math.e / (1 + math.e)
    most = math.floor(n * (bound + 3 * math.sqrt(bound * (1 - bound) / n)))
    assert made(most, n).holds
    assert not made(most + 1, n).holds


def test_a_stated_error_replaces_that_of_guesses() -> None:
    """Where the rate is not a share of guesses, its own standard error counts."""
    assert not made(740, 1000, error=0.001).holds
    assert made(740, 1000, error=0.01).holds


def test_the_picture_draws_what_is_sure_and_what_may_be() -> None:
    """Full up to the low end of the interval, shaded up to the high end, dots for chance and bound."""
    plain, ours, chance, bound = made(50, 100).picture()
    assert plain.startswith("plain        ████")
    assert "░" not in plain
    assert ours.count("█") == round(26 * Rate.of(50, 100).low)
    assert ours.count("█") + ours.count("▒") == round(26 * Rate.of(50, 100).high)
    assert (chance.count("·"), bound.count("·")) == (13, 19)
    assert "73.1 %" in bound


def test_json_has_the_agreed_names() -> None:
    """Plain values, with rates, bound, intervals and the number of attempts, that JSON can carry."""
    found = json.loads(json.dumps(made(56, 100, facts={"people": 100}).to_dict()))
    assert (found["raw"], found["private"], found["n"]) == (1.0, 0.56, 100)
    assert found["bound"] == pytest.approx(0.7310586)
    assert found["intervals"]["private"][0] < 0.56 < found["intervals"]["private"][1]
    assert [bar["label"] for bar in found["picture"]] == ["plain", "discreet"]
    assert found["holds"] is True
    assert found["facts"] == {"people": 100}
