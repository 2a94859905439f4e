"""Pictures as text fit the screen, hold the numbers, and do without letters that a terminal lacks."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from discreet.pictures import SUBJECTS, PictureTerms, make_pair, write_text


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("subject", SUBJECTS)
def test_no_line_is_wider_than_the_screen(subject: str, width: int) -> None:
    """All but the caption, which a terminal folds."""
    lines = write_text(make_pair(subject), width=width).splitlines()
    assert max(map(cell_len, lines[1:])) <= width


@pytest.mark.parametrize("subject", SUBJECTS)
def test_plain_text_is_ascii(subject: str) -> None:
    """Bars, signs and Greek letters have a form in ASCII."""
    text = write_text(make_pair(subject, PictureTerms(epsilon=0.5)), plain=True)
    assert text.isascii() and "#" in text


def test_the_numbers_are_those_of_the_pair() -> None:
    """A coin: three quarters and one quarter, the loss with its sign, and the best guess."""
    text = write_text(make_pair("rr", PictureTerms(epsilon=1.0986122886681098)), width=80)
    assert "75.0 %" in text and "25.0 %" in text and "+1.10" in text and "−1.10" in text
    assert "right at most 75.0 % of the time" in text


def test_the_true_answer_is_among_the_rows() -> None:
    """Wide noise shows a few outputs only, and 0 is one of them."""
    rows = write_text(make_pair("laplace", PictureTerms(epsilon=0.003)), width=80).splitlines()
    outputs = [line.split()[0] for line in rows[3 : rows.index("", 3)]]
    assert "0" in outputs and len(outputs) <= 16
