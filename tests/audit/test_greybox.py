"""The grey box: recorded calls, replays, and whole questions on neighbours; broken engines and functions are caught."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.audit import Verdict, check_fit, check_law, installation, neighbours, replay
from discreet.audit.greybox import PRIMITIVES, CallRecorder, record_calls, run
from discreet.audit.questions import CuratorLine, RecordingEngine, check_question, check_questions, make_small_engine
from discreet.bounding.contributions import BoundedPlan
from discreet.engines.engine import Capabilities, Engine, Groups, ProgressCallback
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.tabulation import Tabulation
from discreet.exact import Integers, Interval
from discreet.mechanisms import (
    CellMode,
    CellQuantiles,
    Count,
    Exponential,
    Gaussian,
    Histogram,
    KeySelection,
    Laplace,
    Mean,
    NoisyMax,
    Quantile,
    RandomizedResponse,
    RoundedGaussian,
    SparseVector,
    WeightedSelection,
)
from discreet.plan.catalog import Catalog
from discreet.plan.relations import Values
from discreet.privacy import Neighbours

ONE = Laplace(sensitivity=1, epsilon=1)
WEIGHTED = WeightedSelection(rho=1, delta=1e-6, max_groups=2)
# Histograms of two groups: a row more in each of them, and a row that moved within the first.
TWO, MORE, MOVED = [([1], [2]), ([4], [3])], [([1, 2], [2, 1]), ([4], [4])], [([1, 2], [1, 1]), ([4], [3])]


def weigh(weights: dict[str, int]) -> tuple[str, ...]:
    return WEIGHTED.release(weights)


@pytest.mark.parametrize(
    ("fn", "d", "d2"),
    [
        (lambda rows: Count(epsilon=1).release(rows), [1, 2], [1, 2, 3]),
        (lambda rows: Mean(bounds=(0, 10), epsilon=1).release(rows), [1, 2], [1, 2, 99]),
        (lambda rows: Histogram(categories=3, epsilon=1).release(rows), [0, 1], [0, 1, 2]),
        (
            lambda rows: Exponential(sensitivity=1, epsilon=1).release([rows.count(i) for i in range(3)]),
            [0, 1],
            [0, 1, 1],
        ),
        (lambda rows: NoisyMax(sensitivity=1, epsilon=1).release([rows.count(i) for i in range(3)]), [0, 1], [0, 1, 1]),
        (lambda rows: KeySelection(epsilon=1, delta=0.01).release(dict.fromkeys(rows, 9)), ["a"], ["a"]),
        (lambda rows: Quantile(q=0.5, bounds=(0, 9), epsilon=1).release(rows), [1, 2], [1, 2, 3]),
        (lambda groups: CellQuantiles(qs=[0.5], first=0, last=9, groups=2, epsilon=1).release_all(groups), TWO, MORE),
        (lambda groups: CellMode(first=0, last=9, max_rows=2, epsilon=1).release_all(groups), TWO, MORE),
        (lambda groups: CellMode(first=0, last=9, epsilon=1, neighbours="replace").release_all(groups), TWO, MOVED),
        (lambda keys: WEIGHTED.release({"a": 9 << 20} | keys), {}, dict.fromkeys("bc", WEIGHTED.weight(2))),
        (lambda rows: RandomizedResponse(epsilon=1).release(rows), [0, 1, 1], [0, 0, 1]),
        (lambda rows: SparseVector(threshold=3, sensitivity=1, epsilon=1).release([sum(rows)]), [1, 0], [1, 1]),
        (lambda rows: Gaussian(sensitivity=1, rho=0.1, dimension=1).release(len(rows)), [1], [1, 2]),
        (lambda rows: RoundedGaussian(squared_sensitivity=2, mu=0.1).release(np.array(rows)), [1, 2], [2, 3]),
    ],
)
def test_right_functions_replay(fn: Any, d: Any, d2: Any) -> None:
    """What is made of our mechanisms, and uses nothing else, passes."""
    assert replay(fn, d, d2).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("fn", "d", "d2", "words"),
    [
        (lambda rows: Exponential(sensitivity=1, epsilon=1).release([sum(rows), 0]), [1], [1, 5], "a score moved by 5"),
        (
            lambda rows: Exponential(sensitivity=1, epsilon=1, monotone=True).release([rows, 1 - rows]),
            0,
            1,
            "both ways",
        ),
        (lambda rows: Exponential(sensitivity=1, epsilon=1).release([1] * len(rows)), [1], [1, 5], "1 scores on D"),
        (lambda rows: KeySelection(epsilon=1, delta=0.01).release(rows), {"a": 3, "b": 1}, {"a": 4, "b": 2}, "2 keys"),
        (lambda rows: KeySelection(epsilon=1, delta=0.01).release(rows), {"a": 3}, {"a": 5}, "more than 1"),
        (lambda groups: CellMode(first=0, last=9, epsilon=1).release_all(groups), TWO, MORE, "2 bundles of 1 rows"),
        (lambda groups: CellMode(first=0, last=9, epsilon=1).release_all(groups[:1]), TWO, MOVED, "2 rows of a group"),
        (lambda groups: CellMode(first=0, last=9, epsilon=1).release_all(groups), TWO, TWO[:1], "2 groups on D"),
        (weigh, {}, dict.fromkeys("ab", WEIGHTED.weight(1)), "squared"),
        (weigh, {}, dict.fromkeys("abc", 1), "of 3 keys differ"),
        (weigh, {}, {"a": WEIGHTED.weight(1), "b": 1}, "squared"),
        (weigh, {}, {"a": WEIGHTED.weight(2) + 1, "b": 1}, "more weight than"),
        (lambda rows: RandomizedResponse(epsilon=1).release(rows), [0, 1], [1, 0], "more than one answer"),
        (lambda rows: RandomizedResponse(epsilon=1).release(rows), [0, 1], [1], "more than one answer"),
        (lambda rows: Quantile(q=0.5, bounds=(0, 9), epsilon=1).release(rows), [1, 2], [3, 3], "rows differ"),
        (lambda rows: Gaussian(sensitivity=1, rho=0.1, dimension=1).release(sum(rows)), [1], [1, 3], "9 apart"),
        (lambda rows: RoundedGaussian(sensitivity=1, mu=0.1).release(sum(rows)), [1], [1, 3], "9 apart"),
        (
            lambda rows: Gaussian(sensitivity=2, rho=0.1, dimension=1).release(np.array(rows)),
            [1, 1],
            [2, 2],
            "2 values differ",
        ),
        (lambda rows: Laplace(sensitivity=1, epsilon=1).release(np.array(rows)), [1, 1], [1, 1, 1], "2 values on D"),
        (lambda rows: (ONE.release(len(rows)), len(rows)), [1], [1, 2], "around the mechanisms"),
        (lambda rows: ONE.release(len(rows)) if len(rows) < 2 else 1 / 0, [1], [1, 2], "calls of mechanisms"),
        (
            lambda rows: 1 / 0 if ONE.release(len(rows)) and len(rows) > 1 else 1,
            [1] * 1,
            [1] * 2,
            "error on D-prime only",
        ),
        (lambda rows: Laplace(sensitivity=1, epsilon=1, resolution=0.5).release(rows[-1]), [1.0], [float("inf")], "D'"),
    ],
)
def test_broken_functions_are_caught(fn: Any, d: Any, d2: Any, words: str) -> None:
    finding = replay(fn, d, d2, tries=20)
    assert finding.verdict is Verdict.BROKEN and words in finding.detail


def test_cost_is_compared_with_the_claim() -> None:
    assert replay(lambda _: [ONE.release(1), ONE.release(1)], [1], [1], 2).verdict is Verdict.HOLDS
    assert "cost ε = 2" in replay(lambda _: [ONE.release(1), ONE.release(1)], [1], [1], 1.5).detail


def test_raising_or_empty_functions_are_no_pass() -> None:
    assert replay(lambda _: 1 / 0, [1], [1, 2]).verdict is Verdict.RAISES
    assert replay(lambda _: None, [1], [1, 2]).verdict is Verdict.EMPTY


def test_mechanisms_are_themselves_again_after_recording() -> None:
    """The recorder puts back what it found, also after an error, and a call outside is not recorded."""
    before = [vars(kind)[name] for kind, name in PRIMITIVES]
    tape = CallRecorder()
    with pytest.raises(ZeroDivisionError), record_calls(tape):
        _ = ONE.release(1) / 0
    assert [vars(kind)[name] for kind, name in PRIMITIVES] == before
    ONE.release(1)
    assert len(tape.calls) == 1


def test_frozen_outputs_come_back() -> None:
    """On replay the recorded noise is given out, whatever the values."""
    first = run(lambda n: [ONE.release(n) for _ in range(9)], 0)
    again = run(lambda n: [ONE.release(n) for _ in range(9)], 1, first)
    assert first.output == again.output and [c.values for c in again.calls] == [1] * 9


LINES = {name: (line, asked) for name, line, asked in installation.make_lines()}


def in_memory(sources: Mapping[str, Any], catalog: Catalog) -> Engine:
    return MemoryEngine(sources, catalog)


@pytest.mark.parametrize("most", [5, pytest.param(12, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", list(LINES))
def test_questions_hold_on_the_memory_engine(name: str, most: int) -> None:
    """Every type of question, on several neighbours, in the engine that is easy to read; the long run has more."""
    line, asked = LINES[name]
    found = check_questions(replace(line, make=in_memory), installation.make_rows(), asked, most=most)
    assert [str(f) for f in found if not f] == []


def test_questions_hold_on_duckdb() -> None:
    """A few neighbours in the engine for real data; the long run has more."""
    line, asked = LINES["person, groups"]
    assert [str(f) for f in check_questions(line, installation.make_rows(), asked[3:], most=4) if not f] == []


@pytest.mark.long
@pytest.mark.parametrize("name", list(LINES))
def test_questions_hold_on_duckdb_for_all_neighbours(name: str) -> None:
    line, asked = LINES[name]
    assert [str(f) for f in check_questions(line, installation.make_rows(), asked) if not f] == []


class Bent:
    """An engine with one fault."""

    def __init__(self, sources: Mapping[str, Any], catalog: Catalog, fault: str) -> None:
        self.plain = MemoryEngine(sources, catalog)
        self.rows = next(iter(sources.values())).num_rows
        self.fault = fault

    @property
    def capabilities(self) -> Capabilities:
        return self.plain.capabilities

    def schema(self, table: str) -> Any:
        return self.plain.schema(table)

    def version(self, table: str) -> str:
        return self.plain.version(table)

    def count_public(self, table: str, columns: tuple[str, ...]) -> int:
        return self.plain.count_public(table, columns)

    def read_public(self, table: str) -> Values:
        return self.plain.read_public(table)

    def prepare(self, table: str) -> None:
        self.plain.prepare(table)

    def close(self) -> None:
        self.plain.close()

    def run(
        self, bounded: BoundedPlan, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> Groups:
        if self.fault == "no caps":
            bounded = replace(bounded, max_rows_per_group=10**6)
        if self.fault == "error on many rows" and self.rows > len(installation.make_rows()):
            raise OverflowError("5000 is too large")
        groups = self.plain.run(bounded, salt=salt, watch=watch, generous=generous)
        if self.fault == "counts all rows":
            more = self.rows**2 << bounded.weight_bits
            return Groups(groups.keys, tuple(tuple(v + more for v in column) for column in groups.values))
        return groups

    def tabulate(
        self, tabulation: Tabulation, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> tuple[Integers, ...]:
        return self.plain.tabulate(tabulation, salt=salt, watch=watch, generous=generous)


@pytest.mark.parametrize(
    ("fault", "words"),
    [("no caps", "moved by"), ("error on many rows", "calls of mechanisms"), ("counts all rows", "apart"), ("", "")],
)
def test_a_bent_engine_is_caught(fault: str, words: str) -> None:
    """Negative control: an engine that forgets limits, fails on some data or mixes rows is found out."""
    line, _ = LINES["person, groups, pure"]
    bent = replace(line, make=lambda sources, catalog: Bent(sources, catalog, fault))
    finding = check_question(bent, installation.make_rows(), "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    assert finding.verdict is (Verdict.BROKEN if fault else Verdict.HOLDS)
    assert words in finding.detail and (finding.witness is not None) is bool(fault)


def test_a_refused_question_is_no_pass() -> None:
    line, _ = LINES["row"]
    finding = check_question(line, installation.make_rows(), "SELECT * FROM visits")
    assert finding.verdict is Verdict.RAISES and "QuestionError" in finding.detail


def test_an_unsalted_choice_would_show() -> None:
    """The secret order is held fixed by the audit, so that answers can be compared; it is a fresh one each time."""
    line, _ = LINES["row"]
    engine = line.open(installation.make_rows(), bytes(16))
    assert isinstance(engine, RecordingEngine) and engine.salt == bytes(16)
    engine.close()


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("name", ["person, groups", "row"])
def test_neighbours_differ_in_one_unit(relation: Neighbours, name: str) -> None:
    """Every pair differs in the rows of one unit only, and the list has what hurts."""
    table = LINES[name][0].catalog.find_table("visits")
    unit = table.unit.column
    rows = installation.make_rows()
    pairs = list(neighbours.make_neighbours(rows, table, relation))
    assert len(pairs) > 40
    for pair in pairs:
        before, after = ([repr(row) for row in side] for side in (pair.before, pair.after))
        changed = [row for row in pair.after if repr(row) not in before] + [
            r for r in pair.before if repr(r) not in after
        ]
        if unit is None:
            assert abs(len(before) - len(after)) <= 1 and len(changed) <= 2
        else:
            assert len({row[unit] for row in changed}) <= 1
    text = " ".join(pair.what for pair in pairs)
    for word in ("nan", "inf", "NULL", "rare", "characters", "upper bounds", "9223372036854775807"):
        assert word in text
    assert ("remove" in text) == (relation is Neighbours.ADD_REMOVE)


def test_at_most_so_many_neighbours() -> None:
    table = LINES["row"][0].catalog.find_table("visits")
    assert len(list(neighbours.make_neighbours(installation.make_rows(), table, Neighbours.REPLACE, most=7))) == 7


def test_one_thread_is_the_real_engine() -> None:
    line = LINES["row"][0]
    assert line.make is make_small_engine and isinstance(line, CuratorLine)


def half(output: int, given: int) -> Interval:
    from fractions import Fraction

    chance = Fraction(3, 4) if output == given else Fraction(1, 4)
    return Interval(chance, chance)


def test_exact_law_is_judged_exactly() -> None:
    """Three to one is ln 3, not a hair less."""
    import math

    assert check_law(half, 0, 1, (0, 1), math.log(3) * 1.0000001, whole=True)
    broken = check_law(half, 0, 1, (0, 1), math.log(3) * 0.9999999, whole=True)
    assert broken.verdict is Verdict.BROKEN and broken.witness is not None
    assert check_law(half, 0, 1, (0,), 2, whole=True).verdict is Verdict.BROKEN  # not all outputs, so not a law
    assert check_law(half, 0, 1, (0, 1), (0, 0.5), whole=True)
    assert check_law(half, 0, 1, (0, 1), (0, 0.49), whole=True).verdict is Verdict.BROKEN


def test_exact_law_is_judged_in_both_directions() -> None:
    """An output that one side never gives breaks the claim from the other side only."""
    from fractions import Fraction

    def lopsided(output: int, given: int) -> Interval:
        return Interval.of(Fraction(output == 0) if given == 0 else Fraction(9 if output == 0 else 1, 10))

    for x, y in ((0, 1), (1, 0)):
        assert check_law(lopsided, x, y, (0, 1), (1, 0.05), whole=True).verdict is Verdict.BROKEN
        assert check_law(lopsided, x, y, (0, 1), (1, 0.1), whole=True).verdict is Verdict.HOLDS


def test_draws_of_another_law_are_noticed() -> None:
    """Negative control of the fit: another scale, an impossible output, and the right one."""
    rng = np.random.default_rng(8)
    law = ONE.law
    right = rng.geometric(1 - np.exp(-1), 20_000) - rng.geometric(1 - np.exp(-1), 20_000)
    wrong = rng.geometric(1 - np.exp(-1 / 1.1), 20_000) - rng.geometric(1 - np.exp(-1 / 1.1), 20_000)
    assert check_fit(right.tolist(), law.probability)
    assert check_fit(wrong.tolist(), law.probability).verdict is Verdict.BROKEN
    assert check_fit([0, 1, 7], lambda o: half(min(o, 1), 0) if o < 2 else Interval.of(0)).verdict is Verdict.BROKEN
    assert check_fit([], law.probability).verdict is Verdict.EMPTY
