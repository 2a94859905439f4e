"""The old name of automatic bounds: every name works, with a warning that says where it is now."""

from __future__ import annotations

import pytest

from discreet import bound_search, bounds


@pytest.mark.parametrize("name", bound_search.__all__)
def test_old_names_work_with_a_warning(name: str) -> None:
    """The very same thing, under both names."""
    with pytest.warns(DeprecationWarning, match=f"from discreet.bound_search import {name}"):
        assert getattr(bounds, name) is getattr(bound_search, name)


def test_nothing_else_is_there() -> None:
    """A name that never was is unknown, and the list is the same."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = bounds.nothing
    assert dir(bounds) == sorted(bound_search.__all__)
