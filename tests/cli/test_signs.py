"""Tests of signs for other terminals: code pages and ASCII take every text that discreet prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.cli.signs import prepare_streams

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.mark.parametrize("encoding", ["ascii", "cp437", "cp1252", "utf-8"])
def test_no_encoding_fails(hospital: Path, encoding: str) -> None:
    """Tables, bars, facts, errors and help are printed; numbers and letters are those of every terminal."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "80"}
    for words, code in ((("preview", COUNT, "--epsilon", "1"), 0), (("ask", COUNT, "--epsilon", "1"), 0),
                        (("budget",), 0), (("check",), 0), (("ask", COUNT, "--epsilon", "ε"), 2)):  # fmt: skip
        command = [sys.executable, "-m", "discreet.cli.main", words[0], str(hospital), *words[1:]]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603  # our own words
        out, err = done.stdout.decode(encoding), done.stderr.decode(encoding)
        assert done.returncode == code, err
        assert "Traceback" not in err and "\\u" not in out
        if words[0] == "ask" and not code:
            assert ("█" if encoding in ("cp437", "utf-8") else "##") in out and "Emergency" in out


def test_json_is_utf8_everywhere(hospital: Path) -> None:
    command = [sys.executable, "-m", "discreet.cli.main", "budget", str(hospital), "--json"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, check=True)  # noqa: S603  # our own words
    assert "ε 3 of 3" in done.stdout.decode("utf-8")


def test_what_has_no_substitute_is_not_lost() -> None:
    prepare_streams()
    assert "Zürich ± 3 █".encode("ascii", "discreet-signs") == b"Z\\xfcrich +- 3 #"
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", "discreet-signs")
