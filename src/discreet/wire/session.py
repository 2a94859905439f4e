"""The state machine of one connection after it has shown its token: messages in, bytes out.

Statements and portals have names, errors are passed over until Sync, and rows are handed out in parts where a client
wants so. No message is trusted: what comes in the wrong order is an error of the protocol, and nothing is charged.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from typing import Any

from discreet.late_dataclass import dataclass
from discreet.wire import backend_messages as backend
from discreet.wire import frontend_messages as frontend
from discreet.wire import refusals
from discreet.wire.frontend_messages import ClientMessage
from discreet.wire.questions import QuestionEnded
from discreet.wire.refusals import WireRefused
from discreet.wire.results import StatementResult, spread_formats, write_copied, write_rows, write_whole
from discreet.wire.statement_runner import StatementRunner
from discreet.wire.statement_words import StatementKind, WireStatement, split_statements
from discreet.wire.value_types import BY_OID, ValueRefused, WireType, read_parameter

LOG = logging.getLogger("discreet.service")
MOST_STATEMENTS, MOST_PORTALS = 500, 200
_NOTHING = WireStatement("", 0, ())
# Values that stand for parameters while a statement is described.
_SAMPLES: dict[WireType, Any] = {
    WireType.BOOL: True,
    WireType.INT2: 1,
    WireType.INT4: 1,
    WireType.INT8: 1,
    WireType.OID: 1,
    WireType.FLOAT4: 1.0,
    WireType.FLOAT8: 1.0,
    WireType.NUMERIC: 1.0,
    WireType.DATE: dt.date(2000, 1, 1),
    WireType.TIMESTAMP: dt.datetime(2000, 1, 1),  # noqa: DTZ001  # times have no zone here
    WireType.TIMESTAMPTZ: dt.datetime(2000, 1, 1),  # noqa: DTZ001
}


class SessionOver(Exception):
    """The connection ends after these bytes."""

    def __init__(self, last: bytes = b"") -> None:
        self.last = last
        super().__init__()


@dataclass(frozen=True, slots=True)
class PreparedText:
    """A prepared statement, and the types that the client gave its parameters."""

    statement: WireStatement
    types: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many parameters it has: the highest number behind a $."""
        pairs = zip(self.statement.words, self.statement.words[1:])
        found = [int(b.text) for a, b in pairs if a.upper == "$" and b.text.isdecimal() and b.start == a.end]
        return max([len(self.types), *(each for each in found if each <= frontend.MOST_PARAMETERS)])


class OpenPortal:
    """A statement with values, and how far its rows were handed out."""

    def __init__(self, statement: WireStatement, values: tuple[Any, ...], formats: tuple[int, ...]) -> None:
        self.statement, self.values, self.formats = statement, values, formats
        self.result: StatementResult | None = None
        self.at = 0


