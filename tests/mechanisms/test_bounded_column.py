"""Bounded columns, and the checks that statistics and quantiles share."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from discreet.errors import ParameterError
from discreet.mechanisms import CellQuantiles, Exponential, Mean, Quantile, Quantiles, Sum, TopK, Variance
from discreet.mechanisms.bounded_column import BoundedColumn
from discreet.mechanisms.exponential import loss_of_round
from discreet.mechanisms.mechanism import OneEventMechanism


def test_a_column_is_read_exactly_and_rounds_outwards() -> None:
    """A float is the decimal it prints as, and the ends cover the declared bounds."""
    column = BoundedColumn.read((0, 1), 0.3)
    assert column == BoundedColumn(Fraction(0), Fraction(1), Fraction(3, 10))
    assert column.ends == (0, 4)
    assert column.encode([0.5, 7, -1]).tolist() == [2, 4, 0]


@pytest.mark.parametrize(
    ("bounds", "resolution", "name"),
    [
        ("01", 1, "bounds"),
        ((0, 1, 2), 1, "bounds"),
        ((1, 1), 1, "bounds"),
        ((0, float("nan")), 1, "bounds"),
        ((0, 1), 0, "resolution"),
    ],
)
def test_a_column_refuses_what_it_cannot_mean(bounds: Any, resolution: Any, name: str) -> None:
    """The same refusal, by the same name, in the column and in every mechanism that has one."""
    with pytest.raises(ParameterError, match=name):
        BoundedColumn.read(bounds, resolution)
    kinds: tuple[tuple[Any, dict[str, Any]], ...] = (
        (Sum, {}),
        (Mean, {}),
        (Variance, {}),
        (Quantile, {"q": 0.5}),
        (Quantiles, {"qs": [0.5]}),
    )
    for kind, more in kinds:
        with pytest.raises(ParameterError, match=name):
            kind(bounds=bounds, resolution=resolution, epsilon=1, **more)


def test_a_column_of_two_dimensions_is_refused() -> None:
    """One value for each row."""
    with pytest.raises(ParameterError, match="one column"):
        BoundedColumn.read((0, 1), 1).encode([[1, 2], [3, 4]])


def test_the_loss_of_one_round_is_shared_by_all_choices() -> None:
    """ε is divided evenly, ρ by the square root; each mechanism uses the same number."""
    assert loss_of_round(3, None, 3) == 1
    assert loss_of_round(None, Fraction(1, 2), 4) == 1
    assert Exponential(sensitivity=1, rho=0.5).loss == loss_of_round(None, Fraction(1, 2))
    assert TopK(k=4, sensitivity=1, rho=0.5).loss == 1
    assert Quantiles(qs=[0.25, 0.5, 0.75], bounds=(0, 9), epsilon=3).loss == loss_of_round(3, None, 2)
    assert CellQuantiles(qs=[0.5], first=0, last=9, groups=3, epsilon=3).loss == 1


def test_one_event_describes_one_release() -> None:
    """``events`` is ``event`` alone, so that a charge cannot miss one."""
    for mechanism in (Exponential(sensitivity=1, epsilon=1), Quantile(q=0.5, bounds=(0, 9), epsilon=1)):
        assert isinstance(mechanism, OneEventMechanism)
        assert mechanism.events == (mechanism.event,)
