"""Audits: checks of privacy claims that do not trust the software they check.

- ``check``: the black box. It runs any function on two datasets and bounds its loss from below, with a confidence.
- ``replay``: the grey box. It records the mechanism calls of a function on D, replays them on D', and compares.
- ``questions.check_question``: the same for whole SQL questions over generated neighbours.
- ``check_law``, ``check_events``, ``check_fit``: exact checks by formula, and whether draws fit a stated law.
- ``installation.audit``: all of these, for every mechanism and type of question; also ``discreet audit``.
"""

from discreet.audit.blackbox import check
from discreet.audit.claims import Claim
from discreet.audit.exact_checks import check_events, check_fit, check_law
from discreet.audit.findings import Finding, Verdict, Witness
from discreet.audit.greybox import replay

__all__ = ["Claim", "Finding", "Verdict", "Witness", "check", "check_events", "check_fit", "check_law", "replay"]
