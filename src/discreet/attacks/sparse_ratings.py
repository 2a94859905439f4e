"""Sparse ratings: finds a person's record among thousands, from a few films that the person saw and rough dates.

Sparse records of people differ in many places. So an attacker needs to know little, and some of it may be wrong
(Narayanan & Shmatikov 2008, on the ratings that Netflix had published without names).
"""

from __future__ import annotations

import numpy as np

from discreet.attacks.asking import ask_column, curator_of
from discreet.attacks.fiction import make_coins, make_frame, make_numbers
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.exact import Flags, Floats, Integers
from discreet.late_dataclass import dataclass

FILMS = 1500
SEEN = 60  # films that each subscriber rated
DAYS = 2000
KNOWN, WRONG = 8, 2  # ratings of a target that the attacker knows, and how many of them are wrong
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
class _Knowledge:
    """The attacker's knowledge of a target: films, stars and days, some of them wrong."""

    films: Integers
    stars: Integers
    days: Integers


def run(*, subscribers: int = 1500, targets: int = 200) -> Outcome:
    """Find the record of each target that has one, and find out which targets have none."""
    everyone = _make_records(subscribers)
    present = make_coins("rating targets", targets)
    # The targets come first; the records of half of them were never published.
    published = np.concatenate([present, np.ones(subscribers - targets, dtype=np.bool_)])
    owners = np.flatnonzero(published)
    public = _Records(stars=everyone.stars[owners], days=everyone.days[owners])
    knowledge = [_make_knowledge(everyone, target) for target in range(targets)]
    found = np.array([_match(public, known, owners) for known in knowledge])
    raw = Rate.agreement(found, np.where(present, np.arange(targets), -1))
    private = Rate.agreement(_guess_from_counts(everyone, knowledge, present, published), present)
    return Outcome(
        name="sparse-ratings",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="records without names", rate=raw), Bar(label="discreet, has a record or not", rate=private)),
        facts={"ratings known": f"{KNOWN}, of which {WRONG} wrong", "records": f"{len(owners):,}"},
    )


def _make_records(people: int) -> _Records:
    """Fictional records, in which some films were seen by many people and most by few."""
    luck = make_numbers("films", people * FILMS).reshape(people, FILMS) / 2**30
    # The smallest of weighted draws: a film is seen with a chance that falls with its number.
    order = np.argsort(luck * np.sqrt(np.arange(FILMS) + 5), axis=1)[:, :SEEN]
    line = np.arange(people)[:, None]
    stars = np.zeros((people, FILMS), dtype=np.int64)
    stars[line, order] = 1 + make_numbers("stars", people * SEEN, 5).reshape(people, SEEN)
    days = make_numbers("days", people * FILMS, DAYS).reshape(people, FILMS)
    return _Records(stars=stars, days=days)


def _make_knowledge(records: _Records, target: int) -> _Knowledge:
    """Some of the target's ratings with dates a few days off, and some that never happened."""
    seen = np.flatnonzero(records.stars[target])
    luck = make_numbers(f"heard of {target}", 3 * FILMS)
    films = seen[np.argsort(luck[: len(seen)])][:KNOWN]
    stars, days = records.stars[target, films], records.days[target, films]
    days += luck[FILMS : FILMS + KNOWN] % (2 * NEAR + 1) - NEAR
    films[:WRONG] = luck[-WRONG:] % FILMS
    return _Knowledge(films=films, stars=stars, days=days)


def _match(public: _Records, known: _Knowledge, owners: Integers) -> int:
    """The owner of the record that fits clearly best, where rare films count more; −1 if none fits clearly best."""
    popular = (public.stars > 0).sum(axis=0)[known.films]
    weight = 1 / np.log(np.maximum(popular, 2))
    stars, days = public.stars[:, known.films], public.days[:, known.films]
    fits = (stars > 0) & (np.abs(stars - known.stars) <= 1) & (np.abs(days - known.days) <= NEAR)
    scores: Floats = fits @ weight
    first, second = np.sort(scores)[:-3:-1]
    # One film in common is no proof: the best must also be ahead by more than any single film can give.
    ahead = first - second > max(CLEAR * float(scores.std()), float(weight.max()))
    return int(owners[scores.argmax()]) if ahead else -1


def _guess_from_counts(everyone: _Records, knowledge: list[_Knowledge], present: Flags, published: Flags) -> Flags:
    """Guess from noisy numbers of viewers of each film, for an attacker who knows all other viewers exactly."""
    counts = _ask(everyone, published)
    true = (everyone.stars[published] > 0).sum(axis=0)
    guesses = []
    for target, known in enumerate(knowledge):
        own = (everyone.stars[target] > 0) & present[target]
        excess = (counts - (true - own))[known.films]
        guesses.append(excess.sum() > (KNOWN - WRONG) / 2)
    return np.array(guesses)


def _ask(everyone: _Records, published: Flags) -> Integers:
    """How many have seen each film, from the curator, who protects all ratings of a person together."""
    person, film = np.nonzero((everyone.stars > 0) & published[:, None])
    table = make_frame({"person": person, "film": film})
    with curator_of(table, epsilon=EPSILON, keys={"film": range(FILMS)}, max_rows=SEEN) as curator:
        return ask_column(curator, VIEWERS, by=("film",), epsilon=EPSILON)
