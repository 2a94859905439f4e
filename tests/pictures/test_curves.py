"""Curves: a line for each, axes with names, and our own words for lists that do not match."""

from __future__ import annotations

import pytest

from discreet.errors import ParameterError
from discreet.pictures import draw_curves, encode_figure


def test_every_curve_has_its_line_and_its_name() -> None:
    """Two curves on logarithmic axes, as the same bytes each time."""
    drawn = [draw_curves([1, 10], {"a": [1, 2], "b": [3, 4]}, title="t", names=("x", "y"), log="xy") for _ in range(2)]
    (panel,) = drawn[0].axes
    assert [line.get_label() for line in panel.get_lines()] == ["a", "b"]
    assert (panel.get_xlabel(), panel.get_ylabel(), panel.get_xscale()) == ("x", "y", "log")
    assert encode_figure(drawn[0], "svg") == encode_figure(drawn[1], "svg")


def test_lists_that_do_not_match_are_refused() -> None:
    """No curve, another length, an axis that is none."""
    for x, curves, log in (([1], {}, ""), ([1, 2], {"a": [1]}, ""), ([1], {"a": [1]}, "z")):
        with pytest.raises(ParameterError):
            draw_curves(x, curves, title="t", names=("x", "y"), log=log)
