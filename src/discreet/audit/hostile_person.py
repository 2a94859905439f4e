"""Asks questions about data with and without one person who wants them to fail.

The person may have any rows: bytes that are no text, texts of the longest length and one more, quotes, NUL and line
ends, numbers and days at and beyond the ends, the same row many times, keys of other people's rows, ids that no other
person would have. Whatever they have, a question that is answered without them is answered with them, in the same
words, at the same price and in the same order (``observation``). For every form of a source, since each form has its
own ways to break (``source_forms``).

What the person does to the *numbers* is bounded elsewhere, and checked by ``questions``.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from discreet.audit import clinic
from discreet.audit.dataset_neighbours import Dataset, NewcomerRecipe, Ownership, ValueMaker, make_newcomer
from discreet.audit.findings import Finding, Verdict, Witness
from discreet.audit.neighbours import NASTY
from discreet.audit.observation import Observation, OutcomeKind, describe_error, find_tell, observe
from discreet.audit.questions import EngineMaker, RecordingEngine, make_small_engine
from discreet.audit.source_forms import WRITTEN_FORMS, write_sources
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import DEFAULT_LENGTH, Catalog, ContributionLimits, TableFacts
from discreet.plan.source_kinds import SourceKind
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value
from discreet.privacy import Budget, Neighbours

SALT = bytes(16)
ORDINARY = 555_001
STRANGE_IDS: Mapping[Type, tuple[Value, ...]] = {
    Type.INTEGER: (0, -1, INTEGER_MAX, INTEGER_MIN),
    Type.TEXT: ("", "\0", '"', "'", "x" * 5000, "😀" * 1000, "\udcff", "NULL"),
}
# Below what a DuckDB file can hold, and far beyond the years that Python knows.
DAYS: tuple[Value, ...] = (-2_000_000_000, 2_000_000_000, 2_932_897, -719_163)
MOMENTS: tuple[Value, ...] = (-(2**62), 2**62, 253_402_300_800_000_000, -62_135_596_800_000_001)


def make_texts(longest: int) -> tuple[Value, ...]:
    """Texts that break things, where ``longest`` letters are allowed."""
    return (
        *("a" * longest, "a" * (longest + 1), "😀" * longest, "😀" * (longest + 1), "x" * 50_000),
        *("\0", "a\0b", "a\rb", "a\r\nb", "a\nb", "\r", "'", "'; --", "\\", "%_", ",", ",,,,,,,,,,,,", "NULL", "nan"),
        *("\ufeff", "\u202e", "e\u0301", "\U0010ffff", "-0", "1e400", "9" * 400, "0001-01-01", "infinity", ""),
    )


BYTES: tuple[Value, ...] = (
    *("\udcff", "n\udc80", "\udced\udca0\udc80", "\udcc0\udc80", "😀\udcf0\udc9f", "\udcfe\udcff1"),
)
QUOTES: tuple[Value, ...] = ('"', '"open', '"a"b', '""', '"a""', '"\r', '"open,40', "'\"'")


@dataclass(frozen=True, slots=True)
class HostilePerson:
    """What one person has in every table, and what is strange about it."""

    what: str
    rows: Dataset

    def join(self, dataset: Dataset) -> Dataset:
        """A dataset with this person in it, in the middle of the other rows."""
        return {name: _insert(rows, self.rows.get(name, ())) for name, rows in dataset.items()}


def _insert(rows: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    half = len(rows) // 2
    return [*rows[:half], *more, *rows[half:]]


def make_hostile_persons(dataset: Dataset, catalog: Catalog, *, many: int = 500) -> Iterator[HostilePerson]:
    """People who try to make questions fail, those who find most first. ``many`` is how many rows one may have."""
    owners = Ownership(dataset, catalog)
    recipes = _list_recipes(owners, many) if catalog.unit.column is not None else _list_row_recipes(owners)
    for recipe in recipes:
        yield HostilePerson(recipe.what, make_newcomer(owners, recipe))


_EXTREMES: Mapping[Type, Callable[[int], tuple[Value, ...]]] = {
    Type.BOOLEAN: lambda _: NASTY[Type.BOOLEAN],
    Type.INTEGER: lambda _: NASTY[Type.INTEGER],
    Type.REAL: lambda _: NASTY[Type.REAL],
    Type.DATE: lambda _: (*NASTY[Type.DATE], *DAYS),
    Type.TIMESTAMP: lambda _: (*NASTY[Type.TIMESTAMP], *MOMENTS),
}


def _list_row_recipes(owners: Ownership) -> Iterator[NewcomerRecipe]:
    """One row is all that a row has: another strange one each time."""
    everything = _fill({**_EXTREMES, Type.TEXT: lambda longest: (*BYTES, *QUOTES, *make_texts(longest))})
    for shift in range(0, 40, 3):
        table = owners.tables[shift % len(owners.tables)].name
        values = partial(_take_row, everything, shift)
        yield NewcomerRecipe(what=f"a strange row of {table}, {shift}", values=values, only=table)


def _take_row(values: ValueMaker, number: int, table: TableFacts, _: int) -> Mapping[str, Value]:
    return values(table, number)


def _list_recipes(owners: Ownership, many: int) -> Iterator[NewcomerRecipe]:
    kind = next(own.type for table in owners.tables if (own := table.unit_column) is not None)
    ids = STRANGE_IDS.get(kind, NASTY[kind])
    usual = ORDINARY if kind is Type.INTEGER else f"p{ORDINARY}" if kind is Type.TEXT else ids[0]
    recipe = partial(NewcomerRecipe, owner=usual)
    texts = _fill({Type.TEXT: make_texts})
    yield recipe(what="texts of all lengths and signs", values=texts, rows=min(40, many))
    yield recipe(what="bytes that are no text", values=_fill({Type.TEXT: lambda _: BYTES}), rows=min(8, many))
    yield recipe(what="quotes", values=_fill({Type.TEXT: lambda _: QUOTES}), rows=min(10, many))
    yield recipe(what="extreme numbers and days", values=_fill(_EXTREMES), rows=min(24, many))
    yield recipe(what="one ordinary row", values=lambda *_: {})
    yield recipe(what="many equal rows", values=lambda *_: {}, rows=many)
    yield recipe(what="many different rows", values=_fill({**_EXTREMES, Type.TEXT: make_texts}), rows=many)
    yield recipe(what="keys that others have", values=texts, rows=min(60, many), shared=True)
    yield recipe(what="keys that lead nowhere", values=texts, rows=min(12, many), loose=True)
    yield recipe(what="all NULL", values=lambda table, _: dict.fromkeys(table.columns), rows=3)
    for owner in (*ids, None):
        yield NewcomerRecipe(what=f"the id {str(owner)[:20]!r}", values=lambda *_: {}, rows=3, owner=owner)


def _fill(values: Mapping[Type, Callable[[int], tuple[Value, ...]]]) -> ValueMaker:
    """Each row has another of these values in every column of their types; columns of other types are ordinary."""

    def fill(table: TableFacts, number: int) -> Mapping[str, Value]:
        found: dict[str, Value] = {}
        for place, (name, (kind, facts)) in enumerate(table.columns.items()):
            if kind in values:
                among = values[kind](facts.max_length or DEFAULT_LENGTH)
                found[name] = among[(number + 7 * place) % len(among)]
        return found

    return fill


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileCheck:
    """Questions about a dataset in one form, with and without hostile people."""

    catalog: Catalog
    dataset: Dataset
    questions: Sequence[str]
    budget: Budget
    offer: Mapping[str, Any]
    form: SourceKind = SourceKind.FRAME
    make: EngineMaker = make_small_engine

    def observe(self, dataset: Dataset, questions: Sequence[str]) -> dict[str, Observation]:
        """What is seen of each question. Data that cannot be opened is seen at every one."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                engine = self.make(write_sources(self.form, dataset, self.catalog, Path(folder)), self.catalog)
            except Exception as error:  # whatever leaves the engine is seen
                failed = Observation(kind=OutcomeKind.REFUSAL, message=f"opening: {describe_error(error)}")
                return dict.fromkeys(questions, failed)
            try:
                recording = RecordingEngine(engine, SALT, [])
                return {
                    question: observe(recording, self.catalog, question, budget=self.budget, offer=self.offer)
                    for question in questions
                }
            finally:
                engine.close()

    def find_tells(self, persons: Sequence[HostilePerson], *, each: int | None = None) -> Iterator[tuple[str, str]]:
        """Every question that tells a person apart, with the person and what differs.

        With ``each``, so many questions are asked about a person, other ones about the next.
        """
        alone: dict[str, Observation] = {}
        for number, person in enumerate(persons):
            count = len(self.questions) if each is None else min(each, len(self.questions))
            asked = [self.questions[(number * count + i) % len(self.questions)] for i in range(count)]
            alone |= self.observe(self.dataset, [question for question in asked if question not in alone])
            for question, seen in self.observe(person.join(self.dataset), asked).items():
                tell = find_tell(alone[question], seen)
                if tell:
                    yield f"{person.what}: {question}", tell


