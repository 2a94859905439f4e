"""docs/sql.md says what is so: its table is generated, and everything it shows is accepted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from discreet.errors import QuestionError
from discreet.frontends import read_sql
from discreet.frontends.google import clause_options
from discreet.frontends.resolve import from_tables
from discreet.frontends.sql import expression_forms, function_tables, inner_forms, refusals
from discreet.plan.expressions import Call, walk
from discreet.plan.functions import FUNCTIONS
from tests.worlds.tables import CATALOG, HOSPITAL

PAGE = (Path(__file__).parents[3] / "docs" / "sql.md").read_text()


def count_of(expression: str) -> str:
    return " ".join(("SELECT COUNT(", expression, ") AS n FROM visits"))


def test_the_table_of_functions_is_in_step() -> None:
    """The page holds the table as function_tables.py makes it; if not, paste what write_function_table() prints."""
    assert function_tables.write_function_table() in PAGE


def test_the_table_of_aggregates_is_in_step() -> None:
    """The page holds the table as function_tables.py makes it; if not, paste what write_aggregate_table() prints."""
    assert function_tables.write_aggregate_table() in PAGE


def test_the_table_of_google_aggregates_is_in_step() -> None:
    """The page holds the table as function_tables.py makes it."""
    assert function_tables.write_google_table() in PAGE


def test_pasted_queries_on_the_page() -> None:
    """What the page shows of GoogleSQL is accepted, and every option is named there."""
    section = PAGE[PAGE.index("## Pasting BigQuery queries") :]
    pasted = re.search(r"```sql\n(.*?)```", section, re.DOTALL)
    assert pasted is not None
    asked = read_sql.read_with_offer(pasted[1], CATALOG)
    assert set(asked.offer) == {"epsilon", "delta"} and asked.question.limits is not None
    for name in clause_options.NAMES:
        assert f"`{name}`" in section


def test_every_function_is_written_somehow() -> None:
    """No function is left out, and none is made up."""
    assert list(function_tables.EXAMPLES) == list(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_the_table_shows_is_that_function(name: str) -> None:
    """The way the page writes a function leads to this very function in the plan."""
    (aggregate,) = read_sql.read(count_of(function_tables.EXAMPLES[name]), CATALOG).aggregates
    assert aggregate.argument is not None
    assert name in {part.function for part in walk(aggregate.argument) if isinstance(part, Call)}


@pytest.mark.parametrize("name", function_tables.NAMES)
def test_suggested_names_exist(name: str) -> None:
    """Whatever "did you mean" suggests is a function that can be called."""
    tries = [f"{name}({', '.join(arguments)})" for arguments in ARGUMENTS]
    assert any(accepted(f"SELECT {text} AS x, COUNT(*) AS n FROM visits GROUP BY ALL") for text in tries)


ARGUMENTS = [
    ("age",), ("age", "2"), ("age", "0", "9"), ("note",), ("note", "'x'"), ("note", "1", "2"), ("note", "2"), ("day",),
    ("'day'", "day"), ("'day'", "day", "seen"), ("smoker",), ("smoker", "1", "0"), ("month FROM day",),
    ("ward", "note"), ("age", "0.5"), ("age", "cost"), (),
]  # fmt: skip  # arguments of all sorts


def accepted(text: str) -> bool:
    try:
        read_sql.read(text, CATALOG)
    except QuestionError:
        return False
    return True


def test_the_example_is_accepted() -> None:
    """The question under Shape is one."""
    example = re.search(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None and read_sql.read(example[1], CATALOG).limit == 10


@pytest.mark.parametrize("example", re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL), ids=lambda text: text[:50])
def test_all_examples_are_accepted(example: str) -> None:
    """Every question on the page is one, or computes with some."""
    found = read_sql.read_statement(example, HOSPITAL)
    asked = found.questions if isinstance(found, read_sql.ReleasedComputation) else (found,)
    assert asked and all(each.question.aggregates for each in asked)


SECTION = PAGE.partition("## Joins, subqueries, several tables")[2].partition("\n## ")[0]
SNIPPETS = [
    snippet
    for line in SECTION.splitlines()
    if line.startswith("| ") and "---" not in line
    for snippet in re.findall(r"`([^`]*)`", line.split(" | ")[1])
    if " " in snippet  # the others are single words
]


def asked(snippet: str) -> str:
    """A whole question around a piece of FROM or WHERE."""
    if snippet.startswith("("):
        return " ".join(("SELECT COUNT(*) FROM", snippet, "AS t"))
    if snippet.startswith(("JOIN", "WHERE")):
        return " ".join(("SELECT COUNT(*) FROM visits", "" if snippet.startswith("JOIN") else "v", snippet))
    return " ".join(("SELECT COUNT(*) FROM", snippet))


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_pieces_of_from_are_accepted(snippet: str) -> None:
    """What the table of joins and subqueries shows can be asked."""
    assert read_sql.read(asked(snippet), HOSPITAL).aggregates


def test_the_table_of_joins_is_found() -> None:
    """All rows of it are looked at."""
    assert len(SNIPPETS) >= 11


def test_the_refused_join_is_refused_so() -> None:
    """The page shows the very words of the refusal."""
    with pytest.raises(QuestionError) as caught:
        read_sql.read("SELECT COUNT(*) FROM visits v JOIN patients p ON v.ward = p.ward", HOSPITAL)
    assert str(caught.value) in SECTION


def test_limits_on_the_page() -> None:
    """The page states the limits that hold."""
    for limit in (
        f"{read_sql.MAX_CHARACTERS:,} characters",
        f"{read_sql.MAX_NESTING} parentheses",
        "60 functions",
        "4,000 members",
        f"{from_tables.MAX_RELATIONS} tables and\nsubqueries",
        f"{from_tables.MAX_SUBQUERIES} subqueries within each other",
    ):
        assert limit in PAGE


def test_tables_name_real_classes() -> None:
    """Forms and refusals are keyed by classes that the parser really has, and nothing is both."""
    from sqlglot import exp

    for name in (*expression_forms.FORMS, *refusals.NODES):
        assert isinstance(getattr(exp, name, None), type), name
    assert not set(expression_forms.FORMS) & set(refusals.NODES)
    for name, form in (*expression_forms.FORMS.items(), *inner_forms.FORMS.items()):
        assert set(form.parts) <= {*getattr(exp, name).arg_types, "this", "expressions"}, name
