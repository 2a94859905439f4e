"""The local model under audit: the laws of reports, whether they are what is drawn, and what a person gives out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Protocol as Shape

import numpy as np

from discreet.audit.exact_checks import check_fit, check_law
from discreet.audit.findings import Finding, Verdict
from discreet.entropy import SYSTEM
from discreet.errors import BudgetExceeded
from discreet.exact import Interval
from discreet.local.domain import Domain
from discreet.local.hadamard import HadamardResponse
from discreet.local.krr import KaryResponse
from discreet.local.person import Person
from discreet.local.projective import ProjectiveResponse
from discreet.local.protocol import FrequencyProtocol
from discreet.local.subset import SubsetSelection
from discreet.local.task import Task
from discreet.local.unary import UnaryEncoding
from discreet.local.words import draw_bytes

PROTOCOLS: tuple[type[FrequencyProtocol], ...] = (
    KaryResponse,
    UnaryEncoding,
    SubsetSelection,
    HadamardResponse,
    ProjectiveResponse,
)


class ReportLaw(Shape):
    """The exact probability of a payload, given an answer."""

    def __call__(self, payload: bytes, given: int) -> Interval: ...


EPSILON, SIZE = Fraction(1), 5


def check_local(alpha: float, *, reports: int = 20_000) -> Iterator[Finding]:
    """Reports by their exact laws and by draws, for every pair of answers to the first; then a person's promises."""
    for kind in PROTOCOLS:
        protocol = kind.for_epsilon(EPSILON, SIZE)
        payloads = list(protocol.list_payloads())
        name, law = f"local {protocol.name}", _make_law(protocol)

        for answer in range(1, SIZE):
            stated = check_law(law, 0, answer, payloads, protocol.epsilon, name=name, whole=True)
            if not stated:
                break
        yield stated
        answers = np.zeros(reports, dtype=np.int64)
        drawn = protocol.encode(answers, draw_bytes(reports, protocol.random_bytes, SYSTEM))
        yield check_fit((row.tobytes() for row in drawn), partial(law, given=0), name=name, alpha=alpha)
    yield from check_person()


def _make_law(protocol: FrequencyProtocol) -> ReportLaw:
    def probability(payload: bytes, given: int) -> Interval:
        return Interval.of(protocol.probability(payload, given))

    return probability


def check_person() -> Iterator[Finding]:
    """A person counts what reports cost, and gives the same report for the same answer."""
    start = time.monotonic()
    once = Task.for_epsilon("audit", Domain.of(["a", "b", "c"]), epsilon=1, protocol="krr")
    person, given = Person(budget=2), 0
    for _ in range(6):
        try:
            person.report(once, "a")
        except BudgetExceeded:
            break
        given += 1
    problem = "" if given == 2 else f"{given} reports of ε = 1 within a budget of 2"
    yield _make_finding("local: a person's budget is kept", problem, "2 of 6 reports", start)
    start = time.monotonic()
    again = Task.for_epsilon("audit", Domain.of([str(i) for i in range(64)]), epsilon=1, protocol="krr", values=2)
    person = Person()
    told = {person.report(again, "7") for _ in range(12)}
    problem = "" if len(told) == 1 else f"one answer gave {len(told)} different reports"
    yield _make_finding("local: the same answer, the same report", problem, "12 reports", start)


def _make_finding(name: str, problem: str, good: str, start: float) -> Finding:
    return Finding(
        name=name,
        method="machinery",
        verdict=Verdict.BROKEN if problem else Verdict.HOLDS,
        detail=problem or good,
        seconds=time.monotonic() - start,
    )
