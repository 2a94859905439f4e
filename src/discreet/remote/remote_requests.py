"""Sends what a remote curator asks: free requests at once, and those that spend until their answer is there.

A question that spends has a key. It is sent so that the server answers within some seconds, or says that it runs; then
its events are followed, and its answer is fetched by the key. So no proxy has to hold a connection for long, a dropped
one loses nothing, and an interrupt here ends the question there. What was charged stays charged.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from discreet.entropy import SYSTEM
from discreet.errors import DiscreetError, ServiceRefused
from discreet.late_dataclass import dataclass
from discreet.remote.patience import DROPPED, Patience
from discreet.remote.refusals import make_error
from discreet.remote.wire import RECORD, Wire, WireRequest

# How long the server waits for an answer before it says that it runs.
_SECONDS = 20
_ACCEPTED = 202
_PAUSE = 0.2


def make_key() -> str:
    """A new name for a request."""
    return str(uuid.UUID(bytes=SYSTEM.bits(128).to_bytes(16, "big")))


@dataclass(frozen=True, slots=True)
class RemoteRequests:
    """Requests about one dataset of a server, or about all of them where it has no name yet."""

    wire: Wire
    patience: Patience
    dataset: str = ""

    def get(self, path: str = "") -> dict[str, Any]:
        """A document about the dataset."""
        return self.patience.send(self.wire, WireRequest(method="GET", path=self._join(path))).read()

    def list_datasets(self) -> dict[str, str]:
        """The datasets that the token opens, each with the analyst in whose name it asks."""
        found = self.patience.send(self.wire, WireRequest(method="GET", path="datasets")).read()
        return {str(each["name"]): str(each["analyst"]) for each in found["datasets"]}

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to something that is free."""
        return self.patience.send(self.wire, WireRequest(method="POST", path=self._join(path), body=body)).read()

    def buy(self, path: str, body: Mapping[str, Any], key: str | None) -> dict[str, Any]:
        """The answer to something that spends and is not kept as an answer by itself; the same key finds it again."""
        request = WireRequest(
            method="POST", path=self._join(path), body=body, key=key or make_key(), headers={"Accept": RECORD}
        )
        return self.patience.send(self.wire, request).read()

    def spend(
        self, path: str, body: Mapping[str, Any], key: str | None, watch: Callable[[float], None] | None
    ) -> dict[str, Any]:
        """The answers to questions, under a key. ``watch`` is told how far the work is."""
        key = key or make_key()
        patience = f"respond-async, wait={_SECONDS if watch is None else 0}"
        request = WireRequest(
            method="POST",
            path=self._join(path),
            body=body,
            key=key,
            headers={"Accept": RECORD, "Prefer": patience},
        )
        try:
            return self._wait_for(request, key, watch)
        except DiscreetError:
            raise
        except BaseException as interrupt:  # by the user, or by what watches
            self.cancel(key)
            interrupt.add_note(
                f"The question was ended. Ask the same with request={key!r} to go on; what was charged stays charged."
            )
            raise

    def _wait_for(self, request: WireRequest, key: str, watch: Callable[[float], None] | None) -> dict[str, Any]:
        while True:
            response = self.patience.send(self.wire, request)
            if response.status != _ACCEPTED:
                return response.read()
            found = self._follow_until_done(key, watch)
            if found is not None:
                return found
            # Charged and without an answer, or forgotten without a charge: the same key goes on.

    def _follow_until_done(self, key: str, watch: Callable[[float], None] | None) -> dict[str, Any] | None:
        """The answers of a request that runs; None where it has to be sent again."""
        while True:
            with suppress(*DROPPED):  # the look below says how far it is
                for event in self.wire.follow(f"requests/{key}/events"):
                    if watch is not None and "progress" in event:
                        watch(float(event["progress"]))
            document = self.find(key)
            state = None if document is None else document.get("state")
            if document is None or state == "unfinished":
                return None
            if state == "failed":
                raise make_error(document["problem"])
            if state == "answered":
                return document
            time.sleep(_PAUSE)

    def find(self, key: str) -> dict[str, Any] | None:
        """What is known of a request of one's own; None where there is nothing."""
        request = WireRequest(method="GET", path=f"requests/{quote(key, safe='')}", headers={"Accept": RECORD})
        try:
            return self.patience.send(self.wire, request).read()
        except ServiceRefused as refused:
            if refused.refusal == "not-found":
                return None
            raise

    def cancel(self, key: str) -> None:
        """End a request on the server, as far as it can be reached now."""
        with suppress(*DROPPED):  # the interrupt is told in any case
            self.wire.send(WireRequest(method="POST", path=f"requests/{quote(key, safe='')}/cancel", body={}))

    def _join(self, path: str) -> str:
        return f"datasets/{quote(self.dataset, safe='')}" + (f"/{path}" if path else "")
