"""Chains as text: the reader makes the same plan of it, whatever the chain has."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from discreet.errors import QuestionError
from discreet.frontends import read_sql
from discreet.frontends.chain.aggregates import count, count_units, max_, mean, quantile, sum_
from discreet.frontends.chain.builder import TableBuilder
from discreet.frontends.chain.operands import col, lit
from discreet.frontends.chain.sql_terms import TermWriter
from discreet.frontends.chain.sql_text import write_question, write_select
from discreet.frontends.sql.function_tables import EXAMPLES
from tests.frontends.test_equal_plans import PAIRS, VISITS
from tests.worlds.tables import CATALOG

MORE: list[Callable[[], TableBuilder]] = [
    lambda: VISITS.per_unit(visits=count(), dear=max_("cost")).where(col("visits") > 2).agg(n=count(), c=mean("dear")),
    lambda: VISITS.where(col("age") > 1).join(VISITS.named("earlier"), on="patient_id").agg(n=count()),
    lambda: VISITS.join(VISITS.named("b").where(col("age") < 50), on="patient_id", how="semi").agg(n=count()),
    lambda: VISITS.agg(n=count().filter(col("note") == 'it\'s "so" \\ % @x :y ? -- /* */')),
    lambda: VISITS.agg(n=sum_(-col("cost") * lit(-3) - lit(-0.5) + lit(1e22) * lit(1e-7))),
    lambda: VISITS.agg(q=quantile("cost", 0.001), r=quantile("cost", 0.999)),
]


@pytest.mark.parametrize("number", range(len(PAIRS) + len(MORE)))
def test_the_text_of_a_chain_means_its_plan(number: int) -> None:
    """Read back, it is the same question: the same rows, groups, measures and outputs."""
    chain = [*(make for _, make in PAIRS), *MORE][number]()
    text = write_question(chain)
    assert read_sql.read(text, CATALOG) == chain.question, text


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_function_has_a_form(name: str) -> None:
    """Each function of the language, written from its terms, is read as the same terms."""
    draft = read_sql.read_draft(f"SELECT {EXAMPLES[name]} AS x FROM visits")
    assert read_sql.read_draft(write_select(draft, TermWriter())) == draft


def test_another_chain_is_another_text() -> None:
    """Negative control: what differs in the plan differs in the text."""
    ages = [VISITS.where(col("age") > age).agg(n=count()) for age in (30, 31)]
    assert write_question(ages[0]) != write_question(ages[1])
    assert read_sql.read(write_question(ages[0]), CATALOG) != ages[1].question


def test_what_plain_sql_cannot_say_is_refused() -> None:
    """Limits of the question, a q that is no decimal, and units that have no column."""
    for chain in (
        VISITS.contributing(max_groups=1).agg(n=count()),
        VISITS.with_units(5).group_by("note").agg(n=count()),
        VISITS.agg(q=quantile("cost", Fraction(1, 3))),
    ):
        with pytest.raises(QuestionError):
            write_question(chain)
    rows = next(name for name, table in CATALOG.tables.items() if table.unit_column is None)
    with pytest.raises(QuestionError):
        write_question(TableBuilder(CATALOG, rows).agg(n=count_units()))
