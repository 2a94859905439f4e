"""A ledger that version 0.1.0 wrote is read, verified, continued by its own rules, and moved to classes on record.

The file was written by 0.1.0 under (1, 1e-6): Gaussian, Laplace, choices and keys, two analysts, an amended cap.
"""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.accounting import events as ev
from discreet.accounting.account import compose
from discreet.accounting.spending_classes import OLD_SUMS, SUMS, ClassCurrency, price_in_all
from discreet.errors import BudgetExceeded
from discreet.ledger.administration import verify
from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.ledger import Charge
from discreet.ledger.policy import DATASET
from discreet.ledger.sqlite import SQLiteLedger
from discreet.privacy import Budget
from tests.ledger.charges import TERMS, Clock, charge

FILE = Path(__file__).parent.parent / "fixtures" / "ledgers" / "version-0.1.0.sqlite"
BUDGET = Budget(epsilon=1, delta=1e-6)


@pytest.fixture
def old(tmp_path: Path) -> BaseLedger:
    copy = tmp_path / "ledger.sqlite"
    shutil.copyfile(FILE, copy)
    return SQLiteLedger.open(copy, budget=BUDGET, clock=Clock(2031), **TERMS)


def gaussian(request: str, variance: int) -> Charge:
    events = (ev.DiscreteGaussian(squared_sensitivity=1, variance=variance, unit="patient_id"),)
    return charge(request, events=events, loss=compose(events).loss)


def test_it_is_read_and_goes_on_by_its_own_rules(old: BaseLedger) -> None:
    """Σε, Σρ, Σδ as they were written; new charges are added to the same sums."""
    assert verify(old).charges == 4
    before = dict(old.sums)
    assert before["rho"] == Fraction(1, 800) + Fraction(1, 800) + Fraction(1, 800) + Fraction(1, 1800) + Fraction(
        1, 800
    )
    assert len(old.state.total) == len(OLD_SUMS)
    assert old.remaining > 0
    old.reserve(gaussian("new", 400))
    assert old.sums["rho"] == before["rho"] + Fraction(1, 800)
    assert verify(old).charges == 5
    with pytest.raises(BudgetExceeded):
        old.reserve(gaussian("too much", 20))


@pytest.mark.parametrize("how", ["amend", "renew"])
def test_an_amendment_moves_it_to_classes(old: BaseLedger, how: str) -> None:
    """From then on all sums are kept. They are those of the stored events, priced anew; a renewal begins with none."""
    lines = [json.loads(line) for line in old.read_lines()]
    charged = [tuple(map(ev.load, line["events"])) for line in lines if line["kind"] == "reserved"]
    if how == "amend":
        old.amend(by="owner", reason="classes", budget=Budget(epsilon=2, delta=1e-6))
    else:
        old.renew(by="owner", reason="other people")
    state = old.state
    assert isinstance(state.rules.currency, ClassCurrency)
    assert state.rules.currency.names == SUMS
    expected = state.rules.currency.nothing
    for events in charged if how == "amend" else []:
        expected = state.rules.currency.add(expected, price_in_all(compose(events).loss))
    assert state.totals.get(DATASET, state.rules.currency.nothing) == expected
    old.reserve(charge("pure", "1/10"))
    report = verify(old)
    assert report.charges == 5
    assert report.head.number == old.head.number


def test_a_file_that_claims_other_sums_is_damaged(old: BaseLedger) -> None:
    """Negative control: the sums that an amendment begins with are checked against the events."""
    old.amend(by="owner", reason="classes", budget=Budget(epsilon=2, delta=1e-6))
    line = old.read_lines()[-1]
    record = json.loads(line)
    whole = json.loads(record["totals"]['["dataset", "", ""]'])
    assert len(whole) == len(SUMS)
    assert Fraction(whole[SUMS.index("mu_squared")]) >= 10**30
    assert Fraction(whole[SUMS.index("tau_8")]) < 1
