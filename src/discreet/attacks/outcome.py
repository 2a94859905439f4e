"""The outcome of an attack: success rates with intervals, the bound of the privacy guarantee, and a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Self

import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.late_dataclass import dataclass
from discreet.odds import posterior

EPSILON = 1
"""The total loss of one person on the private side of every lesson."""

_WIDTH = 26  # with the longest label and the numbers, a picture fits 80 columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share with its 95 % interval, measured on ``n`` attempts."""

    value: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, right: int, n: int) -> Self:
        """The rate of ``right`` successes in ``n`` attempts, with Clopper and Pearson's interval.

        >>> rate = Rate.of(50, 100)
        >>> rate.value, round(rate.low, 3), round(rate.high, 3)
        (0.5, 0.398, 0.602)
        """
        from scipy.special import betaincinv

        if not 0 <= right <= n or n < 1:
            raise ParameterError("right", "must lie between 0 and the number of attempts", "Count attempts first.")
        low = 0.0 if right == 0 else float(betaincinv(right, n - right + 1, 0.025))
        high = 1.0 if right == n else float(betaincinv(right + 1, n - right, 0.975))
        return cls(value=right / n, low=low, high=high, n=n)

    @classmethod
    def agreement(cls, guesses: npt.ArrayLike, secrets: npt.ArrayLike) -> Self:
        """The rate of guesses that equal the secrets."""
        import numpy as np

        same = np.asarray(guesses) == np.asarray(secrets)
        return cls.of(int(same.sum()), same.size)

    def words(self) -> str:
        """The share and its interval, in per cent: ``56.0 % (52–60)``."""
        return f"{100 * self.value:5.1f} % ({100 * self.low:.0f}–{100 * self.high:.0f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One line of a picture."""

    label: str
    rate: Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one lesson.

    ``raw`` is the success on exact or naively protected statistics, ``private`` on answers of discreet whose total loss
    is ``epsilon`` for one person. No attack can exceed ``bound`` on average: a fair coin is guessed right with at most
    e^ε/(1 + e^ε), whatever else the attacker knows, except where a lesson states another bound. ``error`` is the
    standard error of the private rate where it is not that of a share of guesses. ``lines`` are the labels of the
    dotted lines of the picture, for ``chance`` and ``bound``.
    """

    name: str
    raw: Rate
    private: Rate
    lesson: str
    bars: tuple[Bar, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float = EPSILON
    bound: float = posterior(0.5, EPSILON)
    chance: float = 0.5
    error: float | None = None
    lines: tuple[str, str] = ("blind guess", "the bound")

    @property
    def standard_error(self) -> float:
        """The standard error of the private rate, if the bound were reached."""
        return math.sqrt(self.bound * (1 - self.bound) / self.private.n) if self.error is None else self.error

    @property
    def holds(self) -> bool:
        """Whether the private rate is at most the bound plus three standard errors."""
        return self.private.value <= self.bound + 3 * self.standard_error

    def picture(self) -> list[str]:
        """Bars from 0 to 100 %: full up to the low end of the interval, shaded up to the high end."""
        rows = [(bar.label, _draw_bar(bar.rate), bar.rate.words()) for bar in self.bars]
        rows.append((self.lines[0], "·" * round(_WIDTH * self.chance), f"{100 * self.chance:5.1f} %"))
        rows.append((self.lines[1], "·" * round(_WIDTH * min(1.0, self.bound)), f"{100 * self.bound:5.1f} %"))
        space = max(len(label) for label, _, _ in rows)
        return [f"{label:<{space}}  {drawn:<{_WIDTH}}  {words}" for label, drawn, words in rows]

    def text(self) -> str:
        """The picture, the lesson, and the facts."""
        facts = [f"{name}: {value}" for name, value in self.facts.items()]
        return "\n".join([*self.picture(), "", self.lesson, *(["", *facts] if facts else [])])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {
            "name": self.name,
            "raw": self.raw.value,
            "private": self.private.value,
            "bound": self.bound,
            "chance": self.chance,
            "epsilon": self.epsilon,
            "n": self.private.n,
            "intervals": {
                "raw": [self.raw.low, self.raw.high],
                "private": [self.private.low, self.private.high],
            },
            "standard_error": self.standard_error,
            "holds": self.holds,
            "lesson": self.lesson,
            "facts": dict(self.facts),
            "picture": [
                {"label": b.label, "value": b.rate.value, "low": b.rate.low, "high": b.rate.high, "n": b.rate.n}
                for b in self.bars
            ],
        }


def _draw_bar(rate: Rate) -> str:
    sure, maybe = round(_WIDTH * max(0.0, rate.low)), round(_WIDTH * min(1.0, rate.high))
    return "█" * sure + "▒" * (maybe - sure)
