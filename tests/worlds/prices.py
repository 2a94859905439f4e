"""Questions about the small hospital with their price, for each kind of budget."""

from __future__ import annotations

from typing import Any

from discreet.bounding.bound import bound
from discreet.offer import Offer
from discreet.plan.nodes import Question
from discreet.plan.statistics.definitions import Statistic
from discreet.price import PriceTerms, price
from discreet.privacy import Budget, Neighbours, Unit
from discreet.release import Release
from tests.worlds.hospital import COUNT, ask, catalog, of

PURE, APPROX, ZCDP = Budget(epsilon=3), Budget(epsilon=3, delta=1e-6), Budget(rho=1)
PATIENT = Unit("patient")
ADD = Neighbours.ADD_REMOVE


def priced(
    question: Question, budget: Budget, *, neighbours: Neighbours = Neighbours.ADD_REMOVE, **offer: Any
) -> Release:
    bounded = bound(question, catalog(neighbours=neighbours))
    (release,) = price(
        (bounded,), Offer(**offer), PriceTerms(budget=budget, unit=PATIENT, neighbours=neighbours)
    ).releases
    return release


FOUR = ask(COUNT, of(Statistic.MEAN, "age"), of(Statistic.SUM, "cost"), keys=("ward",))
