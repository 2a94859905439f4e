"""Membership: finds out whether a person's genome is in a study that published only allele frequencies.

One frequency reveals nothing about a person. Thousands of them do: a participant is a little closer to all of them than
a stranger, and small differences add up (Homer et al. 2008; the score is that of Dwork et al. 2015).
"""

from __future__ import annotations

import numpy as np

from discreet.attacks.asking import ask_column, curator_of
from discreet.attacks.fiction import make_frame, make_numbers
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.exact import Flags, Floats

FREQUENCIES = "SELECT place, COUNT(*) AS n FROM people GROUP BY place"
LESSON = (
    "Exact frequencies tell participants from strangers almost without error, although each is an average over the "
    "whole study. With noise for one person's whole genome the score is blind."
)


def run(*, members: int = 60, places: int = 4000) -> Outcome:
    """Guess for each of the participants and as many strangers whether the person took part."""
    common, genomes = _make_fiction(2 * members, places)
    inside = np.arange(2 * members) < members
    exact: Floats = genomes[inside].mean(axis=0)
    # A study publishes two digits. This hides nothing either.
    rounded = np.round(exact, 2)
    noisy = _ask(genomes[inside]) / members
    rates = {
        "exact frequencies": _rate_guesses(exact, common, genomes, inside),
        "rounded to two digits": _rate_guesses(rounded, common, genomes, inside),
        "discreet": _rate_guesses(noisy, common, genomes, inside),
    }
    return Outcome(
        name="membership",
        raw=rates["rounded to two digits"],
        private=rates["discreet"],
        lesson=LESSON,
        bars=tuple(Bar(label=label, rate=rate) for label, rate in rates.items()),
        facts={"participants": members, "places in the genome": f"{places:,}"},
    )


def _make_fiction(people: int, places: int) -> tuple[Floats, Flags]:
    """How common a variant is at each place of the genome, between 5 % and 50 %, and who has it."""
    common = 0.05 + 0.45 * make_numbers("common variants", places) / 2**30
    genomes = make_numbers("genomes", people * places).reshape(people, places) < common * 2**30
    return common, genomes


def _rate_guesses(published: Floats, common: Floats, genomes: Flags, inside: Flags) -> Rate:
    """How often the guess is right: people above the middle of the two expected scores are called participants.

    The score of a person is Σ (theirs − common)·(published − common), over all places. A stranger's is 0 on average,
    a participant's is the variance of all places together, over the size of the study.
    """
    scores = (genomes - common) @ (published - common)
    middle = (common * (1 - common)).sum() / inside.sum() / 2
    return Rate.agreement(scores > middle, inside)


def _ask(genomes: Flags) -> Floats:
    """All frequencies as counts, from the curator, who protects all variants of one person together."""
    person, place = np.nonzero(genomes)
    places = genomes.shape[1]
    table = make_frame({"person": person, "place": place})
    with curator_of(table, epsilon=EPSILON, keys={"place": range(places)}, max_rows=places) as curator:
        return ask_column(curator, FREQUENCIES, by=("place",), epsilon=EPSILON).astype(np.float64)
