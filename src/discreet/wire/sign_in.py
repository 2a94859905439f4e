"""From the first message of a client to its session: which token it has, of which dataset, with which settings."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING

from discreet.late_dataclass import dataclass
from discreet.service import problems
from discreet.service.callers import make_caller
from discreet.service.messages import ApiResponse, RefusalCode, RequestRefused
from discreet.service.routes import SIGN_IN, Service
from discreet.wire import refusals, scram
from discreet.wire.catalog_database import OWNER, CatalogDatabase
from discreet.wire.catalog_queries import CatalogContext
from discreet.wire.questions import ROUTE, QuestionDoor
from discreet.wire.refusals import WireRefused
from discreet.wire.scram import ProofRefused, ScramChallenge
from discreet.wire.session import WireSession
from discreet.wire.session_settings import SERVER_VERSION, SessionSettings, read_options, read_token_offer
from discreet.wire.statement_runner import StatementRunner

if TYPE_CHECKING:
    from discreet.service.scram_verifiers import ScramVerifier
    from discreet.service.served_dataset import OpenedCodebook, ServedDataset
    from discreet.service.tokens import Token
    from discreet.wire.frontend_messages import Startup

VERSION = f"PostgreSQL {SERVER_VERSION} (discreet {version('discreet')}: answers with noise, and no rows of tables)"
_GOOD = 200
_OF_THE_CONNECTION = ("user", "database", "options", "replication")


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A client that has shown its token."""

    token: Token
    dataset: ServedDataset


class OpenedSession:
    """A session, and what the listener needs of it."""

    def __init__(self, machine: WireSession, door: QuestionDoor, settings: SessionSettings) -> None:
        self.machine, self.door, self.settings = machine, door, settings
        self.busy, self.stopping = False, False
        self.task: asyncio.Task[None] | None = None


class ScramExchange:
    """The exchange with one client."""

    def __init__(self, service: Service, start: Startup, binding: bytes | None) -> None:
        self._service, self._binding = service, binding
        self._user, self._wanted = start.settings.get("user", ""), start.settings.get("database", "")
        self.mechanisms = scram.list_mechanisms(binding)
        self._made: ScramChallenge | None = None

    def challenge(self, mechanism: str, words: bytes) -> bytes:
        """The server's first words."""
        self._made = scram.challenge(mechanism, words, self._user, self._binding)
        return self._made.words

    def finish(self, words: bytes) -> tuple[SignedIn, bytes]:
        """Who it is, and the server's last words."""
        if self._made is None:
            raise ProofRefused
        known: list[tuple[SignedIn, ScramVerifier]] = []

        def find() -> list[ScramVerifier]:
            datasets = self._service.datasets
            chosen = [datasets[self._wanted]] if self._wanted in datasets else list(datasets.values())
            known.extend(
                (SignedIn(token, dataset), verifier)
                for dataset in chosen
                for token, verifier in dataset.tokens.find_verifiers(self._user)
            )
            return [verifier for _, verifier in known]

        number, last = scram.check_proof(self._made, words, self._binding, find)
        return known[number][0], last


class SignIn:
    """Opens sessions of one service, and keeps the catalog of each codebook."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._catalogs: dict[str, tuple[OpenedCodebook, CatalogDatabase]] = {}

    def begin(self, start: Startup, binding: bytes | None) -> ScramExchange:
        """Begin the exchange with a client."""
        return ScramExchange(self._service, start, binding)

    def note_failure(self) -> None:
        """A line in the log of access for somebody who showed no token."""
        refused = RequestRefused(RefusalCode.UNAUTHORIZED, "There is no token, or it is not valid.", "")
        response = replace(problems.refuse_request(refused), route=ROUTE)
        self._service.metrics.count(response.route, response.status)
        self._service.note_access(response, None)

    def open_session(self, start: Startup, signed: SignedIn, process: int) -> OpenedSession:
        """The session of a client that has shown its token."""
        token, dataset = signed.token, signed.dataset
        wanted = start.settings.get("database", dataset.name)
        if wanted != dataset.name:
            hint = f"This token opens dbname={dataset.name}."
            raise WireRefused(refusals.UNDEFINED_DATABASE, "There is no such dataset.", hint, fatal=True)
        if start.settings.get("replication", "false").lower() not in ("false", "off", "no", "0"):
            raise WireRefused(refusals.FEATURE_NOT_SUPPORTED, "Nothing can be replicated here.", fatal=True)
        settings = SessionSettings(token.name, token.project, read_token_offer(dataset.tokens.find_offer(token.id)))
        _apply_start(settings, start)
        door = QuestionDoor(self._service, dataset, token)
        functions = _list_functions(token.name, dataset.name, process)

        def make_context() -> CatalogContext:
            return CatalogContext(functions, _list_session_tables(token.name, settings), settings.set)

        runner = StatementRunner(door, settings, lambda: self._find_catalog(dataset), make_context)
        caller = make_caller(token, dataset)
        self._service.note_access(ApiResponse(status=_GOOD, body=b"", route=SIGN_IN), caller)
        return OpenedSession(WireSession(runner, door.check_token), door, settings)

    def _find_catalog(self, dataset: ServedDataset) -> CatalogDatabase:
        """The catalog of the codebook in force; made anew where that was read again."""
        with self._lock:
            opened = dataset.opened
            kept = self._catalogs.get(dataset.name)
            if kept is None or kept[0] is not opened:
                kept = opened, CatalogDatabase(dataset.name, opened.curator.catalog)
                self._catalogs[dataset.name] = kept
            return kept[1]

    def close(self) -> None:
        """Forget the catalogs."""
        with self._lock:
            for _, database in self._catalogs.values():
                database.close()
            self._catalogs.clear()


def _apply_start(settings: SessionSettings, start: Startup) -> None:
    """Settings of the connection string, by name or as ``options``. What is no setting ends the connection."""
    stated = {
        name: value
        for name, value in start.settings.items()
        if name not in _OF_THE_CONNECTION and not name.startswith("_pq_.")
    }
    try:
        for name, value in {**stated, **read_options(start.settings.get("options", ""))}.items():
            settings.set(name, value)
    except WireRefused as refused:
        raise WireRefused(refused.code, refused.message, refused.hint, fatal=True) from None
    settings.keep_as_start()


def _list_functions(user: str, database: str, process: int) -> dict[str, object]:
    return {
        "version": VERSION,
        "current_user": user,
        "session_user": user,
        "current_role": user,
        "current_database": database,
        "current_catalog": database,
        "current_schema": "public",
        "current_schemas": ("pg_catalog", "public"),
        "pg_backend_pid": process,
    }


def _list_session_tables(user: str, settings: SessionSettings) -> dict[str, tuple[tuple[object, ...], ...]]:
    shown = tuple(
        (name, value, None, "discreet", "", "", "user", "string", "session", None, None, None, value, value, None, 0,
         False)
        for name, value in settings.list_all().items()
    )  # fmt: skip
    names = {"owner": OWNER, user: OWNER + 1}
    roles = tuple(
        (oid, name, False, True, False, False, name == user, False, -1, None, False, None)
        for name, oid in names.items()
    )
    users = tuple((name, oid, False, False, False, False, None, None) for name, oid in names.items())
    return {"pg_settings": shown, "pg_roles": roles, "pg_user": users}
