"""What a caller says, as JSON: every number exactly, and nothing that a server could not read."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import UsageError
from discreet.exact import ln
from discreet.parameters import read_number
from discreet.remote.request_words import write_offer, write_question_words
from discreet.service import bodies
from discreet.service.messages import ApiRequest

NUMBERS = st.one_of(
    st.floats(min_value=1e-9, max_value=1e9),
    st.fractions(min_value=Fraction(1, 10**6), max_value=1000, max_denominator=10**9),
    st.decimals(min_value=Decimal("1e-9"), max_value=1000, allow_nan=False),
    st.integers(min_value=1, max_value=10**6),
)


@given(number=NUMBERS)
def test_a_number_arrives_as_it_was_typed(number: Any) -> None:
    """What the server reads is what the curator at home would have read."""
    body = json.dumps({"sql": "x", **write_offer({"epsilon": number, "rho": None})}).encode()
    request = ApiRequest(method="POST", path="/", headers={"content-type": "application/json"}, body=body)
    read = bodies.read_words(request, bodies.QUESTION)
    assert read_number(read["epsilon"], "epsilon") == read_number(number, "epsilon") and "rho" not in read


def test_numbers_of_other_libraries() -> None:
    assert write_offer({"share": np.float64(0.1), "epsilon": np.int64(2)}) == {"share": "1/10", "epsilon": 2}


@pytest.mark.parametrize(
    "offer",
    [
        {"epsilon": ln(3)},
        {"epsilon": "much"},
        {"epsilon": float("nan")},
        {"epsilon": True},
        {"error": 3},
        {"weights": ["a"]},
    ],
)
def test_what_is_no_number_is_refused_here(offer: Any) -> None:
    with pytest.raises(UsageError):
        write_offer(offer)


def test_what_is_no_question_is_refused_here() -> None:
    with pytest.raises(UsageError, match="SQL or a chain"):
        write_question_words(3, None)
