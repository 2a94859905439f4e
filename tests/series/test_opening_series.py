"""Tests of how a series is asked for: where its counts are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.errors import ParameterError
from discreet.opening import open_codebook
from discreet.series.frozen_counts import FolderCounts, MemoryCounts
from tests.series.visits import QUESTION, draw_rows, open_any, open_visits

CODEBOOK = """
name = "clinic"
unit = "patient"
budget = { epsilon = 4, delta = 1e-6 }
[tables.visits]
source = "visits.csv"
max_rows = 2
[tables.visits.columns]
patient = { type = "integer" }
day = { type = "date" }
"""


def test_series_of_one_ledger_in_memory_share_their_counts(tmp_path: Path) -> None:
    curator = open_visits(draw_rows(0))
    one, two, other = open_any(curator), open_any(curator), open_any(curator, apart=3)
    assert isinstance(one.counts, MemoryCounts)
    assert one.counts is two.counts is not other.counts
    assert isinstance(open_any(curator, state=tmp_path).counts, FolderCounts)


def test_a_ledger_that_lasts_needs_a_folder_that_lasts(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("patient,day\n1,2024-01-01\n2,2024-01-02\n")
    (tmp_path / "clinic.toml").write_text(CODEBOOK)
    with open_codebook(tmp_path / "clinic.toml") as curator:
        with pytest.raises(ParameterError, match=r"state.*private folder"):
            open_any(curator)
        one = open_any(curator, state=tmp_path / "s", epsilon=1).release()
        assert QUESTION and len(curator.history()) == 2
    with open_codebook(tmp_path / "clinic.toml") as curator:
        again = open_any(curator, state=tmp_path / "s", epsilon=1)
        assert again.release(0) == one
        assert again.release().period == 1
