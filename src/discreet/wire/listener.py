"""Listens for clients of PostgreSQL: TLS, the first messages, limits on connections, sizes and times.

The event loop reads and writes; whatever works or waits is done by threads. Everybody who has not shown a token yet has
some seconds for it, small messages, and few places.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
import ssl
import struct
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

from discreet.entropy import SYSTEM
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.service.routes import Service
from discreet.service.server import is_loopback, listen_at
from discreet.wire import backend_messages as backend
from discreet.wire import frontend_messages as frontend
from discreet.wire import refusals
from discreet.wire.frontend_messages import ProtocolViolation, Startup
from discreet.wire.refusals import WireRefused, describe_refusal
from discreet.wire.scram import ProofRefused, hash_certificate
from discreet.wire.session import SessionOver
from discreet.wire.sign_in import OpenedSession, SignedIn, SignIn

LOG = logging.getLogger("discreet.service")
MOST_CONNECTIONS, MOST_FOR_A_TOKEN = 100, 20
SIGN_IN_SECONDS, IDLE_SECONDS, READ_SECONDS, WRITE_SECONDS = 20.0, 1800.0, 60.0, 60.0
_BACKLOG, _PATIENCE = 128, 30.0
# A connection that ended, or half of a message that never came; a time-out is an OSError, too.
_BROKEN = (asyncio.IncompleteReadError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireAddress:
    """Where to listen. Other machines are listened to by TLS alone."""

    host: str = "127.0.0.1"
    port: int = 5439
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and self.certificate is None:
            raise UsageError(
                "Answers would travel in the clear to other machines. Give --certificate and --key for --postgres, or "
                "leave out --host."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WireLimits:
    """How much clients may have of connections and of time."""

    connections: int = MOST_CONNECTIONS
    for_a_token: int = MOST_FOR_A_TOKEN
    sign_in_seconds: float = SIGN_IN_SECONDS
    idle_seconds: float = IDLE_SECONDS

    @property
    def strangers(self) -> int:
        """How many may be there who have not shown a token yet: the others keep places for those who have."""
        return max(1, self.connections // 2)


DEFAULT_LIMITS = WireLimits()


class PostgresDoor:
    """The door itself: ``listen`` takes the port, ``open`` serves until it is left."""

    def __init__(self, address: WireAddress, limits: WireLimits = DEFAULT_LIMITS) -> None:
        self._address, self._limits = address, limits
        self._tls, self._binding = _load_certificate(address)
        self._connections: Counter[str] = Counter()
        self._sessions: dict[int, tuple[bytes, OpenedSession]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._strangers = 0
        self._sign_in: SignIn | None = None
        self._socket: socket.socket | None = None
        self._threads = ThreadPoolExecutor(max_workers=limits.connections, thread_name_prefix="discreet-postgres")

    def listen(self, service: Service, stack: ExitStack) -> str:
        """Take the port; words that say where it is."""
        host, port = self._address.host, self._address.port
        try:
            self._socket = stack.enter_context(listen_at(host, port, _BACKLOG))
        except OSError as error:
            raise UsageError(f"Port {port} cannot be used: {error.strerror}. Give --postgres another one.") from None
        self._sign_in = SignIn(service)
        stack.callback(self._sign_in.close)
        tls = " sslmode=require" if self._tls is not None else ""
        return f'For clients of PostgreSQL: psql "host={host} port={port} dbname=DATASET user=NAME password=TOKEN{tls}"'

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Serve clients until the end. Questions that run then are finished, within half a minute."""
        server = await asyncio.start_server(self._accept, sock=self._socket, limit=1 << 16)
        try:
            yield
        finally:
            server.close()
            for _, session in self._sessions.values():
                session.stopping = True
            for task in [task for task in self._tasks if not self._is_busy(task)]:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=_PATIENCE)
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _is_busy(self, task: asyncio.Task[None]) -> bool:
        return any(session.busy and session.task is task for _, session in self._sessions.values())

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            raise AssertionError("A connection is a task.")
        self._tasks.add(task)
        try:
            if len(self._tasks) > self._limits.connections or self._strangers >= self._limits.strangers:
                await _send(writer, _refuse(refusals.TOO_MANY_CONNECTIONS, "There are too many connections."))
            else:
                await self._serve(reader, writer)
        except (*_BROKEN, asyncio.CancelledError) as error:
            # Nobody is there to hear more, or somebody who neither reads nor writes; or the server stops.
            LOG.info("A connection ended: %s", type(error).__name__)
        except ProtocolViolation:
            with suppress(*_BROKEN):
                await _send(writer, _refuse(refusals.PROTOCOL_VIOLATION, "This is not the protocol of PostgreSQL."))
        except SessionOver as over:
            with suppress(*_BROKEN):
                await _send(writer, over.last)
        except Exception as error:
            LOG.error("An error that nobody foresaw: %s", type(error).__name__)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._strangers += 1
        try:
            async with asyncio.timeout(self._limits.sign_in_seconds):
                start = await self._read_startup(reader, writer)
                signed = None if start is None else await self._sign_in_by_scram(reader, writer, start)
        except TimeoutError:  # PostgreSQL has the same state for it
            rule = f"Signing in took longer than {self._limits.sign_in_seconds:g} seconds."
            raise SessionOver(_refuse(refusals.QUERY_CANCELED, rule, "Connect again.")) from None
        finally:
            self._strangers -= 1
        if start is None or signed is None:
            return
        token = signed.token.id
        if self._connections[token] >= self._limits.for_a_token:
            rule = f"A token has at most {self._limits.for_a_token} connections."
            raise SessionOver(_refuse(refusals.TOO_MANY_CONNECTIONS, rule))
        self._connections[token] += 1
        process = self._draw_process()
        try:
            session = await self._open_session(writer, start, signed, process)
            await self._talk(reader, writer, session)
        finally:
            self._sessions.pop(process, None)
            self._connections[token] -= 1

    async def _read_startup(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Startup | None:
        """The first message that says who wants what; before it, TLS. None for a wish to cancel."""
        encrypted = False
        for _ in range(3):
            length = struct.unpack("!I", await reader.readexactly(4))[0]
            if not 8 <= length <= frontend.MOST_STARTUP_BYTES:
                raise ProtocolViolation
            message = frontend.read_start(await reader.readexactly(length - 4))
            if isinstance(message, frontend.CancelRequest):
                self._cancel(message)
                return None
            if isinstance(message, Startup):
                if self._tls is not None and not encrypted:
                    rule = "This server speaks TLS alone."
                    raise SessionOver(_refuse(refusals.INVALID_AUTHORIZATION, rule, "Add sslmode=require."))
                return message
            if not message.tls or self._tls is None or encrypted:
                await _send(writer, b"N")
                continue
            if reader._buffer:  # type: ignore[attr-defined]  # noqa: SLF001  # words in the clear that would pass for TLS
                raise ProtocolViolation
            await _send(writer, b"S")
            await writer.start_tls(self._tls)
            encrypted = True
        raise ProtocolViolation

    async def _sign_in_by_scram(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, start: Startup
    ) -> SignedIn:
        if self._sign_in is None:
            raise AssertionError("The port is taken before.")
        unknown = [name for name in start.settings if name.startswith("_pq_.")]
        if start.minor or unknown:
            await _send(writer, backend.negotiate_version(unknown))
        exchange = self._sign_in.begin(start, self._binding)
        await _send(writer, backend.ask_for_sasl(exchange.mechanisms))
        loop = asyncio.get_running_loop()
        try:
            mechanism, words = frontend.read_sasl(await _read_sasl_message(reader), first=True)
            await _send(writer, backend.continue_sasl(exchange.challenge(mechanism, words), last=False))
            _, words = frontend.read_sasl(await _read_sasl_message(reader), first=False)
            signed, last = await loop.run_in_executor(self._threads, exchange.finish, words)
        except (ProofRefused, ProtocolViolation):
            await loop.run_in_executor(self._threads, self._sign_in.note_failure)
            raise SessionOver(describe_refusal(refuse_sign_in(), 0).encode()) from None
        await _send(writer, backend.continue_sasl(last, last=True))
        return signed

    async def _open_session(
        self, writer: asyncio.StreamWriter, start: Startup, signed: SignedIn, process: int
    ) -> OpenedSession:
        """A session, and the first words to its client."""
        loop = asyncio.get_running_loop()
        if self._sign_in is None:
            raise AssertionError("The port is taken before.")
        try:
            session = await loop.run_in_executor(self._threads, self._sign_in.open_session, start, signed, process)
        except WireRefused as refused:
            raise SessionOver(describe_refusal(refused, 0).encode()) from None
        session.task = asyncio.current_task()
        secret = SYSTEM.bits(32).to_bytes(4, "big")
        self._sessions[process] = (secret, session)
        hello = [backend.AUTHENTICATION_OK, backend.tell_settings(session.settings.tell())]
        await _send(writer, b"".join([*hello, backend.give_key(process, secret), session.machine.be_ready()]))
        return session

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, session: OpenedSession) -> None:
        """Message by message, until the client leaves or is idle for too long."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                async with asyncio.timeout(self._limits.idle_seconds):
                    head = await reader.readexactly(5)
            except TimeoutError:
                raise SessionOver(_refuse(refusals.IDLE_TOO_LONG, "The connection was idle for too long.")) from None
            tag, length = head[:1], struct.unpack("!I", head[1:])[0]
            if not 4 <= length <= frontend.MOST_BYTES:
                raise ProtocolViolation
            async with asyncio.timeout(READ_SECONDS):
                body = await reader.readexactly(length - 4)
            message = frontend.read_message(tag, body)
            session.busy = True
            try:
                made = await loop.run_in_executor(self._threads, session.machine.handle, message)
            finally:
                session.busy = False
            await _send(writer, made)
            if session.stopping:
                raise SessionOver(_refuse(refusals.SHUT_DOWN, "The server stops."))

    def _draw_process(self) -> int:
        while (found := SYSTEM.bits(31)) in self._sessions:
            pass
        return found

    def _cancel(self, message: frontend.CancelRequest) -> None:
        """End what a connection runs, if its secret is known. Nothing is sent back in any case."""
        secret, session = self._sessions.get(message.process, (b"", None))
        if session is not None and hmac.compare_digest(secret, message.secret):
            session.door.cancel()


def refuse_sign_in() -> WireRefused:
    """The one refusal of everybody who did not show a token; whether the name is known is not said."""
    hint = (
        "Give the name of the token as user, the token as password, and the dataset as dbname. A token that was made "
        "before this door was built has to be made anew: discreet token create CODEBOOK --name NAME."
    )
    return WireRefused(refusals.INVALID_PASSWORD, "There is no such token, or it is not valid.", hint, fatal=True)


def _refuse(code: str, rule: str, hint: str = "") -> bytes:
    return describe_refusal(WireRefused(code, rule, hint, fatal=True), 0).encode()


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    if data:
        writer.write(data)
        async with asyncio.timeout(WRITE_SECONDS):
            await writer.drain()


async def _read_sasl_message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    length = struct.unpack("!I", head[1:])[0]
    if head[:1] != b"p" or not 4 <= length <= frontend.MOST_SASL_BYTES:
        raise ProtocolViolation
    return await reader.readexactly(length - 4)


def _load_certificate(address: WireAddress) -> tuple[ssl.SSLContext | None, bytes | None]:
    """What speaks TLS, and what clients bind to."""
    if address.certificate is None:
        return None, None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(address.certificate, address.key)
        return context, hash_certificate(address.certificate.read_bytes())
    except (OSError, ValueError):
        raise UsageError("The certificate or its key cannot be read. Give both as PEM files.") from None
