"""No text becomes part of a page without being escaped, wherever it stands."""

from __future__ import annotations

import pytest

from discreet.service.pages.dataset_page import make_gauge, tell_if_spent
from discreet.service.pages.layout import make_problem
from discreet.service.pages.markup import element, join, make_table

BAD = "<script>alert('\"&</script>"


@pytest.mark.parametrize(
    "drawn",
    [
        element("p", BAD), element("p", [[BAD]]), element("p", title=BAD), join(BAD), make_table([BAD], [[BAD]], BAD),
        make_problem({"detail": BAD, "place": {"excerpt": BAD, "line": 1, "column": 1}, "charged": None}),
    ],
)  # fmt: skip
def test_texts_are_escaped(drawn: str) -> None:
    assert "<script" not in drawn and "alert('" not in drawn


def test_html_is_not_escaped_twice() -> None:
    assert element("p", element("b", "&"), None, 1) == "<p><b>&amp;</b>1</p>"


@pytest.mark.parametrize(
    ("share", "said", "notice"),
    [(0.0, "0 %", True), (0.004, "Less than 1 %", True), (0.9996, "99 %", False), (1.0, "100 %", False)],
)
def test_the_gauge_never_shows_more_than_is_left(share: float, said: str, notice: bool) -> None:
    budget = {"share": share, "words": "", "odds": ""}
    assert f"{said} of the budget is left" in make_gauge(budget)
    assert (tell_if_spent(budget) is not None) is notice


@pytest.mark.parametrize(
    ("charged", "said"), [(True, "stands"), (False, "Nothing was charged"), (None, "cannot be read")]
)
def test_a_refusal_says_what_was_charged(charged: bool | None, said: str) -> None:
    assert said in make_problem({"detail": "No.", "charged": charged})
