"""The reference says what the code says, and leaves nothing out."""

from __future__ import annotations

import pytest
from website.navigation import ROOT
from website.reference import PAGES
from website.reference.api import MODULES, show_signature
from website.reference.commands import list_commands
from website.reference.error_codes import list_errors
from website.reference.tables import quote, read_summary, write_table

import discreet
from discreet import errors
from discreet.cli.main import Commands


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    """If not: python -m website.reference."""
    assert (ROOT / "docs" / "reference" / f"{name}.md").read_text() == PAGES[name]()


def test_nothing_is_left_out() -> None:
    """Every public name with a sentence, every command with its options, every code."""
    api = PAGES["api"]()
    assert all(f"- **`{name}`**: " in api for name in discreet.__all__)
    assert all(f"\n## {module}\n" in api for module in MODULES)
    commands = PAGES["commands"]()
    assert all(f"## discreet {name}" in commands for name in Commands.late)
    assert "`--epsilon`" in commands and len(list(list_commands())) > len(Commands.late)
    codes = {
        kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DiscreetError)
    }
    assert codes == {kind.code for kind in list_errors(errors.DiscreetError)}


def test_the_parts_of_a_page() -> None:
    """Negative control: a changed signature is another line, and marks of Markdown stay text."""

    def before(scale: int = 1, *, name: str = "a") -> None:
        """Do it. And more."""

    def after(scale: int = 2, *, name: str = "a") -> None: ...

    assert show_signature(before) == "(scale: int = 1, *, name: str = 'a')" != show_signature(after)
    assert read_summary(before) == "Do it."
    assert quote("a`b") == "`` a`b ``" and r"a\|b" in write_table(("x",), [("a|b",)])
