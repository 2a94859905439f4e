"""What leaves an engine that fails: our own words as they are, and of everything else one constant sentence.

An engine's own words quote data. They go to the log ``discreet.curator`` and nowhere else, with one exception: why a
source cannot be opened stands in a note of the error, for the one who opens it. A note is not part of the message, so
it is shown beside the source (by Python, a notebook, the command line) and never sent by a service.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from discreet.errors import DiscreetError, EngineFailure

T = TypeVar("T")

LOG = logging.getLogger("discreet.curator")
# What a note about a source begins with.
OWNER_NOTE = "For the owner of the data:"
LOG.addHandler(logging.NullHandler())  # without a handler of the curator's, nothing is printed


def hide_error(error: Exception) -> DiscreetError:
    """The error to raise instead, ``from None``; the curator's log has what it was."""
    if isinstance(error, DiscreetError):
        return error
    LOG.error("The engine failed.", exc_info=error)
    return EngineFailure()


def hide_errors(work: Callable[[], T]) -> T:
    """Do some work; what it raises is hidden. The error that leaves does not carry the other one as its context."""
    try:
        return work()
    except Exception as error:
        hidden = hide_error(error)
    raise hidden


def tell_owner(refused: DiscreetError, cause: Exception) -> None:
    """Note why a source cannot be opened, in the engine's own words."""
    refused.add_note(f"{OWNER_NOTE} {' '.join(str(cause).split())}")
