"""The codebook: the curator's file about one dataset, and everything that can be said about it without the data.

``entries`` are the words of the file; ``rules`` what they must be together; ``codebook`` the result, ready for the
planner; ``frames`` the types of data that is in Python already; ``draft`` a first version from a schema;
``checklist`` whether the choices are wise.
"""

from __future__ import annotations

import warnings

from discreet.codebook.codebook import Codebook, TableSource

__all__ = ["Codebook", "TableSource"]


def __getattr__(name: str) -> type[TableSource]:
    """The name of an earlier version, with a warning; see docs/stability.md."""
    if name != "Source":
        raise AttributeError(f"module 'discreet.codebook' has no attribute {name!r}")
    warnings.warn("discreet.codebook.Source is now TableSource; the old name goes with 0.3.0", DeprecationWarning, 2)
    return TableSource
