"""The black box: statuses that are no passes, witnesses, stopping, and the rate of false alarms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import compose, events
from discreet.audit import Claim, Finding, Verdict, check
from discreet.audit.confidence import lower_bound, runs_needed, smallest_visible, upper_bound
from discreet.audit.output_encoding import RaisedError, encode
from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import ln
from discreet.mechanisms import Gaussian, Laplace
from discreet.privacy import Budget
from tests.audit.broken import lap


def geometric(scale: float, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    return lambda x, n: x + lap(rng, scale, n)


def test_false_alarms_are_rarer_than_stated() -> None:
    """300 audits of a right and tight mechanism at a level of 5 %: at most 15 on average, far fewer in fact."""
    found = [check(geometric(1, seed), 0, 1, 1, batch=True, samples=4_000, alpha=0.05).verdict for seed in range(300)]
    assert found.count(Verdict.BROKEN) <= 15


def test_a_function_that_always_raises_is_no_pass() -> None:
    def fails(_: object) -> int:
        raise ValueError("no")

    finding = check(fails, 0, 1, 1, samples=3_000)
    assert finding.verdict is Verdict.RAISES and not finding


def test_a_function_that_sometimes_raises_is_no_pass() -> None:
    """Errors that come equally often on both datasets break no claim, but they are not answers either."""
    source = SeededForTestsOnly(3)

    def flaky(_: object) -> int:
        if source.word() % 3 == 0:
            raise KeyError("no")
        return 1

    assert check(flaky, 0, 1, 1, samples=3_000).verdict is Verdict.RAISES


def test_nothing_is_no_pass() -> None:
    assert check(lambda _: None, 0, 1, 1, samples=3_000).verdict is Verdict.EMPTY


def test_a_varying_shape_must_be_declared() -> None:
    source = SeededForTestsOnly(5)

    def wobbly(_: object) -> list[int]:
        return [1] * (source.word() % 2)

    assert check(wobbly, 0, 1, 1, samples=4_000).verdict is Verdict.SHAPE
    assert check(wobbly, 0, 1, 1, samples=4_000, varying=True).verdict is Verdict.HOLDS


def test_too_few_runs_say_how_many_are_needed() -> None:
    """At ε = 6 a thousand runs could refute nothing; with as many as it asks for the verdict is another."""
    few = check(geometric(1 / 6), 0, 1, 6, batch=True, samples=1_000)
    assert few.verdict is Verdict.TOO_FEW and few.needed is not None and few.needed > 50_000
    enough = check(geometric(1 / 6), 0, 1, 6, batch=True, samples=2 * few.needed)
    assert enough.verdict is Verdict.HOLDS


def test_time_is_respected() -> None:
    """A slow function stops the audit early, after few of its calls, and that is not a pass."""
    import time

    calls = 0

    def slow(_: object) -> int:
        nonlocal calls
        calls += 1
        time.sleep(0.005)
        return 0

    finding = check(slow, 0, 1, 1, seconds=0.5)
    assert calls < 1000
    assert finding.verdict is Verdict.TOO_FEW


def test_a_witness_can_be_checked_by_hand() -> None:
    """The counts of the witness give the bound, by Clopper and Pearson."""
    finding = check(geometric(0.5), 0, 1, 1, batch=True, samples=20_000)
    w = finding.witness
    assert finding.verdict is Verdict.BROKEN and w is not None
    assert w.hits is not None and w.runs is not None and w.other_hits is not None and w.other_runs is not None
    level = 1e-3 / 2 / 4  # the first round
    bound = math.log(lower_bound(w.hits, w.runs, level) / upper_bound(w.other_hits, w.other_runs, level))
    assert bound == pytest.approx(finding.lower)
    text = str(finding)
    assert "D  = " in text and "event: " in text and "smallest event" in text and "99.9" in text


def test_delta_is_seen() -> None:
    """A release that gives the data away once in ten times is refuted at δ = 0.01 and passes at δ = 0.1."""
    rng = np.random.default_rng(4)

    def sometimes(x: int, n: int) -> Any:
        return np.where(rng.random(n) < 0.1, 100 + x, 0)

    broken = check(sometimes, 0, 1, (1, 0.01), batch=True)
    assert broken.verdict is Verdict.BROKEN
    assert broken.delta_lower is not None and 0.01 < broken.delta_lower < 0.1
    assert check(sometimes, 0, 1, (1, 0.101), batch=True).verdict is Verdict.HOLDS


def test_both_directions_are_looked_at() -> None:
    """An output that only the second dataset gives is found as well."""
    for d, d2 in ((0, 1), (1, 0)):
        finding = check(lambda x, n: np.arange(n) % 20 == 0 if x else np.zeros(n, dtype=bool), d, d2, 1, batch=True)
        assert finding.verdict is Verdict.BROKEN


@pytest.mark.parametrize("claim", [None, "1", True, -1, (1, 2), float("nan"), [1]])
def test_bad_claims(claim: Any) -> None:
    with pytest.raises(ParameterError):
        check(lambda x: x, 0, 1, claim)


@pytest.mark.parametrize("bad", [{"samples": 1}, {"alpha": 0}, {"alpha": 1}, {"visible": 0}, {"samples": 1.5}])
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        check(lambda x: x, 0, 1, 1, **bad)


def test_not_a_function_and_a_wrong_batch() -> None:
    with pytest.raises(ParameterError):
        check(3, 0, 1, 1)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ParameterError):
        check(lambda _, n: [1] * (n + 1), 0, 1, 1, batch=True)


def test_claims_in_every_form() -> None:
    assert Claim.read(ln(3)).epsilon == pytest.approx(math.log(3))
    assert Claim.read(0).points == ((0.0, 0.0),)
    assert Claim.read(Budget(epsilon=1, delta=1e-6)).points == ((1.0, 1e-6),)
    assert Claim.read(Budget(rho=0.5)).points[0][0] > 1
    assert Claim.read(Budget(mu=1)).points[0][0] > 1
    profile = Claim.read(Gaussian(sensitivity=1, epsilon=1, delta=1e-5).privacy).points
    assert [p[0] for p in profile] == sorted((p[0] for p in profile), reverse=True)
    assert Claim.read(Laplace(sensitivity=1, epsilon=1).privacy).points[0] == (1.0, 0.0)


def test_a_claim_of_zcdp_is_audited() -> None:
    """Half of the noise that ρ asks for is noticed, all of it passes."""
    claim = compose([events.ZeroConcentrated(rho=0.5)]).loss
    rng = np.random.default_rng(6)
    for sigma, verdict in ((1.0, Verdict.HOLDS), (0.5, Verdict.BROKEN)):
        finding = check(lambda x, n, s=sigma: np.round(x + rng.normal(0, s, n)), 0, 1, claim, batch=True)
        assert finding.verdict is verdict


def test_too_small_an_interval_is_never_claimed() -> None:
    """Clopper–Pearson against the exact binomial: the bound is the p at which so many hits are as rare as alpha."""
    from math import comb

    for hits, runs, alpha in ((3, 20, 0.01), (20, 20, 0.05), (1, 5, 0.2)):
        p = lower_bound(hits, runs, alpha)
        assert sum(comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(hits, runs + 1)) == pytest.approx(alpha)
        q = upper_bound(hits, runs, alpha)
        tail = sum(comb(runs, k) * q**k * (1 - q) ** (runs - k) for k in range(hits + 1))
        assert tail == pytest.approx(alpha) or hits == runs
    assert (lower_bound(0, 10, 0.1), upper_bound(10, 10, 0.1)) == (0.0, 1.0)


def test_visible_mass_shrinks_with_runs_and_grows_with_epsilon() -> None:
    masses = [smallest_visible(n, Claim.read(1), 1e-4) for n in (100, 1_000, 10_000, 100_000)]
    assert masses == sorted(masses, reverse=True) and masses[-1] < 0.002
    assert smallest_visible(100, Claim.read(9), 1e-4) == math.inf
    needed = runs_needed(Claim.read(3), 1e-4, 0.05)
    assert smallest_visible(needed, Claim.read(3), 1e-4) <= 0.05 < smallest_visible(needed // 2, Claim.read(3), 1e-4)


@settings(deadline=None, max_examples=60)
@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
))  # fmt: skip
def test_any_output_can_be_looked_at(value: Any) -> None:
    """Whatever Python value comes out, it has a shape, a fingerprint and numbers, the same ones every time."""
    one, two = encode([value, value]), encode([value])
    assert one.prints[0] == one.prints[1] == two.prints[0] and one.shapes[0] == two.shapes[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2), (1.0, math.nextafter(1.0, 2)), (0.0, -0.0), (1, True), (1, 1.0), (None, 0), ("a", "b"),
        ([1, 2], [2, 1]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ({"a": 1}, {"c": 1}), ([], None), (float("nan"), float("inf")),
        (RaisedError("ValueError", "x"), RaisedError("KeyError", "x")),
        (RaisedError("ValueError", "x"), RaisedError("ValueError", "xx")),
        (2**70, 2**70 + 1), (np.array([2**60]), np.array([2**60 + 1])), ((1,), [1]), (b"a", b"b"),
    ],
)  # fmt: skip
def test_outputs_that_differ_look_different(one: Any, other: Any) -> None:
    """Bits, order, NaN, the class of an error, the length of its message, keys and types all count."""
    prints = encode([one, other]).prints
    assert prints[0] != prints[1]


def test_frames_and_answers_are_read_by_value() -> None:
    import pyarrow as pa

    table = pa.table({"n": [1, 2]})
    assert encode([table]).prints[0] == encode([{"n": [1, 2]}]).prints[0]


def test_findings_become_json() -> None:
    import json

    finding = Finding(name="x", method="exact", verdict=Verdict.BROKEN, lower=math.inf)
    assert json.loads(json.dumps(finding.to_dict(), allow_nan=False))["lower"] is None


def test_events_are_counted_on_fresh_outputs_only() -> None:
    """A difference that was there while the event was chosen, and never again, refutes nothing."""
    calls = {0: 0, 1: 0}

    def fickle(x: int, n: int) -> Any:
        calls[x] += 1
        return np.full(n, x if calls[x] == 1 else 7)

    finding = check(fickle, 0, 1, 1, batch=True, samples=1_000)
    assert finding.verdict is not Verdict.BROKEN and finding.lower == 0
