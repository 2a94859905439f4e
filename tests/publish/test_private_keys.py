"""Tests of keys from the data in a release: one charge for keys and tables, no rare value, no draw without a charge."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.accounting import events
from discreet.curator import Curator
from discreet.errors import InternalError, UsageError
from discreet.publish import publication
from discreet.publish.priced_parts import make_free_line
from discreet.publish.release_plan import ReleasePlan
from discreet.publish.verification import holds, verify
from tests.publish.releases import make_plan, open_clinic

DELTA = Fraction(1, 10**6)
COLUMNS = {"town": {"keys": "private", "max_keys": 3}, "sex": {}}


def make_towns() -> Any:
    """Five large towns, and four hundred of one person each."""
    chance = np.random.default_rng(0)
    towns = np.concatenate([np.repeat(list("ABCDE"), [2000, 1500, 1000, 800, 600]), [f"rare{i}" for i in range(400)]])
    return pa.table({"patient": np.arange(len(towns)), "town": towns, "sex": chance.choice(["f", "m"], len(towns))})


def open_towns(**more: Any) -> Curator:
    told = {"max_rows": 1, "bounds": {}, "keys": {"sex": ["f", "m"]}, "budget": discreet.Budget(epsilon=3, delta=1e-6)}
    return open_clinic(make_towns(), **(told | more))


def make_towns_plan(**more: Any) -> dict[str, Any]:
    return make_plan(**({"columns": COLUMNS, "epsilon": 2} | more))


def test_keys_and_tables_are_one_charge(tmp_path: Path) -> None:
    curator = open_towns()
    bundle = publication.publish(make_towns_plan(), curator=curator, out=tmp_path / "b")
    main, free = (entry.charge for entry in curator.history())
    assert 1.99 < main.loss.epsilon(DELTA) <= 2 and free.loss.epsilon(DELTA) == 0
    assert any(isinstance(event, events.Approximate) for event in main.events)
    names = bundle.table("town").column("town").to_pylist()
    assert names == ["NULL", "(other)", "A", "B", "C"], "the three largest, and everything else in one cell"
    other = bundle.table("town").column("value").to_pylist()[1]
    assert other == pytest.approx(1800, abs=300)
    assert holds(verify(tmp_path / "b"))
    assert not any(b"rare" in path.read_bytes() for path in (tmp_path / "b").iterdir())
    again = publication.publish(make_towns_plan(), curator=curator, out=tmp_path / "again")
    assert again.measurement_record == bundle.measurement_record and len(curator.history()) == 2


def test_nothing_is_drawn_for_nothing_without_a_charge() -> None:
    curator = open_towns()
    charge = publication._Publication.prepare(  # the charge before it stands
        ReleasePlan.read(make_towns_plan()), curator, "analyst", ""
    ).charge
    with pytest.raises(InternalError):
        make_free_line(charge, "tables", curator)


def test_a_crash_after_the_keys_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curator = open_towns()

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Curator, "draw_tables", die)
        with pytest.raises(KeyboardInterrupt):
            publication.publish(make_towns_plan(), curator=curator, out=tmp_path / "b")
    held = curator.ledger.find_request("analyst", "publish: visits")
    assert held is not None and held.draw is not None
    publication.publish(make_towns_plan(), curator=curator, out=tmp_path / "b")
    kept = curator.ledger.find_request("analyst", "publish: visits")
    assert kept is not None and kept.draw == held.draw


def test_where_no_key_is_common_enough_all_values_are_others(tmp_path: Path) -> None:
    rare = make_towns().slice(5900)
    curator = open_clinic(
        rare, max_rows=1, bounds={}, keys={"sex": ["f", "m"]}, budget=discreet.Budget(epsilon=3, delta=1e-6)
    )
    bundle = publication.publish(make_towns_plan(epsilon=1), curator=curator, out=tmp_path / "b")
    names = bundle.table("town").column("town").to_pylist()
    assert names == ["NULL", "(other)", "(key 0)"]
    assert holds(verify(tmp_path / "b"))


@pytest.mark.parametrize(
    ("more", "budget", "words"),
    [
        ({}, discreet.Budget(rho=1), "ε and δ"),
        ({"columns": {"sex": {"keys": "private"}}}, None, "without declared keys"),
        ({"columns": {"town": {"max_keys": 3}}}, None, "goes with"),
        ({"columns": {"town": {"keys": "private", "max_keys": 0}}}, None, "max_keys"),
        ({"constraints": [{"forbid": {"town": "A", "sex": "f"}}]}, None, "no cell"),
    ],
)
def test_what_cannot_be_named_is_refused_before_anything_is_charged(
    more: dict[str, Any], budget: Any, words: str
) -> None:
    curator = open_towns() if budget is None else open_towns(budget=budget)
    if budget is not None:
        plan = make_towns_plan(rho=0.1)
        del plan["epsilon"]
    else:
        plan = make_towns_plan(**more)
    with pytest.raises(UsageError, match=words):
        publication.preview(plan, curator=curator)
    assert not curator.history()
