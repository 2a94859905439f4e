"""Previews: free, from public facts, and equal to what is charged."""

from __future__ import annotations

import html
import json

import pytest

import discreet
from discreet.errors import BudgetExceeded
from tests.worlds.visits import BY_WARD, curator


def test_previews_are_free_and_read_nothing() -> None:
    """A preview neither charges nor runs the engine."""
    holder = curator()
    holder._engine.run = None  # type: ignore[method-assign,assignment]  # any use would raise
    shown = holder.preview(BY_WARD, epsilon=1)
    assert shown.fits and "± " in str(shown) and "nothing was charged" in str(shown)
    assert json.dumps(shown.to_dict()) and not holder.history()
    assert [column.name for column in shown.columns] == ["n", "age"]


@pytest.mark.parametrize(
    ("question", "ends"),
    [
        (BY_WARD, False),
        ("SELECT ward, MEDIAN(age) AS m, MIN(age) AS least FROM visits GROUP BY ward", False),
        ("SELECT MEDIAN(age) AS m, MODE(ward) AS w, SUM(age) / COUNT(*) AS r, COUNT(*) + 1 AS n FROM visits", True),
        ("SELECT ward, age > 50 AS old, STDDEV(age) AS s FROM visits GROUP BY ROLLUP(ward, old)", False),
        ("SELECT town FROM visits GROUP BY town", False),
    ],
)
def test_the_schema_is_that_of_the_answer(question: str, ends: bool) -> None:
    """Names and types of all columns that will come, with the ends of those that have them."""
    holder = curator()
    shown = holder.preview(question, epsilon=5, ends=ends)
    assert shown.schema == holder.ask(question, epsilon=5, ends=ends).table.schema
    assert list(shown.to_dict()["schema"]) == shown.schema.names


def test_previews_for_notebooks() -> None:
    """The same words as the text has, as a table and facts; also of a batch, and with a curve."""
    holder = curator()
    shown, batch = holder.preview(BY_WARD, epsilon=1, curve=True), holder.preview_batch([BY_WARD, BY_WARD], epsilon=1)
    page = html.unescape(shown._repr_html_())
    assert all(words in page for words in ("measured by", shown.columns[0].words(), shown.keys, "alone ε", "<pre>"))
    both = html.unescape(batch._repr_html_())
    assert both.count("measured by") == 2 and "together" in both and "nothing was charged" in both


def test_the_preview_is_what_is_charged() -> None:
    """Cost before equals cost after."""
    holder = curator()
    before = holder.preview(BY_WARD, epsilon=1)
    assert holder.ask(BY_WARD, epsilon=1).receipt["mechanisms"] == before.to_dict()["mechanisms"]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("SELECT COUNT(*) + 1 AS n FROM visits", "arithmetic on released numbers  from the others"),
        ("SELECT MEDIAN(age) AS m FROM visits", "50 % quantile, chosen  ± "),
        ("SELECT MODE(ward) AS m FROM visits", "mode, chosen  ± "),
        ("SELECT AVG(age) AS m FROM visits", " of 1,000, ± "),
        ("SELECT town, COUNT(*) AS n FROM visits GROUP BY town", "units is named half of the time"),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP(ward)", "2 groupings share the price: by ward, "),
        ("SELECT SUM(age) AS s FROM visits", "clamped   age to [0, 110]"),
    ],
)
def test_every_kind_of_column_has_an_error_in_words(question: str, words: str) -> None:
    """A number, by group sizes, in ranks, or none of its own; as text and as plain values."""
    shown = curator().preview(question, epsilon=1)
    assert words in str(shown)
    plain = json.loads(json.dumps(shown.to_dict()))
    assert [column["name"] for column in plain["columns"]] == [column.name for column in shown.columns]


def test_a_preview_says_when_it_would_not_fit() -> None:
    """Alone and in a batch; nothing is charged for looking."""
    holder = curator(discreet.Budget(epsilon=1, delta=1e-6))
    with pytest.raises(BudgetExceeded, match="Offer at most share=1 "):
        holder.preview(BY_WARD, epsilon=50)
    dear = holder.preview(BY_WARD, rho=50)
    assert not dear.fits and ": more than is left; offer at most share=1 (epsilon=1)" in str(dear)
    batch = holder.preview_batch([BY_WARD, BY_WARD], rho=50)
    assert not batch.fits and str(batch).count(": more than is left") == 1 and "question 2" in str(batch)
    assert not batch.to_dict()["fits"] and len(batch.to_dict()["questions"]) == 2
    assert batch.cost == batch.to_dict()["cost"] and not holder.history()


def test_a_loss_without_an_epsilon_says_so() -> None:
    """Naming keys with all of δ leaves no δ for an ε: the preview says that, and never "ε inf"."""
    shown = curator().preview("SELECT town, COUNT(*) AS n FROM visits GROUP BY town", rho=0.01, delta=1e-6)
    assert "inf" not in str(shown) and "no ε follows at δ 1e-06" in str(shown)
    assert json.loads(json.dumps(shown.to_dict(), allow_nan=False))["loss"]["epsilon"] is None


def test_sums_of_integers_are_integers() -> None:
    """Alone, beside a mean, within a unit's own bounds, and of a condition; with the ends of their intervals."""
    answer = curator().ask("SELECT SUM(age) AS s, AVG(age) AS m, SUM(age > 50) AS old FROM visits", epsilon=5)
    row = answer.table.to_pylist()[0]
    assert all(isinstance(row[name], int) for name in ("s", "s_low", "s_high", "old", "old_low", "old_high"))
    assert isinstance(row["m"], float)
    real = curator().ask("SELECT SUM(age * 0.5) AS s FROM visits", epsilon=5).table.to_pylist()[0]
    assert isinstance(real["s"], float)
