"""Values that others published, and classic surveys, reproduced."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.account import compose
from discreet.exact import Ln, ln
from discreet.local import Task
from discreet.local.estimation import estimate_from_supports
from discreet.local.hashing import LocalHashing
from discreet.local.krr import KaryResponse
from discreet.local.number import HYBRID_FROM, HybridResponse, SignResponse, WindowResponse
from discreet.local.planes import ALWAYS
from discreet.local.projective import ProjectiveResponse
from discreet.local.rappor import Rappor
from discreet.local.subset import SubsetSelection
from discreet.local.unary import UnaryEncoding
from discreet.local.words import WORD


def test_warner_and_his_coin() -> None:
    """p = 3/4 costs ln 3, four categories at 3/4 cost ln 9; 59 % yes by two coins are 68 %."""
    assert KaryResponse(domain_size=2, keep=3 * WORD // 4).epsilon == ln(3)
    four = KaryResponse(domain_size=4, keep=3 * WORD // 4).epsilon
    assert float(four) == pytest.approx(2.197224577, rel=1e-9)
    coin = estimate_from_supports(np.array([59]), 100, 0.75, 0.25, names=["yes"])
    assert coin.values[0] == pytest.approx(0.68)


def test_bit_vector_losses() -> None:
    """ε = 2m·ln((2 − f)/f) for RAPPOR's flips, and its debiasing of 10 one-hot answers."""
    for m, f, expected in ((1, 0.5, 2.1972245773362196), (3, 0.8, 2.4327906486489863), (4, 0.95, 0.8006676684558611)):
        half = f / 2
        assert m * math.log(((1 - half) / half) ** 2) == pytest.approx(expected, rel=1e-12)
        other = round(half * ALWAYS)
        made = Rappor(
            bits=8,
            hashes=m,
            cohorts=1,
            permanent_one=ALWAYS - other,
            permanent_other=other,
            instant_one=ALWAYS * 3 // 4,
            instant_other=ALWAYS // 4,
        )
        assert float(made.epsilon) == pytest.approx(expected, rel=1e-3)
    p, q = 0.95, 0.05
    assert (10 - 10 * q) / (p - q) == pytest.approx(10.555555555555555)
    assert (0 - 10 * q) / (p - q) == pytest.approx(-0.5555555555555556)


@pytest.mark.parametrize(
    ("size", "epsilon", "expected"),
    [
        (2, ln(3), 0.5),
        (3, ln(3), 0.6),
        (2925, 14, 0.0024263221679834087),
        (3, 14, 2.494582008677539e-6),
        (165, 14, 0.0001372),
        (969, 14, 0.0008051),
    ],
)
def test_flip_probabilities(size: int, epsilon: int | Ln, expected: float) -> None:
    """The chance of answering at random, d/(d − 1 + e^ε), as attribution reporting states it."""
    protocol = KaryResponse.for_epsilon(epsilon, size)
    flip = float((1 - protocol.p) * size / (size - 1))
    assert flip == pytest.approx(expected, rel=1e-6 if expected not in (0.0001372, 0.0008051) else 1e-3)


@pytest.mark.parametrize(
    ("size", "epsilon", "bits"),
    [(2, ln(3), 0.18872187554086717), (2925, 14, 11.461727965384876), (3, 14, 1.584926511508231)],
)
def test_channel_capacity(size: int, epsilon: int | Ln, bits: float) -> None:
    """What one report can tell at most, in bits, from the exact probabilities."""
    protocol = KaryResponse.for_epsilon(epsilon, size)
    p, q = float(protocol.p), float(protocol.q)
    assert math.log2(size) + p * math.log2(p) + (size - 1) * q * math.log2(q) == pytest.approx(bits, rel=1e-9)


