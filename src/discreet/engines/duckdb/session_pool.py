"""Locked-down connections that are kept for the next question: opening one takes longer than a small question.

A connection serves one question at a time. What the question made in it is dropped behind it, but for small tables of
what its plan says, such as public groups (``Session.keep``): the next question often has the same. What failed is
closed and not used again. A connection belongs to one version of its sources and one amount of memory. DuckDB files are
opened anew each time: while one is attached, its owner could not write to it. After a fork a process begins with none.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from discreet.engines.duckdb.session import Session, Settings
from discreet.engines.duckdb.sources import Database, Source

_Key: TypeAlias = tuple[int, Settings, tuple[tuple[str, str], ...]]
"""The process, what a connection may use, and its sources with their versions."""

# Connections that wait for a question, at most.
MOST_IDLE = 4


class SessionPool:
    """The connections of one engine."""

    def __init__(self) -> None:
        self._idle: list[tuple[_Key, Session]] = []
        self._lock = threading.Lock()

    @contextmanager
    def lease(self, settings: Settings, sources: Sequence[Source]) -> Iterator[Session]:
        """A connection for one question, which nobody else has meanwhile."""
        if any(isinstance(source, Database) for source in sources):
            with Session(settings, sources) as session:
                yield session
            return
        key = (os.getpid(), settings, tuple((source.write_from(), source.version()) for source in sources))
        session = self._take(key) or Session(settings, sources)
        try:
            yield session
            session.forget()
        except BaseException:
            session.close()
            raise
        self._put_back(key, session)

    def _take(self, key: _Key) -> Session | None:
        with self._lock:
            self._idle = [(known, session) for known, session in self._idle if known[0] == key[0]]
            for place, (known, session) in enumerate(self._idle):
                if known == key:
                    del self._idle[place]
                    return session
        return None

    def _put_back(self, key: _Key, session: Session) -> None:
        with self._lock:
            self._idle.append((key, session))
            left = [session for _, session in self._idle[:-MOST_IDLE]]
            self._idle = self._idle[-MOST_IDLE:]
        for old in left:
            old.close()

    def close(self) -> None:
        """Close the connections that wait, for good or until the next question."""
        with self._lock:
            waiting, self._idle = self._idle, []
        for (process, *_), session in waiting:
            if process == os.getpid():
                session.close()
