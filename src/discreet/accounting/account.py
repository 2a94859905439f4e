"""Accounts: compute what events cost together, in every valid notion.

Composition here is sequential and adaptive: each *query* may depend on earlier answers, while the parameters of the
events are fixed in advance. When the parameters themselves depend on answers, use a ``Filter``. Interactive mechanisms
that run at the same time cost as much as one after the other (concurrent composition: Vadhan & Wang 2021; Lyu 2022;
Haney et al. 2023), so they need no rule of their own.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any

from discreet import parameters
from discreet.accounting import events as ev
from discreet.accounting.approximate import ApproximateNotion
from discreet.accounting.gdp import GaussianNotion
from discreet.accounting.notions import KINDS, has_distribution, loss_of
from discreet.accounting.pld import LossDistribution
from discreet.accounting.profiles import group_event
from discreet.accounting.pure import PureNotion
from discreet.accounting.rdp import Renyi
from discreet.accounting.zcdp import ZeroConcentratedNotion
from discreet.errors import MixedGuarantees, ParameterError, UnknownLoss
from discreet.exact import float_down
from discreet.late_dataclass import dataclass
from discreet.odds import Odds
from discreet.parameters import Epsilon, Number
from discreet.privacy import Loss, Neighbours, Notion, Unit

__all__ = ["Account", "compose", "loss_of", "parallel"]

# The δ at which an account shows its ε.
_SHOWN_DELTA = 1e-6
_SHOWN_EVENTS = 12


@dataclass(frozen=True, repr=False)
class Account:
    """What these events cost one protected unit together; a value, made by ``compose``.

    Equal events are counted together and kept in one order, so an account does not depend on the order in which it
    was put together. ``group`` is the number of units against which the loss is stated; see ``for_group``.

    Privacy: the loss holds for the joint release of all events on neighbours (``unit``, ``neighbours``), when the
    parameters were fixed in advance and the queries are adaptive. Reason: each notion composes (see its class).
    """

    events: tuple[ev.Event, ...]
    group: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _merge_events(self.events))
        object.__setattr__(self, "group", parameters.read_whole(self.group, "group"))

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return Unit.read(self.events[0].unit)

    @property
    def neighbours(self) -> Neighbours:
        """Which two datasets must look alike."""
        return Neighbours.read(self.events[0].neighbours)

    @cached_property
    def loss(self) -> Loss:
        """The loss of all events together, in every notion that is valid for all of them."""
        losses = [_price_for_group(event, self.group) for event in self.events]
        kinds = [
            kind for kind in KINDS if kind != "pld" and all(loss is not None and loss.has(kind) for loss in losses)
        ]
        notions = [_compose_all([loss.notion(kind) for loss in losses if loss is not None]) for kind in kinds]
        if self._distribution is not None:
            notions.append(self._distribution)
        if not notions:
            raise UnknownLoss("These events (or their group rules) share no notion in which they could be added up.")
        return Loss(tuple(notions), self.unit, self.neighbours)

    @cached_property
    def _distribution(self) -> LossDistribution | None:
        """The privacy-loss distribution, where every event has one and so does the group."""
        if not all(map(has_distribution, self.events)):
            return None
        return LossDistribution(self.events).for_group(self.group)

    def _find_loss(self, notion: str | None) -> Loss:
        """The loss; for a distribution only that notion, so that the others need not be computed."""
        if notion is not None and notion not in KINDS:
            fix = f"Use one of {', '.join(KINDS)}, or None for the best."
            raise ParameterError("notion", "is not a known notion", fix)
        if notion == "pld" and self._distribution is not None:
            return Loss((self._distribution,), self.unit, self.neighbours)
        return self.loss

    def epsilon(self, delta: Number = 0, notion: str | None = None) -> float:
        """The smallest ε known to hold at this δ: the tightest valid notion, or the one asked for."""
        return self._find_loss(notion).epsilon(delta, notion=notion)

    def delta(self, epsilon: Epsilon, notion: str | None = None) -> float:
        """The smallest δ known to hold at this ε: the tightest valid notion, or the one asked for."""
        return self._find_loss(notion).delta(epsilon, notion=notion)

    def bounds(self, delta: Number) -> tuple[float, float]:
        """(lower, upper): the exact ε at this δ lies between them.

        The lower bound comes from the privacy-loss distribution; where there is none, it is 0. It is for the worst
        neighbours and the worst mechanisms that fit the events.
        """
        target = float_down(parameters.read_delta(delta))
        upper = self.epsilon(delta)
        lower = 0.0 if self._distribution is None else self._distribution.bounds(target)[0]
        return min(lower, upper), upper

    def for_group(self, size: int) -> Account:
        """The same releases, stated against ``size`` units that are added, removed or replaced together."""
        return replace(self, group=self.group * parameters.read_whole(size, "size"))

    def odds(self, delta: Number = 0) -> Odds:
        """What the account means for one person (or group), as numbers and as sentences."""
        odds = self.loss.odds(delta)
        return odds if self.group == 1 else replace(odds, about=f"a group of {self.group} (each {self.unit})")

    def compose(self, other: Account) -> Account:
        """Both accounts together; they must protect the same unit, relation and group size."""
        if not isinstance(other, Account):
            raise ParameterError("other", "must be an account", "Make one with compose([event, ...]).")
        if self.group != other.group:
            raise MixedGuarantees("One account is stated for a group, the other for another size of group.")
        return Account(self.events + other.events, self.group)

    __add__ = compose

    def dump(self) -> dict[str, Any]:
        """The account as plain JSON values."""
        return {"version": ev.VERSION, "group": self.group, "events": [ev.dump(event) for event in self.events]}

    def to_json(self) -> str:
        """The account as JSON text; ``Account.from_json`` reads it back, exactly."""
        return json.dumps(self.dump(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Account:
        """The account that ``to_json`` wrote; anything unknown is refused."""
        try:
            record = json.loads(text)
        except ValueError:
            raise ParameterError("text", "is not JSON", "Give what Account.to_json returned.") from None
        if not isinstance(record, dict) or set(record) != {"version", "group", "events"}:
            raise ParameterError("text", "is not an account", "Give what Account.to_json returned.")
        if record["version"] != ev.VERSION or not isinstance(record["events"], list):
            raise UnknownLoss(f"This account is not of version {ev.VERSION}; it cannot be priced. Upgrade discreet.")
        return cls(tuple(ev.load(event) for event in record["events"]), record["group"])

    def __repr__(self) -> str:
        total = sum(event.count for event in self.events)
        whom = str(self.unit) if self.group == 1 else f"a group of {self.group} (unit: {self.unit})"
        lines = [f"Account of {total:,} release{'s' * (total > 1)}, protecting {whom} ({self.neighbours})"]
        shown = self.events[:_SHOWN_EVENTS]
        lines += [f"  {event.count:>9,} × {_describe_event(event)}" for event in shown]
        if len(self.events) > len(shown):
            lines.append(f"  … and {len(self.events) - len(shown):,} other kinds")
        lines.append(f"  {'':7} {'ε at δ = 1e-06':>14}   parameters")
        for notion in self.loss.notions:
            lines.append(f"  {notion.kind:<7} {_format_epsilon(notion.epsilon(_SHOWN_DELTA)):>14}   {notion.words()}")
        return "\n".join(lines)


def compose(events: Iterable[ev.Event] | ev.Event) -> Account:
    """The account of these events together, in any order (or of a single one).

    At least one event is needed: without one nobody can say whom an account protects.

    >>> from discreet.accounting import events
    >>> ten = compose([events.Laplace(sensitivity=1, scale=10)] * 10)
    >>> ten.epsilon()
    1.0
    >>> ten.for_group(3).epsilon()
    3.0
    """
    if isinstance(events, ev.Event):
        return Account((events,))
    return Account(tuple(events))


def parallel(accounts: Iterable[Account], *, disjoint: bool) -> Loss:
    """The loss of releases that each look at a different part of the units.

    ``disjoint=True`` is the caller's statement that the parts are fixed by a rule that looks at one unit at a time
    and puts each unit, with everything it owns, in one part only; without it nothing is claimed.

    Privacy: under add-remove a unit changes one part only, so the loss is the largest of the parts, in each notion
    (McSherry 2009, Thm. 4). Under replace a unit may leave one part and enter another; the parts' own guarantees,
    which hold each part's size fixed, say nothing about that, so it is refused.
    """
    if disjoint is not True:
        fix = "State disjoint=True only if every unit is in one part; otherwise use compose."
        raise ParameterError("disjoint", "must be stated", fix)
    listed = list(accounts)
    if not listed or not all(isinstance(account, Account) for account in listed):
        raise ParameterError("accounts", "must be accounts, at least one", "Make them with compose([...]).")
    _check_alike([event for account in listed for event in account.events])
    if any(account.neighbours != Neighbours.ADD_REMOVE for account in listed):
        raise MixedGuarantees(
            "Under replace a unit can move from one part to another, which changes the sizes of both. "
            "State the parts' losses for add-remove neighbours."
        )
    if any(account.group != 1 for account in listed):
        raise MixedGuarantees("A group may be spread over several parts. Ask the result for_group instead.")
    first = listed[0]
    if all(account == first for account in listed):
        return first.loss
    notions = (_find_largest(kind, [account.loss for account in listed]) for kind in KINDS)
    return Loss(tuple(notion for notion in notions if notion is not None), first.unit, first.neighbours)


def _find_largest(kind: str, losses: list[Loss]) -> Notion | None:
    """A statement in one notion that holds for each of these losses; None where there is none."""
    if not all(loss.has(kind) for loss in losses):
        return None
    return reduce(_take_larger, (loss.notion(kind) for loss in losses))  # type: ignore[arg-type]  # None ends in None


def _take_larger(one: Notion | None, other: Notion | None) -> Notion | None:
    match one, other:
        case PureNotion(), PureNotion():
            return one if one.amount > other.amount else other
        case ApproximateNotion(), ApproximateNotion():
            (first, failure), (second, other_failure) = one.basic_total(), other.basic_total()
            return ApproximateNotion.of(first if first > second else second, max(failure, other_failure))
        case ZeroConcentratedNotion(), ZeroConcentratedNotion():
            return ZeroConcentratedNotion(max(one.rho, other.rho), max(one.slack, other.slack))
        case Renyi(), Renyi():
            return one.take_most(other)
        case GaussianNotion(), GaussianNotion():
            return GaussianNotion(max(one.mu_squared, other.mu_squared), max(one.slack, other.slack))
        case _:
            return None


def _merge_events(events: Iterable[ev.Event]) -> tuple[ev.Event, ...]:
    """Equal events counted together, in one order."""
    listed = tuple(events)
    if not listed:
        fix = "Give at least one event: without one nobody can say whom the account protects."
        raise ParameterError("events", "are empty", fix)
    if not all(isinstance(event, ev.Event) for event in listed):
        raise ParameterError(
            "events", "must all be events", "Give for example [events.Laplace(sensitivity=1, scale=2)]."
        )
    _check_alike(listed)
    counts: Counter[ev.Event] = Counter()
    for event in listed:
        counts[replace(event, count=1)] += event.count
    return tuple(sorted((event.times(count) for event, count in counts.items()), key=repr))


def _check_alike(events: Sequence[ev.Event]) -> None:
    for event in events[1:]:
        if (event.unit, event.neighbours) != (events[0].unit, events[0].neighbours):
            raise MixedGuarantees(
                f"One event protects {events[0].unit} under {events[0].neighbours}, another {event.unit} under "
                f"{event.neighbours}. State all of them for the same unit and relation before adding them."
            )


def _compose_all(notions: list[Notion]) -> Notion:
    """Compose notions of one kind in pairs, then pairs of pairs, so that few merges have long operands."""
    while len(notions) > 1:
        pairs = [one.compose(other) for one, other in zip(notions[::2], notions[1::2])]
        notions = pairs + notions[len(notions) - len(notions) % 2 :]
    return notions[0]


def _price_for_group(event: ev.Event, size: int) -> Loss | None:
    """What an event costs a group: the price of the group's own event, or else each notion by its group rule."""
    rebuilt = group_event(event, size)
    if rebuilt is not None:
        return loss_of(rebuilt)
    loss = loss_of(event)
    known = tuple(notion for notion in (each.for_group(size) for each in loss.notions) if notion is not None)
    return Loss(known, loss.unit, loss.neighbours) if known else None


def _describe_event(event: ev.Event) -> str:
    """An event as text, without the fields that the account's first lines show."""
    return re.sub(r"(, )?count=1(, neighbours='[^']*')(, unit='[^']*')", "", repr(replace(event, count=1)))


def _format_epsilon(epsilon: float) -> str:
    return "none" if math.isinf(epsilon) else f"{epsilon:.6g}"
