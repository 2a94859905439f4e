"""All reports of one person together: the exact law of every history of answers, from the client itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from discreet.entropy import SeededForTestsOnly
from discreet.errors import BudgetExceeded, ParameterError
from discreet.exact import Ln
from discreet.local import Domain, Person, Task, choose
from discreet.local.krr import KaryResponse

# The reports of a history, one after the other, and their probability.
Law = dict[tuple[int, ...], Fraction]
Key = Callable[[Task, bytes], object]


class OutOfCoinsError(Exception):
    """The client asked for random bytes that nobody has drawn yet."""


class Enumerated(Person):
    """A client whose random bytes are taken from a list, one entry for each new task, epoch and value."""

    def __init__(self, coins: Sequence[bytes], key: Key) -> None:
        super().__init__(secret=b"s" * 32)
        self._coins, self._key, self._drawn = coins, key, dict[object, bytes]()

    def _make_stream(self, task: Task, purpose: str, value: bytes, length: int) -> bytes:
        if purpose != "permanent":
            return super()._make_stream(task, purpose, value, length)
        key = self._key(task, value)
        if key not in self._drawn:
            if len(self._drawn) == len(self._coins):
                raise OutOfCoinsError
            self._drawn[key] = self._coins[len(self._drawn)]
        return self._drawn[key]


def outcomes(protocol: KaryResponse) -> list[tuple[bytes, Fraction]]:
    """The random bytes of one response as far as they matter: kept, or each of the others."""
    d, other = protocol.domain_size, Fraction(2**64 - protocol.keep, 2**64)
    kept = [(bytes(16), Fraction(protocol.keep, 2**64))]
    places = [(place * 2**64 // (d - 1)).to_bytes(8, "big") for place in range(d - 1)]
    return kept + [(b"\xff" * 8 + place, other / (d - 1)) for place in places]


def by_epoch(task: Task, value: bytes) -> object:
    return task.digest, value


def law_of(history: Sequence[tuple[Task, int]], key: Key = by_epoch) -> Law:
    """The exact law of all reports of a history: every way the coins can fall."""
    protocol = history[0][0].protocol
    assert isinstance(protocol, KaryResponse) and 2**64 % (protocol.domain_size - 1) == 0
    law: Law = defaultdict(Fraction)
    todo: list[tuple[tuple[bytes, ...], Fraction]] = [((), Fraction(1))]
    while todo:
        coins, chance = todo.pop()
        person = Enumerated(coins, key)
        try:
            reports = tuple(person.report(task, answer, when_exhausted="repeat")[-1] for task, answer in history)
        except OutOfCoinsError:
            todo += [((*coins, more), chance * share) for more, share in outcomes(protocol)]
        else:
            law[reports] += chance
    assert sum(law.values()) == 1
    return dict(law)


def worst_ratio(laws: Sequence[Law]) -> Fraction | None:
    """The largest ratio of two probabilities of one outcome, over all pairs of laws; None where one is zero."""
    worst = Fraction(1)
    for outcome in {outcome for law in laws for outcome in law}:
        chances = [law.get(outcome, Fraction(0)) for law in laws]
        if min(chances) == 0:
            return None
        worst = max(worst, max(chances) / min(chances))
    return worst


def in_epochs(task: Task, schedule: Sequence[int], answers: Sequence[int]) -> list[tuple[Task, int]]:
    return [(task.in_epoch(epoch), answer) for epoch, answer in zip(schedule, answers)]


def loss_of(task: Task) -> Fraction:
    assert isinstance(task.loss, Ln)
    return task.loss.of


@pytest.mark.parametrize(
    ("size", "schedule"), [(2, [0, 0, 1, 1]), (2, [0, 1, 2, 0]), (3, [0, 1, 1]), (2, [1]), (3, [0, 0, 0])]
)
def test_any_two_histories_cost_at_most_one_loss_an_epoch(size: int, schedule: list[int]) -> None:
    """Every history against every other one, outcome by outcome, exactly; and the bound is reached."""
    task = Task.for_epsilon("t", size, epsilon=1, protocol="krr", epochs=3)
    laws = [law_of(in_epochs(task, schedule, answers)) for answers in product(range(size), repeat=len(schedule))]
    assert worst_ratio(laws) == loss_of(task) ** len(set(schedule)) <= loss_of(task) ** 3


def test_memoised_answers_show_when_they_changed() -> None:
    """What was promised once is false: two answers are told apart from one with certainty, 0.607 against 0."""
    task = Task.for_epsilon("t", 2, epsilon=1, protocol="krr", values=2)
    same, changed = law_of([(task, 0), (task, 0)]), law_of([(task, 0), (task, 1)])
    differ = [sum(chance for (a, b), chance in law.items() if a != b) for law in (same, changed)]
    assert differ[0] == 0 and abs(float(differ[1]) - 0.607) < 0.001
    laws = [law_of([(task, a), (task, b)]) for a, b in product(range(2), repeat=2)]
    assert worst_ratio(laws) is None


@pytest.mark.parametrize("values", [1, 2])
def test_memoised_histories_that_change_at_the_same_times_cost_v_losses(values: int) -> None:
    """With the same pattern of equal answers the bound of v losses holds, and is reached."""
    task = Task.for_epsilon("t", 3, epsilon=1, protocol="krr", values=values)
    histories = [(a, b, a, b) for a, b in product(range(3), repeat=2) if (a == b) == (values == 1)]
    laws = [law_of([(task, answer) for answer in history]) for history in histories]
    assert worst_ratio(laws) == loss_of(task) ** values
    # One remembered answer that is repeated for ever is one epoch: it holds for any two histories.
    if values == 1:
        every = [law_of([(task, a), (task, b)]) for a, b in product(range(3), repeat=2)]
        assert worst_ratio(every) == loss_of(task)


def test_the_enumeration_catches_answers_that_are_not_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a client that forgets the first answer of an epoch tells when the answer changed."""
    task = Task.for_epsilon("t", 2, epsilon=1, protocol="krr", epochs=2)
    histories = [in_epochs(task, [0, 0], answers) for answers in product(range(2), repeat=2)]
    assert worst_ratio([law_of(history) for history in histories]) == loss_of(task)
    monkeypatch.setattr(Person, "_keep", lambda *_: None)
    assert worst_ratio([law_of(history) for history in histories]) is None


