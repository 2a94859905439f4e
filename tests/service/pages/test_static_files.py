"""The pages' own files are part of what is installed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path

from discreet.service.pages import site

ROOT = Path(__file__).parents[3]


def test_every_static_file_is_served_and_every_served_file_is_there() -> None:
    """Neither a file that nobody gets, nor a name without a file."""
    folder = resources.files("discreet.service.pages") / "static"
    assert {each.name for each in folder.iterdir()} == set(site._STATIC)


def test_the_wheel_has_them(tmp_path: Path) -> None:
    """Built as it is released."""
    build = "import sys, hatchling.build as b; print(b.build_wheel(sys.argv[1]))"
    made = subprocess.run(  # noqa: S603  # our own build
        [sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    with zipfile.ZipFile(tmp_path / made.stdout.split()[-1]) as wheel:
        names = set(wheel.namelist())
    assert {f"discreet/service/pages/static/{name}" for name in site._STATIC} <= names
