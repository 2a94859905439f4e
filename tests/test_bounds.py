"""The old name of ``discreet.bound_search``."""

from __future__ import annotations

import pytest

from discreet import bound_search, bounds


def test_the_old_name_of_the_package_still_works_and_warns() -> None:
    """``discreet.bounds`` hands out every name of ``discreet.bound_search`` with a warning, and no other name."""
    assert dir(bounds) == sorted(bound_search.__all__)
    for name in bound_search.__all__:
        with pytest.warns(DeprecationWarning, match=f"from discreet.bound_search import {name}"):
            assert getattr(bounds, name) is getattr(bound_search, name)
    with pytest.raises(AttributeError, match="no attribute 'column'"):
        _ = bounds.column
