"""Accounting: computes what releases cost together, with proved and tight bounds.

``compose`` turns events into an ``Account``. A ``Filter`` stops at a budget when costs are chosen on the way. An
``Odometer`` reports the running total. ``calibrate`` goes the other way, from a target to the noise.
"""

from __future__ import annotations

from discreet.accounting import events
from discreet.accounting.account import Account, compose, loss_of, parallel
from discreet.accounting.calibrate import calibrate, cost_of_error
from discreet.accounting.filters import Filter, Odometer

__all__ = ["Account", "Filter", "Odometer", "calibrate", "compose", "cost_of_error", "events", "loss_of", "parallel"]
