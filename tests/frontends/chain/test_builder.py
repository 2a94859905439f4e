"""The chain: steps keep their order and their extras, and misuse is refused with the fix."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet.errors import QuestionError
from discreet.frontends.chain.aggregates import count, count_units, mean, sum_
from discreet.frontends.chain.builder import TableBuilder
from discreet.frontends.chain.operands import col, lit, when
from discreet.plan.nodes import Question
from discreet.plan.show import show
from tests.worlds.tables import CATALOG

VISITS = TableBuilder(CATALOG, "visits")


def ANY(value: object) -> Any:
    """Past the type checker, as in an untyped program."""
    return value


@dataclass(frozen=True)
class Asking(TableBuilder):
    """What a curator does with a builder: a verb and a field of its own."""

    door: Callable[[Question], str] = show

    def ask(self) -> str:
        return self.door(self.question)


def test_subclasses_keep_their_fields() -> None:
    """A curator can add verbs; every step returns its own kind with its own fields."""
    asked: list[Question] = []

    def door(question: Question) -> str:
        asked.append(question)
        return "answer"

    chain = Asking(CATALOG, "visits", door=door).where(col("age") > 3).group_by("ward").agg(n=count()).limit(3)
    assert chain.ask() == "answer" and asked == [chain.question]


def test_steps_do_not_change_their_start() -> None:
    """A builder is a value: asking two things from one start is safe."""
    start = VISITS.group_by("ward")
    one, two = start.agg(n=count()), start.agg(a=mean("age"))
    assert one.question != two.question and start.outputs == ()


@pytest.mark.parametrize(
    "value",
    [np.int64(3), np.float64(2.5), np.bool_(True), dt.date(2024, 1, 1), pd.Timestamp("2024-01-01 10:00"), None, "x"],
    ids=str,
)
def test_constants_from_python(value: object) -> None:
    """Values of NumPy and pandas become plain constants."""
    question = VISITS.agg(x=lit(value), n=count()).question
    constant = question.outputs[0].expression
    assert type(constant).__name__ == "Literal"
    assert type(getattr(constant, "value")) in {int, float, bool, str, dt.date, dt.datetime, type(None)}  # noqa: B009  # a union otherwise


@pytest.mark.parametrize(
    ("misuse", "words"),
    [
        (lambda: bool(col("age") > 3), "neither true nor false"),
        (lambda: (col("age") > 3) and (col("age") < 5), "neither true nor false"),
        (lambda: 3 < col("age") < 5, "neither true nor false"),
        (lambda: VISITS.where(ANY(True)), "takes conditions"),
        (lambda: VISITS.where(ANY("age > 3")), "takes conditions"),
        (lambda: VISITS.where(col("age")).agg(n=count()).question, "needs a condition"),
        (lambda: VISITS.agg(n=ANY("count")), "is not an expression"),
        (lambda: VISITS.agg(n=count()).where(col("age") > 3), "comes before agg"),
        (lambda: VISITS.agg(n=count()).group_by("ward"), "comes before agg"),
        (lambda: VISITS.group_by(count()), "cannot contain an aggregate"),
        (lambda: VISITS.group_by(3), "is not a column"),
        (lambda: VISITS.group_by(lit(3)).agg(n=count()).question, "must read a column"),
        (lambda: VISITS.question, "Nothing is asked"),
        (lambda: VISITS.where(count() > 3).agg(n=count()).question, "WHERE cannot contain"),
        (lambda: sum_(mean("age")), "inside an aggregate"),
        (lambda: mean(3), "is not a column"),
        (lambda: col(ANY(3)), "must be a text"),
        (lambda: col("age").alias(ANY(3)), "must be a text"),
        (lambda: col("ward").is_in("A"), "list of constants"),
        (lambda: col("ward").is_in([]), "at least one"),
        (lambda: VISITS.where(col("ward").is_in([col("note")])).agg(n=count()).question, "must be constants"),
        (lambda: col("age").cast("complex"), "does not know this type"),
        (lambda: lit(object()), "cannot be a constant"),
        (lambda: lit(2**63), "64 bits"),
        (lambda: lit(float("nan")), "not finite"),
        (lambda: lit(dt.datetime(2024, 1, 1, tzinfo=dt.UTC)), "no time zone"),
        (lambda: lit("\ud800"), "cannot be stored"),
        (lambda: VISITS.agg(n=count()).limit(0), "from 1 on"),
        (lambda: VISITS.agg(n=count()).limit(True), "whole number"),
        (lambda: VISITS.agg(n=count()).limit(3, offset=-1), "from 0 on"),
        (lambda: VISITS.agg(n=mean("aeg")).question, "Did you mean 'age'"),
        (lambda: TableBuilder(CATALOG, "visit").agg(n=count()).question, "Did you mean 'visits'"),
        (lambda: TableBuilder(CATALOG, "Answers").agg(n=count_units()).question, "its own unit"),
        (lambda: VISITS.agg(n=mean("note")).question, "needs numbers"),
        (lambda: VISITS.agg(n=mean(col("age").bin(0))).question, "above zero"),
        (lambda: VISITS.agg(n=count(), n_low=mean("age")).question, "is taken"),
        (lambda: VISITS.agg(count().alias(" n")).question, "without spaces"),
        (lambda: VISITS.agg(n=sum_(when(col("age")).then(1))).question, "does not take"),
        (lambda: VISITS.agg(n=sum_(col("day") + 1)).question, "does not take date and integer"),
    ],
)
def test_misuse_is_refused(misuse: Callable[[], object], words: str) -> None:
    """Each mistake is a QuestionError that names the rule and says that nothing was charged."""
    with pytest.raises(QuestionError) as caught:
        misuse()
    assert words in str(caught.value) and str(caught.value).endswith("Nothing was charged.")
    assert caught.value.line is None


def test_expressions_cannot_hide_in_sets() -> None:
    """As == builds an expression, a set or a dict could not find one; Python says so."""
    with pytest.raises(TypeError, match="unhashable"):
        hash(col("age"))
