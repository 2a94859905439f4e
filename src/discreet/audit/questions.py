"""Whole questions under the grey box: through the curator's own line, on generated neighbours.

For each pair of datasets the same question is asked twice, at the same price, with the same secret order of groups. The
engine's exact integers must be no further apart than ``contributions.sensitivity`` claims, in every norm, for every
grouping; then the recorded noise is replayed, and the two answers, or errors, and all public facts beside them must be
equal. What the recorded mechanisms cost together must be within what the answer says it cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from discreet.audit.dataset_neighbours import Change, Dataset, make_changes
from discreet.audit.findings import Finding, Verdict, Witness
from discreet.audit.greybox import Run, find_difference, find_overspending, run
from discreet.audit.neighbours import AuditRow
from discreet.audit.output_encoding import RaisedError
from discreet.bounding.contributions import BoundedPlan, Sensitivity, sensitivity
from discreet.curator import Curator
from discreet.engines.engine import Capabilities, Engine, Groups, ProgressCallback, key_order
from discreet.engines.registry import open_engine
from discreet.engines.tabulation import Tabulation
from discreet.entropy import SYSTEM
from discreet.exact import Integers
from discreet.frontends import read_sql
from discreet.late_dataclass import dataclass
from discreet.ledger.memory import MemoryLedger
from discreet.mechanisms.threshold import KeyMechanism
from discreet.mechanisms.weighted_selection import WeightedSelection
from discreet.plan.arrow import load_arrow_types
from discreet.plan.catalog import Catalog, TableFacts
from discreet.plan.expressions import ReleasedValue
from discreet.plan.relations import Values
from discreet.plan.types import Type
from discreet.privacy import Budget, Loss, Neighbours

EngineMaker: TypeAlias = Callable[[Mapping[str, Any], Catalog], Engine]
RowsOrDataset: TypeAlias = "Sequence[AuditRow] | Dataset"
"""The rows of the line's table, or the rows of all declared tables by their names."""

ExactGroups: TypeAlias = tuple[tuple[BoundedPlan, Groups], ...]
"""The exact integers behind an answer, one grouping after the other."""


@dataclass(slots=True)
class RecordingEngine:
    """An engine that uses one secret order for all runs and keeps the integers it gave. For audits only."""

    engine: Engine
    salt: bytes
    seen: list[tuple[BoundedPlan, Groups]]
    disorder: str = ""  # what the order of the latest answer's rows tells

    @property
    def capabilities(self) -> Capabilities:
        return self.engine.capabilities

    def schema(self, table: str) -> Mapping[str, Type | None]:
        return self.engine.schema(table)

    def version(self, table: str) -> str:
        return f"audit of {table}"  # both datasets pretend to be the same version, so that receipts can be compared

    def count_public(self, table: str, columns: tuple[str, ...]) -> int:
        return self.engine.count_public(table, columns)

    def read_public(self, table: str) -> Values:
        return self.engine.read_public(table)

    def prepare(self, table: str) -> None:
        self.engine.prepare(table)

    def run(
        self,
        bounded: BoundedPlan,
        *,
        salt: bytes,  # noqa: ARG002  # the audit's own salt is used, so that two runs can be compared
        watch: ProgressCallback | None = None,
        generous: bool = False,
    ) -> Groups:
        groups = self.engine.run(bounded, salt=self.salt, watch=watch, generous=generous)
        self.seen.append((bounded, groups))
        return groups

    def tabulate(
        self,
        tabulation: Tabulation,
        *,
        salt: bytes,  # noqa: ARG002  # as above
        watch: ProgressCallback | None = None,
        generous: bool = False,
    ) -> tuple[Integers, ...]:
        return self.engine.tabulate(tabulation, salt=self.salt, watch=watch, generous=generous)

    def close(self) -> None:
        self.engine.close()


