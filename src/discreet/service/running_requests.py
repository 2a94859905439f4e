"""Questions that run now: how far they are, the word that ends them, and how those ended that nobody waited for.

Privacy: a share of the work done is a public estimate, and the curator hands none out where answers are held to a
raster (``answer_after``). There a question also cannot be ended: the word is taken and has no effect, so that neither
the time of an end nor whether there was one tells anything. A question that is ended stays charged, and the same
request goes on under that charge.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from discreet.errors import RequestConflict
from discreet.service.messages import ApiResponse, RefusalCode

KEPT_SECONDS = 900.0
MOST_KEPT = 200
_GOOD = 200


class QuestionCancelled(BaseException):
    """Ends a run from inside. It is no Exception: for the curator it is an interrupt, and no failure of the engine."""


class RunningRequest:
    """One request from its beginning on."""

    def __init__(self, hashed: str) -> None:
        self.hashed = hashed
        self._share = 0.0
        self._cancelled = False
        self._done = threading.Event()
        self._response: ApiResponse | None = None
        self.ended = 0.0

    def watch(self, share: float) -> None:
        """Hear how far the engine is; the place where a question can be ended."""
        if self._cancelled:
            raise QuestionCancelled
        self._share = max(self._share, min(1.0, share))

    def cancel(self) -> None:
        """End it at the next word of the engine."""
        self._cancelled = True

    def finish(self, response: ApiResponse, ended: float) -> None:
        """Note how it ended."""
        self._response, self.ended = response, ended
        self._done.set()

    def wait(self, seconds: float) -> ApiResponse | None:
        """How it ended, if it does within some seconds."""
        self._done.wait(seconds)
        return self._response

    @property
    def response(self) -> ApiResponse | None:
        """How it ended; None while it runs."""
        return self._response

    def describe(self) -> dict[str, Any]:
        """What the analyst may know of it now."""
        response = self._response
        if response is None:
            return {"state": "cancelling" if self._cancelled else "running", "progress": round(self._share, 3)}
        if response.status == _GOOD:
            return {"state": "answered"}
        return {"state": "failed", "problem": json.loads(response.body)}

    def tell(self) -> tuple[str, bool]:
        """What is said to those who follow it, and whether it is the last word."""
        last = self._response is not None
        return write_event(self.describe(), last=last), last


def write_event(known: dict[str, Any], *, last: bool) -> str:
    """A word to those who follow a request, as server-sent events are written.

    >>> print(write_event({"state": "answered"}, last=True).strip())
    event: done
    data: {"state": "answered"}
    """
    return f"event: {'done' if last else 'progress'}\ndata: {json.dumps(known)}\n\n"


def write_refusal(code: RefusalCode) -> str:
    """The last word to somebody who may not follow a request any more, or not yet.

    >>> print(write_refusal(RefusalCode.UNAUTHORIZED).strip())
    event: refused
    data: {"code": "unauthorized"}
    """
    return f"event: refused\ndata: {json.dumps({'code': str(code)})}\n\n"


class RunningRequests:
    """The requests of one dataset by analyst and request id. Those that ended are kept for a while, for a look."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._running: dict[tuple[str, str], RunningRequest] = {}
        self._ended: OrderedDict[tuple[str, str], RunningRequest] = OrderedDict()

    def begin(self, analyst: str, request: str, hashed: str) -> tuple[RunningRequest, bool]:
        """The request, and whether it is new; one that runs already with another body is refused."""
        with self._lock:
            known = self._running.get((analyst, request))
            if known is not None and known.hashed != hashed:
                raise make_conflict()
            if known is not None:
                return known, False
            self._ended.pop((analyst, request), None)
            made = self._running[analyst, request] = RunningRequest(hashed)
            return made, True

    def end(self, analyst: str, request: str, response: ApiResponse, *, keep: bool) -> None:
        """Note how a request ended, and forget those that ended long ago; ``keep`` it where nobody waited."""
        now = self._clock()
        with self._lock:
            ended = self._running.pop((analyst, request))
            ended.finish(response, now)
            if keep:
                self._ended[analyst, request] = ended
            while self._ended:
                oldest = next(iter(self._ended.values()))
                if len(self._ended) <= MOST_KEPT and now - oldest.ended < KEPT_SECONDS:
                    break
                self._ended.popitem(last=False)

    def find(self, analyst: str, request: str) -> RunningRequest | None:
        """A request of an analyst that runs, or ended a while ago."""
        with self._lock:
            return self._running.get((analyst, request)) or self._ended.get((analyst, request))


def make_conflict() -> RequestConflict:
    """The refusal of another body under the same request id."""
    return RequestConflict(
        "This request id was used with another body. Use a new id. Nothing was charged for this one."
    )
