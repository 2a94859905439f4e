"""Shuffling: the bounds against every batch that can be enumerated, against published figures, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import compose, events
from discreet.errors import ParameterError, UnknownLoss
from discreet.exact import ln
from discreet.local import shuffle
from discreet.local.hadamard import HadamardResponse
from discreet.local.hashing import LocalHashing
from discreet.local.krr import KaryResponse
from discreet.local.projective import ProjectiveResponse
from discreet.local.protocol import FrequencyProtocol
from discreet.local.shuffle import Cover, ReportSides, Shuffled, Shuffler
from discreet.local.subset import SubsetSelection
from discreet.local.unary import UnaryEncoding

MIXER = Shuffler(operator="a mix service", separate=True, anonymous=True, one_report_each=True)
Matrix = list[list[Fraction]]
Histograms = dict[tuple[int, ...], Fraction]


def pure(epsilon: object, people: int, sides: ReportSides | None = None) -> Shuffled:
    report = events.Pure(epsilon=epsilon, neighbours="replace")  # type: ignore[arg-type]  # tests give any number
    return Shuffled(report=report, people=people, shuffler=MIXER, sides=sides)


def response(epsilon: object, categories: int, people: int) -> Shuffled:
    report = events.RandomizedResponse(epsilon=epsilon, categories=categories, neighbours="replace")  # type: ignore[arg-type]  # as above
    return Shuffled(report=report, people=people, shuffler=MIXER)


# --- the slow oracle: the law of the shuffled batch, for every dataset of a few people ---


def batch(rows: list[list[Fraction]]) -> Histograms:
    """The exact law of the histogram of one report from each row."""
    law: Histograms = {(0,) * len(rows[0]): Fraction(1)}
    for row in rows:
        wider: Histograms = {}
        for histogram, mass in law.items():
            for output, chance in enumerate(row):
                key = (*histogram[:output], histogram[output] + 1, *histogram[output + 1 :])
                wider[key] = wider.get(key, Fraction(0)) + mass * chance
        law = wider
    return law


def neighbours(matrix: Matrix, people: int) -> Iterator[tuple[Histograms, Histograms]]:
    """Every pair of batches that differ in one person's value."""
    for others in combinations_with_replacement(range(len(matrix)), people - 1):
        laws = [batch([row, *(matrix[other] for other in others)]) for row in matrix]
        for one, two in product(range(len(matrix)), repeat=2):
            if one != two:
                yield laws[one], laws[two]


def true_deltas(matrix: Matrix, people: int, epsilons: list[float]) -> list[float]:
    """The smallest δ at each ε, over all datasets."""
    worst = [0.0] * len(epsilons)
    for p, q in neighbours(matrix, people):
        for i, epsilon in enumerate(epsilons):
            gap = sum(max(0.0, float(p[key]) - math.exp(epsilon) * float(q[key])) for key in p)
            worst[i] = max(worst[i], gap)
    return worst


def k_way(ratio: int, k: int) -> Matrix:
    total = ratio + k - 1
    return [[Fraction(ratio if x == y else 1, total) for y in range(k)] for x in range(k)]


def subset_selection(ratio: int, d: int, w: int) -> Matrix:
    subsets = list(combinations(range(d), w))
    rows = [[Fraction(ratio if x in subset else 1) for subset in subsets] for x in range(d)]
    return [[entry / sum(row) for entry in row] for row in rows]


def unary(on: Fraction, off: Fraction, d: int) -> Matrix:
    """Each bit is one with ``on`` where the value is, ``off`` elsewhere."""

    def chance(x: int, bits: tuple[int, ...]) -> Fraction:
        each = [(on if i == x else off) if bit else 1 - (on if i == x else off) for i, bit in enumerate(bits)]
        return math.prod(each, start=Fraction(1))

    return [[chance(x, bits) for bits in product((0, 1), repeat=d)] for x in range(d)]


EPSILONS = [0.0, 0.05, 0.2, 0.5, 0.9, 1.3]


