"""Errors: who has to act, what is carried along, and that they survive a journey between processes."""

from __future__ import annotations

import pickle

import pytest

from discreet import errors
from discreet.errors import CodebookError, DiscreetError, ParameterError, Problem, QuestionError

EXAMPLES: list[DiscreetError] = [
    ParameterError("epsilon", "is negative", "Give a positive number."),
    CodebookError("a.toml", (Problem("unit", "is missing", "Name a column."),)),
    QuestionError("There is no such column.", "Use one of these.", 2, 7, "  SELECT x\n         ^"),
    errors.EngineFailure(),
    errors.BudgetExceeded("It does not fit."),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: error.code)
def test_errors_come_back_whole_from_another_process(error: DiscreetError) -> None:
    """Text, class and what they carry are the same after pickling."""
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)


@pytest.mark.parametrize(
    ("root", "code"), [(errors.UsageError, 2), (errors.PrivacyError, 3), (errors.InternalError, 4)]
)
def test_the_root_decides_the_exit_code(root: type[DiscreetError], code: int) -> None:
    """A script can tell its own mistake from a refusal and from our bug."""
    found = [v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, root)]
    assert len(found) > 1 and {kind.exit_code for kind in found} == {code}


def test_messages_name_the_place_the_rule_and_the_fix() -> None:
    """One problem, several problems, a place in SQL, and a refusal without a place."""
    assert str(EXAMPLES[0]) == "epsilon is negative. Give a positive number."
    one, more = Problem("unit", "is missing", "Name it."), Problem("budget", "is zero", "")
    assert "has a problem:\n  unit is missing. Name it.\nNothing was charged." in str(CodebookError("a.toml", (one,)))
    assert "has 2 problems:" in str(CodebookError("a.toml", (one, more)))
    assert str(more) == "budget is zero."
    assert str(EXAMPLES[2]).startswith("line 2, column 7: There is no such column.\n  SELECT x\n")
    assert str(QuestionError("No.", "Do.")) == "No. Do. Nothing was charged."


def test_the_failure_of_an_engine_has_one_sentence() -> None:
    """It takes no words, so it can carry nothing private."""
    with pytest.raises(TypeError):
        errors.EngineFailure("row 7 is NULL")  # type: ignore[call-arg]  # on purpose
    assert str(errors.EngineFailure()) == str(errors.EngineFailure()) and "charge stands" in str(errors.EngineFailure())
