"""How many requests one token may have at once and per minute. Decided from the requests alone, before any charge."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from discreet.service.messages import RefusalCode, RequestRefused

AT_ONCE = 4
PER_MINUTE = 600
_MINUTE = 60.0


class RequestLimits:
    """Counts the requests of each token. A token that is refused does not count."""

    def __init__(
        self, *, at_once: int = AT_ONCE, per_minute: int = PER_MINUTE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._at_once, self._per_minute, self._clock = at_once, per_minute, clock
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._recent: dict[str, deque[float]] = {}

    @contextmanager
    def enter(self, token: str) -> Iterator[None]:
        """Hold a place for one request of a token, or refuse it."""
        with self._lock:
            self._take(token)
        try:
            yield
        finally:
            with self._lock:
                self._running[token] -= 1
                if not self._running[token]:
                    del self._running[token]

    def _take(self, token: str) -> None:
        now = self._clock()
        recent = self._recent.setdefault(token, deque())
        while recent and recent[0] <= now - _MINUTE:
            recent.popleft()
        if len(recent) >= self._per_minute or self._running[token] >= self._at_once:
            raise RequestRefused(
                RefusalCode.TOO_MANY_REQUESTS,
                f"A token has at most {self._at_once} requests at once and {self._per_minute} in a minute.",
                "Wait, and send the same request again.",
                headers={"Retry-After": "1"},
            )
        recent.append(now)
        self._running[token] += 1