@pytest.mark.parametrize(("ratio", "k", "people"), [(3, 2, 2), (3, 2, 7), (9, 2, 5), (3, 3, 4), (5, 4, 3), (20, 3, 4)])
def test_no_batch_of_randomized_response_costs_more_than_stated(ratio: int, k: int, people: int) -> None:
    claim = response(ln(ratio), k, people)
    for epsilon, true in zip(EPSILONS, true_deltas(k_way(ratio, k), people, EPSILONS)):
        for cover in claim.covers:
            if epsilon < math.log(ratio):
                assert true <= cover.delta(epsilon) + 1e-15


@pytest.mark.parametrize("people", [2, 4])
@pytest.mark.parametrize(
    ("matrix", "sides"),
    [
        (subset_selection(4, 4, 2), ReportSides.of_support(Fraction(4, 5), Fraction(2 * 4 + 4, 30), Fraction(4))),
        (unary(Fraction(1, 2), Fraction(1, 5), 3), ReportSides.of_support(Fraction(1, 2), Fraction(1, 5), Fraction(4))),
        (unary(Fraction(2, 3), Fraction(1, 3), 3), ReportSides.of_support(Fraction(2, 3), Fraction(1, 3), Fraction(4))),
    ],
    ids=["subset selection", "optimal unary", "symmetric unary"],
)
def test_no_batch_of_two_sided_reports_costs_more_than_stated(matrix: Matrix, sides: ReportSides, people: int) -> None:
    assert sides.likely == 4 * sides.unlikely
    claim = pure(ln(4), people, sides)
    assert len(claim.covers) == 2
    for epsilon, true in zip(EPSILONS, true_deltas(matrix, people, EPSILONS)):
        assert all(true <= cover.delta(epsilon) + 1e-15 for cover in claim.covers)


@given(rows=st.lists(st.lists(st.integers(1, 4), min_size=3, max_size=3), min_size=2, max_size=3))
@settings(deadline=None, max_examples=25)
def test_any_private_report_is_covered_by_clones(rows: list[list[int]]) -> None:
    """The general bound holds for randomizers of no particular shape; their ε₀ is read off the matrix."""
    matrix = [[Fraction(entry, sum(row)) for entry in row] for row in rows]
    ratio = max(one[y] / two[y] for one in matrix for two in matrix for y in range(3))
    if ratio == 1:
        return
    claim = pure(ln(ratio), 3)
    for epsilon, true in zip(EPSILONS, true_deltas(matrix, 3, EPSILONS)):
        assert true <= claim.delta(epsilon) + 1e-15


def test_the_oracle_catches_a_claim_for_more_people_than_there_are() -> None:
    """Negative control: three people do not hide one another as thirty would."""
    true = true_deltas(k_way(3, 2), 3, [0.2])[0]
    assert true > response(ln(3), 2, 30).delta(0.2)
    assert true <= response(ln(3), 2, 3).delta(0.2)


def test_the_oracle_catches_the_constant_that_was_withdrawn() -> None:
    """The generic bound is not the sharper one of randomized response, which is wrong for some other reports."""
    generic = pure(2, 100).covers[0]
    assert math.isclose(generic.chance, math.exp(-2), rel_tol=1e-12)
    sharper = response(2, 2, 100).covers[1]
    assert math.isclose(sharper.chance, 2 / (math.e**2 + 1), rel_tol=1e-12)
    assert sharper.delta(0.3) < generic.delta(0.3)


# --- the sums themselves ---


