"""Does it hold? Checks of privacy claims that do not believe the software they check.

- ``check``: the black box: run any function on two datasets and bound its loss from below, with stated confidence.
- ``replay``: the grey box: record what a function hands to mechanisms on D, replay it on D', compare.
- ``check_question``: the same for whole SQL questions over generated neighbours (``CuratorLine`` says of which tables).
- ``check_law``, ``check_events``, ``check_fit``: exact checks by formula, and whether draws fit a stated law.
- ``installation.audit``: all of it, for every mechanism and type of question: ``discreet audit``.
"""

from discreet.audit.blackbox import check
from discreet.audit.claims import Claim
from discreet.audit.exact_checks import check_events, check_fit, check_law
from discreet.audit.findings import Finding, Verdict, Witness
from discreet.audit.greybox import replay

__all__ = ["Claim", "Finding", "Verdict", "Witness", "check", "check_events", "check_fit", "check_law", "replay"]