QUESTIONS = (
    *clinic.JOINS[:4],
    *clinic.FEATURES[:2],
    *clinic.CHOICES,
    clinic.PRIVATE_KEYS[0],
    "SELECT COUNT(*) AS n FROM visits WHERE doctor = 'dr 1' OR upper(doctor) LIKE 'DR%'",
    "SELECT COUNT(*) AS n FROM (SELECT visitor, MAX(doctor || doctor || '-') AS d FROM visits GROUP BY visitor) AS t "
    "WHERE d > 'a'",
    "SELECT SUM(clamp(day * day, 0, 100)) AS s, COUNT(CAST(doctor AS INTEGER)) AS n FROM visits WHERE day + 1 > 0",
)


def check_hostile_persons(*, quick: bool) -> Iterator[Finding]:
    """The clinic's questions, in every form of a source, with and without each hostile person."""
    limits = ContributionLimits(max_groups=2, max_rows_per_group=3)
    catalog, rows = clinic.make_catalog(limits, Neighbours.ADD_REMOVE), clinic.make_rows()
    for form in WRITTEN_FORMS:
        start = time.monotonic()
        check = HostileCheck(
            catalog=catalog,
            dataset=rows,
            questions=QUESTIONS,
            budget=Budget(epsilon=3, delta=1e-6),
            offer={"epsilon": 1},
            form=form,
        )
        persons = list(make_hostile_persons(rows, catalog, many=200 if quick else 5_000))[: 8 if quick else None]
        where, tell = next(check.find_tells(persons, each=2 if quick else None), ("", ""))
        yield Finding(
            name=f"hostile person: {form}",
            method="outcomes",
            verdict=Verdict.BROKEN if tell else Verdict.HOLDS,
            detail=tell or f"{len(persons)} people: the same outcomes without and with each of them",
            witness=Witness(first="without the person", second=where, event=tell) if tell else None,
            seconds=time.monotonic() - start,
        )
