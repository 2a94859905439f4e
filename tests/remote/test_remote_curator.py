"""The remote curator beside the one at home: the same surface, the same values, the same refusals."""

from __future__ import annotations

import datetime as dt
import inspect
from typing import Any

import pandas as pd
import pytest

import discreet
from discreet import errors
from discreet.answer import Answer
from discreet.curator import Curator
from discreet.preview import Preview
from discreet.remote.http_wire import HttpWire
from discreet.remote.remote_curator import RemoteCurator
from discreet.row_formats import to_json
from tests.remote.remote_hospital import count_charges, reach
from tests.service.served import WARDS, Hospital

AVERAGES = "SELECT ward, AVG(cost) AS cost, MEDIAN(age) AS age FROM visits GROUP BY ward"
COMPUTED = f"SELECT MAX(n) AS most FROM ({WARDS.replace('SELECT', 'SELECT WITH DIFFERENTIAL_PRIVACY')}) t"


def test_the_surface_is_that_of_a_curator() -> None:
    """Every public member is there, with the same parameters but for who asks; what is not is on this list."""
    at_home = {name for name in vars(Curator) if not name.startswith("_")}
    missing = at_home - set(dir(RemoteCurator))
    engines = {"draw_tables", "draw_counts", "terms_for", "find_version", "prepare", "limit", "ledger", "series"}
    assert missing <= engines | {"read_question", "quote_at", "answer_quoted"}
    for name in ("ask", "ask_batch", "preview", "preview_batch"):
        ours = set(inspect.signature(getattr(RemoteCurator, name)).parameters)
        theirs = set(inspect.signature(getattr(Curator, name)).parameters)
        assert ours - theirs == set()
        assert theirs - ours <= {"analyst", "project", "ends"}


def test_a_notebook_moves_by_one_line(served: Hospital) -> None:
    """The same cells run against both, and show the same facts; only noise and what is left differ."""

    def cells(curator: Any) -> list[Any]:
        table = curator.table("visits")
        chain = table.where(discreet.col("age") > 30).group_by("ward").agg(n=discreet.count(), c=discreet.mean("cost"))
        preview = chain.preview(share=0.05)
        return [
            curator.tables, table.columns, repr(table), table._repr_html_(), repr(chain), str(preview),
            preview._repr_html_(), preview.schema, preview.columns, preview.loss, preview.cost, preview.fits,
            chain.explain(share=0.05), curator.budget, str(curator.preview(WARDS, error={"n": 20}, curve=True).schema),
            str(curator.preview(COMPUTED, epsilon=0.1)), to_json(curator.preview(AVERAGES, rho=0.001).to_dict()),
            str(curator.preview_batch([WARDS, AVERAGES], share=0.1)), curator.catalog,
        ]  # fmt: skip

    remote = reach(served)
    home, away = cells(served.dataset.curator), cells(remote)
    for at_home, there in zip(home, away, strict=True):
        assert there == at_home
    assert isinstance(remote.preview(WARDS, share=0.1), Preview)


def test_an_answer_is_the_answer_on_record(served: Hospital) -> None:
    """Values, types, intervals, receipt, explanation and loss, as the curator at home gives them again."""
    remote = reach(served)
    with count_charges(served, 1):
        answer = remote.ask(AVERAGES, share=0.05, request="one")
    (kept,) = served.dataset.curator.find_answers("one", analyst="ana") or ()
    assert isinstance(answer, Answer) and not answer.replayed
    assert answer.rows == kept.rows and answer.spent == kept.spent and answer.explanation == kept.explanation
    assert answer.receipt == kept.receipt and answer.table.equals(kept.table) and answer.remaining == kept.remaining
    assert answer.to_pandas().columns.tolist() == ["ward", "cost", "cost_low", "cost_high", "age"]
    assert "<table" in answer._repr_html_() and str(answer) == str(kept).replace(
        kept.describe_cost(), answer.describe_cost()
    )
    answer.plot("cost")
    with count_charges(served, 0):
        again = remote.ask(AVERAGES, share=0.05)
    assert again.replayed and again.rows == answer.rows
    assert remote.find_answers("one") == (kept,) and remote.find_answers("none") is None
    (entry,) = remote.history()
    (own,) = served.dataset.curator.history()
    assert (entry.number, entry.charge.loss, entry.time) == (own.number, own.charge.loss, own.time)
    assert remote.remaining == served.dataset.curator.remaining and remote.answered(AVERAGES, share=0.05)


