"""Problem documents become the errors that they describe, whatever they hold."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from discreet import errors
from discreet.remote.refusals import make_error
from discreet.service import problems
from discreet.service.messages import RefusalCode, RequestRefused

MADE: list[errors.DiscreetError] = [
    errors.UsageError("Say it otherwise."),
    errors.ParameterError("epsilon", "must be above zero; got a negative int", "Give epsilon=1."),
    errors.QuestionError("There is no column.", "Did you mean 'ward'?", 1, 8, "  SELECT wrd\n         ^^^"),
    errors.QuestionError("There is no table.", "Name one."),
    errors.DrawLost(),
    errors.LedgerStopped(charged=True),
    errors.RequestConflict("Another body."),
    errors.BudgetExceeded("Too much."),
    errors.Unbounded("No bounds."),
    errors.EngineFailure(),
    errors.LedgerFailure("The disk is full."),
]


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_itself(error: errors.DiscreetError) -> None:
    """Class, words and members."""
    made = make_error(json.loads(problems.describe_error(error, charged=True).body))
    assert type(made) is type(error) and str(made) == str(error) and made.charged is True
    members = {name: value for name, value in vars(error).items() if name != "charged"}
    assert members == {name: value for name, value in vars(made).items() if name != "charged"}


def test_the_service_itself() -> None:
    """What the service refuses by itself has its code and its fix, and can be handed to another process."""
    refused = RequestRefused(RefusalCode.TOO_MANY_REQUESTS, "Too many.", "Wait.")
    made = make_error(json.loads(problems.refuse_request(refused).body))
    assert isinstance(made, errors.ServiceRefused) and (made.refusal, made.fix) == ("too-many-requests", "Wait.")
    assert str(pickle.loads(pickle.dumps(made))) == str(made)  # noqa: S301  # our own


@pytest.mark.parametrize(
    "problem", [{}, {"code": 3}, {"code": "parameter"}, {"code": "question", "place": {"line": 1}}]
)
def test_documents_of_any_kind_are_refusals(problem: dict[str, Any]) -> None:
    """A server of another version, or something else that answers."""
    assert isinstance(make_error(problem), errors.DiscreetError)
