"""Every error discreet raises, and who has to act on it.

    DiscreetError
    ├── UsageError              you asked wrongly: change the call       (exit code 2)
    │   ├── CallError           arguments are too many, missing or unknown; also a TypeError
    │   ├── CodebookError       the file about a dataset is wrong; lists every problem with its fix
    │   ├── LedgerError         this is not the ledger that was meant, or it does not allow this
    │   │   ├── DrawLost        the one draw of this charge was begun and did not get on record
    │   │   ├── LedgerStopped   a question failed; nothing is charged until the owner has looked
    │   │   ├── RequestConflict the request id was used for another question
    │   │   └── RequestInFlight the same request is being answered right now, or the ledger is busy
    │   ├── ParameterError      a parameter of the wrong kind or range; also a ValueError
    │   ├── QuestionError       the words of a question cannot be accepted; shows the place and the fix
    │   ├── ServiceRefused      a server does not take the request: the token, the role, too many at once
    │   └── ServiceUnreachable  no answer came from a server, also not after some tries
    ├── PrivacyError            privacy forbids it: ask for less         (exit code 3)
    │   ├── BudgetExceeded      the charge does not fit what is left
    │   ├── LedgerDamaged       the record of charges is not whole, so nothing more is released
    │   ├── MixedGuarantees     losses about different units or neighbours cannot be added
    │   ├── Unbounded           one unit could move the answer without limit
    │   ├── UnitLost            rows of several units would meet before anything is measured
    │   └── UnknownLoss         nobody can say what this costs, so it is refused
    └── InternalError           our bug: please report it                (exit code 4)
        ├── EngineFailure       the data could not be read to the end; one constant message, the charge stands
        └── LedgerFailure       a charge or an answer could not be recorded durably, so nothing was released

Messages name the place, the rule and the fix. They never contain private values: a parameter is described by its
kind ("a negative int"), data never at all. Every class has a ``code``, and every code has a section in docs/errors.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, NamedTuple


class DiscreetError(Exception):
    """The root of all errors raised on purpose by discreet."""

    code: ClassVar[str] = "discreet"
    exit_code: ClassVar[int] = 1
    charged: bool | None = None
    """What a server said of the charge for the request; None where none was asked, or where it does not know."""


class RefusalInNotebook:
    """How a notebook shows a refusal: the caller's own lines and the message, without the lines of discreet."""

    def _render_traceback_(self: Any) -> list[str]:
        """What IPython shows of the error."""
        import traceback

        inside = str(Path(__file__).parent)
        frames = traceback.extract_tb(self.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith(inside) and "IPython" not in frame.filename]
        lines = [f"line {frame.lineno}: {frame.line}" for frame in own if frame.line]
        return [*lines, f"{type(self).__name__}: {self}", *getattr(self, "__notes__", ())]


class UsageError(RefusalInNotebook, DiscreetError):
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


class CallError(UsageError, TypeError):
    """A call does not fit the function: its message shows the call to write. Nothing was read or charged."""

    code = "call"


class Problem(NamedTuple):
    """One thing that is wrong with a codebook: the dotted path of the entry, the rule it breaks, and the fix."""

    entry: str
    rule: str
    fix: str

    def __str__(self) -> str:
        return f"{self.entry} {self.rule}. {self.fix}".rstrip()


class CodebookError(UsageError):
    """A codebook is wrong. It carries ``file`` and ``problems``; no data was read."""

    code = "codebook"

    def __init__(self, file: str, problems: tuple[Problem, ...]) -> None:
        self.file = file
        self.problems = problems
        lines = "".join(f"\n  {problem}" for problem in problems)
        count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{file} has {count}:{lines}\nNothing was charged.")

    def __reduce__(self) -> tuple[type[CodebookError], tuple[str, tuple[Problem, ...]]]:
        return type(self), (self.file, self.problems)


class LedgerError(UsageError):
    """A ledger of something else, of another version, or one that does not allow this; nothing was charged."""

    code = "ledger"


class DrawLost(LedgerError):
    """The one draw of this charge was begun and is not on record, so there is no answer to give; the charge stands."""

    code = "draw-lost"

    def __init__(self) -> None:
        super().__init__(
            "This question was interrupted while its noise was drawn, and a charge buys one draw. The charge stands; "
            "ask again with a new request id, which is charged anew."
        )


