"""Intervals of noise: which columns have them, and what is not claimed. That they cover is in test_finish.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from discreet.entropy import SeededForTestsOnly
from discreet.noise_intervals import find_intervals
from discreet.plan.functions import make_call, make_literal
from discreet.plan.nodes import Output
from discreet.plan.statistics.definitions import Statistic
from discreet.release import NoisyGroups
from discreet.released_columns import compute_columns
from tests.worlds.hospital import COUNT, ask, of
from tests.worlds.prices import PURE, priced


def test_arithmetic_of_too_many_groups_claims_no_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is simulated row by row; means and variances by themselves, and counts, keep their ends."""
    bare = ask(COUNT, of(Statistic.MEAN, "age"), keys=("ward",))
    tenth = make_call("divide", bare.refer_to_aggregate(1), make_literal(10))
    question = replace(bare, outputs=(*bare.outputs, Output("tenth", tenth)))
    release = priced(question, PURE, epsilon=8)
    count = 300
    measures = {at: np.full(count, 400 * release.units(at)) for at in release.recoveries}
    noisy = NoisyGroups(tuple((f"w{i}",) for i in range(count)), measures)

    def find_ended() -> list[int]:
        columns = compute_columns(release, noisy)
        return sorted(find_intervals(release, noisy, columns, range(count), SeededForTestsOnly(1)))

    assert find_ended() == [1, 2, 3]
    monkeypatch.setattr("discreet.noise_intervals._MOST_APART", 1000)
    assert find_ended() == [1, 2]
