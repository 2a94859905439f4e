"""A cursor: asks one question at a time, and hands out the rows of its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

from discreet.dbapi.exceptions import InterfaceError, NotSupportedError, ProgrammingError, translate_errors
from discreet.dbapi.statements import bind_names, cut_explain, read_set, states_price
from discreet.plan.types import Type

if TYPE_CHECKING:
    from discreet.answer import Answer
    from discreet.curator import Curator
    from discreet.preview import Preview
    from discreet.remote.remote_curator import RemoteCurator

Description: TypeAlias = list[tuple[str, str, None, None, None, None, bool]]


class AskedConnection(Protocol):
    """What a cursor needs of its connection: a curator, in whose name it is asked, and what a question may cost."""

    curator: Curator | RemoteCurator
    names: dict[str, Any]
    offer: dict[str, Any]
    closed: bool


class Cursor:
    """The cursor of the standard. ``answer`` is the whole answer of the last question, with its receipt.

    ``description`` names the columns with their types, and beside a noisy one ``_low`` and ``_high``, the ends of its
    interval. ``describe`` gives the same before anything is asked, free.
    """

    arraysize = 1
    lastrowid: None = None

    def __init__(self, connection: AskedConnection) -> None:
        self.connection = connection
        self.description: Description | None = None
        self.rowcount = -1
        self.answer: Answer | None = None
        self._rows: list[tuple[Any, ...]] | None = None
        self._next = 0
        self._closed = False

    def execute(self, operation: str, parameters: Mapping[str, Any] | None = None) -> Cursor:
        """Ask a question at what the connection offers, or what its text states; or SET that; or EXPLAIN, free."""
        self._check_open()
        sql, values = _read_operation(operation, parameters)
        self._keep(None, None)
        offer = read_set(sql, self.connection.offer)
        if offer is not None:
            self.connection.offer = offer
            return self
        explained = cut_explain(sql)
        if explained is not None:
            self._show_preview(explained, values)
            return self
        with translate_errors():
            offer = {} if states_price(sql) else self.connection.offer
            answer = self.connection.curator.ask(
                bind_names(sql, values), **offer, **self.connection.names, parameters=values or None
            )
        columns = answer.columns()
        rows = list(zip(*(cells for _, _, cells in columns)))
        self._keep([(name, str(kind), None, None, None, None, True) for name, kind, _ in columns], rows)
        self.answer = answer
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Any]) -> NoReturn:  # noqa: ARG002  # the standard's
        """Refused: each set of parameters would be a question of its own, and charged."""
        raise NotSupportedError(
            "Each set of parameters would be a question and a charge of its own. Ask one question that groups by what "
            "varies, or several with execute. Nothing was charged."
        )

    def describe(self, operation: str, parameters: Mapping[str, Any] | None = None) -> Description:
        """The description that a question will have, before it is asked. Free."""
        sql, values = _read_operation(operation, parameters)
        schema = self._preview(sql, values).to_dict()["schema"]
        return [(name, str(Type(kind)), None, None, None, None, True) for name, kind in schema.items()]

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows, as many as asked for or as ``arraysize`` says."""
        rows = self._get_rows()
        start, self._next = self._next, min(len(rows), self._next + (self.arraysize if size is None else size))
        return rows[start : self._next]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self.fetchmany(len(self._get_rows()))

    def close(self) -> None:
        """Let go of the rows."""
        self._closed, self._rows = True, None

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Nothing to do."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing to do."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchone, None)

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _show_preview(self, sql: str, values: Mapping[str, Any]) -> None:
        lines = str(self._preview(sql, values)).splitlines()
        self._keep([("preview", str(Type.TEXT), None, None, None, None, False)], [(line,) for line in lines])

    def _preview(self, sql: str, values: Mapping[str, Any]) -> Preview:
        self._check_open()
        connection = self.connection
        with translate_errors():
            offer = {} if states_price(sql) else connection.offer
            return connection.curator.preview(
                bind_names(sql, values), **offer, **connection.names, parameters=values or None
            )

    def _keep(self, description: Description | None, rows: list[tuple[Any, ...]] | None) -> None:
        self.description, self._rows, self._next, self.answer = description, rows, 0, None
        self.rowcount = -1 if rows is None else len(rows)

    def _get_rows(self) -> list[tuple[Any, ...]]:
        self._check_open()
        if self._rows is None:
            raise ProgrammingError("There are no rows to fetch: ask a question first.")
        return self._rows

    def _check_open(self) -> None:
        if self._closed or self.connection.closed:
            raise InterfaceError("The cursor or its connection is closed.")


def _read_operation(operation: str, parameters: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    if not isinstance(operation, str):
        raise ProgrammingError("A statement is a text. Nothing was charged.")
    if parameters and not isinstance(parameters, Mapping):
        raise ProgrammingError("Parameters are given by name: execute(sql, {'age': 40}). Nothing was charged.")
    return operation, dict(parameters or {})
