"""A connection: a curator, in whose name it is asked, and what a question may cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.dbapi.cursor import Cursor
from discreet.dbapi.exceptions import (
    DatabaseError,
    DatabaseWarning,
    DataError,
    DbapiError,
    IntegrityError,
    InterfaceError,
    InternalDatabaseError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    translate_errors,
)

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.remote.remote_curator import RemoteCurator

_ADDRESSES = ("http://", "https://")
_OFFER = ("epsilon", "rho", "share", "error", "delta", "level")


def connect(
    source: str | Path | Curator | RemoteCurator,
    *,
    analyst: str | None = None,
    project: str | None = None,
    token: str | None = None,
    dataset: str | None = None,
    allow_http: bool = False,
    **offer: Any,
) -> Connection:
    """A connection to a codebook, to the address of a server, or to a curator that is open already.

    ``offer`` is what one question may cost: one of ``epsilon``, ``rho``, ``share`` and ``error``, and ``delta`` and
    ``level`` beside it. Who asks is said by ``analyst`` and ``project`` at home, and by the ``token`` on a server.
    """
    unknown = [word for word in offer if word not in _OFFER]
    if unknown:
        raise ProgrammingError(f"connect() does not know {unknown[0]!r}. An offer is {', '.join(_OFFER)}.")
    said = {name: value for name, value in (("analyst", analyst), ("project", project)) if value is not None}
    with translate_errors():
        if isinstance(source, str) and source.startswith(_ADDRESSES):
            from discreet.remote.remote_curator import connect as reach

            if said:
                raise ProgrammingError("On a server the token says who asks: leave out analyst and project.")
            return Connection(reach(source, token=token, dataset=dataset, allow_http=allow_http), {}, offer, own=True)
        if isinstance(source, str | Path):
            from discreet.opening import open_codebook

            return Connection(open_codebook(source), said, offer, own=True)
    return Connection(source, said, offer, own=False)


class Connection:
    """The connection of the standard. ``messages`` has what is worth knowing, such as that charges are never undone.

    ``offer`` is what one question may cost; change it here, or by ``SET discreet.share = 0.02``.
    """

    Error = DbapiError
    Warning = DatabaseWarning
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalDatabaseError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(
        self, curator: Curator | RemoteCurator, names: dict[str, Any], offer: dict[str, Any], *, own: bool
    ) -> None:
        self.curator = curator
        self.names = names
        self.offer = {name: value for name, value in offer.items() if value is not None}
        self.messages: list[tuple[type[Exception], str]] = []
        self.closed = False
        self._own = own

    def cursor(self) -> Cursor:
        """A new cursor."""
        self._check_open()
        return Cursor(self)

    def commit(self) -> None:
        """Nothing to do: a charge is on record before its question is answered."""
        self._check_open()

    def rollback(self) -> None:
        """Nothing is undone: what was charged was told, and stays charged. ``messages`` says so."""
        self._check_open()
        words = "Nothing is rolled back: answers that were given stay charged."
        if (DatabaseWarning, words) not in self.messages:
            self.messages.append((DatabaseWarning, words))

    def close(self) -> None:
        """Close the curator, where this connection has opened it."""
        if self._own and not self.closed:
            self.curator.close()
        self.closed = True

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self.closed:
            raise InterfaceError("The connection is closed.")
