"""The codebook: the curator's file about one dataset. Nothing here reads the data, except for the schemas.

In reading order: ``entries`` are the words of the file, and ``entry_reader`` reads them. ``rules``, ``spending`` and
``owners`` check what the entries must be together. ``codebook`` is the result, which the planner uses. ``frame_types``
and ``column_facts`` make a codebook from frames in Python. ``draft`` writes a first codebook from a schema.
``check_lines``, ``unit_checks`` and ``checklist`` judge whether the choices of a codebook are wise.
"""

from __future__ import annotations

from discreet.codebook.codebook import Codebook, TableSource

__all__ = ["Codebook", "TableSource"]
