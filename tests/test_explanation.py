"""Explanations: limits, distances and noise in words."""

from __future__ import annotations

import discreet
from tests.worlds.visits import BY_WARD, VISITS, curator


def test_explain_tells_sensitivities_and_noise() -> None:
    """The explanation names the plan, the limits, the distances and the noise."""
    text = curator().explain(BY_WARD)
    for part in ("rows of visits", "for each ward", "at most 5 rows", "one unit changes at most 3 groups", "noise"):
        assert part in text


def test_limits_of_every_kind_in_words() -> None:
    """Rows of a unit, rows in a group, groups; groupings one by one; what is chosen rather than measured."""
    assert "at most 7 rows of a unit" in curator(max_groups=None, max_rows_per_group=None, max_rows=7).explain(BY_WARD)
    private = curator().explain("SELECT town, COUNT(*) AS n FROM visits GROUP BY town")
    assert "at most 3 groups of a unit in full" in private and "chooses the groups" in private
    several = curator().explain("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP(ward)")
    assert "grouped by ward" in several and "grouped in all" in several
    chosen = curator().explain("SELECT MEDIAN(age) AS m FROM visits")
    assert "spread of age over 111 cells" in chosen and "exponential mechanism" in chosen


def test_rows_as_units_need_no_limit() -> None:
    """Each row is in one group; the noise of a pure budget is told by its scale."""
    holder = discreet.curate({"visits": VISITS}, bounds={"age": (0, 110)}, budget=discreet.Budget(epsilon=1))
    text = holder.explain("SELECT SUM(age) AS total FROM visits", epsilon=0.5)
    assert "no limit is needed" in text and "discrete Laplace noise, scale" in text
    assert "steps of age from 0 by 1" in text
