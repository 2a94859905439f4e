"""Calls that do not fit are refused with the call to write, before anything is read or charged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import discreet
from discreet.call_forms import check_call
from discreet.curator import Curator
from discreet.errors import CallError, ParameterError, UsageError
from tests.worlds.visits import BY_WARD, VISITS, curator

FRAME = pd.DataFrame({"age": [1]})
CURATE: Any = discreet.curate  # called wrongly on purpose
BUDGET = discreet.Budget(epsilon=1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.ask(BY_WARD, 0.1), "too many positional arguments. Write ask(question, share=0.1)"),
        (lambda c: c.preview(BY_WARD, 0.1), "Write preview(question, share=0.1)"),
        (lambda c: c.ask(BY_WARD, eps=0.1), "Did you mean epsilon?"),
        (lambda c: c.ask(), "missing a required argument: 'question'"),
        (lambda c: c.ask_batch([BY_WARD], 0.1), "Write ask_batch([question, another], share=0.1)"),
        (lambda c: c.preview_batch([BY_WARD], 0.1), "Write preview_batch([question, another], share=0.1)"),
        (lambda c: c.table("visits").agg(n=discreet.count()).ask(0.1), "Write .ask(share=0.1)"),
        (lambda c: c.table("visits").agg(n=discreet.count()).preview(shared=0.1), "Did you mean share?"),
        (lambda _: CURATE(FRAME), 'Write curate({"visits": frame}, budget=discreet.Budget(epsilon=1))'),
        (lambda _: CURATE({"t": VISITS}, BUDGET), "Write curate("),
        (lambda _: CURATE({"t": VISITS}, bound={}, budget=BUDGET), "Did you mean bounds?"),
    ],
)
def test_the_right_call_is_shown(call: Callable[[Any], object], words: str) -> None:
    """Also to those who catch a TypeError, as before; nothing is charged."""
    holder = curator()
    with pytest.raises(CallError) as refused:
        call(holder)
    assert words in str(refused.value) and isinstance(refused.value, TypeError | UsageError)
    assert str(refused.value).endswith("Nothing was charged.") and not holder.history()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: curator().ask(BY_WARD, error=5), r"Name the column that it is wanted of: error=\{'n': 5\}"),  # type: ignore[arg-type]  # what is tested
        (lambda: discreet.curate(FRAME, budget=BUDGET), "got a DataFrame. Write curate"),
        (lambda: discreet.open(FRAME), "frames in memory are for curate"),
    ],
)
def test_values_of_another_kind_show_the_call_too(call: Callable[[], Curator], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        call()


def test_errors_of_the_function_itself_stay() -> None:
    """Negative control: a TypeError that comes from further down is another error."""

    @check_call("fail()")
    def fail() -> int:
        return len(3)  # type: ignore[arg-type]  # what is tested

    with pytest.raises(TypeError, match="has no len") as raised:
        fail()
    assert not isinstance(raised.value, CallError)
