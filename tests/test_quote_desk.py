"""Prices are told without reading a row or charging anything."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet import Budget
from discreet.curator import Curator
from discreet.errors import BudgetExceeded
from discreet.offer import Offer

COUNTS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def make_curator(monkeypatch: pytest.MonkeyPatch) -> Curator:
    """A curator whose engine cannot count."""
    visits = pa.table({"ward": ["A", "B", "B"], "patient": [1, 1, 2]})
    curator = discreet.curate(
        {"visits": visits}, unit="patient", max_rows=3, keys={"ward": ["A", "B"]}, budget=Budget(epsilon=2)
    )

    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("a row was read")

    for name in ("run", "tabulate"):
        monkeypatch.setattr(curator._engine, name, fail)
    return curator


def test_prices_read_and_charge_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Previews, explanations and quotes of a curator that cannot count."""
    with make_curator(monkeypatch) as curator:
        before = curator.remaining
        assert curator.preview(COUNTS, epsilon=1, curve=True).fits
        assert curator.preview_batch([COUNTS, COUNTS], epsilon=1).fits
        assert "ward" in curator.explain(COUNTS)
        assert not curator.answered(COUNTS, epsilon=1)
        assert curator.remaining == before and not curator.history()


def test_a_preview_beyond_the_budget_says_what_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too much is priced all the same, with the nearest offer."""
    with make_curator(monkeypatch) as curator:
        preview = curator.preview(COUNTS, epsilon=3)
        assert not preview.fits and "at most" in preview.nearest
        with pytest.raises(BudgetExceeded, match="at most"):
            curator.ask(COUNTS, epsilon=3)
        assert not curator.history()


def test_requests_without_a_name_get_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two charges of one quote are two requests; a stated name is kept."""
    with make_curator(monkeypatch) as curator:
        desk = curator._desk
        quoted = desk.quote(curator._statements.read_question(COUNTS).question, Offer(epsilon=1), "ada")
        one, two = (desk.make_charge(quoted, "ada") for _ in range(2))
        assert one.request != two.request and one.identity == two.identity
        assert desk.make_charge(quoted, "ada", "mine").request == "mine"
