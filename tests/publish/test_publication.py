"""Tests of publishing from end to end: one charge, one draw, the same bundle again, and everything that is refused."""

from __future__ import annotations

import datetime as dt
import errno
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet
from discreet.accounting.events import RoundedGaussian, squared_mu
from discreet.errors import BudgetExceeded, DiscreetError, EngineFailure, UsageError
from discreet.publish import bundle as bundle_module
from discreet.publish import publication
from discreet.publish.bundle import Bundle
from discreet.publish.records import dump_measurements
from discreet.publish.verification import holds, verify
from tests.publish.releases import ROWS, make_plan, make_visits, open_clinic

DAYS = {"low": dt.date(2024, 2, 1), "high": dt.date(2024, 2, 28)}


def find_price(curator: Any) -> list[Fraction]:
    """The μ² of every charge."""
    events = [event for entry in curator.history() for event in entry.charge.events]
    assert all(isinstance(event, RoundedGaussian) for event in events)
    return [squared_mu(event) for event in events]


def test_a_release_from_end_to_end(tmp_path: Path) -> None:
    """Tables near the truth, rows in the original types, and a bundle that verifies."""
    visits = make_visits()
    curator = open_clinic(visits, max_rows=9)
    bundle = discreet.publish(make_plan(epsilon=9), curator=curator, out=tmp_path / "b")
    frame, truth = bundle.synthetic.to_pandas(), visits.to_pandas()
    assert abs(len(frame) - ROWS) < 600
    assert bundle.synthetic.to_arrow().schema.types == visits.drop_columns(["patient"]).schema.types
    share = (truth.sex[truth.ward == "A"] == "f").mean()
    assert abs((frame.sex[frame.ward == "A"] == "f").mean() - share) < 0.15
    assert abs(frame.age.mean() - truth.age.mean()) < 8
    assert (frame.cost.dropna() % 100 == 0).all(), "costs stay on their grid"
    assert set(frame.ward.dropna()) <= {"A", "B", "C", "(other)"}
    assert holds(verify(tmp_path / "b"))
    table = bundle.table("ward", "sex").to_pandas().set_index(["ward", "sex"])
    exact = ((truth.ward == "A") & (truth.sex == "f")).sum()
    assert abs(table.loc[("A", "f"), "value"] - exact) < 600


def test_the_charge_is_what_was_declared(tmp_path: Path) -> None:
    """One charge, (ε, δ)-private by itself with the ε of the plan, and no more than the noise that was drawn."""
    curator = open_clinic()
    bundle = publication.publish(make_plan(epsilon=1), curator=curator, out=tmp_path / "b")
    (price,) = find_price(curator)
    assert price == bundle.measurements.allocation.mu_squared
    (entry,) = curator.history()
    assert entry.answered
    assert 0.999 < entry.charge.loss.epsilon(Fraction(1, 10**6)) <= 1
    assert bundle.manifest["loss"]["epsilon"] <= 1


def test_a_preview_costs_nothing_and_tells_the_price() -> None:
    curator = open_clinic()
    shown = publication.preview(make_plan(), curator=curator)
    assert find_price(curator) == []
    text = str(shown)
    assert shown.fits and "one shot" in text and "of the budget" in text
    assert {table["table"] for table in shown.tables()} >= {"all rows", "ward", "ward × sex"}
    assert shown.to_dict()["megabytes"] > 0


def test_the_same_plan_again_is_free_and_the_same(tmp_path: Path) -> None:
    curator = open_clinic()
    one = publication.publish(make_plan(), curator=curator, out=tmp_path / "one")
    again = publication.publish(make_plan(), curator=curator, out=tmp_path / "one")
    other = publication.publish(make_plan(), curator=curator, out=tmp_path / "two")
    assert len(find_price(curator)) == 1
    assert again.manifest == one.manifest == other.manifest
    assert publication.preview(make_plan(), curator=curator).paid


