"""Second draw: a question is interrupted after its noise was drawn and asked again, with fresh noise for one charge.

A question can be written so that its last step, on noisy numbers, is slow only if a count came out large. The attacker
looks at the clock, interrupts, and asks again under the same request id, which is not charged again. Where each try
draws anew, every look is another draw. In discreet a charge buys one draw. It is on record before anything is computed
from it, and all tries go on from there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from types import FrameType
from typing import Any

import numpy as np

from discreet.attacks.asking import ask_column, curator_of
from discreet.attacks.fiction import Register
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.exact import Flags
from discreet.mechanisms.laplace import Laplace

COST = Fraction(EPSILON, 2)
QUESTION = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"
LESSON = (
    "Where a retry draws fresh noise, 121 looks for one charge are as good as no noise. discreet claims a charge "
    "once, writes down what was drawn, and every retry looks at the same numbers."
)


def run(*, towns: int = 400, looks: int = 121) -> Outcome:
    """Guess for each town's mayor whether they are among the debtors, from the looks of one charge."""
    register = Register.of(towns)
    fresh = np.mean([_look_naively(register) for _ in range(looks)], axis=0) > 0.5
    ours = _look_here(register, retries=4)
    raw, private = Rate.agreement(fresh, register.listed), Rate.agreement(ours[-1], register.listed)
    different = len({look.tobytes() for look in ours})
    return Outcome(
        name="second-draw",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="a draw for each retry", rate=raw), Bar(label="discreet", rate=private)),
        facts={"looks at fresh noise": looks, "different looks here": different, "charges": 1},
    )


def _look_naively(register: Register) -> Flags:
    """Which counts come out large in one try of a curator that draws after the charge, as often as it is asked."""
    noisy = np.asarray(Laplace(sensitivity=1, epsilon=COST).release(register.counts))
    large: Flags = noisy > register.others + 0.5
    return large


def _look_here(register: Register, retries: int) -> list[Flags]:
    """Interrupt the last step of the same request again and again, then let it finish, twice."""
    looks = []
    with curator_of(register.to_frame(), epsilon=EPSILON, keys={"town": range(register.towns)}) as curator:
        for _ in range(retries):
            try:
                with _interrupting_finish():
                    curator.ask(QUESTION, epsilon=COST, request="the same")
            except KeyboardInterrupt:
                continue
        for _ in range(2):
            noisy = ask_column(curator, QUESTION, epsilon=COST, request="the same")
            looks.append(np.asarray(noisy > register.others + 0.5))
    return looks


@contextmanager
def _interrupting_finish() -> Iterator[None]:
    """An interrupt at the moment when noisy numbers become an answer, as from an attacker with a good clock."""

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if (
            event == "call"
            and frame.f_globals.get("__name__") == "discreet.finish"
            and frame.f_code.co_name == "finish"
        ):
            sys.settrace(None)
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
