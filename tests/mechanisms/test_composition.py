"""Post-processing, composition, and mechanisms chosen after seeing earlier outputs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet.entropy import SeededForTestsOnly
from discreet.errors import MixedGuarantees, ParameterError, PrivacyError
from discreet.exact import Interval, ln
from discreet.mechanisms.composition import adaptive, compose, post_process, query
from discreet.mechanisms.count import Count
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.privacy import Budget
from tests.mechanisms.exactly import Untouchable, growth, reached, violated

ONE, TWO = Laplace(sensitivity=1, epsilon=1), Laplace(sensitivity=1, epsilon=2)


def test_post_processing_keeps_the_loss() -> None:
    """Any function of a release costs what the release costs (erratum 3)."""
    clipped = post_process(ONE, lambda noisy: max(0, noisy))
    assert clipped.privacy == ONE.privacy
    assert clipped.release(-100, source=SeededForTestsOnly(1)) == 0


def test_post_processing_never_helps_exactly() -> None:
    """The exact divergence of a clipped release, its atom at 0 included, is within the claim."""

    def clipped(output: int, given: int) -> Interval:
        if output:
            return ONE.probability(output, given)
        below = sum((ONE.probability(o, given) for o in range(-60, 1)), start=Interval.of(0))
        return Interval(below.low, below.high + ONE.tail(60).high)

    assert not violated(clipped, Fraction(1), 2, 3, range(12))


def test_composition_adds_and_is_tight() -> None:
    """ε adds up, and the exact divergence of the pair reaches the sum."""
    both = compose(ONE, TWO)
    assert both.privacy.epsilon() == 3
    assert both.privacy.for_group(4).epsilon() == 12

    def pair(output: tuple[int, int], given: int) -> Interval:
        return ONE.probability(output[0], given) * TWO.probability(output[1], given)

    outputs = list(product(range(-3, 5), repeat=2))
    assert not violated(pair, Fraction(3), 0, 1, outputs)
    assert reached(pair, Fraction(3), 0, 1, outputs)
    assert violated(pair, Fraction(2), 0, 1, outputs)  # composition does increase the loss


def test_composition_of_kinds() -> None:
    """Pure and concentrated losses meet in the notions they share; logarithms stay exact."""
    mixed = compose(ONE, Gaussian(sensitivity=1, rho=0.5)).privacy
    assert mixed.notion("zcdp").words() == "ρ = 1"
    assert not mixed.has("pure")
    coins = compose(RandomizedResponse.coin(), RandomizedResponse.coin()).privacy
    assert coins.notion("pure").amount == ln(9)  # type: ignore[attr-defined]  # Pure
    with pytest.raises(MixedGuarantees):
        compose(ONE, RandomizedResponse.coin())


def test_composed_mechanisms_release_tuples() -> None:
    """One dataset for all, or one input for each; anything else is refused before drawing."""
    both = compose(query(len, ONE), query(sum, Laplace(sensitivity=10, epsilon=1)))
    first, second = both.release([1, 2, 3], source=SeededForTestsOnly(1))
    assert isinstance(first, int)
    assert isinstance(second, int)
    assert len(compose(ONE, TWO).release(5, 7, source=SeededForTestsOnly(1))) == 2
    with pytest.raises(ParameterError, match="data"):
        compose(ONE, TWO, ONE).release(5, 7, source=Untouchable())


def smokers(young: bool) -> Mechanism:
    """A count of smokers, or of smokers under 25."""
    rows: Any = (lambda data: [s and a < 25 for s, a in data]) if young else (lambda data: [s for s, _ in data])
    return query(rows, Count(epsilon=1))


def test_adaptive_analysts_pay_the_sum() -> None:
    """Smokers? If above 25 %, smokers under 25? The question depends on the first answer, the loss does not."""
    study = adaptive(smokers(young=False), lambda seen: smokers(young=seen.value > 25), within=Budget(epsilon=1))
    assert study.privacy.epsilon() == 2
    data = [(True, 20)] * 40 + [(False, 50)] * 60
    first, second = study.release(data, source=SeededForTestsOnly(2))
    assert abs(first.value - 40) < 25
    assert abs(second.value - 40) < 25


def test_adaptive_composition_is_within_the_sum_exactly() -> None:
    """With the exact probabilities of a data-dependent path, the joint divergence is within ε₁ + ε₂ and reaches it."""
    weak = Laplace(sensitivity=1, epsilon=Fraction(1, 2))

    def joint(output: tuple[int, int], given: int) -> Interval:
        second = TWO if output[0] > 0 else weak
        return ONE.probability(output[0], given) * second.probability(output[1], given)

    outputs = list(product(range(-3, 5), repeat=2))
    assert not violated(joint, Fraction(3), 0, 1, outputs)
    assert reached(joint, Fraction(3), 0, 1, outputs)


def test_a_dearer_choice_is_refused_before_it_draws() -> None:
    """The chosen mechanism must fit what was declared, exactly; ε = 1 fits a limit of 1, ε = 2 does not."""

    class Once:
        """Lets the first mechanism draw, and nothing after the choice."""

        def __init__(self) -> None:
            self.seeded, self.closed = SeededForTestsOnly(1), False

        def words(self, count: int) -> Any:
            assert not self.closed
            return self.seeded.words(count)

        def word(self) -> int:
            assert not self.closed
            return self.seeded.word()

        def bits(self, count: int) -> int:
            assert not self.closed
            return self.seeded.bits(count)

    source = Once()

    def dearer(_seen: int) -> Mechanism:
        source.closed = True
        return TWO

    with pytest.raises(PrivacyError, match="costs more"):
        adaptive(ONE, dearer, within=Budget(epsilon=1)).release(5, source=source)
    assert source.closed
    assert len(adaptive(ONE, lambda _: ONE, within=Budget(epsilon=1)).release(5)) == 2
    third = Laplace(sensitivity=1, epsilon=Fraction(1, 3))
    assert len(adaptive(ONE, lambda _: third, within=Budget(epsilon=Fraction(1, 3))).release(5)) == 2


@pytest.mark.parametrize(
    ("limit", "fits", "too_dear"),
    [
        (Budget(epsilon=ln(3)), Laplace(sensitivity=1, epsilon=ln(3)), Laplace(sensitivity=1, epsilon=1.0987)),
        (Budget(rho=0.5), Gaussian(sensitivity=1, rho=0.5), Gaussian(sensitivity=1, rho=0.500001)),
        (Budget(rho=0.5), ONE, TWO),
        (
            Budget(epsilon=1, delta=1e-6),
            Gaussian(sensitivity=1, epsilon=1, delta=1e-6),
            Gaussian(sensitivity=1, sigma=3),
        ),
        (Budget(epsilon=1), ONE, Gaussian(sensitivity=1, rho=0.0001)),
        (Budget(mu=1), None, Gaussian(sensitivity=1, rho=0.0001)),
        (Gaussian(sensitivity=1, rho=0.5), Gaussian(sensitivity=1, sigma=1), Gaussian(sensitivity=1, rho=0.4)),
    ],
)
def test_limits_are_checked_in_their_own_notion(limit: Any, fits: Mechanism | None, too_dear: Mechanism) -> None:
    """Pure, concentrated, approximate and Gaussian limits, and "the same loss as this mechanism"."""
    if fits is not None:
        assert len(adaptive(ONE, lambda _: fits, within=limit).release(5)) == 2
    with pytest.raises(PrivacyError):
        adaptive(ONE, lambda _: too_dear, within=limit).release(5)


def test_choices_may_look_at_all_outputs_so_far() -> None:
    """The third choice sees both earlier outputs; limits may differ."""
    seen: list[tuple[Any, ...]] = []

    def second(first: int) -> Mechanism:
        seen.append((first,))
        return ONE

    def third(first: int, second: int) -> Mechanism:
        seen.append((first, second))
        return TWO

    row = adaptive(ONE, second, third, within=[Budget(epsilon=1), Budget(epsilon=2)])
    assert row.privacy.epsilon() == 4
    outputs = row.release(5)
    assert seen == [outputs[:1], outputs[:2]]


def test_choices_for_someone_else_are_refused() -> None:
    """A mechanism for other neighbours or another unit cannot be chosen."""
    other = Laplace(sensitivity=1, epsilon=1, neighbours="replace")
    with pytest.raises(MixedGuarantees):
        adaptive(ONE, lambda _: other, within=Budget(epsilon=1)).release(5)
    with pytest.raises(MixedGuarantees):
        adaptive(ONE, lambda _: other, within=other)


@pytest.mark.parametrize(
    "call",
    [
        compose,
        lambda: compose(ONE, 5),  # type: ignore[arg-type]  # bad on purpose
        lambda: post_process(ONE, 5),  # type: ignore[arg-type]  # bad on purpose
        lambda: post_process(len, len),  # type: ignore[arg-type]  # bad on purpose
        lambda: query(5, ONE),  # type: ignore[arg-type]  # bad on purpose
        lambda: adaptive(ONE, within=Budget(epsilon=1)),
        lambda: adaptive(ONE, 5, within=Budget(epsilon=1)),  # type: ignore[arg-type]  # bad on purpose
        lambda: adaptive(ONE, lambda _: ONE, within=[]),
        lambda: adaptive(ONE, lambda _: ONE, within=5),  # type: ignore[arg-type]  # bad on purpose
    ],
)
def test_bad_parts_are_refused(call: Any) -> None:
    """Whatever is not a mechanism, a function or a limit is refused when it is put together."""
    with pytest.raises(ParameterError):
        call()


def test_growth_is_exact_for_logarithms() -> None:
    """The helper of these tests: e^ln 3 is 3."""
    assert growth(ln(3)) == Interval.of(3)
    assert np.isclose(float(growth(Fraction(1))), np.e)
