"""Policy: who may ask, and caps below the budget, over analysts, projects, questions and periods.

The budget over the dataset always holds and assumes that all analysts talk to each other. Caps divide it. A cap per
period starts anew when the clock of the ledger enters the next day, week, month or year (UTC). That clock never runs
backwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, TypeAlias

from discreet import parameters
from discreet.errors import LedgerError, ParameterError
from discreet.exact import Exact, Ln, float_up
from discreet.late_dataclass import dataclass
from discreet.ledger.amount_text import exact_to_text, read_exact
from discreet.parameters import Epsilon, Number
from discreet.privacy import Budget

Bucket: TypeAlias = tuple[str, str, str]
"""The key of a separate sum: (over what, whose, in which period)."""

DATASET: Bucket = ("dataset", "", "")
OVER = ("dataset", "analyst", "project", "query")
PERIODS = ("day", "week", "month", "year")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """At most ``amount`` (ε, ρ or μ, like the budget) ``over`` the dataset, an analyst, a project or a query.

    ``name`` is one analyst or project; None means each of them, except those with a cap of their own. ``per`` is
    "day", "week", "month" or "year"; None means for ever.

    >>> print(Cap(amount=1, over="analyst", per="month"))
    1 per analyst and month
    """

    amount: Epsilon
    over: str = "dataset"
    name: str | None = None
    per: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "amount", parameters.read_epsilon(self.amount, "amount"))
        if self.over not in OVER:
            raise ParameterError("over", "is not known", f"Use one of {', '.join(OVER)}.")
        if self.per is not None and (self.per not in PERIODS or self.over == "query"):
            raise ParameterError("per", "is not a period", f"Use one of {', '.join(PERIODS)}; a query has none.")
        if self.name is not None and self.over not in ("analyst", "project"):
            raise ParameterError("name", "goes with an analyst or a project", "Leave it out.")
        if self.name is not None:
            check_name(self.name, self.over)

    @property
    def limit(self) -> Exact:
        """The amount, exactly."""
        return parameters.read_epsilon(self.amount)

    def dump(self) -> dict[str, str | None]:
        """The cap as plain values."""
        return {"amount": exact_to_text(self.limit), "over": self.over, "name": self.name, "per": self.per}

    def __str__(self) -> str:
        whose = f"for {self.over} {self.name}" if self.name is not None else f"per {self.over}"
        period = "" if self.per is None else f" and {self.per}"
        return f"{float_up(self.limit):g} {whose}{period}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Caps below the budget, and the names of analysts and projects that may ask (None: any name).

    >>> Policy.of(per_query=0.5, per_analyst=1, per_month=2).caps[1]
    Cap(amount=Fraction(1, 1), over='analyst', name=None, per=None)
    """

    caps: tuple[Cap, ...] = ()
    analysts: tuple[str, ...] | None = None
    projects: tuple[str, ...] | None = None
    stops: str = "dataset"

    def __post_init__(self) -> None:
        for name, over in (("analysts", "analyst"), ("projects", "project")):
            listed = getattr(self, name)
            if listed is not None:
                object.__setattr__(self, name, tuple(sorted({check_name(one, over) for one in listed})))
        if self.stops not in ("dataset", "analyst") or (self.stops == "analyst" and self.analysts is None):
            fix = "A failure stops the dataset; say stops='analyst' only where analysts are listed."
            raise ParameterError("stops", "is not a known word, or analysts are not listed", fix)
        keys = [(cap.over, cap.name, cap.per) for cap in self.caps]
        if len(set(keys)) != len(keys):
            raise ParameterError("caps", "say the same thing twice", "Give one cap for each name and period.")

    @classmethod
    def of(
        cls,
        *,
        per_query: Epsilon | None = None,
        per_analyst: Epsilon | Mapping[str, Epsilon] | None = None,
        per_project: Epsilon | Mapping[str, Epsilon] | None = None,
        per_day: Number | None = None,
        per_week: Number | None = None,
        per_month: Number | None = None,
        per_year: Number | None = None,
        analysts: Iterable[str] | None = None,
        projects: Iterable[str] | None = None,
    ) -> Policy:
        """A policy with the usual caps; ``per_analyst={"ana": 2}`` caps one analyst by name."""
        caps = [] if per_query is None else [Cap(amount=per_query, over="query")]
        for over, given in (("analyst", per_analyst), ("project", per_project)):
            if isinstance(given, Mapping):
                caps += [Cap(amount=amount, over=over, name=name) for name, amount in sorted(given.items())]
            elif given is not None:
                caps.append(Cap(amount=given, over=over))
        periods = zip(PERIODS, (per_day, per_week, per_month, per_year))
        caps += [Cap(amount=amount, per=period) for period, amount in periods if amount is not None]
        listed = None if analysts is None else tuple(analysts)
        return cls(caps=tuple(caps), analysts=listed, projects=None if projects is None else tuple(projects))

    def admit(self, analyst: str, project: str) -> None:
        """Refuse an analyst or a project that is not on the list."""
        for listed, name, over in ((self.analysts, analyst, "analyst"), (self.projects, project, "project")):
            if listed is not None and name not in listed:
                raise LedgerError(
                    f"This {over} is not on the dataset's list. Ask the curator to add the name. Nothing was charged."
                )

    def check(self, budget: Budget) -> None:
        """Refuse caps that cannot be counted like the budget."""
        for cap in self.caps:
            if isinstance(cap.limit, Ln) != isinstance(budget.amount(), Ln):
                fix = "Write both as numbers, or both as logarithms such as ln(3)."
                raise ParameterError("cap", "and budget are not of the same kind", fix)

    def dump(self) -> dict[str, Any]:
        """The policy as plain values."""
        return {
            "caps": [cap.dump() for cap in self.caps],
            "analysts": None if self.analysts is None else list(self.analysts),
            "projects": None if self.projects is None else list(self.projects),
            # Left out where it is the usual one, so that policies written before stay equal.
            **({} if self.stops == "dataset" else {"stops": self.stops}),
        }

    @classmethod
    def load(cls, record: Mapping[str, Any]) -> Policy:
        """The policy that ``dump`` wrote."""
        caps = tuple(Cap(**{**cap, "amount": read_exact(cap["amount"])}) for cap in record["caps"])
        listed = {name: None if record[name] is None else tuple(record[name]) for name in ("analysts", "projects")}
        return cls(caps=caps, stops=record.get("stops", "dataset"), **listed)


def check_name(name: object, over: str) -> str:
    """The name of an analyst, a project or a request: printable characters; a project may have no name."""
    if not isinstance(name, str) or len(name) > 200 or not name.isprintable() or not (name or over == "project"):
        fix = "Give a name of 1 to 200 printable characters. Nothing was charged."
        raise ParameterError(over, "is not a name", fix)
    return name


def period_of(per: str | None, time: str) -> str:
    """The name of the period that contains a time.

    >>> [period_of(per, "2026-01-01T10:00:00.000000Z") for per in ("day", "week", "month", "year", None)]
    ['2026-01-01', '2026-W01', '2026-01', '2026', '']
    """
    if per is None:
        return ""
    if per == "week":
        year, week, _ = date.fromisoformat(time[:10]).isocalendar()
        return f"{year}-W{week:02d}"
    return time[: {"day": 10, "month": 7, "year": 4}[per]]
