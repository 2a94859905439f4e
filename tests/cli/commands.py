"""Commands as a person gives them: the type of the ``run`` fixture, and a terminal of our own."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]
"""Called with the words of a command: its exit code, output and errors."""


def on_terminal(*arguments: object, width: int = 80, typed: str = "") -> tuple[int, str]:
    """Run the command line in a pseudo-terminal of a width, type into it, and see what a person would."""
    child, parent = pty.fork()
    if child == 0:  # pragma: no cover  # the child becomes another program
        os.environ.update(COLUMNS=str(width), LINES="50", TERM="xterm-256color")
        os.execv(sys.executable, [sys.executable, "-m", "discreet.cli.main", *map(str, arguments)])  # noqa: S606  # our own program
    os.write(parent, typed.encode())
    seen = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and select.select([parent], [], [], 60)[0]:
        try:
            part = os.read(parent, 65536)
        except OSError:  # the terminal is closed
            break
        if not part:
            break
        seen += part
    _, status = os.waitpid(child, 0)
    os.close(parent)
    return os.waitstatus_to_exitcode(status), seen.decode()
