"""A PostgreSQL of the tests' own, on loopback and in a folder that goes away; or the reason why there is none.

It needs the server's programs (Debian: ``apt-get install postgresql``) and psycopg (the extra ``postgres``).
PostgreSQL does not run as root, so then it runs as the user ``postgres`` or ``nobody``.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from discreet.ledger.policy import Policy
from discreet.ledger.postgres import PostgresLedger
from discreet.privacy import Budget
from tests.ledger.charges import ONE, TERMS, Opener

_SCHEMAS = count()


def programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    plain = shutil.which("initdb")
    return None if plain is None else Path(plain).resolve().parent


def missing() -> str:
    """Why there is no server; empty where there can be one."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed (pip install discreet[postgres])"
    if programs() is None:
        return "PostgreSQL's programs are not installed (Debian: apt-get install postgresql)"
    return "" if os.geteuid() or _user() else "PostgreSQL does not run as root, and there is no user for it"


def _user() -> str | None:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


class Server:
    """A running server; ``address`` is how to reach it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="discreet-postgres-"))
        self.bin, self.data = programs() or Path(), self.folder / "data"
        self.user = _user() if os.geteuid() == 0 else None
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        self.port = _free_port()
        self.run("initdb", "-D", self.data, "-U", "tests", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        self.start()
        self.address = f"postgresql://tests@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *arguments: object) -> None:
        command: Sequence[str] = [str(self.bin / program), *map(str, arguments)]
        subprocess.run(  # noqa: S603  # the server's own programs
            command, cwd=self.folder, user=self.user, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def start(self) -> None:
        # Autovacuum writes by itself, and snapshots would move while nobody else does.
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder} -c max_connections=80 -c autovacuum=off"
        self.run("pg_ctl", "-D", self.data, "-l", self.folder / "log", "-w", "-o", options, "start")

    def crash(self) -> None:
        """Stop as in a loss of power, and start again."""
        self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
        self.start()

    def stop(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@lru_cache(maxsize=1)
def server() -> Server:
    """The server of this test run, started when it is first needed."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    started = Server()
    atexit.register(_stop_in, os.getpid(), started)
    return started


def _stop_in(pid: int, started: Server) -> None:
    if os.getpid() == pid:  # not in forked children
        started.stop()


def opener() -> Opener:
    """Opens ledgers, each folder having a schema of its own."""
    started = server()
    schemas: dict[Path, str] = {}

    def open_postgres(folder: Path, budget: Budget = ONE, policy: Policy | None = None, **other: Any) -> PostgresLedger:
        schema = schemas.setdefault(folder, f"test_{os.getpid()}_{next(_SCHEMAS)}")
        return PostgresLedger.open(
            started.address, budget=budget, policy=policy, **{"schema": schema, **TERMS, **other}
        )

    return open_postgres
