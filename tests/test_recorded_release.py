"""What follows from a recorded draw is free, with the same noise; what does not is charged."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.curator import Curator
from discreet.ledger import check_log
from discreet.ledger.base_ledger import BaseLedger
from discreet.recorded_release import dump_mechanism, load_mechanism

VISITS = pa.table(
    {
        "patient": [i % 400 for i in range(2000)],
        "ward": ["AB"[i % 2] for i in range(2000)],
        "age": [i % 90 for i in range(2000)],
    }
)
FIRST = "SELECT ward, COUNT(*) AS n, AVG(age) AS a, MEDIAN(age) AS m FROM visits GROUP BY ward"
FEWER = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def make_curator(budget: discreet.Budget | None = None, **declared: Any) -> Curator:
    given: dict[str, Any] = {
        "unit": "patient",
        "max_rows": 5,
        "keys": {"ward": ["A", "B"]},
        "bounds": {"age": (0, 100)},
        "budget": budget or discreet.Budget(epsilon=100),
    }
    return discreet.curate({"visits": VISITS}, **{**given, **declared})


@pytest.mark.parametrize(
    ("question", "column"),
    [
        (FEWER, "n"),
        (FEWER.replace("n FROM", "other FROM"), "other"),
        (f"{FEWER} ORDER BY n DESC LIMIT 1", "n"),
        (f"{FEWER} HAVING COUNT(*) > 10", "n"),
        ("SELECT ward, AVG(age) AS a FROM visits GROUP BY ward", "a"),
        ("SELECT ward, MEDIAN(age) AS m FROM visits GROUP BY ward", "m"),
        ("SELECT ward, ROUND(AVG(age) + COUNT(*), 1) AS s FROM visits GROUP BY ward", "s"),
        ("SELECT ward, SUM(age) AS s FROM visits GROUP BY ward", None),
    ],
)
def test_fewer_columns_are_free(question: str, column: str | None) -> None:
    """Offered less than the first question, so that its errors are no larger; the values are those that were drawn.

    (A sum is measured from another origin than an average, so it is another measure and charged.)
    """
    curator = make_curator()
    first = curator.ask(FIRST, epsilon=2)
    preview = curator.preview(question, epsilon=0.1)
    answer = curator.ask(question, epsilon=0.1)
    assert preview.answered is answer.replayed is (column is not None)
    assert len(curator.history()) == 1 + (column is None)
    if column in ("n", "a", "m"):
        drawn = dict(zip(first.table["ward"].to_pylist(), first.table[column].to_pylist()))
        for ward, value in zip(answer.table["ward"].to_pylist(), answer.table[column].to_pylist()):
            assert value == drawn[ward]


def test_intervals_are_those_of_the_noise_that_was_drawn() -> None:
    """Not of the larger noise that the offer would have bought."""
    curator = make_curator()
    first = curator.ask(FIRST, epsilon=2).table
    again = curator.ask(FEWER, epsilon=0.1).table
    for end in ("n_low", "n_high"):
        assert again[end].to_pylist() == first[end].to_pylist()
    wide = curator.ask(FEWER, epsilon=0.1, level=0.5).table
    assert wide["n_low"][0].as_py() > first["n_low"][0].as_py()


def test_a_better_offer_is_charged() -> None:
    """The whole price for one column buys a smaller error than its share of it did."""
    curator = make_curator()
    curator.ask(FIRST, epsilon=2)
    assert not curator.preview(FEWER, epsilon=2).answered
    assert not curator.ask(FEWER, epsilon=2).replayed
    assert curator.ask(FEWER, error={"n": 1000}).replayed


@pytest.mark.parametrize(
    "question",
    [
        "SELECT ward, COUNT(*) AS n FROM visits WHERE age > 10 GROUP BY ward",
        "SELECT COUNT(*) AS n FROM visits",
        "SELECT ward, age > 50 AS old, COUNT(*) AS n FROM visits GROUP BY ward, age > 50",
        "SELECT ward, COUNT(age) AS n, COUNT(DISTINCT patient) AS p FROM visits GROUP BY ward",
        "SELECT ward, AVG(clamp(age, 0, 50)) AS a FROM visits GROUP BY ward",
        "SELECT ward, QUANTILE(age, 0.25) AS m FROM visits GROUP BY ward",
    ],
)
def test_other_rows_groups_or_measures_are_charged(question: str) -> None:
    curator = make_curator()
    curator.ask(FIRST, epsilon=2)
    assert not curator.ask(question, epsilon=0.1).replayed
    assert len(curator.history()) == 2


def write_book(folder: Path, **words: object) -> Path:
    """A codebook with its data; ``words`` change it."""
    known = {"max_rows": 5, "shared_answers": "false", **words}
    file = folder / "visits.parquet"
    if "rows" in words or not file.exists():
        pq.write_table(VISITS.slice(0, int(str(known.get("rows", 2000)))), file)
    (folder / "book.toml").write_text(
        f"""
