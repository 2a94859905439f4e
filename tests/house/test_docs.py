"""Pages: links lead somewhere, nothing is unfinished, nothing is of one machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.test_house import MODULES, ROOT

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchors(path: Path) -> set[str]:
    """The link targets a Markdown page offers, as GitHub writes them."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


def pages() -> list[Path]:
    folders = ("docs", "benchmarks", "examples", ".github")
    return [*ROOT.glob("*.md"), *(page for folder in folders for page in (ROOT / folder).rglob("*.md"))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_documentation_links_resolve(page: Path) -> None:
    """Every relative link leads to a file, and every anchor to a heading."""
    for target in LINK.findall(page.read_text()):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name}: {target}"


FOLDERS = ("src", "tests", "docs", "benchmarks", "examples", "clients", "website", ".ci", ".github")
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")


def find_missing(text: str) -> list[str]:
    """Paths that a page names, whole or by their end, and that are not in the project."""
    known = [f"/{path.relative_to(ROOT).as_posix()}" for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    return [name for name in PATH.findall(text) if not any(path.endswith(f"/{name.rstrip('/')}") for path in known)]


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md", "docs/release.md"])
def test_pages_for_contributors_name_files_that_exist(name: str) -> None:
    """What has moved is found on the page, too."""
    missing = [path for path in find_missing((ROOT / name).read_text()) if path != "dist/"]  # made by a build
    assert missing == []


def test_the_check_of_paths_can_fail() -> None:
    """Negative control: a file that is gone is seen, in the project and in the package."""
    assert find_missing("`plan/nodes.py`, `tests/conftest.py`, `engines/teller.py`, `a/b`") == [
        "engines/teller.py",
        "a/b",
    ]


def test_nothing_unfinished_or_of_one_machine() -> None:
    """No unfinished marks in src, and no paths of a machine anywhere in the project."""
    path_of_machine = re.compile(r"(?<![\w.])/(?:work|root|home|tmp)/\w")
    for path in MODULES.values():
        assert not re.search(r"\bTODO\b|\bFIXME\b|NotImplementedError", path.read_text()), path
    # In a worktree .git is a file with a path, and .coverage is what `make coverage` leaves.
    own = [path for path in ROOT.glob("*") if path.name not in {".git", ".coverage"}]
    folders = [ROOT / name for name in ("docs", "benchmarks", "examples", "website", ".github", ".ci")]
    for path in [*own, *(path for folder in folders for path in folder.rglob("*")), *MODULES.values()]:
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".txt", ".lock", ".yml", ".yaml", ".cff", ""}:
            assert not path_of_machine.search(path.read_text()), path
