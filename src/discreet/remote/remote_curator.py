"""``discreet.connect``: a curator on a server, with the surface of the one that ``discreet.open`` gives.

    curator = discreet.connect("https://curator.example", token=...)
    curator.table("visits").group_by("ward").agg(n=discreet.count()).ask(share=0.1)

Nothing private is here: questions go out, released numbers and public facts come back, and the server decides, charges
and draws. Answers, previews, bounds and charges are the same values as at home, made again from what it sends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

from discreet.answer import Answer
from discreet.bound_search import Bounds, Contributions
from discreet.call_forms import check_call
from discreet.declared_table import Table
from discreet.errors import UsageError
from discreet.frontends.chain.builder import TableBuilder
from discreet.ledger.amount_text import load_budget
from discreet.ledger.ledger import Entry
from discreet.parameters import Epsilon, Number
from discreet.plan.catalog import Catalog
from discreet.preview import BatchPreview, Preview
from discreet.privacy import Budget
from discreet.remote.http_wire import HttpWire
from discreet.remote.patience import Patience
from discreet.remote.received_answer import read_bounds, read_contributions, read_entry, read_received
from discreet.remote.received_preview import read_batch_preview, read_preview
from discreet.remote.remote_catalog import read_catalog
from discreet.remote.remote_requests import RemoteRequests, make_key
from discreet.remote.request_words import write_offer, write_question_words

RemoteQuestion: TypeAlias = str | TableBuilder
Watch: TypeAlias = Callable[[float], None]
_PAGE = 1000
# Some share, where only the kind of a question matters.
_ANY = Fraction(1, 100)


def connect(
    url: str,
    *,
    token: str | None = None,
    dataset: str | None = None,
    timeout: float = 60.0,
    tries: int = 5,
    certificate: str | Path | None = None,
    allow_http: bool = False,
) -> RemoteCurator:
    """The curator of a dataset that a server serves: ``discreet.connect("https://curator.example", token=...)``.

    The token is the argument or the environment's ``DISCREET_TOKEN``. It opens one dataset, so ``dataset`` only checks
    that it is the one that is meant. ``certificate`` is the file of an authority of your own. ``tries`` is how often a
    request is sent that was dropped or put off, always under the same key.
    """
    secret = token if token is not None else os.environ.get("DISCREET_TOKEN", "")
    if not secret:
        raise UsageError("A server needs a token. Give token=... or set DISCREET_TOKEN. Nothing was sent.")
    wire = HttpWire(url, secret, timeout=timeout, certificate=certificate, allow_http=allow_http)
    return connect_over(RemoteRequests(wire, Patience(tries=max(1, tries))), dataset, place=wire.address)


def connect_over(requests: RemoteRequests, dataset: str | None, *, place: str) -> RemoteCurator:
    """The curator of a dataset behind any wire."""
    known = requests.list_datasets()
    name = dataset if dataset is not None else next(iter(known))
    if name not in known:
        raise UsageError(f"The token does not open {name!r}. It opens {', '.join(known)}. Nothing was charged.")
    return RemoteCurator(RemoteRequests(requests.wire, requests.patience, name), place, known[name])


class RemoteCurator:
    """A curator on a server. Its methods are those of ``Curator``; who asks is decided by the token."""

    def __init__(self, requests: RemoteRequests, place: str, analyst: str) -> None:
        self.name, self.analyst = requests.dataset, analyst
        self._requests = requests
        self._place = place

    @check_call("ask(question, share=0.1), or epsilon=0.5, rho=0.01 or error={'n': 12} instead")
    def ask(
        self,
        question: RemoteQuestion,
        *,
        epsilon: Epsilon | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        error: Mapping[str, Number] | None = None,
        group_size: Number | None = None,
        delta: Number | None = None,
        level: Number = 0.95,
        ends: bool = False,
        public: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        bounds: str | None = None,
        request: str | None = None,
        watch: Watch | None = None,
    ) -> Answer:
        """Answer a question; as ``Curator.ask``. ``request`` is the key under which a retry is not charged again.

        ``watch`` is told the share of the work that is done. An interrupt ends the question on the server.
        """
        body = _write_body(
            question, public, epsilon=epsilon, rho=rho, share=share, error=error, group_size=group_size, delta=delta,
            level=level, ends=ends or None, parameters=parameters, bounds=bounds,
        )  # fmt: skip
        (answer,) = self._read_answers(self._requests.spend("ask", body, request, watch))
        return answer

    @check_call("ask_batch([question, another], share=0.1)")
    def ask_batch(
        self,
        questions: Sequence[RemoteQuestion],
        *,
        weights: Sequence[Number] | None = None,
        epsilon: Epsilon | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        delta: Number | None = None,
        fixed: bool = False,
        level: Number = 0.95,
        public: Mapping[str, Any] | None = None,
        request: str | None = None,
        watch: Watch | None = None,
    ) -> tuple[Answer, ...]:
        """Answer several questions under one price and one charge: all of them, or none."""
        body = _write_batch(
            questions, public, weights=weights, epsilon=epsilon, rho=rho, share=share, delta=delta,
            fixed=fixed or None, level=level,
        )  # fmt: skip
        return self._read_answers(self._requests.spend("batch", body, request, watch))

    @check_call("preview(question, share=0.1), or epsilon=0.5, rho=0.01 or error={'n': 12} instead")
    def preview(
        self,
        question: RemoteQuestion,
        *,
        epsilon: Epsilon | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        error: Mapping[str, Number] | None = None,
        group_size: Number | None = None,
        delta: Number | None = None,
        level: Number = 0.95,
        ends: bool = False,
        public: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        bounds: str | None = None,
        curve: bool = False,
    ) -> Preview:
        """What the answer would cost and how far off it would be. Free."""
        body = _write_body(
            question, public, epsilon=epsilon, rho=rho, share=share, error=error, group_size=group_size, delta=delta,
            level=level, ends=ends or None, parameters=parameters, bounds=bounds, curve=curve or None,
        )  # fmt: skip
        return read_preview(self._requests.post("preview", body), self.budget, self.catalog)

    @check_call("preview_batch([question, another], share=0.1)")
    def preview_batch(
        self,
        questions: Sequence[RemoteQuestion],
        *,
        weights: Sequence[Number] | None = None,
        epsilon: Epsilon | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        delta: Number | None = None,
        fixed: bool = False,
        level: Number = 0.95,
        public: Mapping[str, Any] | None = None,
    ) -> BatchPreview:
        """What several answers would cost together, and how far off each would be. Free."""
        body = _write_batch(
            questions, public, weights=weights, epsilon=epsilon, rho=rho, share=share, delta=delta,
            fixed=fixed or None, level=level,
        )  # fmt: skip
        return read_batch_preview(self._requests.post("preview-batch", body), self.budget, self.catalog)

    def explain(
        self,
        question: RemoteQuestion,
        public: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        **offer: Any,
    ) -> str:
        """The plan of a question, its facts, sensitivities and noise, and why. Free."""
        body = _write_body(question, public, parameters=parameters, **offer)
        return str(self._requests.post("explain", body)["explanation"])

    def answered(self, question: RemoteQuestion, **offer: Any) -> bool:
        """Whether the answer follows from what is on record, so that asking is free."""
        return self.preview(question, **offer).answered

    def is_free(
        self,
        question: RemoteQuestion,
        public: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> bool:
        """Whether a question reads public tables only, so that it is answered exactly and without an offer."""
        stated = isinstance(question, str) and "DIFFERENTIAL_PRIVACY" in question.upper()
        shown = self.preview(question, public=public, parameters=parameters, share=None if stated else _ANY)
        return shown.to_dict()["loss"] is None

    def bounds(self, table: str, column: str, *, request: str | None = None, **offer: Any) -> Bounds:
        """Buy bounds for a column: a metered question like any other, and the line for the codebook."""
        body = {"table": table, "column": column, **write_offer(offer)}
        return read_bounds(self._requests.buy("bounds", body, request), self.catalog)

    def contributions(
        self, table: str, by: Sequence[str] = (), *, request: str | None = None, **offer: Any
    ) -> Contributions:
        """Buy good limits for a table: how many rows a unit has, and in how many groups by these columns."""
        body = {"table": table, "by": list(by), **write_offer(offer)}
        return read_contributions(self._requests.buy("contributions", body, request), self.catalog)

    def find_answers(self, request: str) -> tuple[Answer, ...] | None:
        """What a request of one's own was given; nothing yet where it was only charged, None where it was not."""
        found = self._requests.find(request)
        return None if found is None else self._read_answers(found)

    def history(self) -> Sequence[Entry]:
        """The charges that the token may see, oldest first: an analyst's own, or those of everybody."""
        found: list[Entry] = []
        while True:
            after = found[-1].number if found else 0
            page = self._requests.get(f"history?after={after}&limit={_PAGE}")
            found += [read_entry(each, self.name, self.catalog) for each in page["charges"]]
            if not page["more"]:
                return found

    @cached_property
    def _description(self) -> dict[str, Any]:
        return self._requests.get()

    @cached_property
    def catalog(self) -> Catalog:
        """What is declared: tables, columns and their public facts, as they were when they were first needed."""
        return read_catalog(self._description)

    @cached_property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return load_budget(self._description["budget_terms"])

    @property
    def remaining(self) -> str:
        """What is left of the budget, in words."""
        return str(self._requests.get("budget")["words"])

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the declared tables; ``curator.table(name)`` shows one."""
        return tuple(self.catalog.tables)

    def table(self, name: str) -> Table:
        """A table to ask about by a chain of verbs, which ends with ``.preview(...)`` or ``.ask(...)``."""
        return RemoteTable(self.catalog, self.catalog.find_table(name).name, curator=self)

    def make_request(self) -> str:
        """A new request id, for those who want to know it before they ask."""
        return make_key()

    def close(self) -> None:
        """Nothing is held open; it is here so that code for a curator at home runs as it is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RemoteCurator of {self.name} at {self._place}"

    def _read_answers(self, document: Mapping[str, Any]) -> tuple[Answer, ...]:
        return tuple(read_received(record, self.catalog) for record in document["answers"])