def make_small_engine(sources: Mapping[str, Any], catalog: Catalog) -> Engine:
    """The engine for real data, small: audits ask many questions about few rows."""
    return open_engine(sources, catalog, threads=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorLine:
    """The curator's line over declared tables, with the budget it spends from and what a question offers.

    With ``table``, the line has this one only, and rows are given as a list; without it, rows are given by table.
    """

    catalog: Catalog
    table: str = ""
    budget: Budget
    offer: Mapping[str, Any]
    make: EngineMaker = make_small_engine

    def to_dataset(self, rows: RowsOrDataset) -> Dataset:
        """Rows by the name of their table."""
        return rows if isinstance(rows, Mapping) else {self.catalog.find_table(self.table).name: rows}

    @property
    def declared(self) -> Catalog:
        """What is declared of the tables that the line has."""
        if not self.table:
            return self.catalog
        facts = self.catalog.find_table(self.table)
        return Catalog(tables={facts.name: facts}, neighbours=self.catalog.neighbours)

    def open(self, rows: RowsOrDataset, salt: bytes) -> RecordingEngine:
        """An engine over these rows."""
        frames = {name: to_arrow(listed, self.catalog.tables[name]) for name, listed in self.to_dataset(rows).items()}
        return RecordingEngine(self.make(frames, self.catalog), salt, [])

    def ask(
        self, engine: RecordingEngine, question: str, frozen: Run | None = None
    ) -> tuple[Run, ExactGroups, Loss | None]:
        """Ask a question from a fresh ledger: what was recorded, the exact integers behind it, and its stated cost."""
        ledger = MemoryLedger(self.budget, unit=self.declared.unit, neighbours=self.catalog.neighbours)
        engine.seen.clear()
        stated: list[Loss] = []

        def line(_: object) -> Any:
            curator = Curator(name="audit", catalog=self.catalog, engine=engine, ledger=ledger)
            answer = curator.ask(question, request="audit", **self.offer)
            stated.append(answer.spent)
            engine.disorder = find_disorder(curator.catalog, question, engine.seen, answer.table.to_pylist())
            return [answer.table.to_pydict(), answer.remaining, answer.explanation, _strip_receipt(answer.receipt)]

        found = run(line, None, frozen)
        return found, tuple(engine.seen), stated[-1] if stated else None


@dataclass(slots=True)
class _Case:
    """One question while its neighbours are gone through."""

    question: str
    recorded: Run
    exact: ExactGroups
    problem: str = ""
    what: str = ""
    pairs: int = 0
    seconds: float = 0.0

    def compare(self, line: CuratorLine, engine: RecordingEngine, change: Change) -> None:
        """Ask again on a neighbour, with the recorded noise."""
        start = time.monotonic()
        replayed, moved, _ = line.ask(engine, self.question, self.recorded)
        self.pairs += 1
        self.problem = find_difference(self.recorded, replayed)
        for (bounded, before), (_, after) in zip(self.exact, moved):
            self.problem = self.problem or check_distances(bounded, before, after, change.relation)
        self.what = change.what if self.problem else ""
        self.seconds += time.monotonic() - start

    def make_finding(self, rows: int, claim: str) -> Finding:
        verdict, detail = Verdict.HOLDS, f"{self.pairs} neighbours, {len(self.recorded.calls)} calls, all as declared"
        if isinstance(self.recorded.output, RaisedError):
            verdict, detail = Verdict.RAISES, f"refused or failed: {self.recorded.output.kind}"
        elif self.problem:
            verdict, detail = Verdict.BROKEN, self.problem
        witness = Witness(first=f"{rows} rows", second=self.what, event=self.problem) if self.problem else None
        return Finding(
            name=self.question,
            method="grey box",
            verdict=verdict,
            detail=detail,
            claim=claim,
            witness=witness,
            seconds=self.seconds,
        )


def check_questions(
    line: CuratorLine, rows: RowsOrDataset, questions: Sequence[str], *, most: int | None = None
) -> list[Finding]:
    """Ask questions on a dataset and its neighbours; for each, the first difference that must not be.

    ``rows`` are those of the line's table, or those of every table by name. ``most`` bounds the number of neighbours.
    """
    dataset, relation = line.to_dataset(rows), line.catalog.neighbours
    salt = SYSTEM.bits(128).to_bytes(16, "big")
    base = line.open(dataset, salt)
    cases = [_record(line, base, question) for question in questions]
    base.close()
    for change in make_changes(dataset, line.declared, relation, most=most):
        open_cases = [c for c in cases if not c.problem and not isinstance(c.recorded.output, RaisedError)]
        if not open_cases:
            break
        engine = line.open(change.after, salt)
        for case in open_cases:
            case.compare(line, engine, change)
        engine.close()
    claim = f"one {line.declared.unit.column or 'row'}, {relation}, {line.budget!r}"
    return [case.make_finding(sum(map(len, dataset.values())), claim) for case in cases]


def check_question(line: CuratorLine, rows: RowsOrDataset, question: str, *, most: int | None = None) -> Finding:
    """Ask one question on a dataset and its neighbours; see ``check_questions``."""
    return check_questions(line, rows, [question], most=most)[0]


def _record(line: CuratorLine, engine: RecordingEngine, question: str) -> _Case:
    start = time.monotonic()
    recorded, exact, stated = line.ask(engine, question)
    problem = find_overspending(recorded, stated) or engine.disorder or find_unruled_keys(recorded, exact)
    return _Case(question, recorded, exact, problem, "the same" if problem else "", seconds=time.monotonic() - start)


def find_disorder(
    catalog: Catalog, text: str, seen: Sequence[tuple[BoundedPlan, Groups]], rows: Sequence[Mapping[str, Any]]
) -> str:
    """Whether rows come in another order than that of the public keys, or of the keys themselves; empty if not.

    Where nothing else is asked for, any other order would follow from the data.
    """
    question = read_sql.read_with_offer(text, catalog, {}).question
    places = {o.expression.index: o.name for o in question.outputs if isinstance(o.expression, ReleasedValue)}
    shown = [places[i] for i in range(len(question.keys)) if i in places]
    if question.order or question.sets or not shown or len(shown) < len(question.keys):
        return ""
    keys = [key for row in rows if None not in (key := tuple(row[name] for name in shown))]
    domain = seen[-1][0].domain
    right = sorted(keys, key=key_order) if domain is None else [key for key in domain if key in keys]
    return "" if keys == right else "rows are in an order that the data makes"


def find_unruled_keys(recorded: Run, exact: ExactGroups) -> str:
    """Whether keys that come from the data were named without a rule for keys."""
    private = sum(bool(bounded.keys) and bounded.domain is None for bounded, _ in exact)
    rules = sum(isinstance(call.mechanism, KeyMechanism | WeightedSelection) for call in recorded.calls)
    return "private keys were named without a rule for keys" if rules < private else ""


def check_distances(bounded: BoundedPlan, before: Groups, after: Groups, relation: Neighbours) -> str:
    """Whether some measure moved further than claimed, in any norm; empty if not."""
    for place, measure in enumerate(bounded.measures):
        found = measure_move(before, after, place)
        claim = sensitivity(bounded, measure, relation)
        for norm in ("l0", "l1", "l2_squared", "linf"):
            actual, declared = getattr(found, norm), getattr(claim, norm)
            if actual > declared:
                return f"measure {place + 1} ({measure.counts}) moved by {actual} in {norm}, declared {declared}"
    return ""


def measure_move(before: Groups, after: Groups, place: int) -> Sensitivity:
    """How far one measure's vector over groups moved."""
    here, there = (dict(zip(g.keys, g.values[place])) if g.values else {} for g in (before, after))
    sizes = [abs(c) for key in here.keys() | there.keys() if (c := there.get(key, 0) - here.get(key, 0))]
    return Sensitivity(len(sizes), sum(sizes), sum(s * s for s in sizes), max(sizes, default=0))


def to_arrow(rows: Iterable[AuditRow], table: TableFacts) -> Any:
    """Rows as an Arrow table of the declared types."""
    import pyarrow as pa

    kinds = load_arrow_types()
    listed = list(rows)
    columns = table.columns.items()
    return pa.table({name: pa.array([row.get(name) for row in listed], kinds[kind]) for name, (kind, _) in columns})


def _strip_receipt(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """A receipt without what is new every time: the hour, and the place in the ledger."""
    return {name: value for name, value in receipt.items() if name not in ("time", "ledger")}
