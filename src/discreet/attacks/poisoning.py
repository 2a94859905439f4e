"""Poisoning: a few people who lie on purpose change a private survey more than an open one.

In the local model the collector corrects for the noise that honest people added. So a report without noise counts like
many honest ones, and with more privacy it counts even more (Cheu, Smith & Ullman 2021). Privacy does not help here. The
bound of this lesson is not a privacy bound: it is the most that such reports can move an estimate.
"""

from __future__ import annotations

import numpy as np

from discreet.attacks.fiction import make_numbers
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.exact import Integers
from discreet.late_dataclass import dataclass
from discreet.mechanisms.randomized_response import RandomizedResponse

PARTIES = 16
TARGET = PARTIES - 1  # the smallest one
FAKE = 0.05  # of all reports
ALARM = 5.0  # standard errors below zero
LESSON = (
    "Liars are 5 % of the reports and move an open survey by 5 points. Under local privacy the same reports move the "
    "estimate by half. It shows: other shares fall below zero by more than noise can. Raise an alarm then, cap what "
    "one sender may report, or ask through a curator."
)


def run(*, people: int = 400_000, surveys: int = 40) -> Outcome:
    """Push the smallest party as far as possible with fake reports."""
    # Large parties first; the later ones are small.
    answers = make_numbers("votes", 4 * people, PARTIES).reshape(4, people).min(axis=0)
    fakes = round(people * FAKE / (1 - FAKE))
    share = fakes / (people + fakes)
    open_shift = share * (1 - float((answers == TARGET).mean()))
    strict, loose = (RandomizedResponse(epsilon=e, categories=PARTIES) for e in (EPSILON, 4))
    pushed = [_push(strict, answers, fakes) for _ in range(surveys)]
    private = _mean([one.shift for one in pushed], people)
    raw = Rate(value=open_shift, low=open_shift, high=open_shift, n=people)
    return Outcome(
        name="poisoning",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(
            Bar(label="open survey, moved by", rate=raw),
            Bar(label="local privacy ε = 4, moved by", rate=_mean([_push(loose, answers, fakes).shift], people)),
            Bar(label=f"local privacy ε = {EPSILON}, moved by", rate=private),
            Bar(label="alarm without fakes", rate=Rate.of(sum(one.alarm_before for one in pushed), surveys)),
            Bar(label="alarm with fakes", rate=Rate.of(sum(one.alarm_after for one in pushed), surveys)),
        ),
        facts={"reports": f"{people + fakes:,}", "fakes": f"{100 * share:.1f} %", "parties": PARTIES},
        bound=share / _gain(strict),
        chance=share,
        error=0.0,
        lines=("fakes among reports", "the most they can do"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PushResult:
    """How far fakes moved the target's estimate, and whether shares fell suspiciously below zero before and after."""

    shift: float
    alarm_before: bool
    alarm_after: bool


def _push(survey: RandomizedResponse, answers: Integers, fakes: int) -> _PushResult:
    """Honest people use randomized response; fake reports name the target without noise."""
    honest = np.asarray(survey.release(answers))
    before = survey.estimate(honest)
    after = survey.estimate(np.concatenate([honest, np.full(fakes, TARGET)]))
    alarms = [min(e.value / e.standard_error for e in one.values()) < -ALARM for one in (before, after)]
    return _PushResult(shift=after[TARGET].value - before[TARGET].value, alarm_before=alarms[0], alarm_after=alarms[1])


def _gain(survey: RandomizedResponse) -> float:
    """The difference between the chances of a response that is the answer and of one that is not.

    An estimated share is (share of responses − the smaller chance)/gain. A fake report changes the share of responses
    by at most its own share, so it moves the estimate by at most that over the gain: this lesson's bound.
    """
    keep = float(survey.keep)
    return keep - (1 - keep) / (PARTIES - 1)


def _mean(shifts: list[float], people: int) -> Rate:
    """The mean shift, with the smallest and the largest for an interval."""
    return Rate(value=float(np.mean(shifts)), low=min(shifts), high=max(shifts), n=people)
