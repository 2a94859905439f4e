"""Mechanisms built from mechanisms: functions of a release, several releases, and releases that use earlier ones.

>>> from discreet.mechanisms.laplace import Laplace
>>> both = compose(Laplace(sensitivity=1, epsilon=1), Laplace(sensitivity=1, epsilon=2))
>>> both.privacy.epsilon(), both.privacy.for_group(3).epsilon()
(3.0, 9.0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

from discreet.accounting.account import loss_of
from discreet.accounting.currencies import dearest_event
from discreet.accounting.gdp import GaussianNotion
from discreet.accounting.pure import PureNotion
from discreet.accounting.zcdp import ZeroConcentratedNotion
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import MixedGuarantees, ParameterError, PrivacyError
from discreet.exact import lower
from discreet.late_dataclass import dataclass
from discreet.mechanisms.mechanism import Mechanism
from discreet.privacy import Budget, Loss, Notion

Chooser: TypeAlias = Callable[..., Mechanism]
Limit: TypeAlias = Budget | Mechanism


@dataclass(frozen=True, slots=True)
class PostProcessing:
    """A function of a release; made by ``post_process``.

    Privacy: exactly the loss of the mechanism inside.
    Why: whoever could tell neighbours apart from f(output) could do so from the output, by computing f.
    Reference: Dwork & Roth 2014, Prop. 2.1. The function must not look at the data: it is only given the output.
    """

    mechanism: Mechanism
    function: Callable[[Any], Any]

    @property
    def privacy(self) -> Loss:
        return self.mechanism.privacy

    def release(self, *data: Any, source: EntropySource = SYSTEM) -> Any:
        """The function of a fresh release."""
        return self.function(self.mechanism.release(*data, source=source))


@dataclass(frozen=True, slots=True)
class Query:
    """A mechanism together with the question it answers; made by ``query``.

    Privacy: the loss of the mechanism inside, if the function has the sensitivity which the mechanism states.
    Why: the mechanism's guarantee is about any function of that sensitivity; stating it is up to the caller.
    Reference: Dwork, McSherry, Nissim & Smith 2006, Def. 2 (sensitivity is a property of the function).
    """

    function: Callable[[Any], Any]
    mechanism: Mechanism

    @property
    def privacy(self) -> Loss:
        return self.mechanism.privacy

    def release(self, data: Any, /, *, source: EntropySource = SYSTEM) -> Any:
        """The mechanism's release for the function of the data."""
        return self.mechanism.release(self.function(data), source=source)


@dataclass(frozen=True, slots=True)
class Composition:
    """Several releases about the same data; made by ``compose``.

    Privacy: the sum of the losses, in each notion that all of them have.
    Why: the outputs are drawn independently, so likelihood ratios multiply and their logarithms add.
    Reference: Dwork & Roth 2014, Thm 3.16; each notion states its own rule.
    """

    mechanisms: tuple[Mechanism, ...]

    @property
    def privacy(self) -> Loss:
        return _compose_losses([mechanism.privacy for mechanism in self.mechanisms])

    def release(self, *data: Any, source: EntropySource = SYSTEM) -> tuple[Any, ...]:
        """All outputs: from one dataset for all, or from one input for each mechanism."""
        inputs = _share_inputs(data, len(self.mechanisms))
        return tuple(one.release(own, source=source) for one, own in zip(self.mechanisms, inputs))


@dataclass(frozen=True, slots=True)
class AdaptiveComposition:
    """Several releases, each mechanism chosen after seeing the outputs before it; made by ``adaptive``.

    Privacy: the loss of the first plus the limits declared for the others, whatever they turn out to be.
    Why: given the earlier outputs the next mechanism is fixed, and its likelihood ratios are within its limit; the
    ratios multiply. A choice that costs more than its limit, or protects someone else, is refused before it draws. The
    refusal depends on released outputs only, so it reveals nothing more.
    Reference: Dwork & Roth 2014, Thm 3.16 and its adaptive form, Dwork, Rothblum & Vadhan 2010, §III.
    """

    first: Mechanism
    choosers: tuple[Chooser, ...]
    limits: tuple[Limit, ...]

    @property
    def privacy(self) -> Loss:
        return _compose_losses([self.first.privacy, *(self._price_limit(limit) for limit in self.limits)])

    def _price_limit(self, limit: Limit) -> Loss:
        if not isinstance(limit, Budget):
            return limit.privacy
        start = self.first.privacy
        return loss_of(dearest_event(limit, unit=start.unit, neighbours=start.neighbours))

    def release(self, *data: Any, source: EntropySource = SYSTEM) -> tuple[Any, ...]:
        """All outputs: from one dataset for all, or from one input for each mechanism."""
        inputs = _share_inputs(data, 1 + len(self.choosers))
        outputs = [self.first.release(inputs[0], source=source)]
        for choose, limit, own in zip(self.choosers, self.limits, inputs[1:]):
            chosen = choose(*outputs)
            self._check(chosen, limit)
            outputs.append(chosen.release(own, source=source))
        return tuple(outputs)

    def _check(self, chosen: Mechanism, limit: Limit) -> None:
        loss, start = chosen.privacy, self.first.privacy
        if (loss.unit, loss.neighbours) != (start.unit, start.neighbours):
            raise MixedGuarantees("The chosen mechanism protects another unit or other neighbours than the first one.")
        within = _fits(loss, limit) if isinstance(limit, Budget) else loss == limit.privacy
        if not within:
            raise PrivacyError(
                "The chosen mechanism costs more than was declared for it, so it was not run. "
                "Choose one within the limit, or declare a larger limit before anything is released."
            )


