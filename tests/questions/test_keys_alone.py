"""Keys that come from the data, asked alone and with their counts: what is shown, what it costs, what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet
from discreet import Budget
from discreet.errors import DiscreetError

BUDGET = Budget(epsilon=8, delta=1e-6)
SQL, DISTINCT = "SELECT town FROM visits GROUP BY town", "SELECT DISTINCT town FROM visits"


def open_towns(budget: Budget = BUDGET) -> discreet.curator.Curator:
    """A thousand people in two large towns, and one person alone in another."""
    towns = ["north" if i % 2 else "south" for i in range(1000)]
    table = pa.table({"person": [*range(1001)], "town": [*towns, "alone"], "sex": ["f"] * 1001})
    return discreet.curate(
        {"visits": table},
        budget=budget,
        unit="person",
        keys={"sex": ["f", "m"]},
        max_groups=1,
        max_rows_per_group=1,
    )


def test_keys_alone_in_three_ways_are_one_release() -> None:
    """GROUP BY, DISTINCT and a chain without aggregates: large groups are named, one person's is not, paid once."""
    with open_towns() as curator:
        first = curator.ask(SQL, epsilon=1)
        assert first.table.to_pydict() == {"town": ["north", "south"]}
        left = curator.remaining
        for again in (curator.ask(DISTINCT, epsilon=1), curator.table("visits").group_by("town").ask(epsilon=1)):
            assert again.replayed and again.table.equals(first.table)
        assert curator.remaining == left
        assert "town" in str(first) and first._repr_html_()


def test_order_and_limit_of_keys_are_free() -> None:
    """They work on the names that were released."""
    with open_towns() as curator:
        curator.ask(SQL, epsilon=1)
        last = curator.ask("SELECT DISTINCT town FROM visits ORDER BY town DESC LIMIT 1", epsilon=1)
        assert last.replayed and last.table.to_pydict() == {"town": ["south"]}


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT DISTINCT sex FROM visits", "public keys only"),
        ("SELECT DISTINCT person FROM visits", "group of every single person"),
        ("SELECT DISTINCT town, COUNT(*) FROM visits", "neither in GROUP BY"),
        ("SELECT town FROM visits", "neither in GROUP BY"),
        ("SELECT 1 FROM visits GROUP BY town", "Nothing is asked"),
    ],
)
def test_what_is_no_question_for_keys_is_refused(sql: str, words: str) -> None:
    """Nothing is charged, and the message says why."""
    with open_towns() as curator:
        with pytest.raises(DiscreetError, match=words):
            curator.ask(sql, epsilon=1)
        assert not curator.history()


def test_keys_need_a_delta() -> None:
    """A pure budget cannot name keys from the data."""
    with open_towns(Budget(epsilon=8)) as curator, pytest.raises(DiscreetError, match="Declare the keys"):
        curator.ask(SQL, epsilon=1)


def test_a_preview_tells_the_delta_of_naming_and_the_size() -> None:
    """The first question gets a tenth of δ, the next one a third of that; a stated δ overrides."""
    counts = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"
    with open_towns() as curator:
        assert "naming costs δ 1e-07" in curator.preview(SQL, share=0.1).keys
        assert "is named half of the time" in curator.preview(SQL, share=0.1).keys
        assert "naming costs δ 1e-08" in curator.preview(SQL, share=0.1, delta=1e-8).keys
        curator.ask(SQL, share=0.1)
        assert "naming costs δ 3.33e-08" in curator.preview("SELECT DISTINCT town, sex FROM visits", share=0.1).keys
        joint = curator.preview(counts, share=0.1)
        assert "the noisy count itself names them" in joint.keys and joint.columns[0].error is not None
        assert "names the groups where it is" in curator.explain(counts, share=0.1)


def test_counts_with_their_keys_come_from_one_draw() -> None:
    """The noise is that of the whole price, and the answer, asked again with less, is free."""
    counts = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"
    with open_towns() as curator:
        answer = curator.ask(counts, epsilon=1)
        assert answer.table["town"].to_pylist() == ["north", "south"]
        for n, low, high in zip(*(answer.table[c].to_pylist() for c in ("n", "n_low", "n_high"))):
            assert low <= n <= high and abs(n - 500) < 60
        again = curator.ask("SELECT town AS t, COUNT(*) AS m FROM visits GROUP BY town ORDER BY m", epsilon=0.9)
        assert again.replayed and sorted(again.table["m"].to_pylist()) == sorted(answer.table["n"].to_pylist())
