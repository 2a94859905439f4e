"""Huge, deep and odd texts meet a stated limit, never the stack."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest

from discreet.errors import QuestionError
from discreet.frontends import read_sql
from discreet.frontends.chain.aggregates import count
from discreet.frontends.chain.builder import TableBuilder
from discreet.frontends.chain.operands import col, lit
from discreet.frontends.terms import syntax
from tests.work_counts import MOST_CALLS, count_calls
from tests.worlds.tables import CATALOG


def where(condition: str) -> str:
    return " ".join(("SELECT COUNT(*) FROM visits WHERE", condition))


def select(output: str) -> str:
    return " ".join(("SELECT", output, "FROM visits"))


DEEP: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: where("(" * n + "age > 3" + ")" * n),
    "open parentheses": lambda n: where("(" * n + "age > 3"),
    "functions": lambda n: where("abs(" * n + "age" + ")" * n + " > 3"),
    "unknown functions": lambda n: where("f(" * n + "age" + ")" * n + " > 3"),
    "negations": lambda n: where("NOT " * n + "smoker"),
    "minus signs": lambda n: where("- " * n + "age > 3"),
    "CASEs": lambda n: where("CASE WHEN smoker THEN " * n + "TRUE" + " END" * n),
    "casts": lambda n: where("age" + "::BIGINT" * n + " > 3"),
    "sums": lambda n: where("age" + " + age" * n + " > 3"),
    "powers": lambda n: where("age" + " ** 2" * n + " > 3"),
    "comparisons": lambda n: where("smoker" + " = smoker" * n),
    "subqueries": lambda n: where("age > " + "(SELECT " * n + "1" + ")" * n),
    "brackets": lambda n: where("[" * n),
    "braces": lambda n: where("{" * n),
    "betweens": lambda n: where("age BETWEEN " * n),
    "lambdas": lambda n: where("x -> " * n + "1"),
    "aggregates": lambda n: select("SUM(" * n + "age" + ")" * n),
    "quotes": lambda n: where("note = " + "'" * (2 * n + 1)),
}


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize("size", [31, 100, 400, 1400])
def test_depth_is_refused_or_read(kind: str, size: int) -> None:
    """However deep a text is nested, the answer is a question or a refusal, after a bounded number of steps."""

    def read() -> None:
        with suppress(QuestionError):
            read_sql.read(DEEP[kind](size), CATALOG)

    assert count_calls(read) < MOST_CALLS


@pytest.mark.parametrize("kind", DEEP)
def test_depth_is_refused_near_the_end_of_the_stack(kind: str) -> None:
    """Also a caller who is deep in calls already gets a refusal and no RecursionError."""
    frame, used = sys._getframe(), 0
    while frame is not None:
        frame, used = frame.f_back, used + 1  # type: ignore[assignment]  # the last one has no caller

    outcomes: list[bool] = []

    def dive(left: int) -> None:
        if left:
            dive(left - 1)
            return
        with suppress(QuestionError):
            outcomes.append(False)
            read_sql.read(DEEP[kind](28), CATALOG)
            outcomes.append(True)

    dive(sys.getrecursionlimit() - used - 350)
    assert outcomes in ([False], [False, True])  # reached: refused or read, and nothing else


@pytest.mark.parametrize(("kind", "rule"), [("sums", "nested"), ("negations", "nested"), ("casts", "nested")])
def test_depth_is_counted_before_the_stack_ends(kind: str, rule: str) -> None:
    """A tree that is too deep is seen by counting, and where the parser gives up, the reason is named."""
    with pytest.raises(QuestionError, match=rule):
        read_sql.read_draft(DEEP[kind](1100))


def test_what_is_within_the_limits_is_read() -> None:
    """Thirty parentheses, sixty functions and a thousand conditions in a row are fine."""
    read_sql.read(where("(" * 30 + "age > 3" + ")" * 30), CATALOG)
    read_sql.read(where("age" + " + age" * 50 + " > 3"), CATALOG)
    question = read_sql.read(where(" OR ".join(["age = 1"] * 900)), CATALOG)
    assert len(question.conditions) == 1
    assert len(read_sql.read(where(" AND ".join(f"age <> {i}" for i in range(600))), CATALOG).conditions) == 600


def test_long_texts_are_refused() -> None:
    """More than ten thousand characters are not looked at."""
    with pytest.raises(QuestionError, match="longer than 10,000"):
        read_sql.read(where("age > 3") + " " * 10_000, CATALOG)


@pytest.mark.parametrize("text", ["", "  \n ", None, 3, b"SELECT", "SELECT \x00", "SELECT '\ud800'"])
def test_odd_texts_are_refused(text: object) -> None:
    """What is no text, is empty, or cannot be encoded is refused."""
    with pytest.raises(QuestionError):
        read_sql.read(text, CATALOG)  # type: ignore[arg-type]  # on purpose


def test_the_chain_has_the_same_limits() -> None:
    """A loop that nests an expression is stopped, a loop that adds conditions is not."""
    deep = col("age")
    for _ in range(syntax.MAX_DEPTH):
        deep = deep + col("age")
    with pytest.raises(QuestionError, match="nested more than"):
        deep + col("age")
    flat = col("age") > 0
    for i in range(1000):
        flat = flat & (col("age") != i)
    assert len(TableBuilder(CATALOG, "visits").where(flat).agg(n=count()).question.conditions) == 1001
    with pytest.raises(QuestionError, match="in one list"):
        col("age").is_in(range(5000))
    with pytest.raises(QuestionError, match="longer than"):
        lit("x" * 20_000)


def test_the_parser_loads_late() -> None:
    """Importing the front ends does not load sqlglot, which takes a while."""
    script = (
        "import sys, discreet.frontends.read_sql, discreet.frontends.chain.builder; sys.exit('sqlglot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0  # noqa: S603  # our own words
