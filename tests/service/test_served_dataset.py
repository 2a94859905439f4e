"""A changed codebook is in force on its owner's word only, and requests that run finish with the old one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.service.served import Hospital, read_problem

DATASET = "datasets/hospital"


def change(hospital: Path, old: str, new: str) -> None:
    text = hospital.read_text()
    assert old in text
    hospital.write_text(text.replace(old, new, 1))


def test_a_changed_codebook_waits_for_its_owner(served: Hospital, hospital: Path) -> None:
    """Public facts change at the word; the old curator is closed by the last request that uses it."""
    before = served.get("ana", DATASET)
    change(hospital, "bounds = [0, 110]", "bounds = [0, 120]")
    assert served.get("ana", DATASET) == before
    read_problem(served.send("ana", "POST", f"{DATASET}/reload", {}), "forbidden", 403)
    with served.dataset.hold() as old:
        assert served.send("olga", "POST", f"{DATASET}/reload", {}).status == 200
        assert old.curator.ledger.remaining > 0
        assert served.dataset.curator is not old.curator
    assert not served.dataset._uses
    after = served.get("ana", DATASET)
    assert "120" in str(after) and after != before
    assert served.ask("ana", "one").status == 200


def test_a_codebook_that_is_wrong_changes_nothing(served: Hospital, hospital: Path) -> None:
    """Neither one that cannot be read, nor one with another name, nor one with other terms."""
    text, before = hospital.read_text(), served.dataset.opened
    for wrong in ("name = ", text.replace('name = "hospital"', 'name = "clinic"'), _raise_budget(text)):
        hospital.write_text(wrong)
        assert served.send("olga", "POST", f"{DATASET}/reload", {}).status >= 400
        assert served.dataset.opened is before
    hospital.write_text(text)
    assert served.send("olga", "POST", f"{DATASET}/reload", {}).status == 200


def test_another_budget_is_put_on_record(served: Hospital, hospital: Path) -> None:
    """With the owner's name and reason; what is spent stays spent."""
    served.ask("ana", "one")
    left = served.get("ana", f"{DATASET}/budget")
    hospital.write_text(_raise_budget(hospital.read_text()))
    read_problem(served.send("olga", "POST", f"{DATASET}/amend", {}), "bad-request", 400)
    made = served.send("olga", "POST", f"{DATASET}/amend", {"reason": "more questions"})
    assert made.status == 200, made.body
    found = served.get("ana", f"{DATASET}/budget")
    assert found["whole"] > left["whole"] and left["left"] < found["left"] < found["whole"]
    assert len(served.get("ana", f"{DATASET}/history")["charges"]) == 1


def test_analysts_see_each_other_where_the_owner_says_so(served: Hospital, hospital: Path) -> None:
    """By one word of the codebook; answers of others stay theirs, and asking the same is free."""
    served.ask("ana", "one")
    assert served.get("ben", f"{DATASET}/history")["charges"] == []
    hospital.write_text(f"shared_answers = true\n{hospital.read_text()}")
    assert served.send("olga", "POST", f"{DATASET}/reload", {}).status == 200
    (charge,) = served.get("ben", f"{DATASET}/history")["charges"]
    assert charge["analyst"] == "ana"
    read_problem(served.send("ben", "GET", "requests/one"), "not-found", 404)


def _raise_budget(text: str) -> str:
    return re.sub(r"(?m)^(epsilon|rho) = ([0-9.]+)", lambda found: f"{found[1]} = {float(found[2]) * 2}", text, count=1)


def test_what_is_left_is_told_in_the_shares_of_prices(served: Hospital) -> None:
    """Whoever pays a twentieth, and then a quarter, of the whole has 70 of 100 left, here and in the burn-down."""
    for key, share, left in (("one", "0.05", 0.95), ("two", "0.25", 0.7)):
        sql = f"SELECT COUNT(*) AS n FROM visits WHERE age > {len(key)} AND length_of_stay > {share}"
        assert served.ask("ana", key, {"sql": sql, "share": share}).status == 200
        assert served.get("ana", f"{DATASET}/budget")["share"] == pytest.approx(left, abs=1e-6)
        assert served.get("olga", f"{DATASET}/burndown")["curve"][-1]["share"] == pytest.approx(left, abs=1e-6)
