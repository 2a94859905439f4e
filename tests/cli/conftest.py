"""What the tests of the command line share: a way to call it in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeAlias

import pytest

from discreet.cli import main

Run: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command line: its exit code, output and errors. A module may set its first words and its width."""
    words: tuple[str, ...] = getattr(request.module, "WORDS", ())
    width: int = getattr(request.module, "WIDTH", 120)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["discreet", *words, *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", str(width))
        with pytest.raises(SystemExit) as left:
            main.main()
        code = left.value.code
        captured = capsys.readouterr()
        return code if isinstance(code, int) else 0, captured.out, captured.err

    return call
