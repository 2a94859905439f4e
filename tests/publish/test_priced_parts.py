"""Tests of questions and series in a plan: one charge for all of it, one draw for each, whatever happens between."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet
from discreet.accounting import events
from discreet.curator import Curator
from discreet.errors import DiscreetError, ParameterError, UsageError
from discreet.publish import priced_parts, publication
from discreet.publish.bundle import Bundle
from discreet.publish.release_plan import ReleasePlan
from discreet.publish.verification import verify
from tests.publish.releases import make_plan, make_visits, open_clinic

DELTA = Fraction(1, 10**6)
BY_WARD = {"name": "age by ward", "sql": "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward"}
MONTHLY = {
    "name": "monthly",
    "question": "SELECT COUNT(*) FROM visits",
    "by": "day",
    "first": dt.date(2024, 1, 1),
    "periods": 9,
    "every": "month",
    "days_per_unit": 9,
    "rows_per_period": 4,
    "released": 3,
}


def make_whole(**more: Any) -> dict[str, Any]:
    """A plan with tables, a question and a series."""
    plan = {"columns": {"ward": {}, "sex": {}}, "epsilon": 2, "questions": [BY_WARD], "series": [MONTHLY]}
    return make_plan(**(plan | more))


def open_small() -> Curator:
    return open_clinic(budget=discreet.Budget(epsilon=3, delta=1e-6))


def list_paid(curator: Curator) -> list[str]:
    return [entry.charge.request for entry in curator.history() if entry.charge.loss.epsilon(DELTA) > 0]


def test_all_of_it_is_one_charge_that_adds_up(tmp_path: Path) -> None:
    curator = open_small()
    bundle = publication.publish(make_whole(), curator=curator, out=tmp_path / "b")
    assert list_paid(curator) == ["publish: visits"]
    charge = curator.history()[0].charge
    assert 1.999 < charge.loss.epsilon(DELTA) <= 2, "what is charged is what was declared"
    spent = [events.squared_mu(event) for event in charge.events if isinstance(event, events.RoundedGaussian)]
    assert len(spent) == len(charge.events) == 3
    assert max(spent) == pytest.approx(float(min(spent)), rel=1e-6), "equal weights, equal parts"
    parts = bundle.manifest["parts"]
    stated = [
        events.load(event) for event in bundle.manifest["mechanisms"] + parts[0]["mechanisms"] + parts[1]["mechanisms"]
    ]
    assert stated == list(charge.events)
    assert all(check.holds for check in verify(tmp_path / "b"))
    frame = make_visits().to_pandas()
    answer = bundle.part("age by ward").to_pandas().set_index("ward")
    assert answer.loc["A", "n"] == pytest.approx((frame.ward == "A").sum(), abs=400)
    assert bundle.part("monthly").num_rows == 3
    with pytest.raises(UsageError, match="monthly"):
        bundle.part("monthly2")


def test_weights_say_what_each_part_gets() -> None:
    plan = make_whole(weight=6, questions=[BY_WARD | {"weight": 3}])
    shown = publication.preview(plan, curator=open_small())
    found = [events.squared_mu(event) for event in (*shown.method.events, *shown.parts.events)]  # type: ignore[arg-type]
    assert [float(each / found[2]) for each in found] == pytest.approx([6, 3, 1], rel=1e-6)
    assert "question  age by ward: n ±" in str(shown)
    assert "series    monthly: 9 periods" in str(shown)


def test_a_series_of_a_plan_goes_on_for_nothing(tmp_path: Path) -> None:
    curator, plan = open_small(), make_whole()
    with pytest.raises(UsageError, match=r"not published yet.*Nothing was charged"):
        publication.go_on(plan, "monthly", curator=curator).release()
    assert not curator.history()
    bundle = publication.publish(plan, curator=curator, out=tmp_path / "b")
    before = curator.remaining
    series = publication.go_on(plan, "monthly", curator=curator)
    assert series.release(0).value == bundle.part("monthly").column("value")[0].as_py()
    assert series.release().period == 3
    assert curator.remaining == before
    again = publication.publish(plan, curator=curator, out=tmp_path / "again")
    assert again.part("monthly").equals(bundle.part("monthly")), "the bundle has what its plan says"
    with pytest.raises(UsageError, match="monthly"):
        publication.go_on(plan, "weekly", curator=curator)


def test_nobody_opens_a_series_without_a_price() -> None:
    """What makes a series of a release free is no word of the public call."""
    with pytest.raises(TypeError):
        open_small().series(
            "SELECT COUNT(*) FROM visits", name="free", by="day", first=dt.date(2024, 1, 1), periods=3, days_per_unit=1,
            payer="publish: visits", reserved=Fraction(1),
        )  # fmt: skip  # one call


def test_an_earlier_answer_does_not_take_the_place_of_a_draw(tmp_path: Path) -> None:
    """The same question at the same price is on record under another charge. The release draws its own all the same."""
    curator = open_clinic(budget=discreet.Budget(epsilon=6, delta=1e-6))
    plan = ReleasePlan.read(make_whole())
    ready = publication._Publication.prepare(plan, curator, "analyst", "")  # its price
    quoted = ready.parts.quoted
    assert quoted is not None
    earlier = replace(ready.charge, request="earlier", identity="earlier", events=quoted.events)
    curator.answer_quoted(replace(quoted, identity="earlier"), earlier)
    publication.publish(plan, curator=curator, out=tmp_path / "b")
    drawn = curator.ledger.find_request("analyst", "publish: visits: questions")
    assert drawn is not None and drawn.draw is not None


@pytest.mark.parametrize("moment", ["answer", "release_series"])
def test_a_crash_between_parts_leads_to_no_second_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    curator, plan = open_small(), make_whole()
    method = getattr(priced_parts.PricedParts, moment)

    def die(*given: Any) -> None:
        method(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(priced_parts.PricedParts, moment, die)
        with pytest.raises(KeyboardInterrupt):
            publication.publish(plan, curator=curator, out=tmp_path / "b")
    drawn = curator.ledger.find_request("analyst", "publish: visits: questions")
    assert drawn is not None and drawn.draw is not None
    lines = len(curator.history())
    bundle = publication.publish(plan, curator=curator, out=tmp_path / "b")
    kept = curator.ledger.find_request("analyst", "publish: visits: questions")
    assert kept is not None and kept.draw == drawn.draw
    assert list_paid(curator) == ["publish: visits"]
    if moment == "release_series":
        assert len(curator.history()) == lines
    assert bundle.part("age by ward").num_rows == 3


def test_other_questions_under_the_same_name_are_refused(tmp_path: Path) -> None:
    curator = open_small()
    publication.publish(make_whole(), curator=curator, out=tmp_path / "b")
    other = make_whole(questions=[BY_WARD | {"sql": "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"}], epsilon=1)
    with pytest.raises(DiscreetError, match="Nothing was charged"):
        publication.publish(other, curator=curator, out=tmp_path / "c")
    assert list_paid(curator) == ["publish: visits"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"questions": [{"name": "a", "sql": "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"}]}, "declared keys"),
        ({"questions": [{"name": "a", "sql": "SELECT MEDIAN(age) AS m FROM visits"}]}, "counts, sums, means"),
        ({"questions": [BY_WARD, BY_WARD]}, "one name"),
        ({"questions": [{"name": "a"}]}, "name and sql"),
        ({"questions": [BY_WARD | {"wait": 3}]}, "weight"),
        ({"questions": [BY_WARD | {"weight": 0}]}, "weight"),
        ({"questions": {"name": "a"}}, "questions"),
        ({"series": [MONTHLY | {"days_per_unit": None}]}, "days_per_unit"),
        ({"series": [MONTHLY | {"released": 10}]}, "at most its periods"),
        ({"series": [{"name": "monthly"}]}, "question, by, first"),
        ({"weight": -1}, "weight"),
    ],
)
def test_what_cannot_be_a_part_is_refused_before_anything_is_charged(more: dict[str, Any], words: str) -> None:
    curator = open_small()
    with pytest.raises((UsageError, ParameterError), match=words):
        publication.preview(make_whole(**more), curator=curator)
    assert not curator.history()


def test_a_series_that_was_changed_does_not_verify(tmp_path: Path) -> None:
    publication.publish(make_whole(), curator=open_small(), out=tmp_path / "b")
    bundle = Bundle.load(tmp_path / "b")
    table = bundle.part("monthly")
    changed = table.set_column(1, "value", pa.array([0.0] * table.num_rows))
    parquet.write_table(changed, tmp_path / "b" / "series-1.parquet")
    failed = {check.name for check in verify(tmp_path / "b") if not check.holds}
    assert failed == {"files", "series"}


def test_a_plan_of_a_file_is_previewed_and_published(tmp_path: Path) -> None:
    """As a publisher does it: the preview is read when the codebook is closed again, the state lies beside the plan."""
    parquet.write_table(make_visits(rows=2_000), tmp_path / "visits.parquet")
    (tmp_path / "hospital.toml").write_text(CODEBOOK)
    (tmp_path / "plan.toml").write_text(PLAN)
    shown = publication.preview(tmp_path / "plan.toml")
    assert "series    weekly" in str(shown) and "question  sexes" in str(shown)
    bundle = publication.publish(tmp_path / "plan.toml", out=tmp_path / "b")
    assert bundle.part("weekly").num_rows == 2 and len(list((tmp_path / "private").iterdir())) == 2
    assert all(check.holds for check in verify(tmp_path / "b"))


CODEBOOK = """
name = "hospital"
unit = "patient"
[budget]
epsilon = 4
delta = 1e-6
[tables.visits]
source = "visits.parquet"
max_rows = 4
[tables.visits.columns]
patient = { type = "integer" }
sex = { type = "text", keys = ["f", "m"] }
day = { type = "date" }
"""
PLAN = """
name = "visits"
codebook = "hospital.toml"
table = "visits"
epsilon = 2
rows = 2000
columns = ["sex"]
[[questions]]
name = "sexes"
sql = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
[[series]]
name = "weekly"
question = "SELECT COUNT(*) FROM visits"
by = "day"
every = "week"
first = 2024-01-01
periods = 5
released = 2
days_per_unit = 2
state = "private"
"""
