"""One version everywhere, a changelog that begins with it, and deprecations that the pages name."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import discreet

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.compile(r"\d+\.\d+\.\d+")


def newest_section(changelog: str) -> str:
    """The version of the first section of a changelog."""
    found = re.search(r"^## (.+)$", changelog, re.M)
    assert found is not None
    return found[1]


def cited_version(citation: str) -> str:
    """The version that a citation file names."""
    found = re.search(r"^version: (.+)$", citation, re.M)
    assert found is not None
    return found[1]


def test_one_version_everywhere() -> None:
    """The package, the newest section of the changelog and the citation agree."""
    assert VERSION.fullmatch(discreet.__version__)
    assert newest_section((ROOT / "CHANGELOG.md").read_text()) == discreet.__version__
    assert cited_version((ROOT / "CITATION.cff").read_text()) == discreet.__version__


def test_the_build_reads_the_version_where_it_stands() -> None:
    """pyproject.toml has no version of its own; it names the file that has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"] and "version" in project["project"]["dynamic"]
    assert Path(project["tool"]["hatch"]["version"]["path"]) == Path("src/discreet/__init__.py")


def test_the_checks_of_versions_can_fail() -> None:
    """Negative control: other versions and missing sections are seen."""
    assert newest_section("# Changelog\n\n## 0.3.0\n\n## 0.2.0\n") == "0.3.0"
    assert cited_version("cff-version: 1.2.0\nversion: 7\n") == "7"
    assert not VERSION.fullmatch("0.2") and not VERSION.fullmatch("Unreleased")
    with pytest.raises(AssertionError):
        newest_section("# Changelog\n")


def test_sections_of_the_changelog_come_in_order() -> None:
    """Newest first, each version once, no section without a version."""
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    numbers = [tuple(map(int, section.split("."))) for section in sections]
    assert numbers == sorted(set(numbers), reverse=True)


DEPRECATED = re.findall(
    r"^\| `([\w.]+)` \| ([\d.]+) \| `([\w.]+)` \|", (ROOT / "docs" / "stability.md").read_text(), re.M
)


def resolve(path: str) -> object:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.parametrize(("old", "since", "new"), DEPRECATED)
def test_deprecated_names_work_with_a_warning(old: str, since: str, new: str) -> None:
    """The old name is the new one; the warning and the changelog name both."""
    with pytest.warns(DeprecationWarning, match=new.rpartition(".")[2]):
        assert resolve(old) is resolve(new)
    assert old in (ROOT / "CHANGELOG.md").read_text().partition(f"## {since}\n")[2]


def test_there_are_deprecated_names_and_others_are_unknown() -> None:
    """The page's table is read; what never was is an AttributeError."""
    assert len(DEPRECATED) >= 2
    for module in {old.rpartition(".")[0] for old, _, _ in DEPRECATED}:
        with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
            resolve(f"{module}.Nothing")
