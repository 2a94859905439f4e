"""Tests of synthetic rows as people use them: samples under conditions know how much they rest on."""

from __future__ import annotations

import pyarrow as pa
import pytest

from discreet.errors import ParameterError, UsageError
from discreet.publish.synthetic_table import SyntheticTable

ROWS = SyntheticTable(pa.table({"ward": ["A"] * 90 + ["B"] * 10, "age": list(range(100))}))


def test_a_sample_says_how_many_rows_it_rests_on() -> None:
    found = ROWS.sample(1_000, ward="B")
    assert len(found) == 1_000 and found.effective == 10
    assert set(found.rows.column("age").to_pylist()) == set(range(90, 100))
    assert "drawn from 10" in repr(found)
    assert ROWS.sample(5, ward="B").effective == 5
    assert found.rows.equals(ROWS.sample(1_000, ward="B").rows)
    assert not found.rows.equals(ROWS.sample(1_000, seed=1, ward="B").rows)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to draw from"):
        ROWS.sample(10, ward="Z")
    with pytest.raises(UsageError, match="no column"):
        ROWS.sample(10, town="Z")
    with pytest.raises(ParameterError):
        ROWS.sample(0, ward="A")