def test_batches_computations_and_bounds(served: Hospital) -> None:
    """Several answers under one charge; what is computed from answers; metered bounds and limits."""
    remote = reach(served)
    with count_charges(served, 1):
        first, second = remote.ask_batch([WARDS, remote.table("visits").agg(s=discreet.sum("cost"))], share=0.05)
    assert len(first) > 1 and len(second) == 1
    with count_charges(served, 1):
        assert len(remote.ask(COMPUTED, epsilon=0.5)) == 1
    with count_charges(served, 2):
        bounds = remote.bounds("visits", "cost", epsilon=0.05, request="b")
        limits = remote.contributions("visits", ["ward"], epsilon=0.05)
    at_home = served.dataset.curator.bounds("visits", "cost", epsilon=0.05, analyst="ana")
    assert str(bounds.rows) == str(at_home.rows) and bounds.words == at_home.words and bounds.doubt == at_home.doubt
    assert limits.found == bool(limits.suggestions) and "left" in str(limits)


def test_what_an_analyst_brings(served: Hospital) -> None:
    """Frames travel as rows, answers by their request, parameters as values; days in frames are refused."""
    remote = reach(served)
    beds = pd.DataFrame({"ward": ["cardiology", "surgery"], "beds": [20, 30]})
    sql = "SELECT w.beds, COUNT(*) AS n FROM visits v JOIN halls w ON v.ward = w.ward GROUP BY w.beds"
    assert len(remote.ask(sql, share=0.01, public={"halls": beds})) == 2
    joined = remote.table("visits").join(beds, on="ward", name="halls").group_by("beds").agg(n=discreet.count())
    assert joined.preview(share=0.01).answered
    assert len(remote.ask("SELECT COUNT(*) AS n FROM visits WHERE age > @a", share=0.01, parameters={"a": 40})) == 1
    remote.ask(WARDS, share=0.01, request="wards")
    free = "SELECT AVG(n) AS m FROM earlier"
    assert remote.preview(free, public={"earlier": "wards"}).cost.startswith("nothing")
    assert remote.is_free(free, public={"earlier": "wards"}) and not remote.is_free(WARDS)
    with pytest.raises(errors.UsageError, match="days or times"):
        remote.ask(sql, share=0.01, public={"halls": pd.DataFrame({"day": [dt.date(2024, 1, 1)]})})


@pytest.mark.parametrize(
    ("sql", "offer", "kind"),
    [
        ("SELECT wrd FROM visits", {"share": 0.1}, errors.QuestionError),
        ("SELECT COUNT(*) FROM visits WHERE", {"share": 0.1}, errors.QuestionError),
        (WARDS, {}, errors.ParameterError),
        (WARDS, {"epsilon": -1}, errors.ParameterError),
        (WARDS, {"epsilon": 1000}, errors.BudgetExceeded),
        ("SELECT SUM(age * cost * cost) FROM visits", {"share": 0.1, "level": 2}, errors.ParameterError),
        (WARDS, {"share": 0.1, "bounds": "never"}, errors.ParameterError),
    ],
)
def test_refusals_are_those_at_home(served: Hospital, sql: str, offer: Any, kind: type[errors.DiscreetError]) -> None:
    """The same class, words, place and fix, and nothing charged."""
    remote, home = reach(served), served.dataset.curator
    with count_charges(served, 0), pytest.raises(errors.DiscreetError) as there:
        remote.ask(sql, **offer)
    with pytest.raises(errors.DiscreetError) as here:
        home.ask(sql, analyst="ana", **offer)
    assert type(there.value) is type(here.value) is kind and str(there.value) == str(here.value)
    assert there.value.charged is False
    for name in ("name", "problem", "fix", "rule", "line", "column", "excerpt", "code"):
        assert getattr(there.value, name, None) == getattr(here.value, name, None), name


def test_rights_are_those_of_the_token(served: Hospital) -> None:
    """An auditor asks nothing; an unknown dataset and another's request are not told apart from nothing."""
    with pytest.raises(errors.ServiceRefused) as refused:
        reach(served, "audit").ask(WARDS, share=0.1)
    assert (refused.value.refusal, refused.value.charged) == ("forbidden", False) and refused.value.fix
    reach(served, "ben").ask(WARDS, share=0.01, request="his")
    assert reach(served).find_answers("his") is None and reach(served).history() == []
    with pytest.raises(errors.CallError, match=r"ask\(question, share=0\.1\)"):
        reach(served).ask(WARDS, 0.1)  # type: ignore[call-arg]  # as somebody would write it


def test_no_words_of_ours_hold_the_token(served: Hospital) -> None:
    """Neither the curator nor what it is made of shows the secret."""
    secret = served.secrets["ana"]
    remote = reach(served)
    wire = HttpWire("https://curator.example:8443/below/", secret)
    shown = [repr(remote), str(remote), repr(wire), str(vars(remote)), repr(remote.table("visits"))]
    assert all(secret not in words for words in shown)
    assert repr(wire) == "HttpWire('https://curator.example:8443/below')"
