"""Every ledger keeps the same protocol, whatever it is stored in."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.accounting import events as ev
from discreet.accounting.account import compose
from discreet.accounting.filters import Filter
from discreet.accounting.pure import PureNotion
from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    InternalError,
    LedgerDamaged,
    LedgerError,
    LedgerStopped,
    MixedGuarantees,
    ParameterError,
    RequestConflict,
    RequestInFlight,
    UnknownLoss,
)
from discreet.exact import ln
from discreet.ledger import chain
from discreet.ledger.administration import verify
from discreet.ledger.amount_text import price_to_text
from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.chain import Head
from discreet.ledger.charge_history import describe_events
from discreet.ledger.ledger import Charge, Reservation
from discreet.ledger.policy import Cap, Policy
from discreet.privacy import Budget, Loss, Neighbours, Unit
from tests.ledger import server
from tests.ledger.charges import ONE, Clock, Opener, charge, laplace, open_memory, open_sqlite, replayed


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def opener(request: pytest.FixtureRequest) -> Opener:
    if request.param == "postgres":
        return server.opener()
    return open_memory if request.param == "memory" else open_sqlite


@pytest.fixture
def make(opener: Opener, tmp_path: Path) -> Iterator[Opener]:
    """A ledger of its own for a test, closed at its end."""
    made: list[BaseLedger] = []

    def new(*terms: Any, **other: Any) -> BaseLedger:
        made.append(opener(tmp_path, *terms, **other))
        return made[-1]

    yield new
    for book in made:
        book.close()


def ask(book: BaseLedger, request: str, epsilon: str = "1/10", **other: Any) -> Any:
    held = book.reserve(charge(request, epsilon, **other))
    return held.record if held.record is not None else book.commit(held, {"value": request})


def test_ten_tenths_fit_and_not_a_bit_more(make: Opener) -> None:
    """Sums are exact: ten charges of one tenth spend one whole, and then nothing fits."""
    book = make()
    for i in range(10):
        assert book.fits(charge(f"r{i}"))
        ask(book, f"r{i}")
    assert (book.spent, book.remaining) == (Fraction(1), Fraction(0))
    tiny = charge("tiny", Fraction(1, 10**18))
    assert not book.fits(tiny)
    with pytest.raises(BudgetExceeded, match="nothing was charged"):
        book.reserve(tiny)
    assert len(book.history()) == 10


def test_same_request_same_body_is_answered_from_the_record(make: Opener) -> None:
    """A retry after a lost answer gets the same bytes and is not charged."""
    book = make()
    held = book.reserve(charge("r"))
    given = {"value": 17, "text": "ü", "nested": [1.5, None, {"a": True}]}
    assert book.commit(held, given) is given
    again = book.reserve(charge("r"))
    assert again.record == given and (again.number, again.hash) == (held.number, held.hash)
    assert book.spent == Fraction(1, 10)


def test_same_request_other_body_is_refused(make: Opener) -> None:
    """A request id stands for one question: other words, other noise or another project are refused."""
    book = make()
    ask(book, "r")
    for other in (
        charge("r", question="other"),
        charge("r", Fraction(1, 5)),
        charge("r", project="p"),
    ):
        with pytest.raises(RequestConflict, match="Nothing was charged"):
            book.reserve(other)
    assert book.spent == Fraction(1, 10)


def test_request_ids_belong_to_analysts(make: Opener) -> None:
    """Two analysts may use the same request id without seeing each other's answers."""
    book = make()
    ask(book, "r")
    held = book.reserve(charge("r", analyst="ben", identity="other"))
    assert held.record is None
    assert book.spent == Fraction(2, 10)


def test_in_flight_is_refused_and_costs_nothing(make: Opener) -> None:
    """While a request is run, the same request, or the same question under another id, is told to wait."""
    book = make()
    book.reserve(charge("r"))
    with pytest.raises(RequestInFlight, match="right now"):
        book.reserve(charge("r"))
    with pytest.raises(RequestInFlight):
        book.reserve(charge("s", identity="identity of r", question="question of r"))
    assert book.spent == Fraction(1, 10)


