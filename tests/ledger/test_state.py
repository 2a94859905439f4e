"""The sums that lines add up to: what is no log of ours is refused, and no line gives budget back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger.amount_text import read_exact, read_price
from discreet.ledger.chain import digest
from discreet.ledger.state import VERSION, State
from tests.ledger.charges import charge, open_memory


def lines() -> list[str]:
    book = open_memory(Path())
    book.commit(book.reserve(charge("r")), {"value": 1})
    return book.read_lines()


def test_lines_add_up() -> None:
    """A second state that reads the same lines agrees with the ledger."""
    state, read = State(), lines()
    for number, line in enumerate(read):
        state.absorb(number, line)
    assert (state.charges, state.answers, state.hash) == (1, 1, digest(read[-1]))


def test_a_state_without_lines_knows_no_rules() -> None:
    """Nothing is admitted before the first entry."""
    with pytest.raises(LedgerDamaged, match="no first entry"):
        _ = State().rules


def test_a_newer_version_is_refused() -> None:
    """A log that this version may misread is not read."""
    (first, *_) = lines()
    newer = first.replace(f'"version":{VERSION}', f'"version":{VERSION + 1}')
    assert newer != first
    with pytest.raises(LedgerError, match="newer version"):
        State().absorb(0, newer)


def test_an_unknown_kind_of_line_is_refused() -> None:
    """Not skipped: it may say that something was spent."""
    first, second, *_ = lines()
    state = State()
    state.absorb(0, first)
    kind = json.loads(second)["kind"]
    with pytest.raises(LedgerError, match="Upgrade"):
        state.absorb(1, second.replace(f'"kind":"{kind}"', '"kind":"forgiven"', 1))


@pytest.mark.parametrize("text", ["-1", "1/0", "0.5", "ln(2", "2)", "nan", None, 3])
def test_amounts_that_are_no_exact_numbers(text: object) -> None:
    """No line can hold a negative or a rounded amount."""
    with pytest.raises(LedgerDamaged):
        read_exact(text)


def test_a_price_is_rational() -> None:
    """Logarithms are for limits; what was spent is counted in rationals."""
    assert read_price('["1/2",null]')[1] is None
    with pytest.raises(LedgerDamaged, match="not rational"):
        read_price('["ln(2)"]')
