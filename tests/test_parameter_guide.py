"""What a parameter means: the numbers are those of the mechanisms and of the accounting."""

from __future__ import annotations

import math

import pytest

from discreet.errors import ParameterError
from discreet.mechanisms import Laplace
from discreet.odds import posterior
from discreet.parameter_guide import GUIDES, KNOWN_USES, guide_epsilon, guide_rho


def test_epsilon_in_odds_for_one_and_for_four() -> None:
    """Half becomes e^ε/(1+e^ε), for four people e^4ε/(1+e^4ε); rounded up."""
    guide = guide_epsilon(0.5)
    for text, loss in ((guide.odds, 0.5), (guide.group_odds, 2.0)):
        shown = float(text.rpartition("at most ")[2].partition(":")[0])
        assert 0 <= shown / 100 - posterior(0.5, loss) < 0.001 + 1e-9


def test_the_error_is_that_of_a_count() -> None:
    """As the mechanism states it, and as a share of the rows that were named."""
    guide = guide_epsilon(1, rows=500)
    assert guide.error == Laplace(sensitivity=1, epsilon=1).error(beta=0.05) and guide.rows == (500,)
    assert f"{guide.error / 500:.2g} of 500" in "\n".join(guide.lines)


def test_known_uses_around_it_are_named() -> None:
    """In order, the nearest below and above; ρ is compared with none."""
    assert list(KNOWN_USES) == sorted(KNOWN_USES, key=lambda use: use.epsilon)
    assert [use.epsilon for use in guide_epsilon(3).nearest] == [2.64, 4.0]
    assert [use.epsilon for use in guide_epsilon(0.1).nearest] == [1.0]
    assert [use.epsilon for use in guide_epsilon(50).nearest] == [17.14]
    assert guide_rho(0.1).nearest == ()


@pytest.mark.parametrize("name", GUIDES)
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_what_is_no_loss_is_refused(name: str, value: float) -> None:
    """Zero, below zero, not a number, without end."""
    with pytest.raises(ParameterError, match=name):
        GUIDES[name](value)
