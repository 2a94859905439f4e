"""The curator's line under audit: what is charged, how often noise is drawn, what an answer is known by, which salts.

Each check asks a small dataset as an analyst would and looks at the ledger, at the calls of mechanisms and at what the
engine was told. None of them depends on chance, but for equal salts of 128 bits.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from fractions import Fraction
from typing import Any

from discreet.audit.findings import Finding, Verdict
from discreet.audit.greybox import MechanismCall, Run, find_overspending, is_rehearsal, run
from discreet.audit.output_encoding import RaisedError
from discreet.bounding.contributions import BoundedPlan
from discreet.curator import Curator
from discreet.engines.engine import Capabilities, Groups, ProgressCallback
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.tabulation import Tabulation
from discreet.errors import BudgetExceeded, EngineFailure, LedgerStopped, UsageError
from discreet.exact import Integers
from discreet.frontends import read_sql
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Record, Reservation
from discreet.ledger.memory import MemoryLedger
from discreet.offer import Offer
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.relations import Values
from discreet.plan.times import to_days
from discreet.plan.types import Type
from discreet.privacy import Budget, Neighbours, Unit
from discreet.quote import QuoteContext, quote

BUDGET = Budget(epsilon=40, delta=1e-3)
WARDS = ("A", "B", "C")
COUNTS = "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT person) AS people FROM visits GROUP BY ward"
TOWNS = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"
CHOICES = "SELECT MEDIAN(age) AS middle, COUNT(*) AS n FROM visits"
SETS = "SELECT ward, town, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward), (town))"
DATES = "SELECT ward, MEDIAN(day) AS middle, MAX(day) AS last FROM visits GROUP BY ward"
DP = "SELECT WITH DIFFERENTIAL_PRIVACY"
BY_WARD = f"{DP} ward, COUNT(*) AS n FROM visits GROUP BY ward"
COMPUTED = f"SELECT r.ward, r.n / s.n AS share FROM ({BY_WARD}) r, ({DP} COUNT(*) AS n FROM visits WHERE age > 30) s"  # noqa: S608  # read by our own parser
STATED = (
    f"SELECT r.n, s.n AS old FROM ({DP} OPTIONS(epsilon=1) COUNT(*) AS n FROM visits) r, "  # noqa: S608  # as above
    f"({DP} OPTIONS(epsilon=2) COUNT(*) AS n FROM visits WHERE age > 30) s"
)
# Statements that would show rows of people beside what is released.
OUTSIDE = (
    f"SELECT r.n, v.age FROM ({BY_WARD}) r, visits v",  # noqa: S608  # as above
    f"SELECT r.n, (SELECT MAX(age) FROM visits) AS oldest FROM ({BY_WARD}) r",  # noqa: S608  # as above
    f"WITH p AS (SELECT age FROM visits) SELECT r.n, p.age FROM ({BY_WARD}) r, p",  # noqa: S608  # as above
    f"{BY_WARD} UNION ALL SELECT town, age FROM visits",  # noqa: S608  # as above
    "SELECT MAX(age) AS oldest FROM visits UNION ALL SELECT 1",
)
FIRST_DAY = dt.date(2024, 1, 1)
ROWS: list[dict[str, Any]] = [
    {
        "person": i % 9,
        "ward": WARDS[i % 3],
        "town": ("North", "South")[i % 2],
        "age": 20 + i,
        "day": FIRST_DAY + dt.timedelta(days=3 * i),
    }
    for i in range(40)
]


def make_catalog(limits: ContributionLimits | None = None) -> Catalog:
    """One table of visits."""
    columns = {
        "person": (Type.INTEGER, ColumnFacts()),
        "ward": (Type.TEXT, ColumnFacts(keys=WARDS)),
        "town": (Type.TEXT, ColumnFacts()),
        "age": (Type.INTEGER, ColumnFacts(low=Fraction(0), high=Fraction(110))),
        "day": (Type.DATE, ColumnFacts(low=to_days(FIRST_DAY), high=to_days(dt.date(2024, 12, 31)))),
    }
    limits = limits or ContributionLimits(max_groups=2, max_rows_per_group=3)
    facts = TableFacts(name="visits", columns=columns, unit=Unit("person"), limits=limits)
    return Catalog(tables={"visits": facts}, neighbours=Neighbours.ADD_REMOVE)


@dataclass(slots=True)
class WatchedEngine:
    """An engine that keeps the salts it is given, has the version that it is told, and fails when it is told to."""

    engine: MemoryEngine
    told: str = "first"
    fails: bool = False
    salts: list[bytes] = field(default_factory=list)

    @property
    def capabilities(self) -> Capabilities:
        return self.engine.capabilities

    def schema(self, table: str) -> Mapping[str, Type | None]:
        return self.engine.schema(table)

    def version(self, table: str) -> str:
        return f"{self.told} {table}"

    def prepare(self, table: str) -> None:
        self.engine.prepare(table)

    def count_public(self, table: str, columns: tuple[str, ...]) -> int:
        return self.engine.count_public(table, columns)

    def read_public(self, table: str) -> Values:
        return self.engine.read_public(table)

    def run(
        self, bounded: BoundedPlan, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> Groups:
        self.salts.append(salt)
        if self.fails:
            raise MemoryError
        return self.engine.run(bounded, salt=salt, watch=watch, generous=generous)

    def tabulate(
        self, tabulation: Tabulation, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> tuple[Integers, ...]:
        self.salts.append(salt)
        if self.fails:
            raise MemoryError
        return self.engine.tabulate(tabulation, salt=salt, watch=watch, generous=generous)

    def close(self) -> None:
        self.engine.close()


class InterruptedLedger(MemoryLedger):
    """A ledger that is interrupted once, when an answer is drawn but not yet on record."""

    interrupted = False

    def commit(self, reservation: Reservation, record: Record) -> Record:
        if not self.interrupted:
            self.interrupted = True
            self.abandon(reservation)
            raise KeyboardInterrupt
        return super().commit(reservation, record)


def _open(budget: Budget = BUDGET, ledger: type[MemoryLedger] = MemoryLedger) -> tuple[Curator, WatchedEngine]:
    catalog = make_catalog()
    engine = WatchedEngine(MemoryEngine({"visits": ROWS}, catalog))
    kept = ledger(budget, unit="person", neighbours=Neighbours.ADD_REMOVE, dataset="audit")
    return Curator(name="audit", catalog=catalog, engine=engine, ledger=kept), engine


def check_curator() -> Iterator[Finding]:
    """All checks of the curator's line."""
    asked: list[tuple[str, Callable[[Curator], Any]]] = [
        ("a question", lambda c: c.ask(COUNTS, epsilon=1)),
        ("private keys", lambda c: c.ask(TOWNS, epsilon=1)),
        ("a choice", lambda c: c.ask(CHOICES, epsilon=1)),
        ("a choice with ends", lambda c: c.ask(CHOICES, epsilon=1, ends=True)),
        ("groupings", lambda c: c.ask(SETS, epsilon=1)),
        ("a batch", lambda c: c.ask_batch([COUNTS, TOWNS, CHOICES], epsilon=2)),
        ("a fixed batch", lambda c: c.ask_batch([COUNTS, CHOICES], epsilon=1, fixed=True)),
        ("quantiles of dates", lambda c: c.ask(DATES, epsilon=1, ends=True)),
        ("a computation", lambda c: c.ask(COMPUTED, epsilon=2)),
        ("a computation at stated prices", lambda c: c.ask(STATED)),
    ]
    for what, ask in asked:
        yield _time(f"charge of {what}", lambda ask=ask: find_uncharged(ask), "covers all that was drawn")  # type: ignore[misc]  # a loop's value
    yield _time("shares", find_wrong_shares, "five fifths fit and not more, together within the budget")
    yield _time("salts", find_equal_salts, "every run has its own, of 128 bits")
    yield _time("identity", find_equal_identities, "data, dataset, limits and price make another question")
    yield _time("replay", find_wrong_replay, "free on the same data, charged on other data")
    yield _time("one draw for one charge", find_second_draw, "an interrupted question is finished, not drawn again")
    yield _time("failures", find_free_failure, "the charge stands, and nothing is asked until a person has looked")
    yield _time("refusals", find_read_before_charge, "no data is read before the charge")
    yield _time("computations", find_shown_rows, "no rows of people stand beside what is released")


