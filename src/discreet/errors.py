"""Every error discreet raises, and who has to act on it.

    DiscreetError
    ├── UsageError              you asked wrongly: change the call       (exit code 2)
    │   └── ParameterError      a parameter of the wrong kind or range; also a ValueError
    ├── PrivacyError            privacy forbids it: ask for less         (exit code 3)
    │   ├── BudgetExceeded      the charge does not fit what is left
    │   ├── MixedGuarantees     losses about different units or neighbours cannot be added
    │   └── UnknownLoss         nobody can say what this costs, so it is refused
    └── InternalError           our bug: please report it                (exit code 4)

Messages name the place, the rule and the fix. They never contain private values: a parameter is described by its
kind ("a negative int"), data never at all. Every class has a ``code``, and every code has a section in docs/errors.md.
"""

from __future__ import annotations

from typing import ClassVar


class DiscreetError(Exception):
    """The root of all errors raised on purpose by discreet."""

    code: ClassVar[str] = "discreet"
    exit_code: ClassVar[int] = 1


class UsageError(DiscreetError):
    """The question or the call is wrong; nothing was drawn, read or charged."""

    code = "usage"
    exit_code = 2


class ParameterError(UsageError, ValueError):
    """A parameter is of the wrong kind or outside its range; nothing was drawn."""

    code = "parameter"

    def __init__(self, name: str, problem: str, fix: str) -> None:
        self.name = name
        self.problem = problem
        self.fix = fix
        super().__init__(f"{name} {problem}. {fix}")

    def __reduce__(self) -> tuple[type[ParameterError], tuple[str, str, str]]:
        return type(self), (self.name, self.problem, self.fix)


class PrivacyError(DiscreetError):
    """The request is well formed, but granting it would break a guarantee."""

    code = "privacy"
    exit_code = 3


class BudgetExceeded(PrivacyError):
    """The charge does not fit what is left of the budget; nothing was charged."""

    code = "budget-exceeded"


class MixedGuarantees(PrivacyError):
    """Losses about different units or neighbouring relations cannot be added up."""

    code = "mixed-guarantees"


class UnknownLoss(PrivacyError):
    """No valid bound on the loss is known in the form that was asked for."""

    code = "unknown-loss"


class InternalError(DiscreetError):
    """A broken promise of our own. Please report it with the version and the call."""

    code = "internal"
    exit_code = 4