def test_the_enumeration_catches_noise_that_is_not_fresh() -> None:
    """Negative control: with the same noise in each epoch, equal answers give equal reports again."""
    task = Task.for_epsilon("t", 2, epsilon=1, protocol="krr", epochs=2)
    laws = [law_of(in_epochs(task, [0, 1], answers), lambda _, value: value) for answers in product(range(2), repeat=2)]
    assert worst_ratio(laws) is None


def test_streams_differ_by_task_epoch_and_value() -> None:
    """The real random bytes: no two of them agree for another task, another epoch or another value."""
    person = Person(secret=b"s" * 32)
    tasks = [Task.for_epsilon(name, 9, epsilon=1, protocol="krr", epochs=3) for name in "ab"]
    seen = {
        person._make_stream(task.in_epoch(epoch), "permanent", bytes([value]), 16)
        for task, epoch, value in product(tasks, range(3), range(4))
    }
    assert len(seen) == 24


def test_an_epoch_costs_once_and_survives_a_restart(tmp_path: Path) -> None:
    """The pinned report stays, whatever the answer; a new epoch is charged; nothing of the answer is in the file."""
    path, task = tmp_path / "memory.json", Task.for_epsilon("t", 1000, epsilon=1, protocol="krr", epochs=3)
    first = Person(path=path).report(task, 1)
    assert {Person(path=path).report(task, answer) for answer in range(20)} == {first}
    person = Person(path=path, budget=2)
    assert person.spent == task.loss.upper and person.distinct(task) == 1
    assert person.distinct(task.in_epoch(1)) == 0
    second = person.report(task.in_epoch(1), 1)
    assert second[3:19] == task.in_epoch(1).digest[:16] != first[3:19]
    assert person.spent == 2 * task.loss.upper <= task.total_loss.upper  # type: ignore[union-attr]  # a logarithm
    with pytest.raises(BudgetExceeded):
        person.report(task.in_epoch(2), 1)
    assert person.report(task, 7) == first and '"marks": {}' in path.read_text()


def test_epochs_of_rappor_have_permanent_bits_of_their_own() -> None:
    """Within an epoch the permanent bits stay, under fresh noise; the next epoch draws them anew."""
    task = Task.for_epsilon("t", Domain(open=True), epsilon=4, protocol="rappor", epochs=2)
    person, source = Person(secret=b"s" * 32), SeededForTestsOnly(1)
    reports = [person.report(task, word, source=source) for word in ("one", "two", "one")]
    assert len(set(reports)) == 3
    kept = dict(person._memory.last)
    person.report(task.in_epoch(1), "one", source=source)
    assert len(kept) == 1 and len(set(person._memory.last.values())) == 2


def test_epochs_are_checked() -> None:
    """An epoch beyond the last, both promises at once, no epochs at all; the choice of a protocol passes them on."""
    made: Callable[..., Any] = lambda **more: Task.for_epsilon("t", 5, epsilon=1, protocol="krr", **more)  # noqa: E731  # short
    for bad in ({"epochs": 0}, {"epochs": 2, "epoch": 2}, {"epochs": 2, "values": 1}, {"epochs": True}):
        with pytest.raises(ParameterError):
            made(**bad)
    task = made(epochs=4)
    assert task.longitudinal and Task.read(task.json) == task and Task.read(task.in_epoch(3).json).epoch == 3
    with pytest.raises(ParameterError, match="epoch"):
        task.in_epoch(4)
    assert task.total_loss == made(values=4).total_loss and not made().longitudinal
    assert choose(5, epsilon=1, n=100).task("t", epochs=4).epochs == 4
