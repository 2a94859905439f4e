"""Servers that start in a moment: forked from a process that has loaded everything, with ports of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.ledger.base_ledger import BaseLedger
from discreet.service.server import ServerAddress, serve
from tests.service.test_server import ServerClient

# Whatever a first question loads late is there before the fork.
LOADED = (
    "anyio._backends._asyncio", "discreet.curator", "discreet.engines.duckdb.engine", "discreet.picture",
    "discreet.service.app", "discreet.plan.arrow", "duckdb", "encodings.idna", "h11", "pandas", "pyarrow.parquet",
    "sqlglot.dialects.duckdb", "sqlglot.generators.duckdb", "sqlglot.transforms", "tests.service.forked",
    "uvicorn.lifespan.on", "uvicorn.loops.asyncio", "uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto",
)  # fmt: skip
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(list(LOADED))


@contextmanager
def fork_server(
    codebook: Path, prepare: Callable[[], None] | None = None
) -> Iterator[tuple[ServerClient, Callable[[], None]]]:
    """A server in a process of its own, and what kills it with SIGKILL. ``prepare`` is called there at its start."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    hear, tell = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_serve, args=(str(codebook), port, tell, prepare), daemon=True)
    process.start()
    tell.close()

    def kill() -> None:
        process.kill()
        process.join()

    try:
        while "ctrl-C stops" not in hear.recv():
            pass
        yield ServerClient(port), kill
    finally:
        kill()
        hear.close()
        process.close()


def _serve(codebook: str, port: int, tell: Connection, prepare: Callable[[], None] | None) -> None:
    with (Path(codebook).parent / "server.log").open("ab") as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
    if prepare is not None:
        prepare()
    serve([codebook], ServerAddress(port=port), tell.send)


def die_at(moment: str) -> None:
    """Let this process die by SIGKILL at a moment such as ``before claim`` or ``after reserve`` of the ledger."""
    when, name = moment.split(" ")
    step = getattr(BaseLedger, name)

    def run(*arguments: Any) -> Any:
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        step(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(BaseLedger, name, run)


def run_by_files(folder: Path) -> None:
    """Let questions wait half-way while there is a file ``wait``, and fail while there is a file ``fail``."""
    run = DuckDBEngine.run

    def run_when_told(*arguments: Any, **words: Any) -> Any:
        while (folder / "wait").exists():
            words["watch"](0.5)
            time.sleep(0.02)
        if (folder / "fail").exists():
            raise MemoryError
        return run(*arguments, **words)

    DuckDBEngine.run = run_when_told  # type: ignore[method-assign]  # in a process of its own
