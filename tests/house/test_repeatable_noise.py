"""Noise of tests is the same in each run, in every thread, and other in every test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import threading
import discreet
from discreet.entropy import SYSTEM
from discreet.uninterrupted import run_uninterrupted

def draw():
    apart = []
    thread = threading.Thread(target=lambda: apart.append(SYSTEM.word()))
    thread.start(); thread.join()
    print("drawn", SYSTEM.word(), SYSTEM.words(3).tolist(), run_uninterrupted(SYSTEM.word), apart[0])

def test_one(): draw()
def test_two(): draw()
"""


def read_draws(folder: Path, *words: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *words, "test_draws.py"]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)  # noqa: S603  # our own
    return [line.partition("drawn")[2] for line in found.stdout.splitlines() if "drawn" in line]


def test_noise_follows_from_the_name_of_a_test(tmp_path: Path) -> None:
    """Also in a thread that is kept for the next test, and whichever test comes first."""
    (tmp_path / "conftest.py").write_text((Path(__file__).parents[2] / "conftest.py").read_text())
    (tmp_path / "test_draws.py").write_text(PROGRAM)
    first, second = read_draws(tmp_path)
    assert read_draws(tmp_path) == [first, second] and first != second
    assert read_draws(tmp_path, "-k", "two") == [second]
    assert len(set(first.split() + second.split())) == len(first.split() + second.split())  # no word is drawn twice
