"""The codebook: the curator's file about one dataset, and everything that can be said about it without the data.

``entries`` are the words of the file; ``rules`` what they must be together; ``codebook`` the result, ready for the
planner; ``frames`` the types of data that is in Python already; ``draft`` a first version from a schema;
``checklist`` whether the choices are wise.
"""

from __future__ import annotations

from discreet.codebook.codebook import Codebook, TableSource

__all__ = ["Codebook", "TableSource"]
