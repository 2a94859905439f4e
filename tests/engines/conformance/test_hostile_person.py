"""One hostile person never decides whether, how, at what price or in which order a question is answered.

Accepted questions, written by hand and at random, are asked about small worlds with and without a person who tries to
make them fail: on every engine, on every form of source that it reads, with little memory and one thread. The engine
may be any: an entry in ``engines.py`` is all that it takes. What is compared is in ``discreet.audit.observation``, and
who the person is in ``discreet.audit.hostile_person``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from discreet.answer_rows import Rows, make_rows
from discreet.audit.hostile_person import HostileCheck, HostilePerson, make_hostile_persons
from discreet.audit.observation import OutcomeKind
from discreet.bounding.bound import bound_all
from discreet.bounding.contributions import BoundedPlan
from discreet.charged_answers import ChargedAnswers
from discreet.charged_draw import ChargedDraw
from discreet.engines.engine import Engine, Groups
from discreet.engines.memory.engine import MemoryEngine
from discreet.errors import DiscreetError, EngineFailure, UsageError
from discreet.frontends import read_sql
from discreet.plan.catalog import Catalog
from discreet.plan.source_kinds import SourceKind
from discreet.privacy import Budget
from discreet.quote_desk import QuoteDesk
from tests.engines.conformance.engines import EngineUnderTest
from tests.fixtures.cases import cases
from tests.worlds import several
from tests.worlds.several import Tables, some_tables, tight
from tests.worlds.tables import HOSPITAL, SURVEY, world

BUDGET, OFFER = Budget(epsilon=3, delta=1e-6), {"epsilon": 1}
FEW = 20  # rows of the person where questions at random pair them with each other, several times over
# What a person with rows of their own choice would aim at: texts made longer, rows made more, and what is kept of all.
AIMED = (
    "SELECT COUNT(*) AS n FROM visits WHERE note = 'x' OR upper(note) LIKE '%A%' OR length(note) > 3",
    "SELECT COUNT(*) AS n FROM (SELECT patient_id, MAX(note || note || note || note) AS long FROM visits "
    "GROUP BY patient_id) AS t WHERE long > 'b'",
    "SELECT COUNT(DISTINCT note) AS n, COUNT(DISTINCT note || ward) AS m FROM visits",
    "SELECT note, COUNT(*) AS n FROM visits GROUP BY note",
    "SELECT day, seen, COUNT(*) AS n FROM visits GROUP BY day, seen",
    "SELECT AVG(clamp(middle, 0, 99)) AS a FROM (SELECT v.patient_id, MEDIAN(v.age) AS middle FROM visits v JOIN "
    "(VALUES ('A', 1), ('A', 2), ('A', 3)) AS w(ward, k) ON v.ward = w.ward GROUP BY v.patient_id) AS t",
    "SELECT SUM(clamp(total, 0, 99)) AS s FROM (SELECT patient_id, SUM(cost) AS total, AVG(cost) AS mean FROM visits "
    "GROUP BY patient_id) AS t WHERE mean > 1",
    "SELECT COUNT(*) AS n FROM (SELECT patient_id, LAG(note) OVER (PARTITION BY patient_id ORDER BY seen) AS before, "
    "note FROM visits) AS t WHERE before = note",
    "SELECT COUNT(CAST(note AS INTEGER)) AS i, COUNT(CAST(note AS DATE)) AS d, COUNT(CAST(note AS DOUBLE)) AS r "
    "FROM visits",
    "SELECT MEDIAN(age) AS m, QUANTILE(cost, 0.9) AS q, MODE(ward) AS w FROM visits WHERE age * age > -1",
)
YEAR = "BETWEEN DATE '2024-01-01' AND DATE '2024-12-31'"
# Times beyond all bounds, frames, sets, and rows that meet each other in EXISTS and outer joins.
EXTREME = (
    f"SELECT MEDIAN(day) AS m, MAX(day) AS last FROM visits WHERE day {YEAR}",
    f"SELECT MIN(seen) AS m FROM visits WHERE CAST(seen AS DATE) {YEAR} AND seen > TIMESTAMP '2024-01-01' "
    "AND seen < TIMESTAMP '2025-01-01'",
    f"SELECT date_trunc('month', day) AS k, COUNT(*) AS n FROM visits WHERE day {YEAR} GROUP BY k",
    "SELECT floor(age / 10) AS k, COUNT(*) AS n, COUNT(round(cost, -1)) AS m FROM visits GROUP BY k",
    "SELECT COUNT(*) AS n FROM (SELECT patient_id, SUM(cost) OVER (PARTITION BY patient_id ORDER BY seen "
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s, MIN(day) OVER (PARTITION BY patient_id ORDER BY note "
    "ROWS BETWEEN CURRENT ROW AND 20 FOLLOWING) AS d FROM visits) AS t WHERE s > 3 OR d > DATE '2024-01-01'",
    "SELECT COUNT(*) AS n FROM visits v WHERE age > 50 OR EXISTS (SELECT 1 FROM visits w "
    "WHERE w.patient_id = v.patient_id AND w.note <> v.note)",
    "SELECT COUNT(*) AS n FROM (SELECT patient_id, note, day FROM visits EXCEPT "
    "SELECT patient_id, note, day FROM visits WHERE age > 9) AS t",
    "SELECT COUNT(w.cost) AS n FROM visits v LEFT JOIN visits w ON v.patient_id = w.patient_id AND v.age > 3 "
    "AND w.note > 'a'",
)


def is_accepted(text: str, catalog: Catalog) -> bool:
    with suppress(DiscreetError):
        bound_all(read_sql.read(text, catalog), catalog)
        return True
    return False


@cache
def list_questions(*, joins: int, written: int) -> tuple[str, ...]:
    """Accepted questions about the hospital: aimed ones, every n-th that is written down, and random ones."""
    by_hand = [case.question for case in cases() if world(case.file)[0] is HOSPITAL and "refused" not in case.file]
    at_random = (several.a_question(seed) for seed in range(10 * joins))
    found = [*AIMED, *by_hand[:: max(1, len(by_hand) // written)]]
    found += [question for question in at_random if is_accepted(question, HOSPITAL)][:joins]
    return tuple(dict.fromkeys(question for question in found if is_accepted(question, HOSPITAL)))


def find_all_tells(
    engine: EngineUnderTest,
    tables: Tables,
    catalog: Catalog,
    questions: tuple[str, ...],
    *,
    each: int,
    many: int,
    quick: bool = False,
) -> list[tuple[SourceKind, str, str]]:
    """What differs with some person, in any form that an engine reads.

    ``quick`` asks a few questions in each form, about those who break most and some of the others; and a variant of
    another engine, which reads sources by the same code, in one form.
    """
    dataset: Mapping[str, Any] = {name: tables[name] for name in catalog.tables}
    persons = list(make_hostile_persons(dataset, catalog, many=many))
    found = []
    for number, form in enumerate(engine.forms):
        turn = number + len(engine.name)  # other questions and people for every engine and form
        if quick and engine.variant_of and turn % len(engine.forms):
            continue
        first = 7 * turn % len(questions)
        turned = (questions[first:] + questions[:first])[: 6 if quick else None]
        some = persons[:4] + persons[4 + turn % 3 :: 3] if quick else persons
        check = HostileCheck(
            catalog=catalog,
            dataset=dataset,
            questions=turned,
            budget=BUDGET,
            offer=OFFER,
            form=form,
            make=engine.make_small or engine.make,
        )
        found += [(form, where, tell) for where, tell in check.find_tells(some, each=each)]
    return found


def test_no_person_decides_the_outcome(engine: EngineUnderTest) -> None:
    """A few questions about each person, on every form of source."""
    questions = list_questions(joins=12, written=12)
    assert find_all_tells(engine, some_tables(1), tight(HOSPITAL, 1), questions, each=1, many=FEW, quick=True) == []


def test_all_aimed_questions_are_asked() -> None:
    """What is refused would be left out of the lists and tell nothing."""
    assert [text for text in (*AIMED, *EXTREME) if not is_accepted(text, HOSPITAL)] == []


def test_no_extreme_value_decides_the_outcome(engine: EngineUnderTest) -> None:
    """Days that no calendar has, numbers beyond all bounds, texts of all lengths: each such question about each."""
    tables, catalog = some_tables(1), tight(HOSPITAL, 1)
    dataset: Mapping[str, Any] = {name: tables[name] for name in catalog.tables}
    persons = [p for p in make_hostile_persons(dataset, catalog, many=FEW) if p.what.startswith(("extreme", "texts"))]
    assert len(persons) == 2
    check = HostileCheck(
        catalog=catalog, dataset=dataset, questions=EXTREME, budget=BUDGET, offer=OFFER, make=engine.make
    )
    assert list(check.find_tells(persons)) == []


def test_no_row_decides_the_outcome(engine: EngineUnderTest) -> None:
    """The same where rows are their own units."""
    questions = tuple(
        case.question
        for case in cases()
        if world(case.file)[0] is SURVEY and "refused" not in case.file and is_accepted(case.question, SURVEY)
    )
    assert find_all_tells(engine, some_tables(2), SURVEY, questions, each=1, many=1, quick=True) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 7))
def test_no_person_decides_the_outcome_of_many_questions(engine: EngineUnderTest, seed: int) -> None:
    """Many more questions, other worlds and limits; and thousands of rows where rows are not multiplied."""
    questions = list_questions(joins=80, written=80)
    assert find_all_tells(engine, some_tables(seed), tight(HOSPITAL, seed), questions, each=12, many=FEW) == []
    assert find_all_tells(engine, some_tables(seed), tight(HOSPITAL, seed), AIMED, each=3, many=3_000) == []


# ---- negative controls ------------------------------------------------------------------------------------------

NOTES = "SELECT note, COUNT(*) AS n FROM visits GROUP BY note"
WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@dataclass
class Leak:
    """An engine that behaves otherwise where a person has very many rows."""

    engine: MemoryEngine
    there: bool

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def run(self, bounded: BoundedPlan, **more: Any) -> Groups:
        return self.engine.run(bounded, **more)


class Failing(Leak):
    def run(self, bounded: BoundedPlan, **more: Any) -> Groups:
        if self.there:
            raise EngineFailure
        return super().run(bounded, **more)


class Talking(Leak):
    def run(self, bounded: BoundedPlan, **more: Any) -> Groups:  # noqa: ARG002  # the contract's names
        raise RuntimeError(f"{self.there} leaves with the curator that shows it")


class Unordered(Leak):
    def run(self, bounded: BoundedPlan, **more: Any) -> Groups:
        groups = super().run(bounded, **more)
        if not self.there:
            return groups
        return Groups(groups.keys[::-1], tuple(v[::-1] for v in groups.values), tuple(s[::-1] for s in groups.spreads))


def find_leaks(make: Callable[[Mapping[str, Any], Catalog], Engine], question: str) -> list[str]:
    tables = some_tables(1)
    dataset: Mapping[str, Any] = {name: tables[name] for name in HOSPITAL.tables}
    persons = [person for person in make_hostile_persons(dataset, HOSPITAL, many=120) if "many equal" in person.what]
    check = HostileCheck(catalog=HOSPITAL, dataset=dataset, questions=[question], budget=BUDGET, offer=OFFER, make=make)
    return [tell for _, tell in check.find_tells(persons)]


def leak(kind: type[Leak]) -> Callable[[Mapping[str, Any], Catalog], Any]:
    return lambda tables, catalog: kind(MemoryEngine(tables, catalog), len(tables["visits"]) > 100)


def test_the_right_engine_is_not_accused() -> None:
    """The control of the controls: the same wrapper without a leak."""
    assert find_leaks(leak(Leak), WARDS) == find_leaks(leak(Leak), NOTES) == []


def test_an_engine_that_fails_is_found() -> None:
    assert find_leaks(leak(Failing), WARDS)[0].startswith("kind differs: answer / failure")


def test_an_order_that_shows_data_is_found() -> None:
    """Noise chooses which of the keys are named, so it is the engine's order that is looked at."""
    (tell,) = find_leaks(leak(Unordered), NOTES)
    assert tell == "order differs: in key order / groups out of key order"


