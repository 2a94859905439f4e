"""The curator: from a question to a private answer.

``Curator.ask`` is the straight line of the whole system. Data flows down it and never back up. Before ``reserve`` no
private value is touched, and every error says that nothing was charged. After it the charge stands, whatever happens,
and the caller is told one constant sentence; the details go to the curator's own log.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.answer import Answer, rows_from
from discreet.bounding.bound import bound
from discreet.engines.engine import Engine, Watch
from discreet.entropy import SYSTEM, Source
from discreet.errors import DiscreetError, EngineFailure, UsageError
from discreet.exact import float_down, float_up
from discreet.finish import finish
from discreet.frontends import sql
from discreet.frontends.builder import TableBuilder
from discreet.ledger.ledger import Charge, Entry, Held, Ledger, Record
from discreet.parameters import Epsilon, Number
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question
from discreet.plan.show import show
from discreet.preview import Preview, cost_words, explain, loss_dict
from discreet.privacy import Budget
from discreet.release import Release, Request, draw, price

LOG = logging.getLogger("discreet.curator")

Asked = str | Question | TableBuilder
"""A question as SQL, as a plan, or as a chain of verbs."""


@dataclass(frozen=True, slots=True)
class _Priced:
    """A question that is ready to be asked: what it costs, and the text that names it and its data."""

    text: str
    release: Release
    identity: str
    version: str


class Curator:
    """Holds the data of one dataset and answers questions about it within a budget.

    Make one with ``discreet.open`` (a codebook) or ``discreet.curate`` (frames in memory).

    Privacy: all answers together, to all analysts, cost one unit no more than the budget, for the neighbours that the
    catalog declares, also when questions are chosen after seeing answers. Why: what is released is a post-processing
    of priced releases (see ``release``), each of which the ledger has charged before any data was read.
    """

    def __init__(
        self,
        *,
        name: str,
        catalog: Catalog,
        engine: Engine,
        ledger: Ledger,
        per_query: Fraction | None = None,
        analysts: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.catalog = catalog
        self._engine = engine
        self._ledger = ledger
        self._per_query = per_query
        self._analysts = None if analysts is None else frozenset(analysts)

    def ask(
        self,
        question: Asked,
        *,
        epsilon: Epsilon | None = None,
        rho: Number | None = None,
        error: Mapping[str, Number] | None = None,
        delta: Number | None = None,
        level: Number = 0.95,
        analyst: str = "analyst",
        project: str = "",
        request: str | None = None,
        watch: Watch | None = None,
    ) -> Answer:
        """Answer a question, at a stated loss (``epsilon`` or ``rho``) or for a wanted ``error`` of named columns.

        The same question on the same data is answered from the ledger, for free.
        """
        self._check_analyst(analyst)
        offer = Request(epsilon=epsilon, rho=rho, error=error, delta=delta, level=level)
        priced = self._price(question, offer)
        stored = self._ledger.replay(priced.identity)
        if stored is not None:
            return self._replayed(stored)
        charge = self._charge(priced, analyst, request, project)
        held = self._ledger.reserve(charge)
        if held.record is not None:
            return self._replayed(held.record)
        with _constant_failure(self._ledger, held):
            groups = self._engine.run(priced.release.bounded.bounded, salt=_salt(SYSTEM), watch=watch)
            rows = finish(priced.release, draw(priced.release, groups))
            answer = Answer(
                rows=rows,
                spent=priced.release.loss,
                remaining=self.remaining,
                receipt=self._receipt(priced, charge, held),
                explanation=explain(priced.release, self.budget),
            )
            record = answer.record()
            kept = self._ledger.commit(held, record)
        # Only what is on record is handed out: another run of the same request may have been quicker.
        return answer if kept is record else self._replayed(kept)

    def preview(
        self,
        question: Asked,
        *,
        epsilon: Epsilon | None = None,
        rho: Number | None = None,
        error: Mapping[str, Number] | None = None,
        delta: Number | None = None,
        level: Number = 0.95,
        analyst: str = "analyst",
    ) -> Preview:
        """What the answer would cost and how far off it would be. Free: no data is read, nothing is charged."""
        priced = self._price(question, Request(epsilon=epsilon, rho=rho, error=error, delta=delta, level=level))
        fits = self._ledger.fits(self._charge(priced, analyst))
        return Preview(release=priced.release, budget=self.budget, fits=fits, remaining=self.remaining)

    def explain(self, question: Asked, **offer: Any) -> str:
        """The plan of a question, its facts, sensitivities and noise, and why. Free."""
        return explain(self._price(question, Request(**(offer or self._default_offer()))).release, self.budget)

    def table(self, name: str) -> Table:
        """A table to ask about by a chain of verbs, which ends with ``.preview(...)`` or ``.ask(...)``."""
        return Table(self.catalog, self.catalog.table(name).name, curator=self)

    def prepare(self, *tables: str) -> None:
        """Make tables ready, all of them if none is named, so that later questions about units run faster.

        Worth it from the second or third question on. The copy lies in a private folder until the curator is closed.
        """
        for name in tables or tuple(self.catalog.tables):
            self._engine.prepare(self.catalog.table(name).name)

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return self._ledger.budget

    @property
    def remaining(self) -> str:
        """What is left of the budget, in words."""
        symbol = {"pure": "ε", "approx": "ε", "zcdp": "ρ", "gdp": "μ"}[self.budget.notion]
        at = f" at δ {float(self.budget.slack()):.2g}" if self.budget.slack() else ""
        left, whole = float_down(self._ledger.remaining), float_up(self.budget.amount())
        return f"{symbol} {left:.4g} of {whole:.4g}{at}"

    @property
    def ledger(self) -> Ledger:
        """The record of charges and answers."""
        return self._ledger

    def history(self) -> Sequence[Entry]:
        """Every charge so far, oldest first."""
        return self._ledger.history()

    def close(self) -> None:
        """Let go of the data and the ledger."""
        self._engine.close()
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        tables = ", ".join(f"{t.name} (protects {t.unit})" for t in self.catalog.tables.values())
        return f"Curator of {self.name}: {tables}; {self.catalog.neighbours}; left {self.remaining}"

    def _price(self, asked: Asked, offer: Request) -> _Priced:
        """Read, bound and price; everything before any data is touched."""
        question = self._read(asked)
        release = price(
            bound(question, self.catalog),
            offer,
            self.budget,
            unit=self.catalog.unit,
            neighbours=self.catalog.neighbours,
            most=self._per_query,
        )
        text, version = show(question), self._version(question)
        facts = [
            self.name,
            version,
            repr(question),
            *map(str, map(events.dump, release.events)),
        ]
        identity = hashlib.sha256("\n".join(facts).encode()).hexdigest()
        return _Priced(text, release, identity, version)

    def _version(self, question: Question) -> str:
        """The versions of all tables that a question reads."""
        return "; ".join(self._engine.version(table) for table in question.tables)

    def _check_analyst(self, analyst: str) -> None:
        """Refuse who is not on the codebook's list, where it has one."""
        if self._analysts is not None and analyst not in self._analysts:
            raise UsageError("The codebook does not name this analyst. Say analyst=... as listed. Nothing was charged.")

    def _read(self, asked: Asked) -> Question:
        match asked:
            case str():
                return sql.read(asked, self.catalog)
            case Question():
                return asked
            case _:
                return asked.question

    def _default_offer(self) -> dict[str, Any]:
        """A tenth of the budget, to have numbers to explain with."""
        name = "rho" if self.budget.notion == "zcdp" else "epsilon"
        return {name: float_down(self.budget.amount()) / 10}

    def _charge(self, priced: _Priced, analyst: str, request: str | None = None, project: str = "") -> Charge:
        return Charge(
            request=request or str(uuid.UUID(bytes=_salt(SYSTEM))),
            analyst=analyst,
            dataset=self.name,
            identity=priced.identity,
            question=priced.text,
            events=priced.release.events,
            loss=priced.release.loss,
            project=project,
            version=priced.version,
        )

    def _receipt(self, priced: _Priced, charge: Charge, held: Held) -> dict[str, Any]:
        release = priced.release
        return {
            "request": charge.request,
            "dataset": self.name,
            "analyst": charge.analyst,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "question": priced.text,
            "protects": f"{release.unit} ({release.neighbours})",
            "cost": cost_words(release.loss, self.budget),
            "loss": loss_dict(release.loss, self.budget),
            "level": f"{float(release.level):.0%}",
            "mechanisms": [events.dump(event) for event in release.events],
            "ledger": {"ledger": held.ledger, "number": held.number, "hash": held.hash},
        }

    def _replayed(self, record: Record) -> Answer:
        receipt = record["receipt"]
        loss = compose([events.load(event) for event in receipt["mechanisms"]]).loss
        return Answer(
            rows=rows_from(record),
            spent=loss,
            remaining=self.remaining,
            receipt=receipt,
            explanation=record["explanation"],
            replayed=True,
        )


