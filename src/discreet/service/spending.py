"""Requests that spend: one body under one key, run at once or beside the request that began them.

``Prefer: respond-async`` (RFC 7240) gives 202 at once, and ``wait=N`` waits so many seconds first. Whoever waits, the
question runs in the same way, with the place of its token and the curator with which it began.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeAlias

from discreet.errors import DiscreetError
from discreet.row_formats import to_json
from discreet.service import bodies, problems
from discreet.service.answer_forms import choose_form
from discreet.service.api_routes import ROOT, ApiRoute
from discreet.service.callers import Caller
from discreet.service.messages import ApiRequest, ApiResponse, RequestRefused
from discreet.service.request_bodies import hash_body
from discreet.service.running_requests import RunningRequest, make_conflict

LONGEST_WAIT = 60
_GOOD = 200
_WAIT = re.compile(r"wait=([0-9]{1,4})")

Work: TypeAlias = Callable[[Caller], ApiResponse]


def read_patience(request: ApiRequest) -> float | None:
    """How many seconds the client waits for the answer; None where it waits as long as it takes.

    >>> read_patience(ApiRequest(method="POST", path="/", headers={"prefer": "respond-async, wait=5"}))
    5.0
    """
    words = [word.strip().lower() for word in re.split("[,;]", request.headers.get("prefer", ""))]
    if "respond-async" not in words:
        return None
    waits = [found[1] for word in words if (found := _WAIT.fullmatch(word))]
    return float(min(int(waits[0]), LONGEST_WAIT)) if waits else 0.0


class SpendingThreads:
    """Runs what spends. A server that stops waits for what still runs, as far as its patience goes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()

    def spend(self, caller: Caller, request: ApiRequest, route: ApiRoute, work: Work, held: ExitStack) -> ApiResponse:
        """The response, or 202 where it takes longer than the client waits. Until the end, what is held stays so."""
        patience = read_patience(request)
        try:
            key, hashed, sql = _read_request(caller, request, route)
            running, new = _begin(caller, key, hashed, sql)
        except RequestRefused as refused:
            return replace(problems.refuse_request(refused), route=route.path)
        except DiscreetError as error:
            return replace(problems.describe_error(error, charged=_is_charged(caller, request)), route=route.path)
        if not new:
            ended = running.wait(_forever(patience))
            if ended is None:
                return _accept(key, running, route)
            return ended if ended.status != _GOOD else work(caller)  # from the record, in the form of this request
        watched = replace(caller, watch=running.watch)
        if patience is None:
            return self._run(watched, key, work, keep=False)
        kept = held.pop_all()

        def run() -> None:
            try:
                with kept:
                    self._run(watched, key, work, keep=True)
            finally:
                with self._lock:
                    self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name="discreet-question", daemon=True)
        with self._lock:
            self._threads.add(thread)
        thread.start()
        return running.wait(patience) or _accept(key, running, route)

    def _run(self, caller: Caller, key: str, work: Work, *, keep: bool) -> ApiResponse:
        response = problems.describe_unforeseen(charged=None)
        try:
            response = work(caller)
        finally:
            caller.dataset.running.end(caller.token.name, key, response, keep=keep)
        return response

    def wait(self, seconds: float) -> None:
        """Wait for what runs."""
        with self._lock:
            running = list(self._threads)
        for thread in running:
            thread.join(seconds)


def _read_request(caller: Caller, request: ApiRequest, route: ApiRoute) -> tuple[str, str, str]:
    """The key, the hash of the body and its SQL; what cannot be read is refused at once."""
    key = bodies.read_key(request)
    choose_form(request, route.forms)
    words = bodies.read_words(request, route.body or {})
    return key, hash_body(route.path, caller.token.project, bodies.read_object(request)), words.get("sql", "")


def _begin(caller: Caller, key: str, hashed: str, sql: str) -> tuple[RunningRequest, bool]:
    """One body under one key: while it runs, and for ever once it was charged."""
    dataset, analyst = caller.dataset, caller.token.name
    kept = dataset.bodies.find(analyst, key)
    if kept not in (None, hashed) and caller.opened.curator.ledger.find_request(analyst, key) is not None:
        raise make_conflict()
    running, new = dataset.running.begin(analyst, key, hashed)
    if new and kept != hashed:
        try:
            dataset.bodies.keep(analyst, key, hashed, sql)
        except DiscreetError as error:
            dataset.running.end(analyst, key, problems.describe_error(error, charged=False), keep=False)
            raise
    return running, new


def _is_charged(caller: Caller, request: ApiRequest) -> bool | None:
    try:
        found = caller.opened.curator.ledger.find_request(caller.token.name, request.headers["idempotency-key"])
    except DiscreetError:
        return None
    return found is not None


def _forever(patience: float | None) -> float:
    return threading.TIMEOUT_MAX if patience is None else patience


def _accept(key: str, running: RunningRequest, route: ApiRoute) -> ApiResponse:
    """It runs: where to look."""
    headers = {"Location": f"{ROOT}requests/{key}", "Preference-Applied": "respond-async", "Retry-After": "1"}
    body = to_json({"request": key, **running.describe()}).encode()
    return ApiResponse(status=202, body=body, headers=headers, route=route.path)
