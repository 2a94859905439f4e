"""A publishing process that is killed: the next one goes on under the same charge, and never sees two draws."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.errors import DiscreetError
from discreet.ledger.base_ledger import BaseLedger
from discreet.opening import open_codebook
from discreet.publish import publication
from discreet.publish.bundle import Bundle
from tests.ledger.processes import fork, wait

KILLED = 9

CODEBOOK = """
name = "clinic"
unit = "patient"
[budget]
epsilon = 4
delta = 1e-6
[tables.visits]
source = "visits.csv"
max_rows = 1
[tables.visits.columns]
patient = { type = "integer" }
ward = { type = "text", keys = ["A", "B"] }
sex = { type = "text", keys = ["f", "m"] }
"""
PLAN = """
name = "wards"
codebook = "clinic.toml"
table = "visits"
epsilon = 1
rows = 300
columns = ["ward", "sex"]
"""


def make_clinic(folder: Path) -> Path:
    lines = [f"{i},{'AAB'[i % 3]},{'fm'[i % 2]}" for i in range(300)]
    (folder / "visits.csv").write_text("\n".join(["patient,ward,sex", *lines]) + "\n")
    (folder / "clinic.toml").write_text(CODEBOOK)
    (folder / "plan.toml").write_text(PLAN)
    return folder / "plan.toml"


def publish_and_die(plan: Path, out: Path, moment: str) -> Callable[[], None]:
    """A child that is gone at a moment: before or after the ledger does something, or while the bundle is written."""

    def die(*_: object, **__: object) -> None:
        os._exit(KILLED)

    def work() -> None:
        if moment == "writing":
            setattr(publication, "write_bundle", die)  # noqa: B010  # a child of its own
        else:
            when, name = moment.split()
            method = getattr(BaseLedger, name)

            def replaced(*given: object, **more: object) -> object:
                if when == "before":
                    die()
                method(*given, **more)
                die()
                return None

            setattr(BaseLedger, name, replaced)
        publication.publish(plan, out=out)

    return work


def list_charges(folder: Path) -> list[str]:
    with open_codebook(folder / "clinic.toml") as curator:
        return [entry.charge.request for entry in curator.history()]


@pytest.mark.parametrize("moment", ["after reserve", "before claim", "after record_draw", "writing", "before commit"])
def test_a_killed_release_goes_on_under_its_charge(tmp_path: Path, moment: str) -> None:
    plan = make_clinic(tmp_path)
    assert wait(fork(publish_and_die(plan, tmp_path / "b", moment))) == KILLED
    charges = list_charges(tmp_path)
    assert charges == ["publish: wards"]
    made = publication.publish(plan, out=tmp_path / "b")
    again = publication.publish(plan, out=tmp_path / "again")
    assert list_charges(tmp_path) == charges
    assert made.measurement_record == again.measurement_record


def test_a_draw_that_was_lost_is_not_drawn_again(tmp_path: Path) -> None:
    """Killed between the claim and the record: nobody knows whether something was drawn, so nothing is drawn."""
    plan = make_clinic(tmp_path)
    assert wait(fork(publish_and_die(plan, tmp_path / "b", "after claim"))) == KILLED
    with pytest.raises(DiscreetError):
        publication.publish(plan, out=tmp_path / "b")
    assert list_charges(tmp_path) == ["publish: wards"]
    assert not (tmp_path / "b").exists()


def test_a_folder_that_was_half_written_is_made_anew(tmp_path: Path) -> None:
    plan = make_clinic(tmp_path)
    (tmp_path / "b.part").mkdir()
    (tmp_path / "b.part" / "manifest.json").write_text("{")
    publication.publish(plan, out=tmp_path / "b")
    assert Bundle.load(tmp_path / "b").manifest["name"] == "wards"
    assert not (tmp_path / "b.part").exists()
