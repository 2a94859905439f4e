"""Tables and facts as HTML: whatever they hold stays text."""

from __future__ import annotations

from xml.etree import ElementTree

from discreet.html_tables import make_facts, make_table

EVIL = "<script>alert('&')</script>"


def test_tables_are_well_formed_and_escaped() -> None:
    """One cell for each text, in the style of its column."""
    page = ElementTree.fromstring(make_table([EVIL, "n"], [[EVIL, "1"]], [False, True], [False, True]))  # noqa: S314  # ours
    assert [cell.text for cell in page.iter() if cell.tag in ("th", "td")] == [EVIL, "n", EVIL, "1"]
    first, second = (cell.attrib["style"] for cell in page.iter("td"))
    assert "left" in first and "opacity" not in first and "right" in second and "opacity" in second


def test_facts_name_a_title_once() -> None:
    """Of several facts under one title; without facts there is nothing."""
    page = ElementTree.fromstring(make_facts([("limit", EVIL), ("limit", "b"), ("cost", "c")]))  # noqa: S314  # ours
    assert [cell.text for cell in page.iter("span")] == ["limit", EVIL, None, "b", "cost", "c"]
    assert make_facts([]) == ""
