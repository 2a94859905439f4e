"""Several questions under one price: shares, the tighter price of a fixed plan, one charge, one record."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import discreet
from discreet.accounting.account import compose
from discreet.accounting.events import FixedPlan
from discreet.errors import BudgetExceeded, DiscreetError, EngineFailure, ParameterError
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.preview import BatchPreview
from tests.worlds.visits import curator

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward",
    "SELECT SUM(age) AS total FROM visits WHERE ward = 'A'",
]


def sigmas(preview: BatchPreview) -> list[float]:
    """The standard deviation of every noise, in the order of the questions."""
    noises = [noise for each in preview.each for release in each.plan.releases for noise in release.noises.values()]
    return [noise.standard_error for noise in noises if isinstance(noise, RoundedGaussian)]


def test_a_batch_is_answered_in_order_under_one_charge() -> None:
    """Three answers, one entry in the ledger, and together what was offered."""
    holder = curator()
    answers = holder.ask_batch(QUESTIONS, epsilon=4)
    assert [answer.table.column_names[0] for answer in answers] == ["n", "ward", "total"]
    (entry,) = holder.history()
    assert len(entry.charge.events) == 3  # the mean and the count beside it are measured jointly
    alone = holder.preview(QUESTIONS[0], epsilon=4)
    total = compose([event for answer in answers for event in _events(answer)]).loss
    assert total.notion("zcdp").words() == alone.loss.notion("zcdp").words()
    assert all("batch" in answer.receipt for answer in answers)


def _events(answer: Any) -> list[Any]:
    return [discreet.accounting.events.load(event) for event in answer.receipt["mechanisms"]]


def test_the_same_batch_is_replayed_for_free() -> None:
    """Also as a whole: the same questions at the same price have one record."""
    holder = curator()
    first = holder.ask_batch(QUESTIONS, epsilon=4)
    again = holder.ask_batch(QUESTIONS, epsilon=4)
    assert all(answer.replayed for answer in again) and not any(answer.replayed for answer in first)
    assert [answer.table for answer in first] == [answer.table for answer in again]
    assert len(holder.history()) == 1


def test_weights_move_the_price_between_questions() -> None:
    """Nine tenths of ρ for the first question: its noise shrinks, the others' grows, the total stays."""
    holder = curator()
    even = holder.preview_batch(QUESTIONS[:2], epsilon=4)
    uneven = holder.preview_batch(QUESTIONS[:2], epsilon=4, weights=[9, 1])
    assert sigmas(uneven)[0] < sigmas(even)[0] and sigmas(uneven)[1] > sigmas(even)[1]
    assert uneven.cost == even.cost
    assert "together" in str(even) and even.to_dict()["questions"][1]["columns"][0]["name"] == "n"
    assert not holder.history()


def test_a_fixed_plan_needs_less_noise() -> None:
    """The privacy-loss distribution of the whole batch is tighter than the sum that a filter counts with."""
    holder = curator()
    counts = [f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}" for age in range(30)]
    summed = holder.preview_batch(counts, share=1)
    fixed = holder.preview_batch(counts, share=1, delta=1e-6, fixed=True)
    assert len(sigmas(fixed)) == 30
    assert all(small < 0.995 * large for small, large in zip(sigmas(fixed), sigmas(summed)))
    events = [event for each in fixed.each for event in each.plan.events]
    assert compose(events).epsilon(1e-6, notion="pld") <= 20
    assert compose(events).epsilon(1e-6, notion="zcdp") > 20
    assert fixed.loss.epsilon(1e-6) <= 20


def test_few_fixed_questions_get_laplace_noise() -> None:
    """For few questions pure noise is smaller; for groups that one unit shares, too, the whole stays within ε."""
    fixed = curator().preview_batch(QUESTIONS, epsilon=2, delta=5e-7, fixed=True)
    noises = [noise for each in fixed.each for noise in each.plan.releases[0].noises.values()]
    assert all(isinstance(noise, Laplace) for noise in noises)
    assert compose([event for each in fixed.each for event in each.plan.events]).epsilon(5e-7) <= 2


def test_a_fixed_plan_is_charged_as_one_pair() -> None:
    """The ledger holds the (ε, δ) of the whole beside its parts. This one takes more of δ than leaves a rest."""
    holder = curator(discreet.Budget(epsilon=2, delta=1e-6))
    holder.ask_batch(QUESTIONS * 4, epsilon=2, delta=5e-7, fixed=True)
    (entry,) = holder.history()
    (event,) = entry.charge.events
    assert isinstance(event, FixedPlan) and event.delta == Fraction(5, 10**7)
    with pytest.raises(BudgetExceeded):
        holder.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 3", epsilon=0.01)


@pytest.mark.parametrize(
    ("questions", "offer", "words"),
    [
        ([], {"epsilon": 1}, "at least one question"),
        (QUESTIONS, {"epsilon": 1, "weights": [1, 2]}, "one for each question"),
        (QUESTIONS, {"epsilon": 1, "weights": [1, 2, 0]}, "weights"),
        (QUESTIONS, {"rho": 1, "fixed": True}, "offer epsilon"),
        (QUESTIONS, {}, "exactly one form"),
    ],
)
def test_bad_batches_are_refused_for_free(questions: list[str], offer: dict[str, Any], words: str) -> None:
    """With what is wrong and what to do."""
    holder = curator()
    with pytest.raises(ParameterError, match=words):
        holder.ask_batch(questions, **offer)
    assert not holder.history()


def test_one_wrong_question_refuses_all() -> None:
    """Nothing is charged for a batch that cannot be asked as a whole."""
    holder = curator()
    with pytest.raises(DiscreetError, match="Nothing was charged"):
        holder.ask_batch([*QUESTIONS, "SELECT nothing FROM visits"], epsilon=1)
    assert not holder.history()


def test_a_fixed_plan_needs_a_delta() -> None:
    """A pure budget has none."""
    with pytest.raises(ParameterError, match="needs an ε and a δ"):
        curator(discreet.Budget(epsilon=2)).ask_batch(QUESTIONS, epsilon=1, fixed=True)


def test_a_batch_that_fails_stays_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the second question fails in the engine, no answer is given and the whole charge stands."""
    holder = curator()
    run, calls = holder._engine.run, []

    def failing(*args: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:  # the second question, and the try after it
            raise RuntimeError("a value from the data")
        return run(*args, **more)

    monkeypatch.setattr(holder._engine, "run", failing)
    with pytest.raises(EngineFailure) as caught:
        holder.ask_batch(QUESTIONS, epsilon=4)
    assert "value" not in str(caught.value)
    assert len(holder.history()) == 1 and holder.remaining != curator().remaining
