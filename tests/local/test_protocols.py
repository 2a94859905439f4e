"""Every protocol: the whole output matrix, its loss, its client against the slow oracle, and its equivalences."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import Ln, ln
from discreet.local import Domain, Task, encode_many
from discreet.local.client import bytes_needed, make_payload
from discreet.local.hadamard import HadamardResponse
from discreet.local.hashing import LocalHashing
from discreet.local.krr import KaryResponse
from discreet.local.number import HybridResponse, SignResponse, WindowResponse
from discreet.local.projective import ProjectiveResponse
from discreet.local.protocol import EncodingProtocol, FrequencyProtocol
from discreet.local.subset import SubsetSelection
from discreet.local.task import FREQUENCY
from discreet.local.unary import UnaryEncoding
from discreet.local.wave import SquareWave
from discreet.local.words import WORD, draw_bytes, pick, pick_least, pick_most, pick_weight
from tests.local import reference

EPSILONS: list[int | Fraction | Ln] = [Fraction(1, 10), Fraction(1, 2), 1, ln(3), 2, 4, 8]


def matrix(protocol: EncodingProtocol, answers: list[int]) -> list[list[Fraction]]:
    outputs = list(protocol.list_payloads())
    return [[protocol.probability(output, answer) for output in outputs] for answer in answers]


def worst_ratio(rows: list[list[Fraction]]) -> Fraction:
    return Fraction(max(max(column) / min(column) for column in zip(*rows)))


@pytest.mark.parametrize("name", sorted(FREQUENCY))
@pytest.mark.parametrize("size", [2, 3, 4, 5, 7, 9])
def test_whole_matrix_keeps_the_declared_loss(name: str, size: int) -> None:
    """Each row of the enumerated matrix sums to one, and no ratio passes e^ε: not by one part in 2^64."""
    for epsilon in EPSILONS:
        protocol = FREQUENCY[name].for_epsilon(epsilon, size)
        rows = matrix(protocol, list(range(size)))
        assert all(sum(row) == 1 for row in rows)
        assert worst_ratio(rows) <= protocol.epsilon.of
        assert protocol.epsilon <= epsilon
        assert protocol.epsilon >= float(epsilon) * 0.98  # and the integers are not wastefully far below it


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_symmetric_unary_matrix(size: int) -> None:
    """The symmetric encoding keeps its loss too, and its two probabilities add up to one."""
    for epsilon in EPSILONS:
        protocol = UnaryEncoding.symmetric(epsilon, size)
        rows = matrix(protocol, list(range(size)))
        assert worst_ratio(rows) == protocol.epsilon.of and protocol.epsilon <= epsilon
        assert protocol.p + protocol.q == 1


def test_the_matrix_check_can_fail() -> None:
    """Negative control: a threshold raised by a thousandth breaks the declared loss, and the check sees it."""
    honest = KaryResponse.for_epsilon(1, 5)
    bold = KaryResponse(domain_size=5, keep=honest.keep + WORD // 1000)
    assert worst_ratio(matrix(bold, list(range(5)))) > honest.epsilon.of
    with pytest.raises(ParameterError, match="cost more"):
        Task(name="x", epsilon=Fraction(1), domain=Domain(size=5), protocol=bold)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_hash_matrix_given_the_seed(epsilon: Fraction | Ln) -> None:
    """For each of a few seeds the buckets' probabilities sum to one and keep the loss."""
    protocol = LocalHashing.for_epsilon(epsilon)
    if protocol.buckets > 100:
        protocol = LocalHashing(key_words=1, buckets=7, keep=protocol.keep)
    outputs = list(protocol.list_payloads())
    rows = [[protocol.probability(output, answer) for output in outputs] for answer in range(30)]
    assert all(sum(row) == 4 for row in rows)  # four seeds
    assert worst_ratio(rows) <= protocol.epsilon.of
    assert LocalHashing.for_epsilon(epsilon).epsilon <= epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_number_protocols_keep_their_loss(epsilon: Fraction | Ln) -> None:
    """Duchi's bit, the window and the hybrid: sums, ratios over a grid of answers with both ends, and expectation."""
    grid = [0, 1, 12345, 1 << 30, 1 << 31, (1 << 32) - 1, 1 << 32]
    small = WindowResponse(cells=24, width=5, inside=WindowResponse.for_epsilon(epsilon).inside)
    for protocol in (SignResponse.for_epsilon(epsilon), small):
        rows = matrix(protocol, grid)
        assert all(sum(row) == 1 for row in rows)
        assert worst_ratio(rows) <= protocol.epsilon.of
        means = [sum(float(chance) * score for chance, score in zip(row, protocol.scores)) for row in rows]
        assert np.allclose(means, [2 * x / 2**32 - 1 for x in grid], atol=1e-9)
    for kind in (SignResponse, WindowResponse, HybridResponse):
        assert kind.for_epsilon(epsilon).epsilon <= epsilon
    hybrid = HybridResponse.for_epsilon(epsilon)
    little = HybridResponse(piecewise=hybrid.piecewise, window=small, sign=hybrid.sign)
    for x in grid:  # the quick law in floats is the exact one
        exact = [little.chance(s, x) for s in range(little.symbols)]
        assert sum(exact) == 1 and np.allclose(little.law(x), np.array(exact, dtype=float), atol=1e-15)
    assert worst_ratio(matrix(little, grid)) <= little.epsilon.of
    # On every symbol at the two ends and the middle, the hybrid keeps its loss as a whole.
    for s in (*range(0, hybrid.window.cells, 97), hybrid.window.cells, hybrid.window.cells + 1):
        chances = [hybrid.chance(s, x) for x in (0, 1 << 31, 1 << 32)]
        assert max(chances) / min(chances) <= hybrid.epsilon.of


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_square_wave_matrix(epsilon: Fraction | Ln) -> None:
    """The square wave's full matrix sums to one and keeps its loss."""
    protocol = SquareWave.for_epsilon(epsilon, 12)
    rows = matrix(protocol, list(range(12)))
    assert all(sum(row) == 1 for row in rows)
    assert worst_ratio(rows) <= protocol.epsilon.of and protocol.epsilon <= epsilon


