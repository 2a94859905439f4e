"""``discreet explain epsilon 0.5``: odds, error, published uses and a picture."""

from __future__ import annotations

import json

import pytest

from tests.cli.commands import Run


def test_epsilon_in_words_and_as_a_picture(run: Run) -> None:
    """Words first, then the picture."""
    code, shown, _ = run("explain", "epsilon", "0.5", width=80)
    assert code == 0 and shown.index("62.3:37.7") < shown.index("output")
    assert "4 people together" in shown and "Published uses" in shown


def test_rho_as_a_document(run: Run) -> None:
    """The same facts for programs."""
    code, shown, _ = run("explain", "rho", "0.125", "--json")
    document = json.loads(shown)
    assert code == 0 and document["parameter"] == "rho" and document["known_uses"] == []


@pytest.mark.parametrize("value", ["", "much", "-1", "nan"])
def test_what_is_no_number_is_refused(run: Run, value: str) -> None:
    """With the words to type instead."""
    code, shown, errors = run("explain", "epsilon", *([value] if value else []))
    assert code != 0 and shown == "" and "Traceback" not in errors
