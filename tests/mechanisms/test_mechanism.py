"""What all mechanisms share: the protocol, the public names, exact settled parameters, and the grid."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import mechanisms
from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import FIXED_LIMIT, Ln
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.grid import Grid, l1_steps, squared_l2_steps
from discreet.mechanisms.laplace import Laplace, scale_for
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.privacy import Neighbours, Unit

INT64 = np.iinfo(np.int64)


def test_every_public_name_loads() -> None:
    """The table of homes is complete and right."""
    assert sorted(mechanisms.__all__) == sorted(mechanisms._HOMES) == sorted(dir(mechanisms))
    for name in mechanisms.__all__:
        assert getattr(mechanisms, name).__name__ == name
    with pytest.raises(AttributeError):
        _ = mechanisms.Nothing


def test_mechanisms_load_late() -> None:
    """Importing the package loads no mechanism and no scipy."""
    code = (
        "import sys, discreet.mechanisms as m; m.Laplace; "
        "print('discreet.mechanisms.gaussian' in sys.modules, 'scipy' in sys.modules)"
    )
    call = [sys.executable, "-c", code]
    shown = subprocess.run(call, capture_output=True, text=True, check=True)  # noqa: S603 - our own words
    assert shown.stdout.split() == ["False", "False"]


def test_mechanisms_are_values() -> None:
    """Equal parameters make equal, hashable, frozen mechanisms, in whatever form they were typed."""
    typed: list[Mechanism] = [Laplace(sensitivity=1, epsilon=0.1), Laplace(sensitivity=Fraction(1), scale=10)]
    assert typed[0] == typed[1]
    assert hash(typed[0]) == hash(typed[1])
    with pytest.raises(AttributeError):
        typed[0].scale = 1  # type: ignore[attr-defined]  # that is the point


def test_neighbours_and_unit_are_read_and_carried_into_the_loss() -> None:
    """A claim names its unit and its relation, from the mechanism to the loss."""
    loss = Laplace(sensitivity=1, epsilon=1, neighbours="replace", unit="patient").privacy
    assert (loss.neighbours, loss.unit) == (Neighbours.REPLACE, Unit("patient"))
    for bad in ("both", 3, None):
        with pytest.raises(ParameterError, match="neighbours"):
            Laplace(sensitivity=1, epsilon=1, neighbours=bad)  # type: ignore[arg-type]  # bad on purpose
    with pytest.raises(ParameterError, match="unit"):
        Laplace(sensitivity=1, epsilon=1, unit="")


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(sensitivity=2, epsilon=1),
        Gaussian(sensitivity=1, rho=Fraction(1, 2)),
        RandomizedResponse(epsilon=1),
        mechanisms.Histogram(categories=3, epsilon=1),
        mechanisms.Count(epsilon=1),
        mechanisms.Sum(bounds=(0, 5), epsilon=1),
        mechanisms.Mean(bounds=(0, 5), epsilon=1),
        mechanisms.Variance(bounds=(0, 5), epsilon=1),
    ],
    ids=lambda m: type(m).__name__,
)
def test_every_mechanism_states_its_loss_for_groups_and_its_privacy_section(mechanism: Mechanism) -> None:
    """``.privacy.for_group(t)`` is t·ε (or t²·ρ), and the docstring says why."""
    loss = mechanism.privacy
    kind = "pure" if loss.has("pure") else "zcdp"
    if kind == "pure":
        assert loss.for_group(3).epsilon() == pytest.approx(3 * loss.epsilon(), rel=1e-12)
    else:
        assert loss.for_group(3).notion("zcdp").words() == "ρ = 4.5"
    doc = type(mechanism).__doc__ or ""
    assert all(word in doc for word in ("Privacy:", "Why:", "Reference:"))
    assert "neighbours=" in repr(mechanism)


# --- the grid


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=8), st.sampled_from(["1/10", "1/3", "7/2", "1/1024"]))
@settings(deadline=None, max_examples=150)
def test_array_rounding_is_exact(values: list[float], resolution: str) -> None:
    """The fast path for arrays agrees with exact arithmetic, halves upwards."""
    step = Fraction(resolution)
    expected = [math.floor(Fraction(v) / step + Fraction(1, 2)) for v in values]
    steps = Grid(step).read(values)
    assert isinstance(steps, np.ndarray)
    assert steps.tolist() == expected
    assert [Grid(step).read(v) for v in values] == expected


def test_halves_go_up() -> None:
    """Halves are rounded upwards, not to even: two reals t apart land at most ⌈t⌉ apart."""
    steps = Grid(Fraction(1)).read([-1.5, -0.5, 0.5, 1.5, 2.5, math.nextafter(0.5, 0)])
    assert np.asarray(steps).tolist() == [-1, 0, 1, 2, 3, 0]


def test_grid_refuses_what_is_not_a_number() -> None:
    """Not finite, bools, text and reals without a resolution are refused by kind, never by value."""
    for value in (float("nan"), float("inf"), True, "7", None, [0.5, float("nan")], ["a"], [True], 1j):
        with pytest.raises(ParameterError) as caught:
            Grid(Fraction(1, 10)).read(value)
        assert "7" not in str(caught.value)
    for real in (0.5, [0.5], [2**70], Fraction(1, 2)):
        with pytest.raises(ParameterError):
            Grid().read(real)
    assert Grid(Fraction(1)).read([1e300, -1e300]).tolist() == [FIXED_LIMIT, -FIXED_LIMIT]  # type: ignore[union-attr]  # an array


def test_adding_stops_at_the_ends_of_int64() -> None:
    """Arrays never wrap around; Python ints grow."""
    steps = np.array([INT64.max, INT64.max, INT64.min, 5, INT64.min], dtype=np.int64)
    noise = np.array([1, -1, -7, 2, 7], dtype=np.int64)
    expected = [max(INT64.min, min(INT64.max, a + b)) for a, b in zip(steps.tolist(), noise.tolist())]
    assert np.asarray(Grid().add(steps, noise)).tolist() == expected
    assert np.asarray(Grid().add(steps, noise.astype(object) << 70)).tolist()[0] == INT64.max
    assert Grid().add(INT64.max, 1) == INT64.max + 1


def _landings(most: int, fine: int) -> list[int]:
    """For moves of 0, 1, 2, ... fine steps: the furthest that a place can land from where it was."""
    places = [Fraction(i, 2 * fine) for i in range(2 * fine)]
    half = Fraction(1, 2)
    return [
        max(abs(math.floor(p + Fraction(move, fine) + half) - math.floor(p + half)) for p in places)
        for move in range(most + 1)
    ]


@pytest.mark.parametrize("coordinates", [1, 2, 3])
@pytest.mark.parametrize("distance", [Fraction(1, 3), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(7, 3)])
def test_rounding_distances_are_never_exceeded_and_l1_is_reached(coordinates: int, distance: Fraction) -> None:
    """Brute force over moves on a fine grid: the proved distances hold, and the L1 one is reached."""
    fine = 12
    budget = math.floor(distance * fine)
    furthest = _landings(budget, fine)
    spread = list(product(range(budget + 1), repeat=coordinates))
    worst_l1 = max(sum(furthest[m] for m in moves) for moves in spread if sum(moves) <= distance * fine)
    near = (moves for moves in spread if sum(m * m for m in moves) <= (distance * fine) ** 2)
    worst_l2 = max(sum(furthest[m] ** 2 for m in moves) for moves in near)
    assert worst_l1 <= l1_steps(distance, coordinates)
    assert worst_l2 <= squared_l2_steps(distance**2, coordinates)
    if coordinates == 1 or distance > 1:
        assert worst_l1 == l1_steps(distance, coordinates)
    if coordinates == 1:
        assert worst_l2 == squared_l2_steps(distance**2, 1)


@given(st.integers(1, 10**6), st.fractions(Fraction(101, 100), 50))
@settings(deadline=None, max_examples=60)
def test_a_scale_from_a_logarithm_never_costs_more(steps: int, of: Fraction) -> None:
    """Rounding the scale up keeps the real loss at or below the logarithm, by less than 2^-60 of it."""
    scale = scale_for(steps, Ln(of))
    assert Ln(of) >= steps / scale
    assert steps / scale > Ln(of).lower * (1 - Fraction(1, 1 << 60))
    assert scale.numerator.bit_length() <= 65


def test_seeded_releases_repeat() -> None:
    """All noise comes from the source that is passed in."""
    laplace = Laplace(sensitivity=1, epsilon=0.1)
    one, two = (laplace.release(list(range(50)), source=SeededForTestsOnly(3)) for _ in range(2))
    assert np.array_equal(np.asarray(one), np.asarray(two))
