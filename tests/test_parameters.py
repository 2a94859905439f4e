"""Reading parameters: exact values come back, and every refusal names the parameter, the kind and the fix."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import parameters
from discreet.errors import DiscreetError, ParameterError, UsageError
from discreet.exact import ln
from tests.worlds.visits import curator

READERS: list[Callable[[object, str], object]] = [
    parameters.read_number,
    parameters.read_positive,
    parameters.read_nonnegative,
    parameters.read_epsilon,
    parameters.read_delta,
    parameters.read_probability,
    parameters.read_whole,
]
NEVER_NUMBERS = [
    float("nan"),
    float("inf"),
    -float("inf"),
    Decimal("NaN"),
    Decimal("Infinity"),
    np.float64("nan"),
    True,
    np.True_,
    "1",
    None,
    1j,
    [1],
    b"1",
]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize("bad", NEVER_NUMBERS, ids=repr)
def test_what_is_no_number_is_refused(reader: Callable[[object, str], object], bad: object) -> None:
    """NaN, infinities, bools, texts and None are refused by every reader, with name, kind and fix."""
    with pytest.raises(ParameterError) as caught:
        reader(bad, "speed")
    assert caught.value.name == "speed" and caught.value.fix
    assert str(caught.value).startswith("speed must be")
    assert parameters.kind_of(bad) in str(caught.value)


@pytest.mark.parametrize("value", [1, 0.1, Fraction(1, 10), Decimal("0.1"), np.float64(0.1), np.int32(3)], ids=repr)
def test_numbers_of_every_kind_are_exact(value: object) -> None:
    """A float is the decimal it prints as; everything else is itself."""
    exact = parameters.read_number(value, "x")
    assert isinstance(exact, Fraction) and exact == Fraction(str(value))


@pytest.mark.parametrize(
    ("reader", "bad"),
    [
        (parameters.read_positive, 0),
        (parameters.read_positive, -1.5),
        (parameters.read_nonnegative, -1),
        (parameters.read_epsilon, 0),
        (parameters.read_epsilon, -1),
        (parameters.read_epsilon, 10**9),
        (parameters.read_delta, 1),
        (parameters.read_delta, -0.1),
        (parameters.read_probability, 0),
        (parameters.read_probability, 1.0),
        (parameters.read_whole, 0),
        (parameters.read_whole, 1.0),
        (parameters.read_whole, 2**40),
    ],
)
def test_values_out_of_range_are_refused(reader: Callable[[object, str], object], bad: object) -> None:
    """Each reader's own range."""
    with pytest.raises(ParameterError):
        reader(bad, "x")


def test_epsilon_may_be_a_logarithm() -> None:
    """The coin's loss is read as it is."""
    assert parameters.read_epsilon(ln(3)) == ln(3)


def test_messages_tell_the_kind_and_never_the_value() -> None:
    """A value could be someone's datum: only its kind is told."""
    with pytest.raises(ParameterError) as caught:
        parameters.read_positive(-73219, "salary")
    assert "73219" not in str(caught.value) and "a negative int" in str(caught.value)


def test_integers_accepts_what_fits_and_refuses_the_rest() -> None:
    """Whole arrays pass as int64; floats, texts, and values that would wrap are refused."""
    assert parameters.read_integers([1, 2], "x").dtype == np.int64
    assert parameters.read_integers(np.array([7], dtype=np.uint8), "x").tolist() == [7]
    assert parameters.read_integers([], "x").shape == (0,)
    for bad in ([1.5], ["a"], [2**63], np.array([2**63], dtype=np.uint64), [True], [None]):
        with pytest.raises(ParameterError):
            parameters.read_integers(bad, "x")


def test_errors_survive_pickling() -> None:
    """Errors cross process borders, as worker pools need."""
    error = ParameterError("a", "b", "c")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert (
        isinstance(again, ParameterError)
        and isinstance(again, DiscreetError)
        and (again.name, str(again)) == ("a", str(error))
    )
    assert isinstance(again, ValueError)


@pytest.mark.parametrize(
    "value", [Decimal("1e999999999"), Decimal("1e-999999999"), 2**2000, 10**4000, Fraction(10**600)]
)
def test_numbers_beyond_all_sizes_are_refused(value: Any) -> None:
    """At once, and in our own words; -0.0 and the least and largest floats are numbers."""
    with pytest.raises(ParameterError, match=r"in size.*Nothing was charged"):
        parameters.read_number(value, "x")
    with pytest.raises(ParameterError):
        parameters.read_epsilon(value)
    for known in (5e-324, -1.7976931348623157e308, Decimal("0e999999999"), Fraction(1, 10**400)):
        parameters.read_number(known, "x")


@pytest.mark.parametrize("epsilon", [1e-40, Decimal("1e-300"), 2**2000, Decimal("1e999999999")])
def test_an_odd_offer_is_refused_before_anything_is_charged(epsilon: Any) -> None:
    """So is a tiny ρ. A small offer that is not too small is answered."""
    holder = curator()
    with pytest.raises(ParameterError):
        holder.ask("SELECT COUNT(*) AS n FROM visits", epsilon=epsilon)
    with pytest.raises(ParameterError):
        holder.ask("SELECT COUNT(*) AS n FROM visits", rho=1e-40)
    assert not holder.history()
    holder.ask("SELECT COUNT(*) AS n, AVG(age) AS a FROM visits", epsilon=1e-12)
    assert len(holder.history()) == 1


@pytest.mark.parametrize("name", ["", "-", "e", "three"])
def test_names_that_nothing_or_several_have_are_refused(name: str) -> None:
    """The error lists the names; a part that two names have is no name."""
    with pytest.raises(UsageError, match="no such number"):
        parameters.find_name(name, ["one-more", "seven"], "number")
    assert parameters.find_name("One more", ["one-more", "seven"], "number") == "one-more"
