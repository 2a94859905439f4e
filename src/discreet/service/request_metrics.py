"""How many requests were answered, by route and status: figures that everybody may see.

They say nothing about data: routes and status codes follow from what was sent and from what was spent. Times are not
kept, because how long a question takes may depend on the data. Nothing is told by analyst or dataset.
"""

from __future__ import annotations

import threading
from collections import Counter

_NAME = "discreet_requests_total"


class RequestMetrics:
    """Counts requests, in the text form that Prometheus reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, int]] = Counter()

    def count(self, route: str, status: int) -> None:
        """One more request; paths that are no route have one name."""
        with self._lock:
            self._counts[route or "unknown", status] += 1

    def to_text(self) -> str:
        """All counts.

        >>> metrics = RequestMetrics()
        >>> metrics.count("datasets", 200)
        >>> print(metrics.to_text().splitlines()[-1])
        discreet_requests_total{route="datasets",status="200"} 1
        """
        with self._lock:
            found = sorted(self._counts.items())
        lines = [
            "# HELP discreet_requests_total Requests that were answered.",
            "# TYPE discreet_requests_total counter",
        ]
        for (route, status), count in found:
            lines.append(f'discreet_requests_total{{route="{route}",status="{status}"}} {count}')
        return "\n".join(lines) + "\n"