def test_a_failed_run_counts_and_is_finished_under_the_same_charge(make: Opener) -> None:
    """A reservation without an answer is spent; a retry runs again, is charged nothing, and is recorded."""
    book = make()
    held = book.reserve(charge("r"))
    book.abandon(held)
    assert book.spent == Fraction(1, 10) and not book.history()[0].answered
    again = book.reserve(charge("r"))
    assert again.record is None and again.number == held.number
    assert book.commit(again, {"value": 1}) == {"value": 1}
    assert book.spent == Fraction(1, 10) and book.history()[0].answered
    assert [json.loads(line)["kind"] for line in book.read_lines()] == ["opened", "reserved", "resumed", "answered"]


def test_a_charge_that_waits_for_another_failure_says_that_it_stands(make: Opener) -> None:
    """Between the charge and the draw of one question another one failed: the first is charged, and goes on later."""
    book = make()
    held, broken = book.reserve(charge("r")), book.reserve(charge("s"))
    book.fail(broken)
    with pytest.raises(LedgerStopped, match="Your charge stands"):
        book.claim(held)
    with pytest.raises(LedgerStopped, match="Nothing was charged"):
        book.reserve(charge("t"))
    book.allow(by="cora", reason="looked")
    book.claim(held)
    assert book.spent == Fraction(2, 10)


def test_a_new_id_for_an_unfinished_question_continues_the_old_charge(make: Opener) -> None:
    """Who asks the same thing again after a crash, without the old id, does not pay twice; another analyst does."""
    book = make()
    held = book.reserve(charge("r"))
    book.abandon(held)
    same = {"identity": "identity of r", "question": "question of r"}
    assert book.reserve(charge("new", **same)).number == held.number
    assert book.spent == Fraction(1, 10)
    assert book.reserve(charge("new", analyst="ben", **same)).number != held.number
    assert book.spent == Fraction(2, 10)


def test_a_lease_ends(make: Opener) -> None:
    """A run that nobody heard of for longer than its lease may be run again, also when the clock was set back."""
    clock = Clock()
    book = make(clock=clock, lease=60.0)
    book.reserve(charge("r"))
    clock.move(seconds=59)
    with pytest.raises(RequestInFlight):
        book.reserve(charge("r"))
    clock.move(seconds=2)
    assert book.reserve(charge("r")).record is None
    clock.move(days=-3650)
    assert book.reserve(charge("r")).record is None


def test_of_two_runs_of_one_request_one_answer_is_handed_out(make: Opener) -> None:
    """If a run is overtaken by another one, its own answer is dropped: one charge, one release."""
    book = make(lease=0.0)
    slow, quick = book.reserve(charge("r")), book.reserve(charge("r"))
    assert book.commit(quick, {"value": "quick"}) == {"value": "quick"}
    assert book.commit(slow, {"value": "slow"}) == {"value": "quick"}
    assert replayed(book) == {"value": "quick"}
    assert book.spent == Fraction(1, 10)


def test_same_question_on_the_same_data_is_free(make: Opener) -> None:
    """The recorded answer comes back for the identity; nothing for an identity that was never answered."""
    book = make()
    assert book.replay("identity of r") is None
    held = book.reserve(charge("r"))
    assert book.replay("identity of r") is None
    book.commit(held, {"value": 0})
    assert replayed(book) == {"value": 0}


