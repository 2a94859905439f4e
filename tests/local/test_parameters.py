"""Parameters of protocols: what would not be private or would not fit is refused; wide reports are read as written."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.local.projective import ProjectiveResponse
from discreet.local.unary import MAX_BITS, UnaryEncoding
from discreet.local.words import WORD, is_below, loss_of, read_symbols, symbol_bytes, write_symbols


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_symbols_of_every_width_come_back(width: int) -> None:
    """Big-endian, with leading zeros, up to the largest number that fits."""
    largest = (1 << (8 * width)) - 1
    numbers = np.array([0, 1, largest // 2, largest - 1, largest], dtype=np.int64)
    written = write_symbols(numbers, width)
    assert written.shape == (5, width) and symbol_bytes(largest + 1) == width
    assert read_symbols(written).tolist() == numbers.tolist()
    assert written[1].tolist() == [0] * (width - 1) + [1]


@pytest.mark.parametrize(("one", "other"), [(100, 100), (99, 100), (65536, 1), (5, 0)])
def test_bits_that_would_tell_everything_or_nothing_are_refused(one: int, other: int) -> None:
    """Thresholds at the ends would make a bit certain; equal ones would make it useless."""
    with pytest.raises(ParameterError, match="0 < other < one < 65536"):
        UnaryEncoding(domain_size=3, one=one, other=other)


@pytest.mark.parametrize("make", [UnaryEncoding.for_epsilon, UnaryEncoding.symmetric])
def test_too_small_an_epsilon_for_sixteen_bits_is_refused(make: object) -> None:
    """Rounding would cost more than was offered."""
    with pytest.raises(ParameterError, match="epsilon is below"):
        make(1e-7, 3)  # type: ignore[operator]  # a constructor
    with pytest.raises(ParameterError, match="too large for one bit a value"):
        make(1, MAX_BITS + 1)  # type: ignore[operator]  # as above


def test_a_report_that_does_not_depend_on_the_answer_is_refused() -> None:
    """A ratio of one is no loss, and no report either."""
    with pytest.raises(ParameterError, match="does not depend on the answer"):
        loss_of(1)  # type: ignore[arg-type]  # an int is a rational


def test_certain_thresholds() -> None:
    """A threshold of 2^64 is always reached; zero never."""
    words = np.array([0, 5, 2**64 - 1], dtype=np.uint64)
    assert is_below(words, WORD).all() and not is_below(words, 0).any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"field": 4}, "prime"), ({"dimension": 1}, "too many points"), ({"domain_size": 10**6}, "fewer points")],
)
def test_projective_spaces_that_do_not_exist_are_refused(changes: dict[str, int], words: str) -> None:
    """The field is a prime, the dimension at least two, and there is a point for each value."""
    good = ProjectiveResponse.for_epsilon(1, 20)
    given = {"domain_size": 20, "field": good.field, "dimension": good.dimension, "keep": good.keep} | changes
    with pytest.raises(ParameterError, match=words):
        ProjectiveResponse(**given)
