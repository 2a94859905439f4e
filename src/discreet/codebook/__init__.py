"""The codebook: the curator's file about one dataset. Nothing here reads the data, except for the schemas.

In reading order: ``entries`` are the words of the file, and ``entry_reader`` reads them. ``rules``, ``spending`` and
``owners`` check what the entries must be together. ``codebook`` is the result, which the planner uses. ``frame_types``
and ``column_facts`` make a codebook from frames in Python. ``draft`` writes a first codebook from a schema.
``check_lines``, ``unit_checks`` and ``checklist`` judge whether the choices of a codebook are wise.
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
