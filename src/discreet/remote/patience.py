"""Tries again what may go through the next time: dropped connections, 429 and failures on the way.

Every request may be sent again: reading is free, and what spends has a key under which it is charged once.
"""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable

from discreet.errors import ServiceUnreachable
from discreet.late_dataclass import dataclass
from discreet.remote.refusals import is_passing, make_error
from discreet.remote.wire import PROBLEM, Wire, WireRequest, WireResponse

DROPPED = (OSError, http.client.HTTPException)
_FIRST_REFUSAL = 400


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a request is sent, and how long to wait between: twice as long each time, or what the server says."""

    tries: int = 5
    first_wait: float = 0.25
    longest_wait: float = 10.0
    sleep: Callable[[float], None] = time.sleep

    def send(self, wire: Wire, request: WireRequest) -> WireResponse:
        """The response to a request; a refusal is raised as the error that it describes."""
        for attempt in range(self.tries):
            last = attempt + 1 == self.tries
            try:
                response = wire.send(request)
            except ssl.SSLCertVerificationError:  # it would be the same again
                raise ServiceUnreachable(
                    "This machine does not trust the certificate of the server, so nothing was sent. If it is of an "
                    "authority of your own, give its file: connect(..., certificate='authority.pem')."
                ) from None
            except DROPPED as error:
                if last:
                    raise _give_up(request, type(error).__name__) from None
                self.sleep(self._find_wait(attempt, ""))
                continue
            if response.status < _FIRST_REFUSAL:
                return response
            problem = response.read() if response.media == PROBLEM else {}
            if not last and is_passing(response.status, problem):
                self.sleep(self._find_wait(attempt, response.headers.get("retry-after", "")))
                continue
            if not problem:
                raise _give_up(request, f"status {response.status}")
            raise make_error(problem)
        raise _give_up(request, "no tries are left")

    def _find_wait(self, attempt: int, stated: str) -> float:
        wanted = float(stated) if stated.isdecimal() and len(stated) < 6 else self.first_wait * 2**attempt
        return min(wanted, self.longest_wait)


def _give_up(request: WireRequest, why: str) -> ServiceUnreachable:
    if request.key is None:
        words = "Nothing was charged. See that the address is right and that the server runs."
    else:
        words = (
            f"What it may have charged stands: ask the same with request={request.key!r} to go on without a new charge."
        )
    return ServiceUnreachable(f"No answer came from the server ({why}). {words}")