@given(m=st.integers(1, 1 << 32), words=st.lists(st.integers(0, WORD - 1), min_size=1, max_size=20))
@settings(deadline=None, max_examples=200)
def test_pick_is_the_exact_product(m: int, words: list[int]) -> None:
    """The 64-bit arithmetic of pick equals whole-number arithmetic, and its weights add up to 2^64."""
    assert pick(np.array(words, dtype=np.uint64), m).tolist() == [w * m >> 64 for w in words]
    first, last = pick_weight(0, m), pick_weight(m - 1, m)
    assert {first, last} <= {pick_least(m), pick_most(m)}
    if m <= 1000:
        assert sum(pick_weight(i, m) for i in range(m)) == WORD


def tasks() -> list[Task]:
    made = []
    for name in (*sorted(FREQUENCY), "sue", "hash", "wave"):
        made += [Task.for_epsilon("t", size, epsilon=1, protocol=name) for size in (2, 3, 8, 9, 31, 130)]
        made.append(Task.for_epsilon("t", ["ja", "nein", "größer"], epsilon=2, protocol=name))
    made += [Task.for_epsilon("t", 1000, epsilon=e, protocol="projective") for e in (1, 3)]
    made += [Task.for_epsilon("t", 70_000, epsilon=1, protocol=name) for name in ("krr", "hadamard", "hash")]
    made += [
        Task.for_epsilon("t", (-3, 7.5), epsilon=e, protocol=n)
        for n in ("sign", "window", "hybrid", "wave")
        for e in (0.3, 1, 4)
    ]
    return [
        *made,
        Task.for_epsilon("t", Domain(open=True), epsilon=1, protocol="hash"),
        Task.for_epsilon("t", Domain(open=True), epsilon=6, protocol="hash"),
    ]


