"""The demo's hospital behind a wire, for the tests of the remote client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from discreet.remote.patience import Patience
from discreet.remote.remote_curator import RemoteCurator, connect_over
from discreet.remote.remote_requests import RemoteRequests
from discreet.remote.wire import Wire, WireRequest, WireResponse
from discreet.service.inner_wire import InnerWire
from tests.service.served import Hospital


def reach(served: Hospital, who: str = "ana", wire: Callable[[Wire], Wire] = lambda wire: wire) -> RemoteCurator:
    """A remote curator in somebody's name, over the service of this process."""
    inner = InnerWire(served.service, f"Bearer {served.secrets[who]}")
    requests = RemoteRequests(wire(inner), Patience(sleep=lambda _: None))
    return connect_over(requests, None, place="here")


@dataclass
class FaultyWire:
    """A wire on which some requests get lost: on the way there, or their answers on the way back."""

    inner: Wire
    faults: list[Any] = field(default_factory=list)
    """For each request that spends, in turn: "before", "after", a response, or None."""
    sent: list[WireRequest] = field(default_factory=list)

    def send(self, request: WireRequest) -> WireResponse:
        if request.key is None:
            return self.inner.send(request)
        self.sent.append(request)
        fault = self.faults.pop(0) if self.faults else None
        if fault == "before":
            raise ConnectionResetError
        if isinstance(fault, WireResponse):
            return fault
        response = self.inner.send(request)
        if fault == "after":
            raise TimeoutError
        return response

    def follow(self, path: str) -> Iterator[dict[str, Any]]:
        return self.inner.follow(path)


@contextmanager
def count_charges(served: Hospital, expected: int) -> Iterator[None]:
    """How many charges a block makes."""
    before = len(served.dataset.curator.history())
    yield
    assert len(served.dataset.curator.history()) - before == expected
