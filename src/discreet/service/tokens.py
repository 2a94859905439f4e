"""Tokens: who may ask one dataset, in which role, at most how much for one question, and until when.

A token is 256 random bits. The file beside the codebook keeps its SHA-256 hash, so the file opens nothing; 256 random
bits need no slow hash. A token is looked up by its hash at each request, so a revocation holds from the next one on.
"""

from __future__ import annotations

import base64
import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

from discreet.entropy import SYSTEM
from discreet.errors import ParameterError, UsageError
from discreet.late_dataclass import dataclass
from discreet.ledger.headfile import make_private
from discreet.service.roles import Role
from discreet.service.scram_verifiers import ScramVerifier, make_verifier

PREFIX = "discreet_"
DEFAULT_LIFE = timedelta(days=90)
_LONGEST_LIFE = timedelta(days=3660)
_LONGEST_NAME = 100
_BUSY_SECONDS = 10

_TABLE = """CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, name TEXT NOT NULL, role TEXT NOT NULL, project TEXT NOT NULL,
    per_query TEXT, created TEXT NOT NULL, expires TEXT NOT NULL, revoked TEXT
) STRICT"""
# Beside the tokens, so that files of earlier versions stay as they are: a token of theirs has no line here.
_VERIFIERS = """CREATE TABLE IF NOT EXISTS verifiers (
    token TEXT PRIMARY KEY, stored_key BLOB NOT NULL, server_key BLOB NOT NULL, offer TEXT NOT NULL
) STRICT"""
_COLUMNS = "id, name, role, project, per_query, created, expires, revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is known of a token; not the token itself. ``per_query`` is in the budget's own terms."""

    id: str
    name: str
    role: Role
    project: str
    per_query: Fraction | None
    created: datetime
    expires: datetime
    revoked: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it opens anything at this time."""
        return self.revoked is None and now < self.expires


def tokens_path_of(codebook: str | Path) -> Path:
    """The file of the tokens of a codebook."""
    return Path(codebook).with_suffix(".tokens")


class TokenStore:
    """The tokens of one dataset, in a file that its owner alone can read. Every call reads the file anew."""

    def __init__(self, path: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path = path
        self._clock = clock

    def create(
        self,
        *,
        name: str,
        role: Role,
        project: str = "",
        per_query: Fraction | None = None,
        life: timedelta = DEFAULT_LIFE,
        offer: str = "",
    ) -> tuple[Token, str]:
        """A new token, and its secret text, which is shown once and kept nowhere.

        ``offer`` is what its questions cost where they state nothing themselves, such as ``epsilon=0.1``.
        """
        _check_name(name, "name")
        if project:
            _check_name(project, "project")
        if not timedelta(0) < life <= _LONGEST_LIFE:
            raise ParameterError("expires", "must be between 1 and 3660 days", "Give for example --expires 90.")
        if per_query is not None and per_query <= 0:
            raise ParameterError("per_query", "must be above zero", "Leave it out where no cap is meant.")
        _check_offer(offer)
        now = self._clock()
        secret = make_secret()
        made = Token(
            id=f"{SYSTEM.bits(64):016x}",
            name=name,
            role=role,
            project=project,
            per_query=per_query,
            created=now,
            expires=now + life,
        )
        self._make_file()
        with self._open() as connection:
            connection.execute(_TABLE)
            cap = None if per_query is None else str(per_query)
            times = (now.isoformat(), made.expires.isoformat())
            row = (made.id, hash_secret(secret), name, str(role), project, cap, *times)
            connection.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)", row)
            verifier = make_verifier(name, secret)
            connection.execute(_VERIFIERS)
            kept = (made.id, verifier.stored_key, verifier.server_key, offer)
            connection.execute("INSERT INTO verifiers VALUES (?, ?, ?, ?)", kept)
        return made, secret

    def list_all(self) -> Sequence[Token]:
        """Every token that was ever made, oldest first."""
        if not self._path.exists():
            return ()
        with self._open() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY created, id").fetchall()  # noqa: S608  # our own columns
        return tuple(_read_token(row) for row in rows)

    def revoke(self, chosen: str) -> Sequence[Token]:
        """Revoke a token by its id, or all of a name; from the next request on they open nothing."""
        found = [token for token in self.list_all() if chosen in (token.id, token.name) and token.revoked is None]
        if not found:
            raise UsageError("There is no such token that could be revoked. `discreet token list` shows all of them.")
        with self._open() as connection:
            now = self._clock().isoformat()
            connection.executemany(
                "UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", [(now, token.id) for token in found]
            )
        return found

    def find(self, secret: str) -> Token | None:
        """The token of a secret, if it is valid now."""
        return self._find("hash", hash_secret(secret))

    def find_id(self, identity: str) -> Token | None:
        """The token of an id, if it is valid now. An id opens nothing by itself: sessions keep it."""
        return self._find("id", identity)

    def find_verifiers(self, name: str) -> Sequence[tuple[Token, ScramVerifier]]:
        """The tokens of a name that are valid now, with what shows by SCRAM that somebody has them."""
        valid = [token for token in self.list_all() if token.name == name and token.is_valid(self._clock())]
        if not valid:
            return ()
        with self._open() as connection:
            connection.execute(_VERIFIERS)
            rows = connection.execute("SELECT token, stored_key, server_key FROM verifiers").fetchall()
        known = {token: ScramVerifier(stored, server) for token, stored, server in rows}
        return tuple((token, known[token.id]) for token in valid if token.id in known)

    def find_offer(self, identity: str) -> str:
        """What the questions of a token cost where they state nothing; empty where they must."""
        with self._open() as connection:
            connection.execute(_VERIFIERS)
            row = connection.execute("SELECT offer FROM verifiers WHERE token = ?", (identity,)).fetchone()
        return "" if row is None else str(row[0])

    def _find(self, column: str, value: str) -> Token | None:
        if not self._path.exists():
            return None
        with self._open() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM tokens WHERE {column} = ?",  # noqa: S608  # our own columns
                (value,),
            ).fetchone()
        token = None if row is None else _read_token(row)
        return token if token is not None and token.is_valid(self._clock()) else None

    def _make_file(self) -> None:
        try:
            make_private(self._path)
        except FileExistsError:
            return
        except OSError as error:
            raise UsageError(f"{self._path} cannot be written: {error.strerror}.") from None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS)) as connection, connection:
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
        except sqlite3.Error:
            raise UsageError(
                f"{self._path.name} cannot be used as a file of tokens. Put it away, and create the tokens anew."
            ) from None


def make_secret() -> str:
    """The text of a new token: 256 random bits after a prefix by which scanners know it."""
    return PREFIX + base64.urlsafe_b64encode(SYSTEM.bits(256).to_bytes(32, "big")).rstrip(b"=").decode()


def hash_secret(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _check_name(name: str, parameter: str) -> None:
    if not name.strip() or name != name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        rule = f"must be a name of 1 to {_LONGEST_NAME} signs without spaces at its ends"
        raise ParameterError(parameter, rule, "Give for example --name ana.")


def _check_offer(offer: str) -> None:
    """Refuse what is no cost in one form."""
    word, _, value = offer.partition("=")
    try:
        stated = Fraction(value) if word in ("epsilon", "rho", "share") and len(value) <= 100 else Fraction(0)
    except (ValueError, ZeroDivisionError):
        stated = Fraction(0)
    if offer and stated <= 0:
        rule = "must be a cost in one form"
        raise ParameterError("offer", rule, "Give for example --offer epsilon=0.1, rho=0.001 or share=0.01.")


def _read_token(row: Sequence[str | None]) -> Token:
    identity, name, role, project, per_query, created, expires, revoked = row
    return Token(
        id=str(identity),
        name=str(name),
        role=Role(str(role)),
        project=str(project),
        per_query=None if per_query is None else Fraction(per_query),
        created=datetime.fromisoformat(str(created)),
        expires=datetime.fromisoformat(str(expires)),
        revoked=None if revoked is None else datetime.fromisoformat(revoked),
    )