class WireSession:
    """One connection. ``handle`` is called for one message at a time, and may take as long as a question does."""

    def __init__(self, runner: StatementRunner, check: Callable[[], None]) -> None:
        self._runner, self._check = runner, check
        self._statements: dict[str, PreparedText] = {}
        self._portals: dict[str, OpenPortal] = {}
        self._skipping = False

    def handle(self, message: ClientMessage) -> bytes:
        """What is sent back for a message."""
        match message:
            case frontend.PlainMessage(tag="X"):
                raise SessionOver
            case frontend.PlainMessage(tag="S"):
                self._skipping = False
                return self.be_ready()
            case frontend.PlainMessage(tag="F"):
                refused = WireRefused(refusals.FEATURE_NOT_SUPPORTED, "Functions are not called this way here.")
                return refusals.describe_refusal(refused, 0).encode() + self.be_ready()
            case frontend.PlainMessage():
                return b""
            case frontend.SimpleQuery():
                self._skipping = False
                return self._run_simple(message.text)
        if self._skipping:
            return b""
        done, made = self._attempt(lambda: self._handle_extended(message))
        self._skipping = not done
        return made

    def be_ready(self) -> bytes:
        """The next statement may come. Outside of a transaction, its portals are gone."""
        if self._runner.state is backend.TransactionState.IDLE:
            self._portals.clear()
        return backend.be_ready(self._runner.state)

    def _attempt(self, work: Callable[[], bytes]) -> tuple[bool, bytes]:
        """Whether a piece of work was done, and what it gives; what goes wrong is an ERROR, and nothing else."""
        try:
            self._check()
            return True, work()
        except QuestionEnded as ended:
            notice = ended.notice
        except WireRefused as refused:
            notice = refusals.describe_refusal(refused, 0)
            if refused.fatal:
                raise SessionOver(notice.encode()) from None
        except ValueRefused as refused_value:
            notice = refusals.describe_refusal(WireRefused(refusals.INVALID_PARAMETER, str(refused_value)), 0)
        except Exception as error:
            LOG.error("An error that nobody foresaw: %s", type(error).__name__)
            notice = refusals.describe_unforeseen(charged=None)
        self._runner.fail()
        return False, notice.encode()

    def _run_simple(self, text: str) -> bytes:
        made: list[bytes] = []

        def run_all() -> bytes:
            statements = split_statements(text)
            if not statements:
                made.append(backend.EMPTY_QUERY)
            for statement in statements:  # what came before an error stays sent
                made.append(write_whole(self._run_placed(statement, ())))  # noqa: PERF401
            return b""

        _, last = self._attempt(run_all)
        return b"".join([*made, last]) + self.be_ready()

    def _run_placed(self, statement: WireStatement, values: tuple[Any, ...]) -> StatementResult:
        """The result of a statement; the place of a refusal counts from the beginning of the client's text."""
        try:
            return self._run(statement, values)
        except WireRefused as refused:
            if refused.place is not None:
                refused.place += statement.offset
            raise

    def _run(self, statement: WireStatement, values: tuple[Any, ...]) -> StatementResult:
        words = statement.words
        match statement.kind:
            case StatementKind.DEALLOCATE:
                name = words[-1].value
                if words[-1].upper == "ALL":
                    self._statements.clear()
                elif self._statements.pop(name, None) is None:
                    raise _make_unknown_statement()
                return StatementResult(tag="DEALLOCATE")
            case StatementKind.DISCARD:
                self._statements.clear()
                self._portals.clear()
                self._runner.settings.reset("all")
                return StatementResult(tag="DISCARD ALL")
            case StatementKind.DECLARE:
                return self._declare(statement, values)
            case StatementKind.FETCH:
                return self._fetch(statement)
            case StatementKind.CLOSE:
                self._portals.pop(words[-1].value, None)
                return StatementResult(tag="CLOSE CURSOR")
            case _:
                return self._runner.run(statement, values)

    def _declare(self, statement: WireStatement, values: tuple[Any, ...]) -> StatementResult:
        """DECLARE name CURSOR FOR SELECT: it runs at the first FETCH."""
        words = statement.words
        at = next((n for n, word in enumerate(words) if word.upper == "FOR"), None)
        if at is None or at + 1 >= len(words) or at < 3:
            raise WireRefused(refusals.SYNTAX_ERROR, "DECLARE takes a name and a SELECT.", place=0)
        if self._runner.state is backend.TransactionState.IDLE:
            raise WireRefused("25P01", "DECLARE CURSOR can only be used in a transaction.", "Send BEGIN before it.")
        self._keep_portal(words[1].value, OpenPortal(statement.cut(words[at + 1].start), values, ()))
        return StatementResult(tag="DECLARE CURSOR")

    def _fetch(self, statement: WireStatement) -> StatementResult:
        """FETCH and MOVE, forward only."""
        words = statement.words
        portal = self._find_portal(words[-1].value)
        said = {word.upper for word in words[1:-1]}
        numbers = [int(word.text) for word in words[1:-1] if word.text.isdecimal()]
        if said & {"BACKWARD", "PRIOR", "ABSOLUTE", "RELATIVE", "LAST", "FIRST"}:
            raise WireRefused(refusals.FEATURE_NOT_SUPPORTED, "Cursors go forward alone here.")
        result = self._run_portal(portal)
        end = len(result.rows) if "ALL" in said else portal.at + (numbers[0] if numbers else 1)
        rows = result.rows[portal.at : end]
        portal.at = min(end, len(result.rows))
        tag = f"{words[0].upper} {len(rows)}"
        if words[0].upper == "MOVE":
            return StatementResult(tag=tag)
        return StatementResult(tag=tag, columns=result.columns, rows=rows)

    # The extended protocol

    def _handle_extended(self, message: ClientMessage) -> bytes:
        match message:
            case frontend.ParseStatement():
                return self._parse(message)
            case frontend.BindPortal():
                return self._bind(message)
            case frontend.DescribeItem():
                return self._describe_portal(message.name) if message.portal else self._describe(message.name)
            case frontend.ExecutePortal():
                return self._execute(message)
            case frontend.CloseItem():
                kept: dict[str, Any] = self._portals if message.portal else self._statements
                kept.pop(message.name, None)
                return backend.CLOSE_COMPLETE
            case _:
                raise AssertionError("Other messages were handled before.")

    def _parse(self, message: frontend.ParseStatement) -> bytes:
        statements = split_statements(message.text)
        if len(statements) > 1:
            raise WireRefused(refusals.SYNTAX_ERROR, "A prepared statement is one statement.")
        if message.name and message.name in self._statements:
            raise WireRefused(refusals.DUPLICATE_STATEMENT, "There is a prepared statement of this name already.")
        if len(self._statements) >= MOST_STATEMENTS and message.name not in self._statements:
            raise WireRefused(refusals.LIMIT_EXCEEDED, f"A session has at most {MOST_STATEMENTS} prepared statements.")
        self._statements[message.name] = PreparedText(statements[0] if statements else _NOTHING, message.types)
        return backend.PARSE_COMPLETE

    def _bind(self, message: frontend.BindPortal) -> bytes:
        prepared = self._find_statement(message.statement)
        if len(message.values) != prepared.count:
            rule = f"The statement has {prepared.count} parameters, and {len(message.values)} values were given."
            raise WireRefused(refusals.PROTOCOL_VIOLATION, rule)
        types = prepared.types + (0,) * (prepared.count - len(prepared.types))
        values = tuple(
            read_parameter(data, oid, binary=bool(form))
            for data, oid, form in zip(message.values, types, message.formats)
        )
        self._keep_portal(message.portal, OpenPortal(prepared.statement, values, message.results))
        return backend.BIND_COMPLETE

    def _keep_portal(self, name: str, portal: OpenPortal) -> None:
        if name and name in self._portals:
            raise WireRefused(refusals.DUPLICATE_PORTAL, "There is a portal of this name already.")
        if len(self._portals) >= MOST_PORTALS:
            raise WireRefused(refusals.LIMIT_EXCEEDED, f"A session has at most {MOST_PORTALS} portals.")
        self._portals[name] = portal

    def _describe(self, name: str) -> bytes:
        """A prepared statement: types of its parameters, and the columns that it would give with any values."""
        prepared = self._find_statement(name)
        types = prepared.types + (0,) * (prepared.count - len(prepared.types))
        kinds = [BY_OID.get(oid, WireType.TEXT) if oid else WireType.TEXT for oid in types]
        samples = tuple(_SAMPLES.get(kind, "") for kind in kinds)
        columns = self._runner.describe(prepared.statement, samples)
        rows = backend.NO_DATA if columns is None else backend.describe_rows(columns, (0,) * len(columns))
        return backend.describe_parameters(kinds) + rows

    def _describe_portal(self, name: str) -> bytes:
        portal = self._find_portal(name)
        fetch = portal.statement.kind is StatementKind.FETCH
        source = self._find_portal(portal.statement.words[-1].value) if fetch else portal  # describing asks nothing
        if source.result is not None:
            columns = None if source.result.copy else source.result.columns
        else:
            columns = self._runner.describe(source.statement, source.values)
        if columns is None:
            return backend.NO_DATA
        return backend.describe_rows(columns, spread_formats(portal.formats, len(columns)))

    def _execute(self, message: frontend.ExecutePortal) -> bytes:
        portal = self._find_portal(message.portal)
        if portal.statement.kind is StatementKind.EMPTY:
            return backend.EMPTY_QUERY
        first = portal.result is None
        result = self._run_portal(portal)
        beside = result.beside if first else b""
        if result.copy is not None:
            return beside + write_copied(result)
        if result.columns is None:
            return beside + backend.complete(result.tag)
        formats = spread_formats(portal.formats, len(result.columns))
        end = len(result.rows) if message.most <= 0 else min(len(result.rows), portal.at + message.most)
        rows = write_rows(result, formats, result.rows[portal.at : end])
        sent, portal.at = end - portal.at, end
        if 0 < message.most <= sent:
            return beside + rows + backend.PORTAL_SUSPENDED
        tag = f"SELECT {sent}" if result.tag.startswith("SELECT") else result.tag
        return beside + rows + backend.complete(tag)

    def _run_portal(self, portal: OpenPortal) -> StatementResult:
        if portal.result is None:
            portal.result = self._run_placed(portal.statement, portal.values)
        return portal.result

    def _find_statement(self, name: str) -> PreparedText:
        found = self._statements.get(name)
        if found is None:
            raise _make_unknown_statement()
        return found

    def _find_portal(self, name: str) -> OpenPortal:
        found = self._portals.get(name)
        if found is None:
            raise WireRefused(refusals.UNDEFINED_PORTAL, "There is no portal or cursor of this name.")
        return found


def _make_unknown_statement() -> WireRefused:
    return WireRefused(refusals.UNDEFINED_STATEMENT, "There is no prepared statement of this name.")