@pytest.mark.parametrize(("states", "epsilon"), [(5545, 9.028709123768687), (2106, 8.366900276574821)])
def test_loss_for_a_channel_of_six_and_a_half_bits(states: int, epsilon: float) -> None:
    """The ε at which a report of so many states tells at most 6.5 bits."""
    protocol = KaryResponse.for_epsilon(epsilon, states)
    p, q = float(protocol.p), float(protocol.q)
    assert math.log2(states) + p * math.log2(p) + (states - 1) * q * math.log2(q) == pytest.approx(6.5, abs=1e-6)


def test_rappor_losses() -> None:
    """h = 2, f = p = 1/2, q = 3/4: 4.3944 for ever and 1.0743 for one report; half of both for h = 1."""

    def made(hashes: int) -> Rappor:
        return Rappor(
            bits=16,
            hashes=hashes,
            cohorts=4,
            permanent_one=ALWAYS * 3 // 4,
            permanent_other=ALWAYS // 4,
            instant_one=ALWAYS * 3 // 4,
            instant_other=ALWAYS // 2,
        )

    assert float(made(2).epsilon) == pytest.approx(4.394449154672439, rel=1e-12)
    assert float(made(2).instant_loss) == pytest.approx(1.074285864166728, rel=1e-12)
    assert float(made(1).epsilon) == pytest.approx(2.1972245773362196, rel=1e-12)
    assert float(made(1).instant_loss) == pytest.approx(0.537142932083364, rel=1e-9)


def test_classic_surveys() -> None:
    """Warner's estimator on published data: π̂, total, standard error; forced responses in Nigeria."""
    found = estimate_from_supports(np.array([60]), 125, 0.7, 0.3, names=["yes"])
    assert found.values[0] == pytest.approx(0.45) and found.values[0] * 802 == pytest.approx(360.9)
    share = 60 / 125
    assert math.sqrt(share * (1 - share) / 125) / 0.4 == pytest.approx(0.1117, abs=5e-5)
    assert float(Ln(Fraction(7, 3))) == pytest.approx(0.8473, abs=5e-5)
    # Forced: truth with 2/3, a fixed yes or no with 1/6 each; so a yes has 5/6 or 1/6.
    nigeria = estimate_from_supports(np.array([831]), 2435, 5 / 6, 1 / 6, names=["yes"])
    assert nigeria.values[0] == pytest.approx(0.26191, abs=5e-6)
    share = 831 / 2435
    assert math.sqrt(share * (1 - share) / 2435) * 1.5 == pytest.approx(0.01441, abs=5e-6)
    assert KaryResponse.for_epsilon(ln(5), 2).p == Fraction(KaryResponse.for_epsilon(ln(5), 2).keep, WORD)
    assert float(KaryResponse.for_epsilon(ln(5), 2).p) == pytest.approx(5 / 6)
    forced = estimate_from_supports(np.array([508]), 1000, 0.8, 0.2, names=["yes"])
    assert forced.values[0] == pytest.approx(0.5133, abs=5e-5)


def test_warner_variance_identity() -> None:
    """λ(1 − λ)/(2p − 1)² = π(1 − π) + p(1 − p)/(2p − 1)²."""
    for p in (0.6, 0.7, 0.9):
        for pi in (0.0, 0.2, 0.5):
            lam = p * pi + (1 - p) * (1 - pi)
            left = lam * (1 - lam) / (2 * p - 1) ** 2
            assert left == pytest.approx(pi * (1 - pi) + p * (1 - p) / (2 * p - 1) ** 2)


TABLE = [
    # ε, d, GRR, SS, w, OUE, OLH, HR
    (0.5, 16, 37.2, 13.65, 6, 15.67, 15.82, 16.67),
    (0.5, 1000, 2375, 15.64, 377, 15.67, 15.82, 16.67),
    (1, 4, 1.60, 1.60, 1, 3.68, 3.69, 4.68),
    (1, 16, 5.66, 3.11, 4, 3.68, 3.69, 4.68),
    (1, 1000, 339, 3.67, 269, 3.68, 3.69, 4.68),
    (2, 16, 0.524, 0.520, 2, 0.724, 0.725, 1.72),
    (2, 64, 1.70, 0.670, 7, 0.724, 0.725, 1.72),
    (4, 64, 0.0406, 0.0406, 1, 0.0760, 0.0760, 1.08),
    (4, 1000, 0.366, 0.0739, 18, 0.0760, 0.0760, 1.08),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}")
