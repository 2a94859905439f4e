"""The audit of this installation, in sections, from the source of randomness to whole questions.

The chance that a sound installation fails is below 1e-3 over everything that is tried: each check that could err by
chance gets an equal share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from discreet.accounting import events
from discreet.audit import clinic, local_checks, machinery
from discreet.audit.blackbox import check
from discreet.audit.curator_checks import check_curator
from discreet.audit.engine_paths import check_engines
from discreet.audit.exact_checks import check_events, check_fit, check_law
from discreet.audit.findings import Finding, Verdict
from discreet.audit.hostile_person import check_hostile_persons
from discreet.audit.key_subjects import check_key_noise, check_key_order, check_new_keys
from discreet.audit.ledger_checks import check_spending
from discreet.audit.questions import CuratorLine, check_questions
from discreet.audit.repeated_requests import check_repeated_requests
from discreet.audit.subject import Subject
from discreet.audit.subjects import list_subjects
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.statistics.definitions import PairStatistic
from discreet.plan.statistics.table import list_wordings
from discreet.plan.types import Type
from discreet.privacy import Budget, Neighbours, Unit

ALPHA = 1e-3
FindingWatch: TypeAlias = Callable[[Finding], None]
SectionCheck: TypeAlias = Callable[[bool], Iterator[Finding]]
"""The checks of one section; True for the quick form."""


def audit(*, quick: bool = False, watch: FindingWatch | None = None) -> list[Finding]:
    """All checks, one after the other; ``watch`` is told each finding as it comes."""
    found: list[Finding] = []
    for section in SECTIONS:
        for finding in run_section(section, quick=quick):
            found.append(finding)
            if watch is not None:
                watch(finding)
    return found


def run_section(section: str, *, quick: bool) -> Iterator[Finding]:
    """The checks of one section. A check that raises is a finding: it did not pass."""
    try:
        yield from SECTIONS[section](quick)
    except Exception as error:
        detail = f"the checks ended with {type(error).__name__}: {error}"
        yield Finding(name=section, method="audit", verdict=Verdict.RAISES, detail=detail)


def _find_share() -> float:
    """The chance of a false alarm that each check gets that could err by chance."""
    by_draws = 2 * len(list_subjects()) + len(machinery.list_randomness_checks()) + len(local_checks.PROTOCOLS)
    return ALPHA / by_draws


def check_randomness(quick: bool) -> Iterator[Finding]:  # noqa: ARG001, FBT001  # as all sections
    """The source of all noise."""
    share = _find_share()
    yield from (one(share) for one in machinery.list_randomness_checks())


def check_mechanisms(quick: bool) -> Iterator[Finding]:  # noqa: FBT001  # as all sections
    """Every mechanism: what it states, what it draws, and the order in which keys are named."""
    share = _find_share()
    yield from check_key_order()
    yield from check_new_keys()
    yield from check_key_noise()
    for subject in list_subjects():
        yield from check_subject(subject, share, quick=quick)
    yield from check_declared_noise()


def check_questions_of_all_kinds(quick: bool) -> Iterator[Finding]:  # noqa: FBT001  # as all sections
    """Whole questions through the curator's line."""
    yield from check_all_questions(quick=quick)


def check_exact_integers(quick: bool) -> Iterator[Finding]:  # noqa: ARG001, FBT001  # as all sections
    """Every way of the engine, before any noise."""
    yield from check_engines()


def check_line(quick: bool) -> Iterator[Finding]:  # noqa: ARG001, FBT001  # as all sections
    """What the curator charges, draws and knows again."""
    yield from check_curator()


def check_ledgers(quick: bool) -> Iterator[Finding]:  # noqa: ARG001, FBT001  # as all sections
    """Sums, limits and what an owner may change."""
    yield from machinery.check_ledger()
    yield from check_spending()


def check_respondents(quick: bool) -> Iterator[Finding]:  # noqa: ARG001, FBT001  # as all sections
    """The local model."""
    yield from local_checks.check_local(_find_share())


