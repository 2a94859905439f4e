"""What many tests share: the command line in this process, the demo's hospital, and a keyboard that interrupts."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import mpmath
import pytest

from discreet import demo
from discreet.cli import main
from tests.cli.commands import Run
from tests.service.served import Hospital, serve_hospital


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's data and codebook, written once; tests copy it by ``hospital``."""
    return demo.write(tmp_path_factory.mktemp("demo")).parent


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    """The digits of long numbers that a test sets, it sets for itself: with fewer, oracles of others take minutes."""
    with mpmath.workdps(mpmath.mp.dps):
        yield


@pytest.fixture
def hospital(files: Path, tmp_path: Path) -> Path:
    """The demo's codebook in a folder of its own, with nothing spent."""
    return Path(shutil.copytree(files, tmp_path / "hospital")) / "hospital.toml"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command line in this process: its exit code, output and errors."""

    def call(*arguments: object, width: int = 120) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["discreet", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", str(width))
        with pytest.raises(SystemExit) as left:
            main.main()
        captured = capsys.readouterr()
        return left.value.code if isinstance(left.value.code, int) else 0, captured.out, captured.err

    return call


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own answer to an interrupt: a job that a shell starts in the background inherits none."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def served(hospital: Path) -> Iterator[Hospital]:
    """The demo's hospital as a service, closed at the end."""
    made = serve_hospital(hospital)
    yield made
    made.dataset.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the whole site of pages, built once."""
    from website.build import build_site

    folder = tmp_path_factory.mktemp("built") / "site"
    build_site(folder)
    return folder