def test_data_that_cannot_be_opened_is_found() -> None:
    def refuse(tables: Mapping[str, Any], catalog: Catalog) -> Engine:
        if len(tables["visits"]) > 100:
            raise UsageError("A table has too many rows.")
        return MemoryEngine(tables, catalog)

    assert "REFUSAL" in find_leaks(refuse, WARDS)[0].upper()


def test_words_that_carry_a_value_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both fail and both are charged; only the words differ."""
    monkeypatch.setattr(ChargedDraw, "_count_and_draw", lambda *given: given[-1].count(False))
    (tell,) = find_leaks(leak(Talking), WARDS)
    assert tell.startswith("message differs") and "True leaves" in tell


@pytest.mark.parametrize(("what", "field"), [("spent", "charged"), ("line", "lines"), ("keys", "shown")])
def test_a_charge_a_line_or_a_key_that_shows_data_is_found(
    what: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A curator that charges twice, writes a note into the ledger, or turns public keys round, where the person is."""
    charges: list[Any] = []
    finish, make_steps, charge = ChargedAnswers.finish_all, ChargedAnswers.make_steps, QuoteDesk.make_charge

    def is_there(holder: ChargedAnswers | QuoteDesk) -> bool:
        return bool(holder.engine.engine.there)  # type: ignore[attr-defined]  # the audit's engine around ours

    def make_more(self: ChargedAnswers, quoted: Any, watch: Any) -> Any:
        steps = make_steps(self, quoted, watch)

        def count(generous: bool) -> Any:
            if is_there(self) and what == "spent":
                self.ledger.reserve(replace(charges[-1], request="another", identity="another"))
            return steps.count(generous)

        return replace(steps, count=count)

    def charge_with_note(self: QuoteDesk, *arguments: Any, **named: Any) -> Any:
        made = charge(self, *arguments, **named)
        charges.append(made)
        return replace(made, project="busy") if is_there(self) and what == "line" else made

    def finish_turned(self: ChargedAnswers, quoted: Any, draws: Any, reservation: Any) -> Any:
        answers = finish(self, quoted, draws, reservation)
        if answers is None or not is_there(self) or what != "keys":
            return answers
        return tuple(replace(a, rows=turn_rows(a.rows)) for a in answers)

    def turn_rows(table: Rows) -> Rows:
        return make_rows(table.names, table.types, table.measured, table.rows[::-1])

    monkeypatch.setattr(ChargedAnswers, "make_steps", make_more)
    monkeypatch.setattr(QuoteDesk, "make_charge", charge_with_note)
    monkeypatch.setattr(ChargedAnswers, "finish_all", finish_turned)
    (tell,) = find_leaks(leak(Leak), WARDS)
    assert tell.startswith(f"{field} differs")


def test_the_questions_are_worth_asking() -> None:
    """Nearly all are answered where nobody is hostile, and people differ in what they try."""
    questions = list_questions(joins=12, written=12)
    dataset: Mapping[str, Any] = {name: some_tables(1)[name] for name in HOSPITAL.tables}
    check = HostileCheck(
        catalog=tight(HOSPITAL, 1), dataset=dataset, questions=questions, budget=BUDGET, offer=OFFER, make=MemoryEngine
    )
    seen = check.observe(dataset, questions)
    assert len(questions) > 25 and set(AIMED) <= set(questions)
    assert sum(one.kind is OutcomeKind.ANSWER for one in seen.values()) > 0.9 * len(seen)
    persons: list[HostilePerson] = list(make_hostile_persons(dataset, HOSPITAL))
    assert len({person.what for person in persons}) == len(persons) > 12
    assert all(any(person.rows.values()) for person in persons)
