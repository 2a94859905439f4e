"""What leaves an engine that fails: our own words as they are, and of everything else one constant sentence.

An engine's own words quote data. They go to the log ``discreet.curator`` and nowhere else.
"""

from __future__ import annotations

import logging

from discreet.errors import DiscreetError, EngineFailure

LOG = logging.getLogger("discreet.curator")
LOG.addHandler(logging.NullHandler())  # without a handler of the curator's, nothing is printed


def hide_error(error: Exception) -> DiscreetError:
    """The error to raise instead, ``from None``; the curator's log has what it was."""
    if isinstance(error, DiscreetError):
        return error
    LOG.error("The engine failed.", exc_info=error)
    return EngineFailure()