def find_uncharged(ask: Callable[[Curator], Any]) -> str:
    """Whether the mechanisms that ran cost more than the ledger was charged; empty if not."""
    curator, _ = _open()
    recorded = run(lambda _: ask(curator) is not None, None)
    if isinstance(recorded.output, RaisedError):
        return f"refused or failed: {recorded.output.kind}"
    (entry,) = curator.history()
    if not _list_draws(recorded):
        return "nothing was drawn"
    fresh, _ = _open()
    if not curator.ledger.remaining < fresh.ledger.remaining:
        return "the answer cost nothing"
    return find_overspending(recorded, entry.charge.loss)


def _list_draws(recorded: Run) -> list[MechanismCall]:
    return [call for call in recorded.calls if not is_rehearsal(call)]


def find_wrong_shares() -> str:
    """Whether shares that sum to one do not fit, or something fits after them, or all draws exceed the budget."""
    curator, engine = _open()
    drawn: list[MechanismCall] = []
    for number, question in enumerate((COUNTS, TOWNS, CHOICES, SETS, COUNTS)):
        engine.told = f"version {number}"
        recorded = run(lambda _: curator.ask(question, share=Fraction(1, 5)) is not None, None)  # noqa: B023  # called at once
        if isinstance(recorded.output, RaisedError):
            return f"after {number} fifths the next one was not answered: {recorded.output.kind}"
        drawn += _list_draws(recorded)
    engine.told = "the last"
    if run(lambda _: curator.ask(COUNTS, share=Fraction(1, 5)) is not None, None).output is True:
        return "a sixth fifth was answered"
    return find_overspending(Run(tuple(drawn), None), BUDGET)