def test_variance_table(row: tuple[float, int, float, float, int, float, float, float]) -> None:
    """n times the variance at rare values, against the published table."""
    epsilon, size, grr, ss, w, oue, olh, hr = row
    from discreet.local.hadamard import HadamardResponse

    assert KaryResponse.for_epsilon(epsilon, size).unit_variance() == pytest.approx(grr, rel=4e-3)
    subset = SubsetSelection.for_epsilon(epsilon, size)
    assert subset.unit_variance() == pytest.approx(ss, rel=4e-3) and subset.size == w
    assert UnaryEncoding.for_epsilon(epsilon, size).unit_variance() == pytest.approx(oue, rel=4e-3)
    assert LocalHashing.for_epsilon(epsilon).unit_variance() == pytest.approx(olh, rel=4e-3)
    assert HadamardResponse.for_epsilon(epsilon, size).unit_variance() == pytest.approx(hr, rel=4e-3)


@pytest.mark.parametrize(
    ("epsilon", "size", "variance", "field"),
    [
        (0.5, 16, 15.0, None),
        (0.5, 1000, 15.8, 3),
        (1, 16, 3.51, None),
        (1, 1000, 3.76, 3),
        (2, 16, 0.573, None),
        (2, 64, 0.712, None),
        (2, 1000, 0.731, 7),
        (4, 64, 0.0420, None),
        (4, 1000, 0.0753, None),
    ],
)
def test_projective_table(epsilon: float, size: int, variance: float, field: int | None) -> None:
    """The best prime field and its variance, against the published table."""
    made = ProjectiveResponse.for_epsilon(epsilon, size)
    assert made.unit_variance() <= variance * 1.005
    assert made.unit_variance() == pytest.approx(variance, rel=0.02)
    if field is not None:
        assert made.field == field


def test_influence_of_one_malicious_report() -> None:
    """How many honest people one liar outweighs, ε = 1 and d = 1000."""

    def influence(name: str) -> float:
        return float(Task.for_epsilon("t", 1000, epsilon=1, protocol=name).protocol.influence)  # type: ignore[attr-defined]  # all have it

    for name, expected in (
        ("krr", 582),
        ("hash", 3.3),
        ("unary", 3.2),
        ("subset", 3.2),
        ("sue", 2.5),
        ("hadamard", 2.2),
    ):
        assert influence(name) == pytest.approx(expected, rel=0.03)
    assert SignResponse.for_epsilon(1).influence == pytest.approx(2.2, rel=0.03)
    assert WindowResponse.for_epsilon(1).influence == pytest.approx(4.1, rel=0.03)


@pytest.mark.parametrize("name", ["krr", "unary", "subset", "hadamard", "projective"])
def test_targets_of_one_malicious_report(name: str) -> None:
    """The most values that any one payload supports, over all payloads there are, is what the table says."""
    from discreet.local.protocol import FrequencyProtocol

    for size in (4, 7):
        protocol = Task.for_epsilon("t", size, epsilon=1, protocol=name).protocol
        assert isinstance(protocol, FrequencyProtocol)
        rows = [np.frombuffer(payload, dtype=np.uint8)[np.newaxis] for payload in protocol.list_payloads()]
        most = max(int(protocol.count_supports(protocol.tally(row))[:size].sum()) for row in rows)
        assert most == protocol.targets if name != "projective" else most <= protocol.targets