def test_a_changed_bundle_is_not_handed_out_as_the_old_one(tmp_path: Path) -> None:
    """Neither with a changed file, nor with one that its own manifest states; elsewhere it is written again."""
    curator = open_clinic()
    one = publication.publish(make_plan(), curator=curator, out=tmp_path / "one")
    page = tmp_path / "one" / "index.html"
    page.write_text(page.read_text(encoding="utf-8").replace("50 %", "90 %"), encoding="utf-8")
    for edit in ({}, {"index.html": bundle_module.hash_file(page)}):
        manifest = json.loads((tmp_path / "one" / "manifest.json").read_text(encoding="utf-8"))
        manifest["files"] |= edit
        (tmp_path / "one" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        with pytest.raises(UsageError, match=r"was changed.*Nothing was charged"):
            publication.publish(make_plan(), curator=curator, out=tmp_path / "one")
    assert publication.publish(make_plan(), curator=curator, out=tmp_path / "two").manifest == one.manifest
    assert len(find_price(curator)) == 1


def test_a_bundle_is_the_same_after_later_releases(tmp_path: Path) -> None:
    """Its cumulative loss is that of its own time."""
    curator = open_clinic()
    one = publication.publish(make_plan(epsilon=1), curator=curator, out=tmp_path / "one")
    later = publication.publish(make_plan(epsilon=1, name="later"), curator=curator, out=tmp_path / "later")
    assert publication.publish(make_plan(epsilon=1), curator=curator, out=tmp_path / "again").manifest == one.manifest
    assert later.manifest["cumulative"]["epsilon"] > one.manifest["cumulative"]["epsilon"]


def test_a_crash_after_the_draw_goes_on_under_the_same_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails while the bundle is written: the next run has the same draw."""
    curator = open_clinic()

    def fail(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(publication, "write_bundle", fail)
        with pytest.raises(KeyboardInterrupt):
            publication.publish(make_plan(), curator=curator, out=tmp_path / "b")
    (entry,) = curator.history()
    drawn = curator.ledger.find_request("analyst", entry.charge.request)
    bundle = publication.publish(make_plan(), curator=curator, out=tmp_path / "b")
    assert len(find_price(curator)) == 1
    assert drawn is not None and drawn.draw is not None
    assert bundle.measurement_record["numbers"] == drawn.draw["numbers"]


def test_a_crash_after_the_bundle_was_written_is_made_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger had not heard of the bundle: asked for the same folder again, it does, with the same draw."""
    curator = open_clinic()

    def fail(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(curator.ledger), "commit", fail)
        with pytest.raises(KeyboardInterrupt):
            publication.publish(make_plan(), curator=curator, out=tmp_path / "b")
    assert [entry.answered for entry in curator.history()] == [False]
    bundle = publication.publish(make_plan(), curator=curator, out=tmp_path / "b")
    assert [entry.answered for entry in curator.history()] == [True]
    assert publication.publish(make_plan(), curator=curator, out=tmp_path / "c").manifest == bundle.manifest
    assert len(find_price(curator)) == 1


def test_a_crash_before_the_draw_runs_again_under_the_same_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator = open_clinic()
    with monkeypatch.context() as patched:

        def interrupt(*_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

        patched.setattr(type(curator._engine), "tabulate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            publication.publish(make_plan(), curator=curator, out=tmp_path / "b")
    publication.publish(make_plan(), curator=curator, out=tmp_path / "b")
    assert len(find_price(curator)) == 1


def test_a_failing_engine_tells_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The charge stands, and nothing of what failed is told."""
    curator = open_clinic()

    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError("Jane Doe, 42")

    monkeypatch.setattr(type(curator._engine), "tabulate", fail)
    with pytest.raises(EngineFailure) as caught:
        publication.publish(make_plan(), curator=curator, out=tmp_path / "b")
    assert "Jane" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__context__ is None
    assert len(find_price(curator)) == 1
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("more", [{"epsilon": 1}, {"where": "age > 30"}, {"ways": 1}, {"supersedes": "x"}])
def test_a_plan_that_changes_after_it_was_charged_is_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    curator = open_clinic()
    publication.publish(make_plan(), curator=curator, out=tmp_path / "one")
    with pytest.raises(UsageError, match="another name"):
        publication.publish(make_plan(**more), curator=curator, out=tmp_path / "two")
    assert len(find_price(curator)) == 1
    shown = publication.preview(make_plan(**more), curator=curator)
    assert shown.taken and "give this release another name" in str(shown)
    assert not publication.preview(make_plan(), curator=curator).taken


def test_changed_data_are_another_release(tmp_path: Path) -> None:
    """The draw of the old data is never given out for the new ones."""
    curator = open_clinic()
    publication.publish(make_plan(), curator=curator, out=tmp_path / "one")
    engine = curator._engine
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(engine), "version", lambda _, table: f"later {table}")
        for folder in ("one", "two"):
            with pytest.raises(UsageError, match=r"another name|not this release"):
                publication.publish(make_plan(), curator=curator, out=tmp_path / folder)
    assert len(find_price(curator)) == 1


def test_a_second_release_costs_again_and_says_so(tmp_path: Path) -> None:
    curator = open_clinic()
    one = publication.publish(make_plan(epsilon=2), curator=curator, out=tmp_path / "one")
    plan = make_plan(name="visits-2", epsilon=2, supersedes="visits")
    two = publication.publish(plan, curator=curator, out=tmp_path / "two")
    assert len(find_price(curator)) == 2
    assert two.manifest["cumulative"]["epsilon"] > one.manifest["cumulative"]["epsilon"]
    assert "supersedes visits" in (tmp_path / "two" / "disclosure.txt").read_text()


def test_a_folder_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "note.txt").write_text("mine")
    curator = open_clinic()
    with pytest.raises(UsageError, match="exists"):
        publication.publish(make_plan(), curator=curator, out=tmp_path / "b")
    assert find_price(curator) == []
    assert (tmp_path / "b" / "note.txt").read_text() == "mine"


def test_more_than_is_left_is_refused(tmp_path: Path) -> None:
    curator = open_clinic(budget=discreet.Budget(epsilon=1, delta=1e-6))
    with pytest.raises(BudgetExceeded):
        publication.publish(make_plan(epsilon=3), curator=curator, out=tmp_path / "b")
    assert find_price(curator) == []


@pytest.mark.parametrize(
    ("budget", "offer"),
    [
        (discreet.Budget(rho=0.5), {"rho": 0.1}),
        (discreet.Budget(mu=1), {"share": 0.25}),
        (discreet.Budget(epsilon=4, delta=1e-6), {"share": 0.5}),
        (discreet.Budget(epsilon=4, delta=1e-6), {"rho": 0.05}),
    ],
)
def test_every_budget_with_normal_noise_can_pay(tmp_path: Path, budget: Any, offer: dict[str, Any]) -> None:
    curator = open_clinic(budget=budget)
    plan = make_plan(epsilon=None, synthetic=False) | offer
    publication.publish(plan, curator=curator, out=tmp_path / "b")
    (price,) = find_price(curator)
    if "rho" in offer:
        assert Fraction(2) * Fraction(str(offer["rho"])) >= price > Fraction(str(offer["rho"]))
    if budget.mu is not None:
        assert Fraction(1, 5) < price <= Fraction(1, 4)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"columns": ["patient"]}, "single patient"),
        ({"columns": ["nothing"]}, "nothing"),
        ({"from": "visits GROUP BY ward", "table": None}, "GROUP|group"),
        ({"columns": {"age": {}, "free": {"of": "age * 1.5"}}, "where": "COUNT(*) > 1"}, "charged"),
        (
            {
                "columns": {
                    "ward": {},
                    "cost": {"bins": 4000, "resolution": 2},
                    "age": {"resolution": 0.03, "bins": 3000},
                },
                "ways": 3,
            },
            "cells together",
        ),
    ],
)
def test_bad_plans_are_refused_before_anything_is_charged(more: dict[str, Any], what: str) -> None:
    curator = open_clinic()
    plan = {word: value for word, value in (make_plan() | more).items() if value is not None}
    with pytest.raises(DiscreetError, match=what):
        publication.preview(plan, curator=curator)
    assert find_price(curator) == []


FLAG: dict[str, Any] = {"ward": {}, "old": {"of": "age > 60"}}


@pytest.mark.parametrize(
    "constraints",
    [
        [{"forbid": {"old": value}} for value in (True, False, None)],
        [
            {"determines": ["old", "ward"], "pairs": [[True, "A"], [False, "A"], [None, "B"]]},
            {"forbid": {"ward": "A"}},
            {"forbid": {"ward": "B"}},
        ],
    ],
)
def test_contradictory_constraints_are_refused_before_the_charge(constraints: list[Any]) -> None:
    """No row keeps all of them; with one of them less there is one, so it is the contradiction that is refused."""
    curator = open_clinic()
    plan = make_plan(columns=FLAG, constraints=constraints)
    with pytest.raises(UsageError, match=r"contradict each other.*Nothing was charged"):
        publication.preview(plan, curator=curator)
    for left_out in range(len(constraints)):
        fewer = [each for place, each in enumerate(constraints) if place != left_out]
        assert publication.preview(plan | {"constraints": fewer}, curator=curator).fits
    assert find_price(curator) == []


def test_one_allowed_row_among_millions_is_found(tmp_path: Path) -> None:
    """A search by chance would call this a contradiction: of the ages one is left, and all rows are in it."""
    ages = [[age, "x"] for age in range(101) if age != 77]
    plan = make_plan(
        columns={"age": {}, "kind": {"of": "ward", "keys": ["x", "y"]}, "old": {"of": "age > 60"}},
        constraints=[
            {"determines": ["age", "kind"], "pairs": [*ages, [77, "y"], [None, "x"]]},
            {"forbid": {"kind": "x"}},
            {"determines": ["kind", "old"], "pairs": [["y", True]]},
        ],
    )
    frame = publication.publish(plan, curator=open_clinic(), out=tmp_path / "b").synthetic.to_pandas()
    assert set(frame.age) == {77} and set(frame.kind) == {"y"} and frame.old.all()
    assert holds(verify(tmp_path / "b"))


def test_constraints_hold_in_all_rows(tmp_path: Path) -> None:
    plan = make_plan(
        columns={"ward": {}, "sex": {}, "age": {}},
        constraints=[
            {"forbid": {"ward": "A", "sex": "m"}},
            {"determines": ["ward", "sex"], "pairs": [["B", "m"]]},
        ],
    )
    frame = publication.publish(plan, curator=open_clinic(), out=tmp_path / "b").synthetic.to_pandas()
    assert not ((frame.ward == "A") & (frame.sex == "m")).any()
    assert (frame.sex[frame.ward == "B"] == "m").all()


def test_constraints_of_every_type_are_kept_and_read_again(tmp_path: Path) -> None:
    """Booleans, numbers, days and NULL: the bundle writes them down, and its rows come out of what it wrote."""
    day = dt.date(2024, 2, 3)
    plan = make_plan(
        columns={"ward": {}, "age": {}, "old": {"of": "age > 60"}, "day": DAYS, "later": {"of": "day", **DAYS}},
        constraints=[
            {"forbid": {"old": True, "ward": "A"}},
            {"forbid": {"age": 40, "ward": None}},
            {"forbid": {"day": day}},
            {"order": ["day", "later"]},
            {"determines": ["age", "old"], "pairs": [[None, None], *([age, age > 60] for age in range(101))]},
        ],
    )
    curator = open_clinic()
    frame = publication.publish(plan, curator=curator, out=tmp_path / "b").synthetic.to_pandas()
    assert not ((frame.old == True) & (frame.ward == "A")).any()  # noqa: E712  # NULL is neither
    assert not (frame.day == day).any()
    both = frame.dropna(subset=["day", "later"])
    assert len(both) and (both.day <= both.later).all()
    known = frame.dropna(subset=["age"])
    assert ((known.age > 60) == known.old).all()
    assert holds(verify(tmp_path / "b"))


def test_halved_claims_are_seen_by_the_checks(tmp_path: Path) -> None:
    """Control: noise of half the variance under the same charge is caught by verify, and by the price itself."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(publication, "dump_measurements", lambda m: halve(dump_measurements(m)))
        publication.publish(make_plan(), curator=open_clinic(), out=tmp_path / "b")
    assert not holds(verify(tmp_path / "b"))


def halve(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"variance": str(Fraction(record["variance"]) / 2)}


def test_an_empty_table_can_be_published(tmp_path: Path) -> None:
    """Nothing fails because there are no rows: that would tell so."""
    curator = open_clinic(make_visits().slice(0, 0))
    bundle = publication.publish(make_plan(), curator=curator, out=tmp_path / "b")
    assert len(bundle.synthetic) >= 1
    assert holds(verify(tmp_path / "b"))


def test_a_bundle_says_nothing_that_was_not_released(tmp_path: Path) -> None:
    """Two datasets, one draw: with the same noisy numbers every file is the same, whatever the data were."""
    record: list[Any] = []
    folders = []
    for number, visits in enumerate((make_visits(0), make_visits(1, ROWS // 2))):
        curator = open_clinic(visits)
        with pytest.MonkeyPatch.context() as patched:
            if record:
                patched.setattr(publication, "dump_measurements", lambda _: record[0])
            bundle = publication.publish(make_plan(), curator=curator, out=tmp_path / str(number))
        record.append(bundle.measurement_record)
        folders.append(bundle.folder)
    for path in folders[0].iterdir():
        one, two = path.read_bytes(), (folders[1] / path.name).read_bytes()
        if path.name == "manifest.json":  # the receipt names the ledger
            first, second = json.loads(one), json.loads(two)
            for manifest in (first, second):
                del manifest["receipt"], manifest["files"]["index.html"]
            assert first == second
        elif path.name != "index.html":
            assert one == two, path.name


def test_joined_look_ups_can_be_published(tmp_path: Path) -> None:
    import pyarrow as pa

    wards = pa.table({"ward": ["A", "B", "C", "Z"], "floor": [1, 1, 2, 3]})
    curator = discreet.curate(
        {"visits": make_visits(), "wards": wards},
        unit="patient",
        max_rows=4,
        public=["wards"],
        keys={"ward": ["A", "B", "C"], "sex": ["f", "m"], "floor": [1, 2, 3]},
        budget=discreet.Budget(epsilon=10, delta=1e-6),
    )
    plan = {
        "name": "floors",
        "from": "visits JOIN wards ON visits.ward = wards.ward",
        "columns": {"sex": {}, "floor": {}},
        "epsilon": 5,
        "rows": ROWS,
    }
    table = publication.publish(plan, curator=curator, out=tmp_path / "b").table("floor").to_pandas()
    assert abs(table.set_index("floor").loc["1", "value"] / ROWS - 0.8) < 0.1


def test_ranges_without_rows(tmp_path: Path) -> None:
    """Sums over ranges of ages, costs and days: near the truth, with intervals, and far better than cell by cell."""
    visits = make_visits()
    plan = make_plan(
        synthetic=False,
        ways=1,
        epsilon=9,
        columns={
            "age": {"ranges": "all"},
            "cost": {"resolution": 1, "bins": 4, "ranges": "distribution"},
            "day": {**DAYS, "low": dt.date(2024, 1, 1), "high": dt.date(2024, 12, 31), "ranges": "all"},
        },
    )
    bundle = publication.publish(plan, curator=open_clinic(visits, max_rows=9), out=tmp_path / "b")
    truth = visits.to_pandas()
    shown = bundle.ranges("age", (18, 64), (0, 100), (70, 70)).to_pandas()
    for row, (low, high) in zip(shown.itertuples(), [(18, 64), (0, 100), (70, 70)]):
        true = truth.age.between(low, high).sum()
        assert row.low <= row.value <= row.high and abs(row.value - true) < 3 * (row.high - row.low)
    (days,) = bundle.ranges("day", (dt.date(2024, 2, 1), dt.date(2024, 2, 29))).to_pylist()
    true = ((truth.day >= dt.date(2024, 2, 1)) & (truth.day <= dt.date(2024, 2, 29))).sum()
    assert abs(days["value"] - true) < 3 * (days["high"] - days["low"])
    (all_costs,) = bundle.ranges("cost", (0, 5000)).to_pylist()
    assert all_costs["high"] - all_costs["low"] < 3_000
    assert {each["strategy"] for each in bundle.manifest["ranges"]} <= {"haar", "toeplitz"}
    assert holds(verify(tmp_path / "b"))
    with pytest.raises(UsageError, match="no rows to ask"):
        bundle.ask("SELECT AVG(age) AS a FROM release")
    with pytest.raises(UsageError, match="says nothing of ranges"):
        bundle.ranges("ward", (0, 1))
    with pytest.raises(UsageError, match="of its own type"):
        bundle.ranges("day", (1, 2))


@pytest.mark.parametrize(("name", "words"), [("ward", {"ranges": "all"}), ("age", {"ranges": "some"})])
def test_ranges_that_cannot_be_are_refused(name: str, words: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"[Rr]anges.*Nothing was charged"):
        publication.preview(make_plan(columns={name: words}), curator=open_clinic())


def test_uncertain_cells_can_be_left_out(tmp_path: Path) -> None:
    """By released numbers alone; and the manifest says how well the rows fit."""
    bundle = publication.publish(make_plan(), curator=open_clinic(), out=tmp_path / "b")
    full = bundle.table("ward", "sex").to_pandas()
    shown = bundle.table("ward", "sex", suppress=0.2).to_pandas()
    hidden = (full.high - full.low) / 2 > 0.2 * full.estimate
    assert hidden.any() and not hidden.all()
    assert (shown.value.isna() == hidden).all()
    assert 800 < bundle.manifest["rows"]["k_marginal"] <= 1000


def test_whole_numbers_state_their_bias(tmp_path: Path) -> None:
    """Rounded to whole numbers that are not negative: the bias of a true zero is told, and it is the real one."""
    bundle = publication.publish(make_plan(synthetic=False), curator=open_clinic(), out=tmp_path / "b")
    table = bundle.table("ward", "sex", whole=True)
    assert min(table["whole"].to_pylist()) >= 0
    assert table["whole"].to_pylist() == [max(0, round(value)) for value in table["value"].to_pylist()]
    stated = float(table.schema.metadata[b"bias_of_a_true_zero"])
    deviation = np.sqrt(bundle.measurements.allocation.cell_variance(bundle.find_attributes(["ward", "sex"])))
    draws = np.maximum(0, np.round(deviation * np.random.default_rng(0).normal(size=100_000)))
    assert draws.mean() == pytest.approx(stated, rel=0.03)


def test_a_place_that_cannot_be_written_is_refused_before_the_charge(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    curator = open_clinic()
    with pytest.raises(UsageError, match="Nothing was charged"):
        publication.publish(make_plan(), curator=curator, out=tmp_path / "file" / "b")
    assert not curator.history()


def test_a_bundle_that_cannot_be_written_stays_paid_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up after the draw: the same plan again is free."""
    curator = open_clinic()

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(bundle_module, "hash_file", fail)
        with pytest.raises(UsageError, match="is free"):
            publication.publish(make_plan(), curator=curator, out=tmp_path / "a")
    publication.publish(make_plan(), curator=curator, out=tmp_path / "b")
    assert len(find_price(curator)) == 1


def test_bundles_load_from_their_folder(tmp_path: Path) -> None:
    made = publication.publish(make_plan(), curator=open_clinic(), out=tmp_path / "b")
    loaded = Bundle.load(tmp_path / "b")
    assert loaded.manifest == made.manifest
    assert np.allclose(loaded.measurements.table((0, 1)), made.measurements.table((0, 1)))
    assert "synthetic rows" in repr(loaded)
    with pytest.raises(UsageError, match="was not measured"):
        loaded.table("ward", "sex", "age")
    with pytest.raises(UsageError, match="no bundle"):
        Bundle.load(tmp_path)


def test_the_package_is_there_at_its_first_mention() -> None:
    """``discreet.publish`` has its own members before anything of it was imported, and can be called."""
    program = "import discreet; print(callable(discreet.publish.preview), callable(discreet.publish))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert told.stdout.split() == ["True", "True"]


def test_a_plan_may_have_questions_and_series_alone(tmp_path: Path) -> None:
    """Without columns only the number of rows is measured beside them; nothing at all is refused."""
    parts = {
        "questions": [{"name": "ages", "sql": "SELECT AVG(age) AS age FROM visits"}],
        "series": [
            {
                "name": "daily",
                "question": "SELECT COUNT(*) FROM visits",
                "by": "day",
                "first": dt.date(2024, 1, 1),
                "periods": 20,
                "days_per_unit": 1,
            }
        ],
    }
    curator = open_clinic()
    bundle = publication.publish(make_plan(columns={}, **parts), curator=curator, out=tmp_path / "b")
    assert bundle.part("ages").num_rows == 1
    assert bundle.part("daily").num_rows == 20
    assert [table["columns"] for table in bundle.manifest["tables"]] == [[]]
    assert "rows" not in bundle.manifest
    answer = bundle.ask("SELECT COUNT(*) AS n FROM release")
    assert answer.promised and answer.rows["n_low"][0].as_py() < answer.rows["n"][0].as_py()
    assert holds(verify(tmp_path / "b"))
    assert "<h2>Columns" not in (tmp_path / "b" / "index.html").read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="needs columns"):
        publication.preview(make_plan(columns={}), curator=curator)
