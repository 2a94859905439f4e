"""Markdown as the pages of this project use it."""

from __future__ import annotations

import pytest
from website.rendering import Page, UnreadableMarkdown, colour_file, render_page


def render(text: str, *figures: str) -> Page:
    return render_page(text, lambda target: f"to:{target}", figures)


def test_headings_have_names_and_sections_have_words() -> None:
    page = render("# One ε\n\nfirst\n\n## Two\n\nsecond `code`\n\n## Two\n")
    assert page.title == "One ε"
    assert [(part.anchor, part.level) for part in page.sections] == [("one-ε", 1), ("two", 2), ("two-1", 2)]
    assert page.sections[1].words == ["second code"]


def test_links_and_pictures_are_followed() -> None:
    assert 'href="to:a.md#b"' in render("[a](a.md#b)").html
    assert 'src="to:a.svg"' in render("![a](a.svg)").html


def test_sessions_without_a_fence_are_code() -> None:
    """Markdown alone would read them as quotations."""
    html = render("Text:\n\n>>> 1 + 1\n2\n\nMore.\n").html
    assert "<blockquote>" not in html and 'data-language="pycon"' in html
    assert render("> a remark\n").html.startswith("<blockquote>")


def test_commands_are_coloured_as_such() -> None:
    assert 'data-language="console"' in render("```\n$ discreet ask\n```\n").html
    assert 'data-language=""' in render("```\njust text\n```\n").html
    assert colour_file("a.py", "x = 1").startswith('<pre class="code" data-language="python"')


def test_powers_and_indices_are_raised_outside_of_code() -> None:
    html = render("e^(−tε/Δf), 2^-24, f(y)_i, a<b^2 and `e^x`, max_rows, e^ε.").html
    assert "e<sup>−tε/Δf</sup>, 2<sup>-24</sup>, f(y)<sub>i</sub>, a&lt;b<sup>2</sup>" in html
    assert "<code>e^x</code>, max_rows, e<sup>ε</sup>." in html
    assert "e<sup>(|f(y)<sub>i</sub>| − 1)/b</sup>" in render("e^((|f(y)_i| − 1)/b)").html  # brackets in brackets


def test_pictures_stand_at_their_marks_and_comments_go() -> None:
    html = render("<!-- note -->\n\n<!-- picture: two laws -->\n", "<svg></svg>").html
    assert "note" not in html and "<svg></svg>" in html and 'aria-label="two laws"' in html


@pytest.mark.parametrize("text", ["<script>x</script>\n", "a <b>c</b>\n"])
def test_other_html_is_refused(text: str) -> None:
    """Pages are Markdown only, so that a terminal can show them, too."""
    with pytest.raises(UnreadableMarkdown):
        render(text)