name = "book"
unit = "patient"
shared_answers = {known["shared_answers"]}
[budget]
epsilon = 100
[tables.visits]
source = "visits.parquet"
max_rows = {known["max_rows"]}
[tables.visits.columns]
patient = "integer"
ward = {{ type = "text", keys = ["A", "B"] }}
age = {{ type = "integer", bounds = [0, 100] }}
"""
    )
    return folder / "book.toml"


@pytest.mark.parametrize(("change", "free"), [({}, True), ({"rows": 1999}, False), ({"max_rows": 4}, False)])
def test_other_data_or_limits_never_match(tmp_path: Path, *, change: dict[str, object], free: bool) -> None:
    """From a ledger on disk, opened again; the log is whole for the ledger and for the separate program."""
    with discreet.open(write_book(tmp_path)) as curator:
        curator.ask(FIRST, epsilon=2)
    with discreet.open(write_book(tmp_path, **change)) as curator:
        assert curator.ask(FEWER, epsilon=0.1).replayed is free
        ledger = curator.ledger
        assert isinstance(ledger, BaseLedger)
        ledger.scan()
        check_log.check(ledger.read_lines(), [])


def test_nobody_learns_what_others_asked(tmp_path: Path) -> None:
    """The same question, or a part of it, of another analyst: priced, shown and charged as if nobody had asked."""
    for question, epsilon in ((FIRST, 2), (FEWER, 0.1)):
        curator, empty = make_curator(), make_curator()
        curator.ask(FIRST, epsilon=2, analyst="ana")
        seen, unseen = (one.preview(question, epsilon=epsilon, analyst="ben") for one in (curator, empty))
        assert {**seen.to_dict(), "remaining": ""} == {**unseen.to_dict(), "remaining": ""}
        assert not curator.answered(question, epsilon=epsilon, analyst="ben")
        assert curator.answered(question, epsilon=epsilon, analyst="ana")
        assert not curator.ask(question, epsilon=epsilon, analyst="ben").replayed
        assert curator.ask(question, epsilon=epsilon, analyst="ana").replayed
    with discreet.open(write_book(tmp_path, shared_answers="true")) as shared:
        shared.ask(FIRST, epsilon=2, analyst="ana")
        assert shared.ask(FEWER, epsilon=0.1, analyst="ben").replayed


def test_questions_of_a_batch_are_found_again() -> None:
    """One of them by itself, and another batch of parts; a batch of which a part is missing is charged whole."""
    curator = make_curator()
    curator.ask_batch([FIRST, "SELECT COUNT(*) AS n FROM visits"], epsilon=4)
    assert curator.ask("SELECT COUNT(*) AS m FROM visits", epsilon=0.1).replayed
    parts = curator.ask_batch(["SELECT COUNT(*) AS m FROM visits", FEWER], epsilon=0.2)
    assert all(answer.replayed for answer in parts)
    assert parts[1].receipt["ledger"] == parts[0].receipt["ledger"]
    assert curator.preview_batch([FEWER, FEWER.replace("ward", "age > 3")], epsilon=0.2).answered is False


def test_keys_from_the_data_are_found_again() -> None:
    """Where the recorded rule names groups that are at least as small."""
    curator = make_curator(discreet.Budget(epsilon=100, delta=1e-4), keys={})
    first = curator.ask("SELECT ward, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY ward", epsilon=9, delta=1e-6)
    again = curator.ask(FEWER, epsilon=0.5, delta=1e-7)
    assert again.replayed and again.table["ward"].to_pylist() == first.table["ward"].to_pylist()
    assert not curator.ask(FEWER, epsilon=30, delta=1e-6).replayed


def test_a_preview_says_that_it_is_free() -> None:
    curator = make_curator()
    curator.ask(FIRST, epsilon=2)
    shown = curator.preview(FEWER, epsilon=0.1)
    assert "already answered: free" in str(shown) and "already answered: free" in shown._repr_html_()
    assert shown.to_dict()["already_answered"] is True
    assert "already answered" not in str(curator.preview(FEWER, epsilon=5))


@pytest.mark.parametrize("budget", [discreet.Budget(epsilon=9), discreet.Budget(rho=1)])
def test_mechanisms_come_back_from_the_record(budget: discreet.Budget) -> None:
    """With everything that they know; one with other fields, of another version, is not read."""
    offer: dict[str, Any] = {"rho": 0.1} if budget.rho else {"epsilon": 1}
    for release in make_curator(budget).preview(FIRST, **offer).plan.releases:
        for mechanism in (*release.noises.values(), *release.choices.values()):
            record = json.loads(json.dumps(dump_mechanism(mechanism)))
            again = load_mechanism(record)
            assert again == mechanism and again.events == mechanism.events
            assert [getattr(again, f.name) for f in fields(again)] == [
                getattr(mechanism, f.name) for f in fields(again)
            ]
            assert load_mechanism({**record, "kind": "Unheard"}) is None
            assert load_mechanism({**record, "values": {**record["values"], "more": None}}) is None
    assert load_mechanism(None) is None
