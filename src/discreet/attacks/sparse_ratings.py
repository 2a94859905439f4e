"""Sparse ratings: a few films that somebody saw, and roughly when, find their record among thousands.

People's records are far apart where they are sparse, so an attacker needs little, and some of it may be wrong
(Narayanan & Shmatikov 2008, on the ratings that Netflix had published without names).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.attacks.asking import column, curator_of
from discreet.attacks.fiction import Bits, coins, frame, whole
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.exact import Integers

Reals: TypeAlias = npt.NDArray[np.float64]

FILMS = 1500
SEEN = 60  # films that each subscriber rated
DAYS = 2000
KNOWN, WRONG = 8, 2  # what the attacker has heard of a target, and how much of it is not so
NEAR = 3  # days that a date may be off
CLEAR = 1.5  # standard deviations that the best record must be ahead of the second
VIEWERS = "SELECT film, COUNT(*) AS n FROM people GROUP BY film"
LESSON = (
    "Six right ratings and two wrong ones find the record, and with it everything else its owner has seen. From noisy "
    "numbers of viewers nobody can tell whether the target has a record at all."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Records:
    """One line for each person: stars (0 where there is no rating) and days by film."""

    stars: Integers
    days: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """What is known of a target: films, stars and days, some of them wrong."""

    films: Integers
    stars: Integers
    days: Integers


def run(*, subscribers: int = 1500, targets: int = 200) -> Outcome:
    """Find the records of the targets that have one, and say so of those who have none."""
    everyone = _records(subscribers)
    present = coins("rating targets", targets)
    # The targets come first; the records of half of them were never published.
    published = np.concatenate([present, np.ones(subscribers - targets, dtype=np.bool_)])
    owners = np.flatnonzero(published)
    public = _Records(stars=everyone.stars[owners], days=everyone.days[owners])
    heard = [_heard(everyone, target) for target in range(targets)]
    found = np.array([_match(public, known, owners) for known in heard])
    raw = Rate.agreement(found, np.where(present, np.arange(targets), -1))
    private = Rate.agreement(_from_counts(everyone, heard, present, published), present)
    return Outcome(
        name="sparse-ratings",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="records without names", rate=raw), Bar(label="discreet, has a record or not", rate=private)),
        facts={"ratings known": f"{KNOWN}, of which {WRONG} wrong", "records": f"{len(owners):,}"},
    )


def _records(people: int) -> _Records:
    """Some films are seen by many, most by few."""
    luck = whole("films", people * FILMS).reshape(people, FILMS) / 2**30
    # The smallest of weighted draws: a film is seen with a chance that falls with its number.
    order = np.argsort(luck * np.sqrt(np.arange(FILMS) + 5), axis=1)[:, :SEEN]
    line = np.arange(people)[:, None]
    stars = np.zeros((people, FILMS), dtype=np.int64)
    stars[line, order] = 1 + whole("stars", people * SEEN, 5).reshape(people, SEEN)
    days = whole("days", people * FILMS, DAYS).reshape(people, FILMS)
    return _Records(stars=stars, days=days)


def _heard(records: _Records, target: int) -> _Heard:
    """Some of the target's ratings with dates a few days off, and some that never happened."""
    seen = np.flatnonzero(records.stars[target])
    luck = whole(f"heard of {target}", 3 * FILMS)
    films = seen[np.argsort(luck[: len(seen)])][:KNOWN]
    stars, days = records.stars[target, films], records.days[target, films]
    days += luck[FILMS : FILMS + KNOWN] % (2 * NEAR + 1) - NEAR
    films[:WRONG] = luck[-WRONG:] % FILMS
    return _Heard(films=films, stars=stars, days=days)


def _match(public: _Records, heard: _Heard, owners: Integers) -> int:
    """Whose record fits clearly best, rare films counting more; −1 if none stands out."""
    popular = (public.stars > 0).sum(axis=0)[heard.films]
    weight = 1 / np.log(np.maximum(popular, 2))
    stars, days = public.stars[:, heard.films], public.days[:, heard.films]
    fits = (stars > 0) & (np.abs(stars - heard.stars) <= 1) & (np.abs(days - heard.days) <= NEAR)
    scores: Reals = fits @ weight
    first, second = np.sort(scores)[:-3:-1]
    # One film in common is no proof: the best must also be ahead by more than any single film can give.
    ahead = first - second > max(CLEAR * float(scores.std()), float(weight.max()))
    return int(owners[scores.argmax()]) if ahead else -1


def _from_counts(everyone: _Records, heard: list[_Heard], present: Bits, published: Bits) -> Bits:
    """Noisy viewers of each film, against an attacker who knows exactly how many the others are."""
    counts = _ask(everyone, published)
    true = (everyone.stars[published] > 0).sum(axis=0)
    guesses = []
    for target, known in enumerate(heard):
        own = (everyone.stars[target] > 0) & present[target]
        excess = (counts - (true - own))[known.films]
        guesses.append(excess.sum() > (KNOWN - WRONG) / 2)
    return np.array(guesses)


def _ask(everyone: _Records, published: Bits) -> Integers:
    """How many have seen each film, from the curator, who protects all ratings of a person together."""
    person, film = np.nonzero((everyone.stars > 0) & published[:, None])
    table = frame({"person": person, "film": film})
    with curator_of(table, epsilon=EPSILON, keys={"film": range(FILMS)}, max_rows=SEEN) as curator:
        return column(curator, VIEWERS, by=("film",), epsilon=EPSILON)
