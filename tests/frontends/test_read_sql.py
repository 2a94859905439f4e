"""Every fixture of tests/fixtures/questions: the plan of an accepted question, the place and words of a refusal."""

from __future__ import annotations

import pytest

from discreet.errors import QuestionError
from discreet.frontends import read_sql
from discreet.plan.show import show
from tests.fixtures.cases import QuestionCase, cases
from tests.worlds.tables import CATALOG, world

CASES = cases()


def outcome(case: QuestionCase) -> str:
    catalog, public = world(case.file)
    try:
        if case.file.startswith("computed"):
            return show_computation(read_sql.read_statement(case.question, catalog, public))
        return show(read_sql.read(case.question, catalog, public))
    except QuestionError as error:
        at = "" if error.line is None else f" {error.line}:{error.column}"
        return f"{error.code}{at}: {error.rule}\n{error.fix}"


def show_computation(found: read_sql.QuestionAndOffer | read_sql.ReleasedComputation) -> str:
    """The plans of the questions, and the SQL over what they release."""
    assert isinstance(found, read_sql.ReleasedComputation)
    plans = [f"released{i}:\n{show(asked.question)}" for i, asked in enumerate(found.questions)]
    return "\n".join([*plans, f"compute {found.sql}"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}: {case.question[:60]}")
def test_fixture(case: QuestionCase) -> None:
    """The question has the expected plan, or the expected refusal."""
    assert outcome(case) == case.expected


def test_there_are_many_fixtures() -> None:
    """At least sixty questions, both accepted and refused."""
    refused = [case for case in CASES if case.expected.startswith("question")]
    assert len(CASES) >= 180 and 60 <= len(refused) <= len(CASES) - 60


@pytest.mark.parametrize("case", [c for c in CASES if c.expected.startswith("question")], ids=lambda c: c.question[:60])
def test_refusals_are_kind(case: QuestionCase) -> None:
    """Each refusal is a sentence, gives a fix, points into the text, and says that nothing was charged."""
    with pytest.raises(QuestionError) as caught:
        read_sql.read_statement(case.question, *world(case.file))
    error = caught.value
    assert error.rule.endswith(".") and error.fix.endswith((".", "?"))
    assert str(error).endswith("Nothing was charged.")
    if error.line is not None and error.column is not None:
        line = case.question.splitlines()[error.line - 1]
        assert 1 <= error.column <= len(line) + 1
        assert error.excerpt.splitlines()[1].strip(" ^") == ""


def test_the_whole_message() -> None:
    """What a user sees: the place, the rule, the line with a mark, the fix, and that it was free."""
    with pytest.raises(QuestionError) as caught:
        read_sql.read("SELECT ward,\n       COUNT(*)\nFROM visits\nGROUP BY wrad", CATALOG)
    assert str(caught.value) == (
        "line 4, column 10: The table 'visits' has no declared column 'wrad'.\n"
        "  GROUP BY wrad\n"
        "           ^^^^\n"
        "Did you mean 'ward'? Nothing was charged."
    )
