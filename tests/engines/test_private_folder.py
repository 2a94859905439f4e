"""Folders for private copies: readable by one, owned by one process, swept after it is gone."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
from pathlib import Path

import pytest

from discreet.engines.private_folder import PrivateFolder, sweep


def test_only_the_owner_may_look(tmp_path: Path) -> None:
    """The folder has the rights 0700 and is gone when it is closed."""
    folder = PrivateFolder(tmp_path)
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in folder.path.iterdir())
    (folder.path / "copy").write_text("rows")
    folder.close()
    assert not folder.path.exists()


def test_a_forked_child_leaves_it_alone(tmp_path: Path) -> None:
    """A child that ends, or closes its copy of the object, does not remove what belongs to the parent."""
    folder = PrivateFolder(tmp_path)
    child = os.fork()
    if child == 0:  # pragma: no cover  # the child
        folder.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert folder.path.exists()
    folder.close()


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    """The next folder in the same place removes it; folders of the living, and of others, stay."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover  # the child
        mine = PrivateFolder(tmp_path)
        (mine.path / "copy").write_text("rows")
        os.write(writer, b".")
        signal.pause()
    os.read(reader, 1)
    (left,) = tmp_path.iterdir()
    living = PrivateFolder(tmp_path)
    assert left.exists(), "its process still lives"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    (tmp_path / "discreet-without-lock").mkdir()
    sweep(tmp_path)
    assert not left.exists() and living.path.exists() and (tmp_path / "discreet-without-lock").exists()
    living.close()


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link that somebody put there leads nowhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "owner").write_text("")
    place = tmp_path / "place"
    place.mkdir()
    (place / "discreet-link").symlink_to(elsewhere)
    sweep(place)
    assert (elsewhere / "owner").exists()


@pytest.mark.parametrize("place", [None])
def test_the_usual_place_is_that_of_temporary_files(place: None) -> None:
    """Without a place, the system's own is taken."""
    folder = PrivateFolder(place)
    assert folder.path.parent.is_dir()
    folder.close()


def test_a_folder_that_is_being_made_is_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may sweep between the making of a folder and its lock: it finds no lock yet, and leaves it."""
    take = fcntl.flock

    def sweep_before(lock: int, how: int) -> None:
        monkeypatch.undo()
        sweep(tmp_path)
        take(lock, how)

    monkeypatch.setattr(fcntl, "flock", sweep_before)
    folder = PrivateFolder(tmp_path)
    assert fcntl.flock is take  # somebody swept
    sweep(tmp_path)
    assert folder.path.exists()
    folder.close()