def brute_cover(cover: Cover, epsilon: float) -> float:
    """The same expectation, term by term, without thresholds, tails or windows."""
    k, r, n = cover.categories, cover.odds, cover.others
    total = 0.0
    for m in range(n + 1):
        inner = 0.0
        size = m + 1
        for c in range(size + 1):
            share = math.comb(size, c) * (2 / k) ** c * (1 - 2 / k) ** (size - c) if k > 2 else float(c == size)
            for a in range(c + 1):
                gap = a - math.exp(epsilon) * (c - a) - math.expm1(epsilon) * size * r / (1 - r)
                inner += share * math.comb(c, a) / 2**c * max(0.0, gap)
        mass = math.comb(n, m) * cover.chance**m * (1 - cover.chance) ** (n - m)
        total += mass * inner * k * (1 - r) / (1 + (k - 1) * r) / size
    return cover.weight * total


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize(("others", "odds"), [(0, 0.3), (1, 0.5), (12, 0.05), (30, 0.2)])
def test_the_fast_sum_is_the_slow_one_rounded_up(others: int, k: int, odds: float) -> None:
    cover = Cover(others=others, chance=k * odds / (1 + (k - 1) * odds), categories=k, odds=odds, weight=0.75)
    for epsilon in (0.0, 0.01, 0.3, -0.9 * math.log(odds)):
        slow = brute_cover(cover, epsilon)
        assert slow * (1 - 1e-12) <= cover.delta(epsilon) <= slow * (1 + 1e-5) + 1e-15


def test_binomial_probabilities_are_within_the_margin() -> None:
    """Against sums in 40 digits, up to the most people and twelve standard deviations, far within the margin."""
    cases = [*product((7, 40, 1000, 10**5, 10**7), (0.5, 0.03), (-2.0, 0.3, 5.0, 12.0))]
    cases += [(shuffle._MOST_PEOPLE, 0.5, -2.0), (shuffle._MOST_PEOPLE, 0.03, 12.0), (shuffle._MOST_PEOPLE, 1e-6, 5.0)]
    with mpmath.workdps(40):
        for n, p, z in cases:
            k = min(n, max(1, math.ceil(n * p + z * math.sqrt(n * p * (1 - p)))))
            exact = mpmath.binomial(n, k) * mpmath.mpf(p) ** k * (1 - mpmath.mpf(p)) ** (n - k)
            assert abs(shuffle._mass(np.array([float(k)]), n, p)[0] / exact - 1) < 1e-2 * shuffle._DOUBT
            if z > 0:
                tail = term = exact
                for j in range(k, n):
                    term = term * (n - j) / (j + 1) * mpmath.mpf(p) / (1 - mpmath.mpf(p))
                    tail += term
                    if term < tail * 1e-20:
                        break
                assert abs(shuffle._at_least(np.array([float(k)]), n, p)[0] / tail - 1) < 0.1 * shuffle._DOUBT


def test_fewer_cover_sizes_only_raise_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    fine = response(2, 5, 2000).covers[1].delta(0.2)
    monkeypatch.setattr(shuffle, "_MOST_SIZES", 5)
    coarse = response(2, 5, 2000).covers[1].delta(0.2)
    assert fine < coarse < 3 * fine