def some_answers(task: Task) -> list[object]:
    if task.domain.numeric:
        return [-3, -2.999, 0, 1.7, 7.5, 99.0, -1e300, None, math.nan]
    if task.domain.open:
        return ["", "a", "straße", "x" * 500, None]
    if task.domain.labels:
        return [*task.domain.labels, "unknown", None, 3]
    return [0, 1, task.domain.count - 1, task.domain.count // 2, -1, task.domain.count, None, "0"]


@pytest.mark.parametrize("task", tasks(), ids=lambda task: f"{task.protocol.name}-{str(task.domain.json)[:20]}")
def test_client_equals_the_slow_oracle(task: Task) -> None:
    """From the same random bytes, the vectorised client and the page's plain Python give the same payload."""
    source = SeededForTestsOnly(8)
    for answer in some_answers(task):
        for _ in range(12):
            random = source.words(bytes_needed(task, answer) // 8).tobytes()
            assert make_payload(task, answer, random) == reference.payload(task.json, answer, random)
    with pytest.raises(ParameterError, match="random"):
        make_payload(task, some_answers(task)[0], b"")


@pytest.mark.parametrize("task", tasks()[::3], ids=lambda task: f"{task.protocol.name}-{str(task.domain.json)[:20]}")
def test_bulk_equals_one_by_one(task: Task) -> None:
    """Encoding many at once uses for each report its own stretch of random bytes, in order."""
    answers = [answer for answer in some_answers(task) if answer is not None][:3] * 40
    if not task.domain.open and not task.domain.numeric:
        answers = [a for a in answers if task.domain.indices([a])[0] >= 0]
    if task.domain.numeric:
        answers = [a for a in answers if isinstance(a, int | float) and not math.isnan(a)]
    many = encode_many(task, answers, source=SeededForTestsOnly(3))
    width = task.protocol.random_bytes
    random = SeededForTestsOnly(3).words(len(answers) * width // 8).tobytes()
    one = [make_payload(task, a, random[i * width : (i + 1) * width]) for i, a in enumerate(answers)]
    assert [row.tobytes() for row in many.payload] == one


@pytest.mark.parametrize("name", sorted(FREQUENCY))
def test_reports_follow_the_matrix(name: str) -> None:
    """Observed payloads are as frequent as their exact probabilities (20,000 draws, p < 1e-9 each way)."""
    protocol: FrequencyProtocol = FREQUENCY[name].for_epsilon(1, 5)
    count, outputs = 20_000, list(FREQUENCY[name].for_epsilon(1, 5).list_payloads())
    for answer in (0, 4):
        random = draw_bytes(count, protocol.random_bytes, SeededForTestsOnly(answer))
        payload = protocol.encode(np.full(count, answer), random)
        seen: dict[bytes, int] = {}
        for row in payload:
            seen[row.tobytes()] = seen.get(row.tobytes(), 0) + 1
        assert set(seen) <= set(outputs)
        for output in outputs:
            chance = float(protocol.probability(output, answer))
            assert abs(seen.get(output, 0) - count * chance) < 6.5 * math.sqrt(count * chance) + 4


@pytest.mark.parametrize("name", sorted(FREQUENCY))
def test_supports_count_what_the_matrix_says(name: str) -> None:
    """The fast decoders (Hadamard, Fourier) agree with p and q: expected supports from the exact matrix."""
    protocol = FREQUENCY[name].for_epsilon(ln(3), 6)
    outputs = np.array([list(output) for output in protocol.list_payloads()], dtype=np.uint8)
    supports = np.array([protocol.count_supports(protocol.tally(outputs[i : i + 1])) for i in range(len(outputs))])[
        :, :6
    ]
    assert set(np.unique(supports)) <= {0, 1}
    for answer in range(6):
        chances = np.array([float(protocol.probability(bytes(row), answer)) for row in outputs])
        expected = np.full(6, float(protocol.q))
        expected[answer] = float(protocol.p)
        assert np.allclose(chances @ supports, expected, atol=1e-9)


def test_subsets_of_one_are_randomized_response() -> None:
    """Subset selection with size 1 is k-ary randomized response."""
    one = SubsetSelection.for_epsilon(4, 8)
    assert one.size == 1
    assert np.isclose(float(one.p), float(KaryResponse.for_epsilon(4, 8).p), rtol=1e-9)
    rows = matrix(one, [0, 3])
    assert sorted(float(x) for x in rows[0]) == pytest.approx(sorted(float(x) for x in rows[1]), rel=1e-9)


def test_projective_line_is_randomized_response() -> None:
    """In dimension 2 a point has one orthogonal point: randomized response on q + 1 values."""
    for field in (2, 3, 5, 7):
        line = ProjectiveResponse.over(Fraction(1), field + 1, field, 2)
        assert np.isclose(float(line.p), float(KaryResponse.for_epsilon(1, field + 1).p), rtol=1e-9)
        rows = matrix(line, list(range(field + 1)))
        assert sorted(np.array(rows[0], dtype=float).round(9)) == sorted(np.array(rows[1], dtype=float).round(9))


def test_one_symmetric_bit_is_half_the_loss() -> None:
    """One bit of the symmetric encoding at ε is randomized response at ε/2."""
    bit = UnaryEncoding.symmetric(2, 10)
    assert math.isclose(float(bit.p), math.e / (math.e + 1), rel_tol=2e-5)


def test_hash_family_is_pairwise_even() -> None:
    """Two values meet in a bucket once in g, over random seeds."""
    protocol, count = LocalHashing(key_words=2, buckets=5, keep=1 << 63), 200_000
    seeds = SeededForTestsOnly(1).words(3 * count).reshape(-1, 3)
    for left, right in (((0, 0), (0, 1)), ((5, 9), (5, 10)), ((1, 0), (0, 1)), ((2**32 - 1, 7), (7, 2**32 - 1))):
        a = protocol.hash_keys(seeds, np.broadcast_to(np.array(left, dtype=np.uint64), (count, 2)))
        b = protocol.hash_keys(seeds, np.broadcast_to(np.array(right, dtype=np.uint64), (count, 2)))
        assert abs((a == b).mean() - 0.2) < 6 * math.sqrt(0.16 / count)
        assert np.abs(np.bincount(a, minlength=5) / count - 0.2).max() < 6 * math.sqrt(0.16 / count)


def test_hadamard_transform_is_its_definition() -> None:
    """The fast transform equals the matrix product."""
    counts = np.arange(16, dtype=np.int64) ** 2
    signs = np.array([[(-1) ** bin(i & j).count("1") for j in range(16)] for i in range(16)])
    from discreet.local.hadamard import transform

    assert (transform(counts) == signs @ counts).all()


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1", None, True, 33, 10**6])
@pytest.mark.parametrize("name", [*sorted(FREQUENCY), "hash"])
def test_bad_epsilon_is_refused(name: str, bad: object) -> None:
    """A loss that is not one, or protects nobody, is refused."""
    with pytest.raises(ParameterError):
        Task.for_epsilon("t", 10, epsilon=bad, protocol=name)


@pytest.mark.parametrize(
    "bad", [0, 1, -5, 2.5, "ten", (5, 1), (0, 0), (0, math.inf), ("a",), ["a", "a"], ["a", 3], None, True]
)
def test_bad_domain_is_refused(bad: object) -> None:
    """A domain that is not one is refused before anything is made."""
    with pytest.raises(ParameterError):
        Task.for_epsilon("t", bad, epsilon=1, protocol="krr")


def test_wrong_protocol_for_a_domain_is_refused() -> None:
    """Numbers are not counted, categories are not averaged, and unknown names are named."""
    for domain, protocol in (((0, 1), "krr"), ((0, 1), "hash"), (5, "hybrid"), (5, "rappor"), (5, "laplace")):
        with pytest.raises(ParameterError):
            Task.for_epsilon("t", domain, epsilon=1, protocol=protocol)
    with pytest.raises(ParameterError):
        HadamardResponse(domain_size=8, order=8, keep=1 << 63)
    with pytest.raises(ParameterError):
        SubsetSelection.for_epsilon(1, 5000)


def test_a_column_of_floats_with_gaps_is_read_as_it_is_meant() -> None:
    """A frame turns whole numbers into floats where one is missing; the missing one alone is unknown."""
    domain = Domain(size=4)
    for column in ([0.0, 3.0, math.nan, 1.5, 4.0, -1.0, math.inf, True, "1"], np.array([0.0, 3.0, math.nan, 1.5])):
        found = domain.indices(column).tolist()
        assert found[:4] == [0, 3, -1, -1] and set(found[4:]) <= {-1}
    assert domain.indices(pd.Series([2, None, 1])).tolist() == [2, -1, 1]