def find_equal_salts() -> str:
    """Whether two runs, of one curator or of two, had the same salt, or one that is too short."""
    salts: list[bytes] = []
    for _ in range(2):
        curator, engine = _open()
        for number, question in enumerate((COUNTS, TOWNS, SETS)):
            curator.ask(question, epsilon=1, request=f"request {number}")
        salts += engine.salts
    if any(len(salt) != 16 for salt in salts):
        return "a salt has fewer than 16 bytes"
    return "two runs had the same salt" if len(set(salts)) < len(salts) else ""


def find_equal_identities() -> str:
    """Whether a question is known by the same name though something that its release depends on is another."""
    catalog = make_catalog()
    context = QuoteContext(name="audit", catalog=catalog, budget=BUDGET, version=lambda _: "first")
    tighter = make_catalog(ContributionLimits(max_groups=1, max_rows_per_group=3))
    cases = {
        "the first": (context, 1),
        "another version": (replace(context, version=lambda _: "second"), 1),
        "another dataset": (replace(context, name="other"), 1),
        "other limits": (replace(context, catalog=tighter), 1),
        "another price": (context, 2),
    }
    known: dict[str, str] = {}
    for what, (where, epsilon) in cases.items():
        question = read_sql.read(COUNTS, where.catalog)
        identity = quote(question, Offer(epsilon=epsilon), where).identity
        if identity in known:
            return f"{what} has the same identity as {known[identity]}"
        known[identity] = what
    return ""


def find_wrong_replay() -> str:
    """Whether other data gives an old answer, or the same data is charged twice."""
    curator, engine = _open()
    curator.ask(COUNTS, epsilon=1)
    again = curator.ask(COUNTS, epsilon=1)
    if len(curator.history()) != 1 or not again.replayed:
        return "the same question on the same data was charged twice"
    engine.told = "second"
    other = curator.ask(COUNTS, epsilon=1)
    return "" if len(curator.history()) == 2 and not other.replayed else "new data was answered from the old"


def find_second_draw() -> str:
    """Whether a question that was interrupted after its draw is drawn again for the same charge."""
    curator, engine = _open(ledger=InterruptedLedger)

    def ask(_: object) -> bool:
        try:
            curator.ask(COUNTS, epsilon=1, request="one")
        except KeyboardInterrupt:
            return False
        return True

    first = run(ask, None)
    if first.output is not False or not _list_draws(first):
        return "the question was not interrupted after its draw"
    second = run(ask, None)
    if _list_draws(second) or len(engine.salts) > 1:
        return "noise was drawn twice for one charge"
    if len(curator.history()) != 1:
        return "the question was charged twice"
    return "" if second.output is True else "the question could not be finished"


def _gets_answer(curator: Curator, question: str) -> bool:
    """Whether a question is answered where its engine fails, which must not be."""
    try:
        curator.ask(question, epsilon=1)
    except EngineFailure:
        return False
    return True


def find_free_failure() -> str:
    """Whether a question that failed after it read data is not charged, or others may go on failing."""
    curator, engine = _open()
    before = curator.ledger.remaining
    engine.fails = True
    if _gets_answer(curator, COUNTS):
        return "a failing engine gave an answer"
    if not curator.ledger.remaining < before:
        return "the failure was not charged"
    engine.fails, tried = False, len(engine.salts)
    try:
        curator.ask(TOWNS, epsilon=1)
    except LedgerStopped:
        return "data was read after a failure" if len(engine.salts) > tried else ""
    return "the next question was answered before anybody had looked"


def find_read_before_charge() -> str:
    """Whether data is read for a question that does not fit the budget."""
    curator, engine = _open(Budget(epsilon=1, delta=1e-3))
    try:
        curator.ask(COUNTS, epsilon=3)
    except BudgetExceeded:
        return "data was read for a question that was refused" if engine.salts else ""
    return "a question beyond the budget was answered"


def find_shown_rows() -> str:
    """Whether a computation over released answers reads private rows."""
    for text in OUTSIDE:
        curator, _ = _open()
        try:
            curator.ask(text, epsilon=1)
        except UsageError:
            continue
        return f"answered: {text}"
    return ""


def _time(name: str, find: Callable[[], str], good: str) -> Finding:
    start = time.monotonic()
    problem = find()
    return Finding(
        name=f"curator: {name}",
        method="machinery",
        verdict=Verdict.BROKEN if problem else Verdict.HOLDS,
        detail=problem or good,
        seconds=time.monotonic() - start,
    )