@pytest.mark.parametrize("k", [2, 5])
def test_what_is_cut_off_is_added(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    """Narrow windows make the bound worse, never wrong."""
    cover = Cover(others=60, chance=0.4, categories=k, odds=0.3)
    slow = brute_cover(cover, 0.2)
    for name in ("_TOTALS", "_ABOVE", "_BELOW"):
        monkeypatch.setattr(shuffle, name, 0.3)
        assert slow < replace(cover).delta(0.2) <= 1


@pytest.mark.parametrize(
    ("matrix", "p", "q"),
    [
        (subset_selection(4, 5, 2), Fraction(8, 11), Fraction(8 + 6, 11 * 4)),
        (unary(Fraction(1, 2), Fraction(1, 5), 4), Fraction(1, 2), Fraction(1, 5)),
        (k_way(4, 5), Fraction(4, 8), Fraction(1, 8)),
    ],
    ids=["subset selection", "unary", "randomized response"],
)
def test_sides_are_what_the_matrix_says(matrix: Matrix, p: Fraction, q: Fraction) -> None:
    """Each of the three masses, by its definition, from all probabilities of all reports."""
    sides = ReportSides.of_support(p, q, Fraction(4))
    for one, two in combinations(matrix, 2):
        reports = range(len(one))
        assert {one[y] / two[y] for y in reports} <= {Fraction(4), Fraction(1, 4), Fraction(1)}
        assert sides.likely == sum(one[y] for y in reports if one[y] > two[y])
        assert sides.unlikely == sum(one[y] for y in reports if one[y] < two[y])
        least = [min(row[y] for row in matrix) for y in reports]
        assert sides.silent <= sum(one[y] for y in reports if one[y] == two[y] == least[y])


# --- published and derived figures ---


@pytest.mark.parametrize(
    ("people", "local", "figure"),
    [
        (10**5, 1, 0.0155),
        (10**5, 2, 0.0452),
        (10**5, 4, 0.17279),
        (10**4, 1, 0.055),
        (10**4, 4, 0.62),
        (10**6, 4, 0.050),
    ],
)
def test_clones_match_the_published_numerical_bound(people: int, local: int, figure: float) -> None:
    """Below the published upper bounds, which were found with coarse steps, by at most 5 %."""
    assert 0.95 * figure <= pure(local, people).epsilon(1e-6) <= figure


def test_the_published_bracket_and_closed_form() -> None:
    epsilon = pure(4, 10**5).epsilon(1e-6)
    assert 0.16754 <= epsilon <= 0.17279
    e = math.exp(4)
    x = 8 * math.sqrt(e * math.log(4e6) / 1e5) + 8 * e / 1e5
    closed = math.log1p(x * (1 - 1 / e) / (1 + 1 / e / (1 + x)))
    assert math.isclose(closed, 0.5378040242374512, rel_tol=1e-9)
    assert epsilon < closed / 3


def test_epsilon_is_where_delta_says() -> None:
    for batched in (pure(1, 5000), response(3, 2, 5000), response(1, 20, 5000)):
        epsilon = batched.epsilon(1e-7)
        assert batched.delta(epsilon) <= 1e-7 < batched.delta(epsilon * 0.9998)


@given(local=st.floats(0.1, 6), people=st.integers(1, 10**7), epsilon=st.floats(0, 3), more=st.integers(1, 1000))
@settings(deadline=None, max_examples=30)
def test_more_people_a_larger_epsilon_or_better_reports_never_cost_more(
    local: float, people: int, epsilon: float, more: int
) -> None:
    """Up to the width of one group of cover sizes, which is part of the bound."""
    here = pure(local, people).delta(epsilon)
    slack = 1.02
    assert pure(local, people + more).delta(epsilon) <= here * slack + 1e-20
    assert pure(local, people).delta(epsilon + 0.01) <= here
    assert pure(local + 0.1, people).delta(epsilon) * slack + 1e-20 >= here
    assert response(local, 2, people).delta(epsilon) <= here
    assert 0 <= here <= 1


def test_nobody_else_means_no_amplification() -> None:
    assert pure(1, 1).epsilon(1e-9) == pytest.approx(1, abs=1e-4)
    assert pure(1, 1).event(0) == events.Pure(epsilon=1, neighbours="replace")
    assert pure(ln(3), 50).epsilon(0) == pytest.approx(math.log(3))
    assert pure(50, 1000).event(1e-9) == events.Pure(epsilon=50, neighbours="replace")
    assert pure(5000, 1000).epsilon(1e-3) == 5000
    assert pure(1, 1000).delta(1) == 0 and pure(1, 1000).delta(7) == 0


def test_the_answer_covers_a_total_variation_of_one_report() -> None:
    """At ε = 0 with nobody else, δ is the advantage of one report: (e^ε₀ − 1)/(e^ε₀ + 1) for two answers."""
    assert pure(ln(3), 1).delta(0) == pytest.approx(0.5, rel=1e-6)
    assert pure(ln(3), 1).delta(0) >= 0.5


# --- the bridge to accounting ---


def test_batches_compose_as_events() -> None:
    event = response(2, 2, 10**5).event(Fraction(1, 10**8))
    assert isinstance(event, events.Approximate) and event.neighbours == "replace" and event.delta == Fraction(1, 10**8)
    week = compose([event.times(7)])
    single = float(event.epsilon)
    assert single < week.epsilon(1e-6) <= 7 * single * (1 + 1e-9)
    assert events.load(events.dump(event)) == event


def test_the_unit_of_the_report_is_kept() -> None:
    report = events.Pure(epsilon=1, neighbours="replace", unit="member")
    assert Shuffled(report=report, people=1000, shuffler=MIXER).event(1e-6).unit == report.unit


# --- the protocols of this package ---


@pytest.mark.parametrize(
    "protocol",
    [
        KaryResponse.for_epsilon(2, 4),
        HadamardResponse.for_epsilon(2, 3),
        UnaryEncoding.for_epsilon(2, 3),
        UnaryEncoding.symmetric(2, 3),
        SubsetSelection.for_epsilon(1, 5),
        ProjectiveResponse.for_epsilon(1, 4),
    ],
    ids=lambda protocol: str(protocol.name),
)
def test_protocols_are_priced_by_their_own_shape(protocol: FrequencyProtocol) -> None:
    """Every batch of three real clients, from their exact output matrix, costs at most what is stated."""
    payloads = list(protocol.list_payloads())
    values = range(protocol.domain_size)
    matrix = [[protocol.probability(payload, value) for payload in payloads] for value in values]
    batched = Shuffled.of(protocol, people=3, shuffler=MIXER)
    assert len(batched.covers) == 2
    local = float(protocol.epsilon)
    epsilons = [0.0, 0.3 * local, 0.8 * local]
    for epsilon, true in zip(epsilons, true_deltas(matrix, 3, epsilons)):
        assert all(true <= batched._add_drift(cover)(epsilon) + 1e-12 for cover in batched.covers)
    general = pure(protocol.epsilon, 10**5)
    assert Shuffled.of(protocol, people=10**5, shuffler=MIXER).epsilon(1e-6) < 0.97 * general.epsilon(1e-6)


@pytest.mark.parametrize("protocol", [KaryResponse.for_epsilon(1, 6), SubsetSelection.for_epsilon(1, 6)])
def test_the_stated_drift_covers_the_distance_from_the_even_law(protocol: KaryResponse | SubsetSelection) -> None:
    drift = Shuffled.of(protocol, people=3, shuffler=MIXER).drift
    size = getattr(protocol, "size", 1)
    held, missed = math.comb(5, size - 1), math.comb(5, size)
    distance = Fraction(0)
    for payload in protocol.list_payloads():
        for value in range(6):
            inside = int.from_bytes(payload, "big") == value
            if isinstance(protocol, SubsetSelection):
                inside = bool(payload[0] & 0x80 >> value)
            even = protocol.p / held if inside else (1 - protocol.p) / missed
            distance += abs(protocol.probability(payload, value) - even) / 2 / 6
    assert 0 < distance <= drift < Fraction(1, 10**15)


@pytest.mark.parametrize("size", [4, 7, 1000, 3 * 2**29 + 2])
def test_a_response_is_priced_by_the_loss_of_its_own_integers(size: int) -> None:
    """Uneven picks cost a little more than even ones: at the loss of the even law δ is not zero, whoever is alone."""
    protocol = KaryResponse.for_epsilon(1, size)
    even = ln(protocol.p * (size - 1) / (1 - protocol.p))
    assert even < protocol.epsilon
    for people in (1, 3):
        batch = Shuffled.of(protocol, people=people, shuffler=MIXER)
        assert batch.report.epsilon == protocol.epsilon
        assert batch.delta(even) > 0 and batch.delta(protocol.epsilon) == 0
        assert batch.event(0).epsilon == protocol.epsilon


def test_drift_is_paid_for_by_every_report() -> None:
    even = response(2, 5, 10**5)
    uneven = replace(even, drift=Fraction(1, 10**12))
    assert 2e-7 < uneven.delta(0.03) - even.delta(0.03) < 2.1e-7
    with pytest.raises(ParameterError, match="drift"):
        replace(even, drift=0.1)  # type: ignore[arg-type]  # on purpose


def test_protocols_without_a_known_shape_get_the_general_bound() -> None:
    batched = Shuffled.of(LocalHashing.for_epsilon(1), people=1000, shuffler=MIXER)
    assert len(batched.covers) == 1 and isinstance(batched.report, events.Pure)


# --- what is refused ---


@pytest.mark.parametrize("missing", ["separate", "anonymous", "one_report_each"])
def test_nothing_is_claimed_for_a_shuffler_that_is_not_one(missing: str) -> None:
    for no in (False, None, 1):
        with pytest.raises(UnknownLoss, match=missing):
            replace(MIXER, **{missing: no})  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("operator", ["", "  ", None, 3])
def test_somebody_has_to_answer_for_the_shuffler(operator: object) -> None:
    with pytest.raises(ParameterError, match="operator"):
        replace(MIXER, operator=operator)  # type: ignore[arg-type]  # on purpose


def test_a_batch_without_a_declared_shuffler_is_refused() -> None:
    for no in (None, True, "yes"):
        with pytest.raises(ParameterError, match="declared"):
            replace(pure(1, 10), shuffler=no)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    ("report", "error"),
    [
        (events.Pure(epsilon=1), ParameterError),
        (events.Pure(epsilon=1, neighbours="replace", count=2), ParameterError),
        (events.Approximate(epsilon=1, delta=0.1, neighbours="replace"), UnknownLoss),
        (events.Gaussian(sensitivity=1, sigma=1, neighbours="replace"), UnknownLoss),
        (1, UnknownLoss),
    ],
)
def test_other_reports_are_refused(report: events.Pure, error: type[Exception]) -> None:
    with pytest.raises(error):
        Shuffled(report=report, people=10, shuffler=MIXER)


