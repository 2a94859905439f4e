"""Mutated statements: whatever the text, the outcome is a sound question or a refusal of ours, never anything else."""

from __future__ import annotations

import logging
import random
import re
from contextlib import suppress

import pytest

from discreet.bounding.bound import bound_all
from discreet.bounding.relation_facts import Owner
from discreet.bounding.stability import find_relation_facts
from discreet.errors import PrivacyError, QuestionError, UsageError
from discreet.frontends import read_sql
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Column, Expression, ReleasedValue, walk
from discreet.plan.nodes import Question
from discreet.plan.show import show
from tests.fixtures.cases import QuestionCase, cases
from tests.worlds.tables import CATALOG, VISITS, world

TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|\s+|[<>=!|:]+|.", re.DOTALL)
CASES = cases()
SEEDS = [case.question for case in CASES]
PLAIN = [case for case in CASES if world(case.file)[0] is CATALOG]
SEVERAL = [case for case in CASES if world(case.file)[0] is not CATALOG]
ODD = """
    NULL TRUE ? $1 :x @ # % ^ ~ ; -- /* */ [ ] { } -> => := :: .. * ( ) , . '' "" '%' 1e400 -1 0 9999999999999999999
    OVER PARTITION LATERAL UNNEST VALUES CAST TRY_CAST INTERVAL ESCAPE COLLATE EXCLUDE REPLACE RENAME PIVOT ASOF CROSS
    NATURAL ANY ALL SOME STRUCT MAP ARRAY GLOB AT WITHIN RESPECT NULLS FETCH WINDOW ROWS RANGE SETTINGS FORMAT
"""
WORDS = sorted({token for seed in SEEDS for token in TOKEN.findall(seed)}) + ODD.split()
# Words that often fit where another word of the same kind stood.
KINDS = [
    list(VISITS.columns),
    ["COUNT", "SUM", "AVG", "VARIANCE", "STDDEV", "abs", "floor", "lower", "year", "length", "sqrt", "trim"],
    ["=", "<>", "<", ">=", "+", "-", "*", "/", "%", "AND", "OR", "||", "IS", "LIKE"],
    ["1", "2", "10", "2.5", "1e3", "NULL", "TRUE", "'A'", "'2024-01-01'", "'%x'"],
    ["DESC", "ASC", "", "ALL", "DISTINCT"],
    ["visits", "patients", "labs", "workers", "wards", "regions", "prices", "v", "p", "t"],
    ["patient_id", "person", "visit_id", "ward", "town", "test", "born", "referred_by", "floor", "beds"],
    ["JOIN", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "CROSS", "NATURAL", "INNER", ""],
    ["IN", "EXISTS", "UNION", "PARTITION", "ORDER", "GROUP"],
    ["ROW_NUMBER", "RANK", "LAG", "LEAD", "SUM", "COUNT", "MIN", "MAX", "MEDIAN", "BOOL_OR"],
]
SIGNS = "abz09_ \t\n'\"`();,.*+-/%<>=!|&^~@#$?:[]{}\\\x00\x1f\x7fé漢🦆\u202e\u2028\ufeff\ud800İß"


def mutated(source: random.Random, among: list[QuestionCase]) -> tuple[str, str]:
    """A statement of the fixtures with one to four changes of words or letters, and the file it is from."""
    accepted = [case for case in among if not case.expected.startswith("question")]
    case = source.choice(accepted if source.random() < 0.8 else among)
    text = case.question
    for _ in range(source.choice((1, 1, 1, 2, 3, 4))):
        change = source.choices((by_kind, by_token, by_letter), (5, 3, 2))[0]
        text = change(text, source)
    return text, case.file


def by_kind(text: str, source: random.Random) -> str:
    """One word replaced by another of its kind."""
    tokens = TOKEN.findall(text)
    places = [(at, kind) for at, token in enumerate(tokens) for kind in KINDS if token in kind]
    if places:
        at, kind = source.choice(places)
        tokens[at] = source.choice(kind)
    return "".join(tokens)


