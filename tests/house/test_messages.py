"""Messages name what a reader has: the wheel has no folder docs, but ``discreet help`` has its pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from discreet.cli.help_pages import list_topics
from tests.house.test_house import MODULES


def list_texts(tree: ast.Module) -> Iterator[str]:
    """Every text in a module that is not a docstring or a comment, parts of f-strings as well."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def find_texts(pattern: str) -> list[tuple[str, str]]:
    """Modules and what is found in their texts."""
    trees = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}
    return [
        (name, found)
        for name, tree in trees.items()
        for text in list_texts(tree)
        for found in re.findall(pattern, text)
    ]


def test_no_text_points_into_the_sources() -> None:
    """A path such as docs/sql.md is of use to nobody who installed the wheel."""
    assert find_texts(r"\bdocs/\S*") == []


def test_every_page_that_a_text_names_is_there() -> None:
    """Whoever is told to type `discreet help sql` gets a page."""
    named = {word for _, word in find_texts(r"discreet help ([a-z][a-z-]*)")}
    assert {"sql", "codebook", "ledger"} <= named <= set(list_topics())


def test_the_texts_are_found() -> None:
    """Plain texts and f-strings, not docstrings."""
    tree = ast.parse("'docs/a'\nx = 'docs/b'\ny = f'see docs/c {x}'\ndef f():\n    'docs/d'\n    return g('docs/e')")
    assert sorted(t.strip() for t in list_texts(tree)) == ["docs/b", "docs/e", "see docs/c"]