@pytest.mark.parametrize("people", [0, -1, 2.5, True, None, "9", 10**9 + 1])
def test_people_are_counted_in_whole_numbers(people: int) -> None:
    with pytest.raises(ParameterError, match="people"):
        pure(1, people)


@pytest.mark.parametrize("delta", [-0.1, 1, float("nan"), "x", None, True])
def test_a_wrong_delta_is_refused(delta: float) -> None:
    with pytest.raises(ParameterError, match="delta"):
        pure(1, 10).epsilon(delta)


@pytest.mark.parametrize("epsilon", [-1, float("nan"), float("inf"), "x", None])
def test_a_wrong_epsilon_is_refused(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        pure(1, 10).delta(epsilon)


@pytest.mark.parametrize(
    ("likely", "unlikely"),
    [(Fraction(1, 4), Fraction(1, 4)), (Fraction(3, 4), Fraction(1, 2)), (Fraction(1, 2), Fraction(0)), (0.5, 0.25)],
)
def test_wrong_sides_are_refused(likely: Fraction, unlikely: Fraction) -> None:
    with pytest.raises(ParameterError):
        ReportSides(likely=likely, unlikely=unlikely)
    with pytest.raises(ParameterError):
        ReportSides(likely=Fraction(3, 5), unlikely=Fraction(1, 5), silent=Fraction(1, 4))


def test_sides_that_contradict_the_report_are_refused() -> None:
    sides = ReportSides(likely=Fraction(3, 4), unlikely=Fraction(1, 4))
    assert pure(ln(3), 10, sides).sides == sides
    with pytest.raises(ParameterError, match="sides"):
        pure(1, 10, sides)
    with pytest.raises(ParameterError, match="sides"):
        pure(1, 10, (3, 1))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ParameterError, match="ratio"):
        ReportSides.of_support(Fraction(3, 4), Fraction(1, 4), Fraction(1))
