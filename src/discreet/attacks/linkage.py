"""Linkage: joins a file without names with a list that has names.

ZIP code, birth date and sex identify most people (Sweeney 2000). So it does not help to remove the names from a file of
patients: a join with the electoral roll gives the names back, with the diagnoses.
"""

from __future__ import annotations

import numpy as np

from discreet.attacks.asking import ask_column, curator_of
from discreet.attacks.fiction import make_coins, make_frame, make_numbers
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.errors import DiscreetError
from discreet.exact import Flags, Integers
from discreet.late_dataclass import dataclass

VOTERS = 1_000  # in each ZIP code
DAYS = 80 * 365
DIAGNOSES = 4
PATIENTS = 30  # in each ZIP code, besides the target
LESSON = (
    "The file had no names, and nearly everybody in it can be named. discreet publishes no rows to join. Asked for the "
    "fingerprint of one voter, it answers with noise as large as a person."
)


def run(*, zips: int = 240) -> Outcome:
    """Name the patients in a file without names; then guess from answers whether one voter of each ZIP is in it."""
    voters, clinic = _make_fiction(zips)
    raw = Rate.agreement(_name_rows(voters.fingerprint, clinic.fingerprint), clinic.person)
    private = Rate.agreement(_guess_from_answers(voters, clinic), clinic.present)
    return Outcome(
        name="linkage",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="patients named by a join", rate=raw), Bar(label="discreet, in the file or not", rate=private)),
        facts={
            "voters in each ZIP code": f"{VOTERS:,}",
            "voters alone with their fingerprint": f"{100 * _unique_share(voters.fingerprint):.1f} %",
            "SELECT * FROM people": _ask_for_rows(clinic),
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Voters:
    """The electoral roll; the number of a voter identifies the person like a name."""

    zip: Integers
    born: Integers
    woman: Flags

    @property
    def fingerprint(self) -> Integers:
        """ZIP code, birth date and sex, in one number."""
        return (self.zip * DAYS + self.born) * 2 + self.woman


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clinic:
    """The patients: their voter numbers (which the file does not show), fingerprints, diagnoses, and the targets."""

    person: Integers
    fingerprint: Integers
    diagnosis: Integers
    target: Integers
    present: Flags

    def to_frame(self) -> object:
        """The file, with a pseudonym for each person."""
        place, woman = np.divmod(self.fingerprint, 2)
        zip_code, born = np.divmod(place, DAYS)
        columns = {"zip": zip_code, "born": born, "woman": woman == 1, "diagnosis": self.diagnosis}
        return make_frame({"person": np.arange(len(self.person)), **columns})


def _make_fiction(zips: int) -> tuple[_Voters, _Clinic]:
    zip_code = np.repeat(np.arange(zips), VOTERS)
    count = len(zip_code)
    voters = _Voters(zip=zip_code, born=make_numbers("born", count, DAYS), woman=make_coins("woman", count))
    # The first voter of each ZIP is the target, some of the others are patients.
    target = np.arange(zips) * VOTERS
    present = make_coins("patient", zips)
    places = (
        1 + np.argsort(make_numbers("patients", zips * (VOTERS - 1)).reshape(zips, VOTERS - 1), axis=1)[:, :PATIENTS]
    )
    person = np.concatenate([(target[:, None] + places).ravel(), target[present]])
    clinic = _Clinic(
        person=person,
        fingerprint=voters.fingerprint[person],
        diagnosis=make_numbers("diagnosis", len(person), DIAGNOSES),
        target=target,
        present=present,
    )
    return voters, clinic


def _name_rows(roll: Integers, file: Integers) -> Integers:
    """The voter for each row of the file whose fingerprint nobody else has, and −1 where several have it."""
    values, first, counts = np.unique(roll, return_index=True, return_counts=True)
    at = np.searchsorted(values, file)
    return np.where(counts[at] == 1, first[at], -1)


def _unique_share(roll: Integers) -> float:
    _, counts = np.unique(roll, return_counts=True)
    return float((counts == 1).sum() / len(roll))


def _guess_from_answers(voters: _Voters, clinic: _Clinic) -> Flags:
    """Guess from one question: how many patients have a target's fingerprint, by ZIP code and diagnosis.

    The guess is the likelier case: nobody, or one patient with any of the diagnoses.
    """
    zips = len(clinic.target)
    wanted = voters.born[clinic.target] * 2 + voters.woman[clinic.target]
    cases = [f"zip={z} AND born={code // 2} AND {'' if code % 2 else 'NOT '}woman" for z, code in enumerate(wanted)]
    sql = f"SELECT zip, diagnosis, COUNT(*) AS n FROM people WHERE {' OR '.join(cases)} GROUP BY zip, diagnosis"
    keys = {"zip": range(zips), "diagnosis": range(DIAGNOSES)}
    with curator_of(clinic.to_frame(), epsilon=EPSILON, keys=keys) as curator:
        counts = ask_column(curator, sql, by=("zip", "diagnosis"), epsilon=EPSILON).reshape(zips, DIAGNOSES)
    likelihood = np.exp(EPSILON * (np.abs(counts) - np.abs(counts - 1))).mean(axis=1)
    guesses: Flags = likelihood > 1
    return guesses


def _ask_for_rows(clinic: _Clinic) -> str:
    with curator_of(clinic.to_frame(), epsilon=EPSILON, keys={}) as curator:
        try:
            curator.ask("SELECT * FROM people", epsilon=EPSILON)
        except DiscreetError:
            return "refused"
    return "answered"