def check_channels(quick: bool) -> Iterator[Finding]:  # noqa: FBT001  # as all sections
    """What is seen beside the numbers: hostile people, and requests that come again."""
    yield from check_hostile_persons(quick=quick)
    yield from check_repeated_requests(quick=quick)


def check_subject(subject: Subject, alpha: float, *, quick: bool) -> Iterator[Finding]:
    """One mechanism: its stated law, whether that is what is drawn, and how it looks from outside."""
    claim = subject.mechanism.privacy
    if subject.probability is not None:
        yield check_law(
            subject.probability, subject.x, subject.y, subject.outputs, claim, name=subject.name, whole=subject.whole
        )
        drawn = subject.draw(subject.x, (1_000 if quick else 2_000) if subject.slow else subject.fit)
        yield check_fit(map(_to_key, drawn), lambda o: _probability_of(subject, o), name=subject.name, alpha=alpha)
    runs = (4_000 if quick else 16_000) if subject.slow else (subject.runs if quick else 10 * subject.runs)
    yield check(
        subject.draw,
        subject.x,
        subject.y,
        claim,
        batch=True,
        samples=runs,
        alpha=alpha,
        varying=subject.varying,
        name=subject.name,
    )


def _probability_of(subject: Subject, output: Any) -> Any:
    if subject.probability is None:
        raise TypeError("a subject without a law")
    return subject.probability(output, subject.x)


def _to_key(output: Any) -> Any:
    """An output as something that can be counted."""
    if isinstance(output, np.ndarray):
        return tuple(output.tolist())
    return output.item() if isinstance(output, np.generic) else output


def check_declared_noise() -> Iterator[Finding]:
    """Noise that sampling cannot judge: calibrated σ at large ε, and long compositions, by certified formulas."""
    for epsilon, delta in ((10, Fraction(1, 100)), (8, Fraction(1, 100)), (1, Fraction(1, 10**9))):
        for kind in (Gaussian, RoundedGaussian):
            noise = kind(sensitivity=1, epsilon=epsilon, delta=delta)
            name = f"{kind.__name__} for ε = {epsilon}, δ = {float(delta):g}"
            yield check_events(noise.events, (epsilon, delta), name=name)
    small = events.DiscreteLaplace(sensitivity=1, scale=100, count=100)
    yield check_events([small], 1, name="100 Laplace releases of ε = 0.01")


WARDS = ("A", "B", "C")
COLUMNS: dict[str, tuple[Type, ColumnFacts]] = {
    "person": (Type.TEXT, ColumnFacts()),
    "ward": (Type.TEXT, ColumnFacts(keys=WARDS)),
    "town": (Type.TEXT, ColumnFacts()),
    "age": (Type.INTEGER, ColumnFacts(low=Fraction(0), high=Fraction(110))),
    "cost": (Type.REAL, ColumnFacts(low=Fraction(-10), high=Fraction(1000), resolution=Fraction(1, 4))),
    "urgent": (Type.BOOLEAN, ColumnFacts()),
}
# The columns of these kinds, for the examples in the table of statistics.
KINDS = {"number": "cost", "other": "age", "condition": "urgent", "unit": "person", "key": "ward"}


def list_statistic_questions() -> tuple[str, ...]:
    """One question for each statistic of the table, and one for all of two arguments, which share their sums.

    Sample forms are left out: they are arithmetic on the same released numbers.
    """
    ways: dict[str, list[str]] = {}
    for statistic, wording in list_wordings():
        together = "two arguments" if isinstance(statistic, PairStatistic) else statistic.name
        if not wording.sample:
            ways.setdefault(together, []).append(wording.examples[0].format(**KINDS))
    return tuple(
        " ".join(("SELECT", ", ".join(f"{way} AS a{i}" for i, way in enumerate(asked)), "FROM visits"))
        for asked in ways.values()
    )