class LedgerStopped(LedgerError):
    """A charged question failed. Nothing new is charged until the owner has looked and says so."""

    code = "ledger-stopped"

    def __init__(self, *, charged: bool = False) -> None:
        kept = "Your charge stands: ask again with the same id then." if charged else "Nothing was charged."
        super().__init__(
            "A question failed, and whether one fails can tell something about the data. So nothing more is charged "
            "until the owner has looked: `discreet ledger resume CODEBOOK --by NAME --reason WHY`. Recorded answers "
            f"and previews go on. {kept}"
        )


class RequestConflict(LedgerError):
    """This request id belongs to another question; nothing was charged."""

    code = "request-conflict"


class RequestInFlight(LedgerError):
    """The same request is being answered right now, or the ledger is busy. Ask again with the same id."""

    code = "request-in-flight"


class QuestionError(UsageError):
    """A question cannot be accepted as it is written. Carries the rule, the fix and, for SQL, the place.

    ``line`` and ``column`` count from 1. ``excerpt`` is the line of the question with a mark under the place.
    """

    code = "question"

    def __init__(
        self, rule: str, fix: str, line: int | None = None, column: int | None = None, excerpt: str = ""
    ) -> None:
        self.rule, self.fix, self.line, self.column, self.excerpt = rule, fix, line, column, excerpt
        where = "" if line is None else f"line {line}, column {column}: "
        between = f"\n{excerpt}\n" if excerpt else " "
        super().__init__(f"{where}{rule}{between}{fix} Nothing was charged.")

    def __reduce__(self) -> tuple[type[QuestionError], tuple[str, str, int | None, int | None, str]]:
        return type(self), (self.rule, self.fix, self.line, self.column, self.excerpt)


class ServiceRefused(UsageError):
    """A server refuses a request itself, before the curator sees it. ``refusal`` is its own code for the reason."""

    code = "service-refused"

    def __init__(self, message: str, refusal: str = "", fix: str = "") -> None:
        self.refusal, self.fix = refusal, fix
        super().__init__(message)

    def __reduce__(self) -> tuple[type[ServiceRefused], tuple[str, str, str]]:
        return type(self), (str(self), self.refusal, self.fix)


class ServiceUnreachable(UsageError):
    """No answer came from a server. What it may have charged stands, and the same request id goes on under it."""

    code = "service-unreachable"


class PrivacyError(RefusalInNotebook, DiscreetError):
    """The request is well formed, but granting it would break a guarantee."""

    code = "privacy"
    exit_code = 3


class BudgetExceeded(PrivacyError):
    """The charge does not fit what is left of the budget; nothing was charged."""

    code = "budget-exceeded"


class LedgerDamaged(PrivacyError):
    """The record of charges is not whole, or older than it was; nothing is released until a person has looked."""

    code = "ledger-damaged"


class MixedGuarantees(PrivacyError):
    """Losses about different units or neighbouring relations cannot be added up."""

    code = "mixed-guarantees"


class Unbounded(PrivacyError):
    """A bound or a limit is missing, so that one unit could move the answer without limit."""

    code = "unbounded"


class UnitLost(PrivacyError):
    """Rows of several units would meet below the aggregation, or no longer say whose they are."""

    code = "unit-lost"


class UnknownLoss(PrivacyError):
    """No valid bound on the loss is known in the form that was asked for."""

    code = "unknown-loss"


class InternalError(DiscreetError):
    """A broken promise of our own. Please report it with the version and the call."""

    code = "internal"
    exit_code = 4


class EngineFailure(InternalError):
    """Running a charged question failed on our side. The message never varies: whatever went wrong may be private."""

    code = "engine-failure"

    def __init__(self) -> None:
        super().__init__("The question could not be completed. The charge stands; the curator's log has details.")

    def __reduce__(self) -> tuple[type[EngineFailure], tuple[()]]:
        return type(self), ()


class LedgerFailure(InternalError):
    """The disk or the database would not take a charge or an answer; the ledger halts until it is opened again."""

    code = "ledger-failure"
