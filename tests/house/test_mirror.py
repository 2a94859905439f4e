"""Tests lie where the package's rooms lie: a folder for a package, a file for a module at the top."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]

# Folders of tests that mirror no room: what they are instead.
BESIDE = {
    "engines/conformance": "the suite that every engine runs",
    "fixtures": "questions in SQL with the plan or the refusal that they give",
    "house": "the house itself: layers, names, pages, versions",
    "laws": "laws that hold for every event",
    "questions": "whole questions, from words to answers",
    "statistical": "goodness of fit, for other tests",
    "website": "the site, which is beside the package",
    "worlds": "data, catalogs and curators that tests share",
}


def python_files(folder: Path) -> set[PurePosixPath]:
    """Every Python file below a folder, by its path from there."""
    return {PurePosixPath(path.relative_to(folder).as_posix()) for path in folder.rglob("*.py")}


def rooms_of(source: Iterable[PurePosixPath]) -> tuple[set[PurePosixPath], set[str]]:
    """The packages at any depth, and the modules at the top."""
    files = [path for path in source if path.name != "__init__.py"]
    packages = {parent for path in source for parent in path.parents if parent.name}
    return packages, {path.stem for path in files if len(path.parts) == 1}


def is_beside(path: PurePosixPath) -> bool:
    """Whether a file is in one of the folders that mirror no room."""
    return any(str(folder) in BESIDE for folder in path.parents)


def find_strays(source: Iterable[PurePosixPath], tests: Iterable[PurePosixPath]) -> list[str]:
    """Test files that are where no room is."""
    packages, modules = rooms_of(source)
    strays = []
    for path in sorted(tests):
        if path.parent.name:
            stray = not is_beside(path) and path.parent not in packages
        else:
            stray = path.name.startswith("test_") and path.stem.removeprefix("test_") not in modules
        strays += [str(path)] if stray else []
    return strays


def find_untested(source: Iterable[PurePosixPath], tests: Iterable[PurePosixPath]) -> list[str]:
    """Rooms of the package that have no test file of their own."""
    packages, modules = rooms_of(source)
    tested = {path for path in tests if path.name.startswith("test_")}
    rooms = {package.parts[0] for package in packages}
    missing = [room for room in rooms if not any(path.parts[0] == room for path in tested)]
    missing += [f"{name}.py" for name in modules if PurePosixPath(f"test_{name}.py") not in tested]
    return sorted(missing)


SOURCE, TESTS = python_files(ROOT / "src" / "discreet"), python_files(ROOT / "tests")


def test_every_test_lies_with_its_room() -> None:
    """A folder of tests is a package of the same path, or one of the few that stand beside."""
    assert find_strays(SOURCE, TESTS) == []


def test_every_room_has_tests() -> None:
    """A new module at the top, or a new package, comes with its own tests."""
    assert find_untested(SOURCE, TESTS) == []


def test_shared_fixtures_have_one_home() -> None:
    """Fixtures of several files stand in tests/conftest.py; only the suite of all engines has its own parameters."""
    found = {str(path) for path in TESTS if path.name == "conftest.py"}
    assert found - {"engines/conformance/conftest.py"} == {"conftest.py"}


def test_the_checks_of_the_mirror_can_fail() -> None:
    """Negative control: a stray folder, a stray file, an untested package and an untested module are seen."""
    source = {PurePosixPath(name) for name in ("__init__.py", "odds.py", "price.py", "plan/__init__.py", "cli/a.py")}
    tests = {PurePosixPath(name) for name in ("test_odds.py", "test_luck.py", "cli/test_a.py", "attic/test_b.py")}
    assert find_strays(source, tests) == ["attic/test_b.py", "test_luck.py"]
    assert find_untested(source, tests) == ["plan", "price.py"]
    assert find_strays(source, {PurePosixPath("laws/test_c.py"), PurePosixPath("conftest.py")}) == []
