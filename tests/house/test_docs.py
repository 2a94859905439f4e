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


def test_nothing_unfinished_or_of_one_machine() -> None:
    """No unfinished marks in src, and no paths of a machine anywhere in the project."""
    path_of_machine = re.compile(r"(?<![\w.])/(?:work|root|home|tmp)/\w")
    for path in MODULES.values():
        assert not re.search(r"\bTODO\b|\bFIXME\b|NotImplementedError", path.read_text()), path
    # In a worktree .git is a file with a path, and .coverage is what `make coverage` leaves.
    own = [path for path in ROOT.glob("*") if path.name not in {".git", ".coverage"}]
    folders = [ROOT / name for name in ("docs", "benchmarks", "examples", ".github", ".ci")]
    for path in [*own, *(path for folder in folders for path in folder.rglob("*")), *MODULES.values()]:
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".txt", ".lock", ".yml", ".yaml", ".cff", ""}:
            assert not path_of_machine.search(path.read_text()), path