class RemoteTable(Table):
    """A declared table of a remote curator. A chain of it is sent as SQL."""

    @check_call(".ask(share=0.1)")
    def ask(self, **offer: Any) -> Answer:
        """Answer the question that the chain has become; takes what ``RemoteCurator.ask`` takes."""
        return self.curator.ask(self, **offer)

    @check_call(".preview(share=0.1)")
    def preview(self, **offer: Any) -> Preview:
        """What the answer would cost and how far off it would be."""
        return self.curator.preview(self, **offer)

    def explain(self, **offer: Any) -> str:
        """The plan, its facts, its sensitivities and its noise, and why."""
        return self.curator.explain(self, **offer)


def _write_body(question: RemoteQuestion, public: Mapping[str, Any] | None, **offer: Any) -> dict[str, Any]:
    sql, tables = write_question_words(question, public)
    return {"sql": sql, **({} if tables is None else {"public": tables}), **write_offer(offer)}


def _write_batch(questions: Sequence[RemoteQuestion], public: Mapping[str, Any] | None, **offer: Any) -> dict[str, Any]:
    written = [write_question_words(question, None) for question in questions]
    brought = {name: rows for _, tables in written for name, rows in (tables or {}).items()}
    _, own = write_question_words("", public)
    tables = {**brought, **(own or {})}
    return {"questions": [sql for sql, _ in written], **({"public": tables} if tables else {}), **write_offer(offer)}