QUESTIONS = (
    *list_statistic_questions(),
    "SELECT COUNT(age) AS n, COUNT(DISTINCT person) AS people FROM visits WHERE cost > 3 AND urgent",
    "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward ORDER BY n DESC LIMIT 2",
    "SELECT ward, VAR_POP(cost) AS v, STDDEV_POP(age) AS sd FROM visits GROUP BY ward HAVING COUNT(*) > 1",
    "SELECT ward, MEDIAN(cost) AS middle FROM visits GROUP BY ward",
)
PRIVATE_KEYS = (
    "SELECT town, COUNT(*) AS n FROM visits GROUP BY town",
    "SELECT lower(town) AS place, SUM(age) AS years FROM visits WHERE age / cost < 9 GROUP BY lower(town)",
)
ROW_UNIT = tuple(q for q in (*QUESTIONS, *PRIVATE_KEYS) if "DISTINCT person" not in q)


def make_rows() -> list[dict[str, Any]]:
    """A small table of fictional visits: some people come often, some values are missing or impossible."""
    return [
        {
            "person": f"p{min(i % 17, i % 5 + 3)}",
            "ward": (*WARDS, None, "D")[i % 5],
            "town": ("North", "South", "south", "East")[i % 4 if i % 7 else 0],
            "age": (None, 999, -1)[i % 3] if i % 11 == 0 else (7 * i) % 100,
            "cost": None if i % 13 == 0 else 1e9 if i % 17 == 0 else i * 0.77,
            "urgent": (True, False, None)[i % 3],
        }
        for i in range(48)
    ]


def make_lines() -> list[tuple[str, CuratorLine, tuple[str, ...]]]:
    """Every kind of unit, limit, neighbours and budget, with the questions to ask there."""
    groups, total = ContributionLimits(max_groups=2, max_rows_per_group=3), ContributionLimits(max_rows=4)
    pure, approx = Budget(epsilon=3), Budget(epsilon=3, delta=1e-6)
    both = (*QUESTIONS, *PRIVATE_KEYS)
    settings: list[tuple[str, str | None, ContributionLimits, Neighbours, Budget, tuple[str, ...]]] = [
        ("person, groups", "person", groups, Neighbours.ADD_REMOVE, approx, both),
        ("person, rows", "person", total, Neighbours.REPLACE, approx, both),
        ("person, rows, pure", "person", total, Neighbours.ADD_REMOVE, pure, QUESTIONS),
        ("person, groups, pure", "person", groups, Neighbours.REPLACE, pure, QUESTIONS),
        ("row", None, ContributionLimits(), Neighbours.ADD_REMOVE, approx, ROW_UNIT),
        (
            "row, replaced",
            None,
            ContributionLimits(),
            Neighbours.REPLACE,
            Budget(rho=0.5),
            tuple(q for q in ROW_UNIT if "town" not in q),
        ),
    ]
    found = []
    for name, unit, limits, relation, budget, asked in settings:
        facts = TableFacts(name="visits", columns=COLUMNS, unit=Unit(unit), limits=limits)
        offer = {"rho": 0.1} if budget.notion == "zcdp" else {"epsilon": 1}
        catalog = Catalog(tables={"visits": facts}, neighbours=relation)
        found.append((name, CuratorLine(catalog=catalog, table="visits", budget=budget, offer=offer), asked))
    return found


def check_all_questions(*, quick: bool) -> Iterator[Finding]:
    """Whole questions through the curator's line, on generated neighbours: of one table, and of the whole clinic."""
    # The short lists first: a bug is then found early.
    for _, line, asked in reversed(clinic.make_lines()[:4] if quick else clinic.make_lines()):
        yield from check_questions(line, clinic.make_rows(), asked, most=3 if quick else 16)
    for _, line, asked in reversed(make_lines()[:2] if quick else make_lines()):
        yield from check_questions(line, make_rows(), asked, most=5 if quick else 16)


SECTIONS: Mapping[str, SectionCheck] = {
    "randomness": check_randomness,
    "ledger": check_ledgers,
    "curator": check_line,
    "local": check_respondents,
    "engines": check_exact_integers,
    "mechanisms": check_mechanisms,
    "questions": check_questions_of_all_kinds,
    "channels": check_channels,
}