def test_a_crafted_seed_supports_every_value() -> None:
    """Local hashing lets the client choose the seed: with multiplier zero all values share a bucket."""
    protocol = LocalHashing.for_epsilon(1)
    payload = np.zeros((1, protocol.payload_bytes), dtype=np.uint8)
    from discreet.local.hashing import index_keys

    assert protocol.count_key_supports(payload, index_keys(50)).tolist() == [1] * 50


def test_poisoning_does_what_the_table_says() -> None:
    """Fifty liars among 20,000 who all push one value move its estimate by their number times the influence."""
    from discreet.entropy import SeededForTestsOnly
    from discreet.local import Aggregator, Reports, encode_many
    from discreet.local.estimation import estimate_frequencies
    from discreet.local.protocol import EncodingProtocol, FrequencyProtocol

    honest, liars = np.zeros(20_000, dtype=int), 50
    for name in ("krr", "unary", "subset", "hadamard", "projective"):
        task = Task.for_epsilon("t", 30, epsilon=1, protocol=name)
        protocol = task.protocol
        assert isinstance(protocol, FrequencyProtocol) and isinstance(protocol, EncodingProtocol)
        good = encode_many(task, honest, source=SeededForTestsOnly(1)).payload
        # A report that supports value 29: found among honest ones for 29.
        tries = encode_many(task, np.full(200, 29), source=SeededForTestsOnly(2)).payload
        aimed = next(row for row in tries if protocol.count_supports(protocol.tally(row[np.newaxis]))[29] == 1)
        clean, dirty = Aggregator(task), Aggregator(task)
        clean.add(Reports(task, good), batch="a")
        dirty.add(Reports(task, np.concatenate([good[:-liars], np.tile(aimed, (liars, 1))])), batch="a")
        noise = 5 * math.sqrt(liars) / float(protocol.p - protocol.q)
        moved = (estimate_frequencies(dirty).values[29] - estimate_frequencies(clean).values[29]) * 20_000
        assert abs(moved - liars * protocol.influence) < noise


def test_means_table() -> None:
    """Worst-case variances of the mean protocols and where they cross."""

    def worst(protocol: SignResponse | WindowResponse | HybridResponse) -> float:
        return max(protocol.unit_variance(x) for x in (0.0, 1.0))

    for epsilon, duchi, piecewise, hybrid in ((1, 4.68, 5.22, 4.29), (2, 1.72, 1.23, 1.04), (4, 1.08, 0.241, 0.219)):
        assert worst(SignResponse.for_epsilon(epsilon)) == pytest.approx(duchi, abs=6e-3)
        assert worst(WindowResponse.for_epsilon(epsilon)) == pytest.approx(piecewise, abs=6e-3)
        assert worst(HybridResponse.for_epsilon(epsilon)) == pytest.approx(hybrid, abs=6e-3)
    assert worst(WindowResponse.for_epsilon(1)) == pytest.approx(5.223597452043684, rel=2e-4)
    crossing = 1.2897846828567645
    for near, sign in ((crossing - 0.01, 1), (crossing + 0.01, -1)):
        gap = worst(WindowResponse.for_epsilon(near)) - worst(SignResponse.for_epsilon(near))
        assert gap * sign > 0
    assert HYBRID_FROM == 0.6093524930273093
    below = HybridResponse.for_epsilon(0.6)
    assert below.piecewise == 1 and worst(below) == pytest.approx(worst(SignResponse.for_epsilon(0.6)), rel=1e-6)


def test_reports_are_events() -> None:
    """A report is priced by the accountant at its stated loss; five of them at five times that."""
    for name in ("krr", "unary", "hash", "hadamard", "subset", "projective"):
        task = Task.for_epsilon("t", 5, epsilon=1, protocol=name)
        event = task.protocol.event
        assert compose([event]).epsilon() == pytest.approx(float(task.loss), rel=1e-9)
        assert compose([event] * 5).epsilon() <= 5 * float(task.loss) * (1 + 1e-9)
        assert compose([event] * 5).epsilon(1e-6) < 5 * float(task.loss)
