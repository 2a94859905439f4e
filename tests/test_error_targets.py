"""Wanted errors: of averages and ratios by the size of a group, named or public; what has none is refused, for free."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.bounding.bound import bound
from discreet.error_targets import find_group_size
from discreet.errors import ParameterError
from discreet.plan.functions import make_call, make_literal
from discreet.plan.statistics.definitions import Statistic
from tests.cli.commands import Run
from tests.worlds.hospital import COUNT, ask, catalog, column, of
from tests.worlds.visits import curator

ASKED = (
    "SELECT ward, AVG(age) AS age, COUNT(*) FILTER (WHERE age > 50) / COUNT(*) AS old, VAR_POP(age) AS spread, "
    "STDDEV(age) AS sd, AVG(age) + 1 AS other, COUNT(*) AS n FROM visits GROUP BY ward"
)
CODEBOOK = """
name = "visits"
unit = "patient"
budget = { epsilon = 100, delta = 1e-6 }
[tables.visits]
source = "visits.csv"
max_groups = 3
max_rows_per_group = 5
rows = 1800
[tables.visits.columns]
patient = "integer"
ward = { type = "text", keys = ["A", "B", "C"] }
age = { type = "integer", bounds = [0, 110] }
"""


@pytest.mark.parametrize("wanted", [{"age": 5}, {"old": 0.1}, {"spread": 400}, {"age": 6, "n": 60}])
def test_an_error_is_bought_for_groups_of_a_size(wanted: dict[str, Any]) -> None:
    """The preview shows an error of at most what was wanted, nearly that, and smaller groups cost more."""
    holder = curator(discreet.Budget(epsilon=100, delta=1e-6))
    shown = holder.preview(ASKED, error=wanted, group_size=600)
    errors = {c.name: c.error if c.error is not None else c.by_size[0][1] for c in shown.columns if c.name in wanted}
    assert all(errors[name] <= size * 1.001 for name, size in wanted.items())
    assert any(errors[name] > size * 0.95 for name, size in wanted.items())
    assert all(c.by_size[0][0] == 600 for c in shown.columns if c.name in {"age", "old", "spread"})
    smaller = holder.preview(ASKED, error=wanted, group_size=300)
    assert smaller.loss.epsilon(1e-6) > shown.loss.epsilon(1e-6)


def test_the_error_that_was_bought_is_kept() -> None:
    """The same release was asked for with other sizes: what is charged depends on the size that was said."""
    holder = curator(discreet.Budget(epsilon=100, delta=1e-6))
    holder.ask(ASKED, error={"age": 5}, group_size=600)
    again = holder.ask(ASKED, error={"age": 5}, group_size=600)
    assert again.replayed
    assert not holder.preview(ASKED, error={"age": 5}, group_size=60).answered


@pytest.mark.parametrize(
    ("offer", "words"),
    [
        ({"error": {"age": 5}}, "group_size=500"),
        ({"error": {"sd": 5}, "group_size": 600}, "VARIANCE"),
        ({"error": {"other": 5}, "group_size": 600}, "'age' or 'old' or 'spread' or 'n'"),
        ({"error": {"nobody": 5}, "group_size": 600}, "names no column"),
        ({"error": {"age": 5}, "group_size": 0}, "group_size"),
        ({"error": {"age": 5}, "group_size": 0.5}, "less than one row"),
        ({"error": {"age": 5}, "group_size": float("nan")}, "group_size"),
        ({"epsilon": 1, "group_size": 600}, "belongs to a wanted error"),
    ],
)
def test_what_has_no_error_is_refused_for_free(offer: dict[str, Any], words: str) -> None:
    """The refusal names the nearest that works, and nothing is charged."""
    holder = curator()
    with pytest.raises(ParameterError, match="Nothing was charged") as refused:
        holder.ask(ASKED, **offer)
    assert words in str(refused.value)
    assert not holder.history()


def test_an_error_that_no_budget_buys_names_the_least() -> None:
    """All that is left would buy a larger one, which is named for the same size."""
    with pytest.raises(discreet.errors.BudgetExceeded, match=r"age ± .* of 600") as refused:
        curator(discreet.Budget(epsilon=1, delta=1e-6)).ask(ASKED, error={"age": 0.5}, group_size=600)
    assert "Nothing was charged" in str(refused.value) or "nothing was charged" in str(refused.value)


def test_the_size_of_a_group_is_public_only_where_it_is() -> None:
    """Rows over public groups; not with a condition, and not with groups from the data."""
    sizes = {"visits": 900}
    mean = of(Statistic.MEAN, "age")
    old = make_call("greater", column("age"), make_literal(50))
    assert find_group_size(bound(ask(mean, keys=("ward",)), catalog()), sizes) == 300
    assert find_group_size(bound(ask(mean), catalog()), sizes) == 900
    assert find_group_size(bound(ask(mean, COUNT, where=old), catalog()), sizes) is None
    assert find_group_size(bound(ask(mean, keys=("town",)), catalog()), sizes) is None
    assert find_group_size(bound(ask(mean), catalog()), {}) is None


def test_a_public_number_of_rows_is_enough(tmp_path: Path, run: Run) -> None:
    """With `rows` in the codebook no size has to be said, in Python and in the shell; saying it comes first."""
    (tmp_path / "visits.csv").write_text("patient,ward,age\n1,A,50\n2,B,60\n")
    path = tmp_path / "visits.toml"
    path.write_text(CODEBOOK)
    holder = discreet.open(path)
    public = holder.preview(ASKED, error={"age": 5})
    assert public.group_size == 600
    assert public.loss == holder.preview(ASKED, error={"age": 5}, group_size=600).loss
    named = run("preview", str(path), ASKED, "--error", "age=5", "--group-size", "300", "--json")
    assert named[0] == 0 and '"300"' in named[1]