def test_ten_thousand_replays_are_one_charge(make: Opener) -> None:
    """A captured request that is sent again and again, by many threads at once, gets identical answers for free."""
    book = make()
    first = json.dumps(ask(book, "r"))
    found: set[str] = set()

    def replay() -> None:
        for _ in range(250):
            found.add(json.dumps(book.reserve(charge("r")).record))
            found.update(json.dumps(replayed(book)) for _ in range(9))

    threads = [threading.Thread(target=replay) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {first}
    assert book.spent == Fraction(1, 10) and len(book.read_lines()) == 3


def test_an_answer_without_reservation_is_never_recorded(make: Opener) -> None:
    """Neither for a line that is no reservation, nor for one of another ledger."""
    book = make()
    held = book.reserve(charge("r"))
    for wrong in (replace(held, number=0), replace(held, number=99), replace(held, ledger="other")):
        with pytest.raises(InternalError):
            book.commit(wrong, {})
    with pytest.raises(InternalError):
        book.commit(held, {"value": object()})
    assert book.commit(held, {"value": 1}) == {"value": 1}


@pytest.mark.parametrize(
    "budget",
    [Budget(epsilon=1), Budget(epsilon=ln(3)), Budget(epsilon=1, delta=1e-6), Budget(rho=0.02), Budget(mu=0.2)],
    ids=repr,
)
def test_a_ledger_decides_like_the_filter(opener: Opener, tmp_path: Path, budget: Budget) -> None:
    """In every notion a ledger accepts, sums and shows exactly what accounting's filter does."""
    model = Filter(budget, unit="patient_id", neighbours="add-remove")
    with opener(tmp_path, budget) as book:
        for i in range(60):
            events: tuple[ev.Event, ...]
            if budget.notion == "gdp":
                events = (ev.Gaussian(sensitivity=1, sigma=17 + i, unit="patient_id"),)
            elif i % 3 == 1 and budget.notion == "pure":
                events = (ev.Pure(epsilon=ln(Fraction(100 + i, 99)), unit="patient_id"),)
            else:
                events = (ev.DiscreteLaplace(sensitivity=1, scale=7 + i, unit="patient_id"),)
            loss = compose(events).loss
            fits = model.can(loss)
            asked = charge(f"r{i}", events=events, loss=loss)
            assert book.fits(asked) == fits
            if fits:
                model.charge(loss)
                book.commit(book.reserve(asked), {})
            else:
                with pytest.raises(BudgetExceeded):
                    book.reserve(asked)
            assert (book.spent, book.remaining, book.sums) == (model.spent, model.remaining, model.sums)
        assert len(book.history()) < 60


def test_bad_charges_are_refused(make: Opener) -> None:
    """Another dataset, unit or relation, names that are none, losses that are none, or below their events."""
    book = make()
    _, loss = laplace(Fraction(1, 10))
    bad: list[tuple[type[DiscreetError], dict[str, Any]]] = [
        (LedgerError, {"dataset": "other"}),
        (ParameterError, {"request": ""}),
        (ParameterError, {"request": "x" * 201}),
        (ParameterError, {"analyst": ""}),
        (ParameterError, {"analyst": "a\nb"}),
        (ParameterError, {"analyst": None}),
        (ParameterError, {"project": "a\0"}),
        (ParameterError, {"loss": 0.1}),
        (ParameterError, {"loss": math.nan}),
        (MixedGuarantees, {"loss": Loss(loss.notions, Unit(), Neighbours.ADD_REMOVE)}),
        (MixedGuarantees, {"loss": Loss(loss.notions, Unit("patient_id"), Neighbours.REPLACE)}),
        (InternalError, {"loss": Loss((PureNotion(Fraction(-1)),), Unit("patient_id"), Neighbours.ADD_REMOVE)}),
        (InternalError, {"loss": Loss((PureNotion(Fraction(1, 11)),), Unit("patient_id"), Neighbours.ADD_REMOVE)}),
        (ParameterError, {"events": ()}),
        (UnknownLoss, {"loss": Loss(tuple(n for n in loss.notions if n.kind == "zcdp"), loss.unit, loss.neighbours)}),
    ]
    for kind, wrong in bad:
        with pytest.raises(kind):
            book.reserve(replace(charge("r"), **wrong))
    assert book.spent == 0 and len(book.read_lines()) == 1


def test_caps_hold_beside_the_budget(make: Opener) -> None:
    """Per query, per analyst (with one by name), per project: each holds, and a refusal names the cap."""
    policy = Policy(
        caps=(
            Cap(amount=Fraction(3, 10), over="query"),
            Cap(amount=Fraction(35, 100), over="analyst"),
            Cap(amount=Fraction(6, 10), over="analyst", name="ana"),
            Cap(amount=Fraction(5, 10), over="project", name="p"),
        )
    )
    book = make(policy=policy)
    with pytest.raises(BudgetExceeded, match="per query"):
        book.reserve(charge("big", "4/10"))
    ask(book, "a1", "3/10", project="p")
    ask(book, "a2", "2/10", project="p")
    with pytest.raises(BudgetExceeded, match=r"0.5 for project p: ε 0 of 0.5. Offer less; nothing was charged"):
        book.reserve(charge("a3", "1/10", project="p"))
    ask(book, "a4", "1/10", project="q")
    with pytest.raises(BudgetExceeded, match=r"for analyst ana: ε 0 of 0.6"):
        book.reserve(charge("a5", "1/100"))
    ask(book, "b1", "3/10", analyst="ben")
    with pytest.raises(BudgetExceeded, match=r"per analyst: ε 0.05 of 0.35. Offer less"):
        book.reserve(charge("b2", "1/10", analyst="ben"))
    with pytest.raises(BudgetExceeded, match="left of Budget"):
        book.reserve(charge("c1", "2/10", analyst="cem"))
    assert book.spent == Fraction(9, 10)


def test_unknown_principals_are_refused(make: Opener) -> None:
    """Where the policy lists analysts and projects, others are told to ask the curator."""
    book = make(policy=Policy.of(analysts=["ana"], projects=["p", ""]))
    ask(book, "r1", project="p")
    ask(book, "r2")
    for wrong in ({"analyst": "eve"}, {"project": "x"}):
        assert not book.fits(charge("r3", **wrong))
        with pytest.raises(LedgerError, match="Ask the curator"):
            book.reserve(charge("r3", **wrong))


def test_period_caps_renew_with_the_ledgers_clock_only(make: Opener) -> None:
    """A new month renews the monthly cap; a clock set back ten years does not, and neither does one set forth again."""
    clock = Clock(2030, 1, 31)
    book = make(policy=Policy.of(per_month=Fraction(2, 10)), clock=clock)
    ask(book, "r1", "2/10")
    with pytest.raises(BudgetExceeded, match=r"per dataset and month: ε 0 of 0.2"):
        book.reserve(charge("r2"))
    clock.move(days=-3653)
    with pytest.raises(BudgetExceeded):
        book.reserve(charge("r2"))
    clock.move(days=3653)
    with pytest.raises(BudgetExceeded):
        book.reserve(charge("r2"))
    clock.move(days=1)
    ask(book, "r2", "2/10")
    clock.move(days=-3650)
    with pytest.raises(BudgetExceeded):
        book.reserve(charge("r3"))
    times = [json.loads(line)["time"] for line in book.read_lines()]
    assert times == sorted(times) and book.spent == Fraction(4, 10)


def test_an_amendment_is_on_record_and_spends_nothing_back(make: Opener) -> None:
    """A budget can be raised or lowered in the log; what is spent stays spent; below that nothing fits."""
    book = make()
    ask(book, "r1", "9/10")
    book.amend(budget=Budget(epsilon=2), by="cora", reason="second wave of the study")
    assert (book.budget.amount(), book.spent, book.remaining) == (Fraction(2), Fraction(9, 10), Fraction(11, 10))
    ask(book, "r2", "1/10")
    book.amend(budget=Budget(epsilon=Fraction(1, 2)), by="cora", reason="too much")
    assert book.remaining == 0 and not book.fits(charge("r3", "1/1000"))
    record = json.loads(book.read_lines()[-1])
    assert (record["kind"], record["by"], record["reason"]) == ("amended", "cora", "too much")
    for wrong in (Budget(rho=1), Budget(epsilon=1, delta=1e-6), Budget(epsilon=ln(3))):
        with pytest.raises(LedgerError, match="another kind"):
            book.amend(budget=wrong, by="cora", reason="why not")
    with pytest.raises(ParameterError, match="reason"):
        book.amend(budget=ONE, by="cora", reason=" ")


def test_an_amended_cap_counts_what_was_charged_before(make: Opener) -> None:
    """A cap that is declared later holds for the sums so far, of everyone it is about."""
    clock = Clock()
    book = make(clock=clock)
    ask(book, "r1", "3/10")
    ask(book, "r2", "2/10", analyst="ben")
    clock.move(days=1)
    ask(book, "r3", "1/10")
    policy = Policy.of(per_analyst=Fraction(4, 10), per_day=Fraction(2, 10))
    book.amend(policy=policy, by="cora", reason="fairness")
    assert book.policy == policy
    with pytest.raises(BudgetExceeded, match="analyst"):
        book.reserve(charge("r4", "1/100"))
    ask(book, "r5", "1/10", analyst="ben")
    with pytest.raises(BudgetExceeded, match="day"):
        book.reserve(charge("r6", "1/100", analyst="ben"))
    assert book.spent == Fraction(7, 10)


def test_new_data_keeps_the_budget_unless_it_is_declared_to_be_about_others(make: Opener) -> None:
    """A new version spends on; a declared renewal starts anew, on record; old unfinished requests end with it."""
    book = make()
    ask(book, "r1", "1/2", version="v1")
    unfinished = book.reserve(charge("r2", "1/10", version="v1"))
    book.abandon(unfinished)
    ask(book, "r3", "1/10", version="v2")
    assert book.spent == Fraction(7, 10)
    book.renew(by="cora", reason="a new cohort, nobody in both", version="v3")
    assert book.spent == 0 and json.loads(book.read_lines()[-1])["kind"] == "renewed"
    with pytest.raises(RequestConflict, match="renewed"):
        book.reserve(charge("r2", "1/10"))
    with pytest.raises(RequestConflict):
        book.reserve(charge("r1", "1/2"))
    ask(book, "r4", "1")
    assert book.remaining == 0


def test_an_amended_cap_counts_nothing_from_before_a_renewal(make: Opener) -> None:
    """What was charged for other people is forgotten by caps, too; what was charged since then counts."""
    book = make()
    ask(book, "r1", "3/10")
    book.renew(by="cora", reason="a new cohort, nobody in both", version="v2")
    ask(book, "r2", "1/10")
    book.amend(policy=Policy.of(per_analyst=Fraction(3, 10)), by="cora", reason="fairness")
    (counted,) = json.loads(book.read_lines()[-1])["totals"].values()
    assert counted == price_to_text((Fraction(1, 10),))
    ask(book, "r3", "2/10")
    with pytest.raises(BudgetExceeded, match="analyst"):
        book.reserve(charge("r4", "1/100"))
    assert verify(book).charges == 3


def test_history_says_who_asked_what_and_never_a_value(make: Opener) -> None:
    """Entries have analyst, question, events, loss and time; the log has only the hash of an answer."""
    book = make()
    held = book.reserve(charge("r", project="p", version="v1"))
    book.commit(held, {"secret": "4711"})
    (entry,) = book.history()
    assert entry.charge == charge("r", project="p", version="v1")
    assert entry.answered and entry.number == held.number == 1 and entry.time.endswith("Z")
    record = json.loads(book.read_lines()[1])
    assert set(record["loss"]) == {"pure", "approx", "zcdp", "rdp", "gdp", "pld"} and record["price"] == ["1/10"]
    assert "4711" not in "".join(book.read_lines())


def test_heads_notice_a_log_that_is_not_the_same(make: Opener) -> None:
    """A head holds for ever in its log, and not in another one, nor in a fork."""
    book = make()
    heads = [book.head]
    for i in range(3):
        ask(book, f"r{i}")
        heads.append(Head.from_json(book.head.to_json()))
    for head in heads:
        book.check_head(head)
    for wrong in (
        replace(heads[1], hash="0" * 64),
        replace(heads[1], ledger="other"),
        replace(heads[1], number=99),
        replace(heads[1], number=-1),
    ):
        with pytest.raises(LedgerDamaged):
            book.check_head(wrong)
    ask(book, "r4")
    for text in ("", "{}", "[]", '{"ledger":1,"number":"x","hash":null}'):
        with pytest.raises(LedgerError, match="not a head"):
            Head.from_json(text)


def test_questions_of_one_transaction_see_each_other(make: Opener) -> None:
    """Where a group of requests is decided together, each sees what those before it did."""
    book = make()

    def reserve(asked: Charge) -> Reservation:
        dumped, loss = describe_events(asked.events)
        return book._reserve(asked, book._prices.find_price(asked), loss, dumped)

    def work() -> list[Any]:
        reserve(charge("q", "1/100"))
        with pytest.raises(RequestConflict):
            reserve(charge("q", "1/100", question="other", identity="other"))
        first = reserve(charge("r"))
        with pytest.raises(RequestInFlight):
            reserve(charge("r"))
        with pytest.raises(RequestInFlight):
            reserve(charge("s", identity="identity of r", question="question of r"))
        with pytest.raises(RequestConflict):
            reserve(charge("r", question="other"))
        book._commit(first, {"value": 1}, '{"value":1}')
        again = reserve(charge("r"))
        twice = book._commit(first, {"value": 2}, '{"value":2}')
        other = reserve(charge("t", "8/10"))
        with pytest.raises(BudgetExceeded):
            reserve(charge("u", "1/10"))
        return [again.record, twice, other.record]

    assert book._write(work) == [{"value": 1}, {"value": 1}, None]
    assert book.spent == Fraction(91, 100) and len(book.history()) == 3
    assert replayed(book) == {"value": 1}
    book.scan()


def test_many_threads_share_transactions(make: Opener) -> None:
    """Group commit: thirty-two threads with refusals among them, each gets its own result, and sums are exact."""
    book = make(Budget(epsilon=10))
    found: dict[str, str] = {}

    def work(n: int) -> None:
        for i in range(5):
            name = f"{n}-{i}"
            try:
                found[name] = json.dumps(ask(book, name, "1/10", dataset="other" if n % 8 == 7 else "hospital"))
            except (BudgetExceeded, LedgerError) as error:
                found[name] = type(error).__name__

    threads = [threading.Thread(target=work, args=(n,)) for n in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answered = {name for name, text in found.items() if text == json.dumps({"value": name})}
    assert len(found) == 160 and len(answered) == 100 and book.spent == 10
    assert sorted(found.values()).count("LedgerError") == 20
    assert {entry.charge.request for entry in book.history()} == answered


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_thread_keeps_nobody_waiting(make: Opener) -> None:
    """Who is interrupted while waiting leaves the line, and others go on."""
    book = make(Budget(epsilon=10))
    commit = book._store.commit

    def slowly() -> None:
        time.sleep(0.3)
        commit()

    book._store.commit = slowly  # type: ignore[method-assign]  # for a moment
    other = threading.Thread(target=ask, args=(book, "other"))
    other.start()
    time.sleep(0.05)
    threading.Timer(0.05, lambda: signal.raise_signal(signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        book.reserve(charge("mine"))
    book._store.commit = commit  # type: ignore[method-assign]  # as it was
    other.join()
    ask(book, "later")
    assert {"other", "later"} <= {entry.charge.request for entry in book.history()}


def test_a_line_that_is_earlier_than_the_last_is_refused_while_running(make: Opener) -> None:
    """Another process whose lines go back in time is not believed."""
    book = make()
    book.reserve(charge("r"))
    state = book.state
    line = chain.make_line(state.number + 1, state.hash, "resumed", "2001-01-01T00:00:00.000000Z", {"of": 1})
    with pytest.raises(LedgerDamaged, match="earlier"):
        state.absorb(state.number + 1, line)
