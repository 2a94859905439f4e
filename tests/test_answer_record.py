"""Answers on record: as they were given, or finished anew from what was drawn."""

from __future__ import annotations

import json

import pyarrow as pa

import discreet
from discreet.answer_record import to_record

VISITS = pa.table({"patient": list(range(50)), "ward": ["A", "B"] * 25})
COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def make_curator() -> discreet.Curator:
    return discreet.curate(
        {"visits": VISITS}, unit="patient", max_rows=1, keys={"ward": ["A", "B"]}, budget=discreet.Budget(epsilon=10)
    )


def test_an_answer_comes_back_as_it_was_given() -> None:
    """Rows, receipt and explanation; but for what is left of the budget, which is of now."""
    curator = make_curator()
    first = curator.ask(COUNT, epsilon=1)
    curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    again = curator.ask(COUNT, epsilon=1)
    assert again.replayed and not first.replayed
    assert (again.rows, dict(again.receipt), again.spent) == (first.rows, dict(first.receipt), first.spent)
    assert again.explanation == first.explanation and again.remaining != first.remaining


def test_what_is_finished_anew_names_its_own_question() -> None:
    """The receipt is that of the charge; its words are those of what is asked now."""
    curator = make_curator()
    first = curator.ask(COUNT, epsilon=1)
    other = curator.ask(COUNT.replace("n FROM", "m FROM"), epsilon=1, level=0.5)
    assert other.receipt["ledger"] == first.receipt["ledger"] and other.receipt["time"] == first.receipt["time"]
    assert other.receipt["level"] == "50%" and other.receipt["finish"] != first.receipt["finish"]


def test_a_batch_is_recorded_as_a_list() -> None:
    curator = make_curator()
    answers = curator.ask_batch([COUNT, "SELECT COUNT(*) AS n FROM visits"], epsilon=1)
    assert len(to_record(answers)["batch"]) == 2 and "columns" in to_record(answers[:1])
    json.dumps(to_record(answers), allow_nan=False)