def by_token(text: str, source: random.Random) -> str:
    tokens = TOKEN.findall(text) or [""]
    at, other = source.randrange(len(tokens)), source.randrange(len(tokens))
    match source.randrange(7):
        case 0:
            del tokens[at]
        case 1:
            tokens.insert(at, f" {source.choice(WORDS)} ")
        case 2:
            tokens[at] = source.choice(WORDS)
        case 3:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case 4:
            tokens[at:at] = tokens[min(at, other) : max(at, other)]
        case 5:
            tokens[at:] = TOKEN.findall(source.choice(SEEDS))[at:]
        case _:
            tokens[min(at, other) : max(at, other)] = ["(", *tokens[min(at, other) : max(at, other)], ")"]
    return "".join(tokens)


def by_letter(text: str, source: random.Random) -> str:
    at = source.randint(0, len(text))
    match source.randrange(3):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1:
            return text[:at] + source.choice(SIGNS) + text[at:]
        case _:
            return text[:at] + source.choice(SIGNS) + text[at + 1 :]


def check(question: Question, catalog: Catalog) -> None:
    """What every question promises to the steps after it."""
    below: list[Expression] = [*question.conditions, *question.keys]
    below += [aggregate.argument for aggregate in question.aggregates if aggregate.argument is not None]
    above = [output.expression for output in question.outputs] + [order.expression for order in question.order]
    above += [] if question.having is None else [question.having]
    assert (question.aggregates or question.keys) and len(set(question.aggregates)) == len(question.aggregates)
    assert len(set(question.keys)) == len(question.keys)
    source = find_relation_facts(question.source, catalog)
    for part in (part for expression in below for part in walk(expression)):
        assert not isinstance(part, ReleasedValue)
        assert not isinstance(part, Column) or part in source.columns
    assert source.owner is not Owner.LOST
    with suppress(UsageError, PrivacyError):  # such as a missing bound; anything else is a bug
        bound_all(question, catalog)
    promised = [*map(question.refer_to_key, range(len(question.keys)))]
    promised += [*map(question.refer_to_aggregate, range(len(question.aggregates)))]
    promised += question.mark_groupings(())
    for part in (part for expression in above for part in walk(expression)):
        assert not isinstance(part, Column)
        assert not isinstance(part, ReleasedValue) or part in promised
    titles = [output.name.lower() for output in question.outputs]
    assert len(set(titles)) == len(titles)
    assert hash(question) == hash(question) and show(question)


def run(seed: int, count: int, among: list[QuestionCase]) -> tuple[int, int]:
    """How many mutated statements were accepted and refused."""
    source = random.Random(seed)  # noqa: S311  # mutations, not noise
    accepted = refused = 0
    for _ in range(count):
        text, file = mutated(source, among)
        catalog, public = world(file)
        try:
            check(read_sql.read(text, catalog, public), catalog)
            accepted += 1
        except QuestionError as error:
            message = str(error)
            refused += 1
            if not message.endswith("Nothing was charged.") or re.search(
                "sqlglot|<class|Token", error.rule + error.fix
            ):
                pytest.fail(f"{text!r}: {message}")
        except Exception as error:  # this is what must not happen
            pytest.fail(f"{text!r}: {type(error).__name__}: {error}")
    return accepted, refused


def test_mutated_statements(caplog: pytest.LogCaptureFixture) -> None:
    """3,000 mutated statements: only questions and refusals, some of each, and nothing in the log."""
    with caplog.at_level(logging.DEBUG):
        accepted, refused = run(1, 3_000, PLAIN)
    assert accepted > 200 and refused > 1_200 and not caplog.records


def test_mutated_joins_and_subqueries(caplog: pytest.LogCaptureFixture) -> None:
    """The same for statements about several tables; whatever is accepted keeps units apart."""
    with caplog.at_level(logging.DEBUG):
        accepted, refused = run(1, 2_000, SEVERAL)
    assert accepted > 80 and refused > 1_000 and not caplog.records


@pytest.mark.long
def test_very_many_mutated_statements() -> None:
    """A hundred thousand of them, with other seeds."""
    for seed in range(2, 22):
        run(seed, 2_500, PLAIN)
        run(seed, 2_500, SEVERAL)