def post_process(mechanism: Mechanism, function: Callable[[Any], Any]) -> PostProcessing:
    """Any function of a release, at the same loss.

    >>> from discreet.mechanisms.laplace import Laplace
    >>> post_process(Laplace(sensitivity=1, epsilon=1), lambda noisy: max(0, noisy)).privacy.epsilon()
    1.0
    """
    return PostProcessing(_check_mechanism(mechanism), _check_function(function, "function"))


def query(function: Callable[[Any], Any], mechanism: Mechanism) -> Query:
    """A function of a dataset with the mechanism that adds its noise and states its sensitivity."""
    return Query(_check_function(function, "function"), _check_mechanism(mechanism))


def compose(*mechanisms: Mechanism) -> Composition:
    """Several mechanisms as one: a tuple is released, and the losses add up."""
    if not mechanisms:
        raise ParameterError("mechanisms", "are missing", "Say compose(first, second).")
    composition = Composition(tuple(_check_mechanism(one) for one in mechanisms))
    _ = composition.privacy  # refuse now what cannot be added
    return composition


def adaptive(first: Mechanism, *choosers: Chooser, within: Limit | Sequence[Limit]) -> AdaptiveComposition:
    """A mechanism, then others chosen by functions of all outputs so far, each within a loss declared now.

    ``within`` is one limit for each chooser, or one for every chooser: a ``Budget``, or a mechanism to whose loss the
    chosen one's must be equal.

    >>> from discreet.mechanisms.laplace import Laplace
    >>> rough, fine = Laplace(sensitivity=1, epsilon=0.5), Laplace(sensitivity=1, epsilon=1)
    >>> study = adaptive(rough, lambda seen: fine if seen > 25 else rough, within=Budget(epsilon=1))
    >>> study.privacy.epsilon()
    1.5
    """
    if not choosers:
        raise ParameterError("choosers", "are missing", "Say adaptive(first, lambda output: second, within=...).")
    limits = tuple(within) if isinstance(within, Sequence) else (within,) * len(choosers)
    if len(limits) != len(choosers) or not all(isinstance(one, Budget) or _is_mechanism(one) for one in limits):
        raise ParameterError("within", "must be one limit for each chooser", "Say within=Budget(epsilon=1).")
    composition = AdaptiveComposition(
        _check_mechanism(first), tuple(_check_function(one, "choosers") for one in choosers), limits
    )
    _ = composition.privacy  # refuse now what cannot be added
    return composition


def _compose_losses(losses: Sequence[Loss]) -> Loss:
    return reduce(Loss.compose, losses)


def _fits(loss: Loss, limit: Budget) -> bool:
    """Whether a loss is certainly within a budget, by exact comparison in the budget's own notion."""
    amount = limit.amount()
    if limit.notion == "approx":
        return Fraction(loss.delta(amount)) <= limit.slack()
    stated: Notion | None = loss.notion(limit.notion) if loss.has(limit.notion) else None
    match stated:
        case PureNotion():
            return stated.amount <= amount
        case ZeroConcentratedNotion():
            return not stated.slack and stated.rho <= amount
        case GaussianNotion():
            return not stated.slack and stated.mu_squared <= lower(amount) ** 2
        case _:
            return False


def _share_inputs(data: tuple[Any, ...], wanted: int) -> tuple[Any, ...]:
    if len(data) == 1:
        return data * wanted
    if len(data) != wanted:
        raise ParameterError("data", f"must be one dataset for all, or {wanted} inputs", "Give one for each mechanism.")
    return data


def _is_mechanism(value: object) -> bool:
    return hasattr(type(value), "privacy") and callable(getattr(value, "release", None))


def _check_mechanism(value: Mechanism) -> Mechanism:
    if not _is_mechanism(value):
        raise ParameterError("mechanism", "must have a loss and a release", "Give for example Laplace(...).")
    return value


def _check_function(value: Callable[..., Any], name: str) -> Callable[..., Any]:
    if not callable(value):
        raise ParameterError(name, "must be a function", "Give for example lambda output: max(0, output).")
    return value
