"""Which pages there are, where each of them goes, and the four parts of the site in their order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from discreet.lectures import list_lectures

ROOT = Path(__file__).resolve().parents[1]
"""The project's folder."""


@dataclass(frozen=True, slots=True)
class Group:
    """Pages under one heading; files are named from the project's folder."""

    title: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """One of the four parts: what a reader comes for."""

    title: str
    about: str
    groups: tuple[Group, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """All files of the part, in the order in which they are read."""
        return tuple(file for group in self.groups for file in group.files)


def _docs(*names: str) -> tuple[str, ...]:
    return tuple(f"docs/{name}.md" for name in names)


def _list_folder(folder: str) -> tuple[str, ...]:
    return tuple(sorted(f"{folder}/{path.name}" for path in (ROOT / folder).glob("*.md") if path.name != "README.md"))


def _number_lectures(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"docs/lectures/{lecture.name}.md" for lecture in list_lectures()[first - 1 : last])


HOME = "docs/README.md"
"""The first page."""


@cache
def list_parts() -> tuple[Part, ...]:
    """The four parts of the site."""
    return (
        Part(
            "Learn",
            "the theory from the first page on, run line by line",
            (
                Group("Lectures", ("docs/lectures/README.md",)),
                Group("Why", _number_lectures(1, 5)),
                Group("The definition", _number_lectures(6, 10)),
                Group("Mechanisms", _number_lectures(11, 17)),
                Group("Together", _number_lectures(18, 22)),
                Group("At work", (*_number_lectures(23, 25), "docs/statements.md")),
                Group("Programs", ("examples/README.md", "examples/lectures/README.md")),
            ),
        ),
        Part(
            "How-to",
            "one task on one page, with commands that run",
            (
                Group("Start", _docs("your-csv", "how-to/many-rows", "how-to/choose-epsilon", "notebook")),
                Group("Data", _docs("how-to/several-tables", "how-to/postgres-and-spark")),
                Group("Release", _docs("how-to/publish-a-table", "how-to/read-a-receipt", "batch", "bounds")),
                Group(
                    "The service",
                    _docs(
                        "how-to/run-the-service",
                        "how-to/connect-a-tool",
                        "how-to/remote",
                        "how-to/dbapi",
                        "how-to/agents",
                        "service-setup",
                    ),
                ),
                Group("Tools", ("docs/postgres-wire.md", *_list_folder("docs/tools"))),
                Group("More", _docs("how-to/collect-locally", "how-to/audit-it", "how-to/move-here")),
            ),
        ),
        Part(
            "Reference",
            "every name, command, word and code, made from the source",
            (
                Group("From the code", _list_folder("docs/reference")),
                Group("Languages", _docs("sql", "codebook", "errors", "output")),
                Group("Parts", _docs("mechanisms", "accounting", "publish", "service", "ledger", "engines", "scale")),
                Group("The local model", _docs("local", "local-wire", "local-javascript")),
                Group("Words", _docs("glossary")),
            ),
        ),
        Part(
            "Explanation",
            "what is promised, why it holds, and how to doubt it",
            (
                Group("The promise", _docs("guarantees", "threat-model", "faq", "exactness", "attacks", "audit")),
                Group("The project", (*_docs("architecture", "stability", "release"), *_PROJECT_PAGES)),
                Group("Proofs", ("docs/proofs/README.md", *_list_folder("docs/proofs"))),
            ),
        ),
    )


_PROJECT_PAGES = ("benchmarks/README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")


def list_files() -> tuple[str, ...]:
    """Every page, the first one first, in the order of the navigation."""
    return (HOME, *(file for part in list_parts() for file in part.files))


def find_address(file: str) -> str:
    """Where the page of a Markdown file is in the site.

    >>> find_address("docs/lectures/README.md"), find_address("CHANGELOG.md")
    ('lectures/index.html', 'CHANGELOG.html')
    """
    path = PurePosixPath(file.removeprefix("docs/"))
    return str(path.with_name("index.html") if path.name == "README.md" else path.with_suffix(".html"))


@cache
def find_title(file: str) -> str:
    """The heading of a page, without marks."""
    first = (ROOT / file).read_text(encoding="utf-8").partition("\n")[0]
    return re.sub(r"[*_`]", "", first.removeprefix("# "))
