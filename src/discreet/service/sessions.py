"""Sessions of browsers: a random name in a cookie stands for a token, and never for more than the token.

A session keeps the ids of tokens, one for each dataset, and not their secrets. The token is looked up anew at each
request, so a revocation holds from the next one on. Every sign-in makes a new name, so that nobody can plant one. Names
are kept as hashes, in the memory of one server: a server that starts anew asks for the token again.
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from discreet.entropy import SYSTEM
from discreet.late_dataclass import dataclass
from discreet.service.callers import Caller, make_caller
from discreet.service.roles import Role
from discreet.service.served_dataset import ServedDataset
from discreet.service.tokens import hash_secret

IDLE = timedelta(hours=1)
LONGEST = timedelta(hours=12)
LINK_LIFE = timedelta(minutes=15)
_OWNER_LIFE = timedelta(days=1)
_OWNER_NAME = "owner"
GUIDE = ""
"""In place of a dataset: the session opens the guide to a first codebook and nothing else."""
MOST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """A signed-in browser. ``form_key`` is in every form of its pages, so that no other page can send one.

    It looks at one dataset, by one token. ``tokens`` are those of all datasets that it may turn to, by their ids.
    """

    dataset: str
    tokens: Mapping[str, str]
    form_key: str
    made: datetime
    seen: datetime

    def is_open(self, now: datetime) -> bool:
        """Whether neither the pause nor the whole is too long."""
        return now - self.seen < IDLE and now - self.made < LONGEST


class SessionStore:
    """The sessions and the one-time links of one server."""

    def __init__(
        self,
        datasets: Mapping[str, ServedDataset],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        most: int = MOST,
    ) -> None:
        self._datasets, self._clock, self._most = datasets, clock, most
        self._lock = threading.Lock()
        self._sessions: dict[str, BrowserSession] = {}
        self._links: dict[str, tuple[str, datetime]] = {}

    def sign_in(self, secret: str, beside: BrowserSession | None = None) -> str | None:
        """The name of a new session of a token, if the token is valid; ``beside`` is one whose datasets stay open."""
        for name, dataset in self._datasets.items():
            token = dataset.tokens.find(secret)
            if token is not None:
                earlier = {} if beside is None else beside.tokens
                return self._open(name, {**earlier, name: token.id}, None if beside is None else beside.made)
        return None

    def sign_in_named(self, name: str) -> str | None:
        """The name of a new session of somebody whom others have made sure of: the newest valid token of each dataset.

        It looks at the first dataset that has one.
        """
        found: dict[str, str] = {}
        for dataset, served in self._datasets.items():
            for token in served.tokens.list_all():
                if token.name == name and token.is_valid(self._clock()):
                    found[dataset] = token.id
        return self._open(next(iter(found)), found) if found else None

    def turn(self, name: str, dataset: str) -> bool:
        """Look at another dataset of the same session."""
        with self._lock:
            session = self._sessions.get(hash_secret(name))
            if session is None or dataset not in session.tokens:
                return False
            self._sessions[hash_secret(name)] = replace(session, dataset=dataset)
        return True

    def make_link(self, dataset: str) -> str:
        """A code that opens one session of an owner, once."""
        code = make_name()
        with self._lock:
            self._links[hash_secret(code)] = (dataset, self._clock())
        return code

    def use_link(self, code: str) -> str | None:
        """The name of a new session. It stands for an owner's token of one day, which the list of tokens shows."""
        with self._lock:
            found = self._links.pop(hash_secret(code), None)
        if found is None or self._clock() - found[1] >= LINK_LIFE:
            return None
        if found[0] == GUIDE:
            return self._open(GUIDE, {})
        token, _ = self._datasets[found[0]].tokens.create(name=_OWNER_NAME, role=Role.OWNER, life=_OWNER_LIFE)
        return self._open(found[0], {found[0]: token.id})

    def find(self, name: str) -> tuple[Caller, BrowserSession] | None:
        """Who is signed in under a name now; a session whose token opens nothing any more is forgotten."""
        key, now = hash_secret(name), self._clock()
        with self._lock:
            session = self._sessions.get(key)
            if session is None or not session.is_open(now):
                self._sessions.pop(key, None)
                return None
            self._sessions[key] = replace(session, seen=now)
        if session.dataset == GUIDE:
            return None
        dataset = self._datasets[session.dataset]
        token = dataset.tokens.find_id(session.tokens[session.dataset])
        if token is None:
            self.sign_out(name)
            return None
        return make_caller(token, dataset), session

    def find_guided(self, name: str) -> BrowserSession | None:
        """The session of somebody who may use the guide: of the guide's own link, or of an owner."""
        with self._lock:
            session = self._sessions.get(hash_secret(name))
        if session is None or not session.is_open(self._clock()):
            return None
        if session.dataset == GUIDE:
            return session
        found = self.find(name)
        return session if found is not None and found[0].token.role is Role.OWNER else None

    def sign_out(self, name: str) -> None:
        """The name opens nothing any more."""
        with self._lock:
            self._sessions.pop(hash_secret(name), None)

    def _open(self, dataset: str, tokens: Mapping[str, str], begun: datetime | None = None) -> str:
        """A new session. One that goes on from an earlier one lasts no longer than that."""
        name, now = make_name(), self._clock()
        made = BrowserSession(dataset=dataset, tokens=tokens, form_key=make_name(), made=begun or now, seen=now)
        with self._lock:
            self._sessions = {key: each for key, each in self._sessions.items() if each.is_open(now)}
            while len(self._sessions) >= self._most:  # the oldest one goes; a token can sign in as often as it likes
                del self._sessions[next(iter(self._sessions))]
            self._sessions[hash_secret(name)] = made
        return name


def make_name() -> str:
    """256 random bits as a text."""
    return f"{SYSTEM.bits(256):064x}"


def is_same_key(given: str, kept: str) -> bool:
    """Compare two keys in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), kept.encode())
