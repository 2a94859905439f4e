"""The old name of ``discreet.bound_search``. Every name still works here, with a warning that says where it is now."""

from __future__ import annotations

import warnings
from typing import Any

from discreet import bound_search


def __getattr__(name: str) -> Any:
    if name not in bound_search.__all__:
        raise AttributeError(f"module 'discreet.bounds' has no attribute {name!r}")
    warnings.warn(
        f"discreet.bounds is now discreet.bound_search: write `from discreet.bound_search import {name}`.",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(bound_search, name)


def __dir__() -> list[str]:
    return sorted(bound_search.__all__)
