"""Figures: one row of panels for each pair, the same bytes each time, and our own words where it cannot be done."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.errors import UsageError
from discreet.pictures import SUBJECTS, draw_figure, figure, make_pair, save_figure


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_subject_has_four_panels(subject: str) -> None:
    """Laws, losses, their law and the trade-off, each with a title."""
    drawn = draw_figure(make_pair(subject))
    titles = [panel.get_title(loc="left") for part in drawn.subfigs for panel in part.axes]
    assert len(titles) == 4 and all(titles)


def test_two_on_one_picture(tmp_path: Path) -> None:
    """SVG without a date: the same picture has the same bytes; PNG and PDF can be written, too."""
    pairs = [make_pair("laplace"), make_pair("gaussian")]
    for name in ("a.svg", "b.svg", "c.png", "d.pdf"):
        save_figure(tmp_path / name, *pairs)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "d.pdf").read_bytes().startswith(b"%PDF")


def test_what_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown ending, a folder that is not there, no pair, no matplotlib."""
    with pytest.raises(UsageError, match=r"\.svg"):
        save_figure(tmp_path / "laws.gif", make_pair("rr"))
    with pytest.raises(UsageError, match="cannot be written"):
        save_figure(tmp_path / "none" / "laws.svg", make_pair("rr"))
    with pytest.raises(UsageError, match="nothing to draw"):
        draw_figure()
    monkeypatch.setattr(figure, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="plots"):
        draw_figure(make_pair("rr"))
