"""The old name of ``discreet.bound_search``."""

from __future__ import annotations

import importlib

import pytest

from discreet import bound_search


def test_the_old_name_works_and_warns() -> None:
    """``discreet.bounds`` gives what ``discreet.bound_search`` has, and names it."""
    old = importlib.import_module("discreet.bounds")
    with pytest.warns(DeprecationWarning, match="bound_search"):
        assert old.Bounds is bound_search.Bounds
    with pytest.raises(AttributeError):
        _ = old.nothing