@dataclass(frozen=True, kw_only=True)
class Table(TableBuilder):
    """A declared table of a curator: chain ``where``, ``group_by``, ``agg``, then ``preview`` or ``ask``."""

    curator: Curator = field(repr=False)

    def ask(self, **offer: Any) -> Answer:
        """Answer the question that the chain has become; takes what ``Curator.ask`` takes."""
        return self.curator.ask(self.question, **offer)

    def preview(self, **offer: Any) -> Preview:
        """What the answer would cost and how far off it would be; takes what ``Curator.preview`` takes."""
        return self.curator.preview(self.question, **offer)

    def explain(self, **offer: Any) -> str:
        """The plan, its facts, its sensitivities and its noise, and why."""
        return self.curator.explain(self.question, **offer)


@contextmanager
def _constant_failure(ledger: Ledger, held: Held) -> Iterator[None]:
    """Whatever goes wrong inside is told to the caller in one constant sentence, and to the log in full.

    An interrupt stays an interrupt; the charge stands all the same, and the request may be run again under it.
    """
    try:
        yield
    except BaseException as error:
        with suppress(DiscreetError):  # a ledger that has halted is told about by the next question
            ledger.abandon(held)
        if not isinstance(error, Exception):
            raise
        LOG.error("A question failed after it was charged.", exc_info=error)
        raise EngineFailure from None


def _salt(source: Source) -> bytes:
    return source.bits(128).to_bytes(16, "big")
