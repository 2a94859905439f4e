"""What a caller asks, read as questions and computations; public tables are read for it and private ones are not."""

from __future__ import annotations

import pytest

import discreet
from discreet.errors import ParameterError, QuestionError, UsageError
from discreet.frontends.read_sql import QuestionAndOffer, ReleasedComputation
from discreet.statement_reader import StatementReader
from tests.test_post_processing import DP, SHARES, curator


def test_every_way_to_ask_is_read_as_one_question() -> None:
    """SQL, a chain of verbs and a plan; only a text can state an offer, compute, or have parameters."""
    holder = curator()
    reader = StatementReader(holder.catalog, holder._engine)
    text = reader.read_question("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    chain = reader.read_question(holder.table("visits").group_by("ward").agg(n=discreet.count()))
    assert text == chain == reader.read_statement(text.question) and text.offer == {}
    priced = reader.read_statement(f"{DP} OPTIONS(epsilon=1) COUNT(*) AS n FROM visits")
    assert isinstance(priced, QuestionAndOffer) and priced.offer
    assert isinstance(reader.read_statement(SHARES), ReleasedComputation)
    with pytest.raises(ParameterError, match="belong to a text"):
        reader.read_statement(text.question, parameters={"a": 1})
    with pytest.raises(ParameterError, match="a batch has one offer"):
        reader.read_batch([text.question, f"{DP} OPTIONS(epsilon=1) COUNT(*) AS n FROM visits"])


def test_large_public_tables_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are refused before they are read; in a join that keeps them only declared keys are public."""
    monkeypatch.setattr("discreet.statement_reader.MOST_PUBLIC_ROWS", 3)
    holder = curator()
    with pytest.raises(UsageError, match="has 4 rows"):
        holder.ask("SELECT COUNT(*) FROM wards")
    grouped = "SELECT w.ward, COUNT(v.patient) AS n FROM visits v RIGHT JOIN wards w ON v.ward = w.ward GROUP BY w.ward"
    assert "3 public groups" in holder.preview(grouped, epsilon=1).keys  # those that are declared
    monkeypatch.undo()
    assert "4 public groups" in holder.preview(grouped, epsilon=1).keys


def test_batches_take_questions_only() -> None:
    """A computation is asked by itself."""
    with pytest.raises(QuestionError, match="by itself"):
        curator().ask_batch([SHARES], epsilon=1)
    with pytest.raises(QuestionError, match="free"):
        curator().ask_batch(["SELECT COUNT(*) FROM wards"], epsilon=1)
