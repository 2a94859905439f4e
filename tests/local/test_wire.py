"""Tasks, reports and aggregators: formats, refusals, and the laws of adding up."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError, UsageError
from discreet.local import Aggregator, Domain, Reports, Task, encode, encode_many, read_arrow, read_lines, read_wire
from discreet.local.task import FREQUENCY

COLOURS = ["red", "green", "blue", 'größer "1"']


def task(protocol: str = "krr", domain: object = 10, **more: Any) -> Task:
    return Task.for_epsilon("t", domain, epsilon=1, protocol=protocol, **more)


ALL = [
    *(task(name) for name in (*sorted(FREQUENCY), "sue", "hash", "wave")),
    *(task(name, (0, 10)) for name in ("sign", "window", "hybrid", "wave")),
    task("krr", COLOURS),
    task("hash", Domain(open=True)),
    task("rappor", Domain(open=True), values=3),
    task("subset", values=2, epoch=7),
]


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.protocol.name)
def test_task_round_trip_and_digest(one: Task) -> None:
    """A task read back is the same; its canonical form is sorted JSON and its digest SHA-256 of that."""
    again = Task.read(one.json)
    assert again == one and again.digest == one.digest == hashlib.sha256(one.json.encode()).digest()
    loose = json.dumps(json.loads(one.json), indent=3)
    assert Task.read(loose).digest == one.digest
    assert json.dumps(json.loads(one.json), sort_keys=True, separators=(",", ":"), ensure_ascii=False) == one.json
    assert one.loss <= one.epsilon


def test_published_digest() -> None:
    """The canonical form and digest of one task, written out: they may never change."""
    coin = Task.read(
        '{"discreet":"local/1","domain":{"labels":["no","yes"]},"epoch":0,"epsilon":"ln(3)","name":"coin",'
        '"parameters":{"keep":"13835058055282163712"},"protocol":"krr"}'
    )
    assert coin.loss.of == 3
    assert coin.digest.hex() == hashlib.sha256(coin.json.encode()).hexdigest()
    assert coin.id == "9aa74fa21687817b4464f864fdec553e"


def test_every_change_changes_the_digest() -> None:
    """No two different tasks share a digest."""
    made = [*ALL, task(epoch=1), task(domain=11), Task.for_epsilon("u", 10, epsilon=1, protocol="krr")]
    assert len({one.digest for one in made}) == len(made)


def changed(one: Task, **parts: Any) -> str:
    return json.dumps({**json.loads(one.json), **parts})


@pytest.mark.parametrize(
    "parts",
    [
        {"discreet": "local/2"},
        {"name": ""},
        {"name": 5},
        {"epoch": -1},
        {"epoch": 1.5},
        {"epsilon": 1},
        {"epsilon": "2/2"},
        {"epsilon": "1.0"},
        {"epsilon": "1/0"},
        {"epsilon": "ln(1)"},
        {"epsilon": "0"},
        {"epsilon": "1/2"},  # the parameters cost more than that
        {"epsilon": "9" * 500},
        {"protocol": "laplace"},
        {"protocol": ["krr"]},
        {"protocol": "sue"},
        {"domain": {"size": 1}},
        {"domain": {"size": 10, "open": True}},
        {"domain": {"open": False}},
        {"domain": {"labels": "ab"}},
        {"domain": {"low": 0, "high": 1}},
        {"domain": {"low": "0", "high": "1_0"}},
        {"domain": {"low": "0", "high": " 1"}},
        {"domain": {"low": "0", "high": "NaN"}},
        {"domain": {}},
        {"domain": None},
        {"parameters": {}},
        {"parameters": {"keep": "0"}},
        {"parameters": {"keep": str(2**64)}},
        {"parameters": {"keep": "-1"}},
        {"parameters": {"keep": 1.5}},
        {"parameters": {"keep": "9223372036854775808", "more": 1}},
        {"longitudinal": {"values": 0}},
        {"longitudinal": {}},
        {"longitudinal": None},
        {"extra": 1},
    ],
    ids=str,
)
def test_bad_task_is_refused(parts: dict[str, Any]) -> None:
    """Whatever is wrong with a task, it is refused as a parameter error before anyone answers."""
    with pytest.raises(ParameterError):
        Task.read(changed(task(), **parts))


@pytest.mark.parametrize("text", ["", "[]", "nonsense", "null", "{}", '{"discreet":"local/1"}', "[" * 100_000])
def test_not_a_task(text: str) -> None:
    """What is not a task is refused."""
    with pytest.raises(ParameterError):
        Task.read(text)


DIRECT = [one for one in ALL if one.values is None]


def answers_for(one: Task, count: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if one.domain.numeric:
        return rng.uniform(0, 10, count)
    if one.domain.open:
        return [f"w{i}" for i in rng.integers(0, 4, count)]
    if one.domain.labels:
        return [one.domain.labels[i] for i in rng.integers(0, len(one.domain.labels), count)]
    return rng.integers(0, one.domain.count, count)


def fresh(one: Task) -> Aggregator:
    return Aggregator(one, candidates=["w0", "w1", "w2", "w3"] if one.domain.open else None)


@pytest.mark.parametrize("one", DIRECT, ids=lambda one: one.protocol.name)
def test_three_ways_over_the_wire(one: Task) -> None:
    """Bytes, JSON lines and Arrow carry the same reports; all have one length whatever the answer."""
    reports = encode_many(one, answers_for(one, 200), source=SeededForTestsOnly(1))
    for again in (
        read_wire(one, reports.wire()),
        read_lines(one, reports.lines()),
        read_arrow(one, reports.arrow()),
        read_arrow(one, reports.arrow().slice(0, 200)),
        read_arrow(one, pa.table({"report": pa.array(list(reports.wire()), type=pa.binary())})),
    ):
        assert not again.rejected and (again.payload == reports.payload).all()
    assert {len(report) for report in reports.wire()} == {19 + one.protocol.payload_bytes}
    sliced = read_arrow(one, reports.arrow().slice(50, 20))
    assert (sliced.payload == reports.payload[50:70]).all()
    for answer in (None, "nowhere", -1, float("nan")):
        assert len(encode(one, answer)) == 19 + one.protocol.payload_bytes


@pytest.mark.parametrize("one", DIRECT, ids=lambda one: one.protocol.name)
def test_merge_is_aggregating_all(one: Task) -> None:
    """merge(a, b) = aggregate(a ∪ b), in any order, and a saved state goes on where it was."""
    reports = encode_many(one, answers_for(one, 300), source=SeededForTestsOnly(2))
    left, right, whole = fresh(one), fresh(one), fresh(one)
    assert left.add(Reports(one, reports.payload[:100]), batch="a")
    assert right.add(Reports(one, reports.payload[100:]), batch="b")
    assert whole.add(reports, batch="all")
    for both in (left.merge(right), right.merge(left), Aggregator.loads(left.dumps()).merge(right)):
        assert (both.state == whole.state).all() and both.people == whole.people == 300
        assert both.state.dtype == np.int64 and both.batches == {"a", "b"}
    resumed = Aggregator.loads(left.dumps())
    resumed.add(Reports(one, reports.payload[100:]), batch="b")
    assert (resumed.state == whole.state).all()


@given(cuts=st.lists(st.integers(0, 60), min_size=1, max_size=6), order=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=30)
def test_any_split_in_any_order(cuts: list[int], order: Any) -> None:
    """However reports are split and shuffled, the state is the same."""
    one = task("unary", 13)
    payload = encode_many(one, answers_for(one, 60), source=SeededForTestsOnly(4)).payload
    edges = sorted({0, 60, *cuts})
    parts = list(itertools.pairwise(edges))
    order.shuffle(parts)
    total = Aggregator(one)
    for number, (start, end) in enumerate(parts):
        piece = Aggregator(one)
        piece.add(Reports(one, payload[start:end]), batch=f"{number}")
        total = total.merge(piece)
    whole = Aggregator(one)
    whole.add(Reports(one, payload), batch="x")
    assert (total.state == whole.state).all() and total.people == 60


def test_batches_are_idempotent(tmp_path: Path) -> None:
    """The same batch twice counts once, also after a restart; the same id with other reports is refused."""
    one = task()
    reports = encode_many(one, np.arange(10), source=SeededForTestsOnly(5))
    total = Aggregator(one)
    assert total.add(reports, batch="monday") and not total.add(reports, batch="monday")
    total.save(tmp_path / "state.json")
    again = Aggregator.load(tmp_path / "state.json")
    assert not again.add(reports, batch="monday")
    assert again.people == 10 and (again.state == total.state).all()
    with pytest.raises(UsageError, match="other reports"):
        again.add(Reports(one, reports.payload[:5]), batch="monday")
    with pytest.raises(UsageError, match="twice"):
        again.merge(total)
    with pytest.raises(ParameterError):
        again.add(reports, batch="")


def test_tasks_never_mix() -> None:
    """Reports and aggregates of another task are refused."""
    one, other = task(), task(epoch=1)
    with pytest.raises(UsageError):
        Aggregator(one).add(encode_many(other, [1]), batch="a")
    with pytest.raises(UsageError):
        Aggregator(one).merge(Aggregator(other))
    with pytest.raises(ParameterError):
        Aggregator(one, candidates=["a"])
    with pytest.raises(ParameterError):
        Aggregator(task("hash", Domain(open=True)))
    with pytest.raises(ParameterError):
        Aggregator(task("hash", Domain(open=True)), candidates=["a", "a"])


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"discreet":"local-aggregate/1"}', '{"discreet":"x"}', "null", "5"])
def test_damaged_state_is_refused(text: str) -> None:
    """A state that is not whole is refused."""
    with pytest.raises(UsageError):
        Aggregator.loads(text)


def test_damaged_vector_is_refused() -> None:
    """A state whose vector has another length, or cannot be unpacked, is refused."""
    given = json.loads(Aggregator(task()).dumps())
    for bad in ("", "AAAA", base64.b64encode(b"x" * 40).decode(), 7):
        with pytest.raises(UsageError):
            Aggregator.loads(json.dumps({**given, "state": bad}))


@pytest.mark.parametrize("one", DIRECT, ids=lambda one: one.protocol.name)
def test_bad_reports_are_counted_and_the_good_kept(one: Task) -> None:
    """Wrong magic, version, task, length and range are counted by reason; the good reports are all there."""
    good = list(encode_many(one, answers_for(one, 50), source=SeededForTestsOnly(6)).wire())
    head, body = good[0][:19], good[0][19:]
    bad = [
        b"",
        b"DL",
        b"XX" + good[0][2:],
        b"DL\x02" + good[0][3:],
        b"DL\x01" + bytes(16) + body,
        head,
        head + body[:-1],
        head + body + b"\0",
    ]
    expected = Counter({"format": 3, "version": 1, "task": 1, "length": 3})
    outside = bytes(len(body) - 1) + b"\xff" if one.protocol.payload_bytes < 4 else b"\xff" * len(body)
    if one.protocol.name == "hash":
        outside = body[:-1] + b"\xff"
    if one.protocol.name not in ("sign",):
        outside = b"\xff" * len(body) if one.protocol.name != "hash" else outside
    if not one.protocol.find_valid(np.frombuffer(outside, dtype=np.uint8)[np.newaxis])[0]:
        bad.append(head + outside)
        expected["range"] += 1
    total = fresh(one)
    total.add_wire(bad[:4] + good + bad[4:], batch="a")
    assert total.rejected == expected and total.people == 50
    alone = fresh(one)
    alone.add_wire(good, batch="a")
    assert (alone.state == total.state).all()
    assert "set aside" in repr(total)


def test_bad_lines_and_columns() -> None:
    """Lines that are no reports, and Arrow columns of another width or with nulls, are counted too."""
    one = task()
    good = list(encode_many(one, [1, 2, 3]).lines())
    word = json.loads(good[0])
    lines = [
        "nonsense",
        "[]",
        json.dumps({**word, "more": 1}),
        json.dumps({**word, "discreet": True}),
        json.dumps({**word, "discreet": 2}),
        json.dumps({**word, "task": "00" * 16}),
        json.dumps({**word, "task": 5}),
        json.dumps({**word, "payload": "!!"}),
        json.dumps({**word, "payload": "AAAA"}),
        json.dumps({**word, "payload": base64.b64encode(b"\x0a").decode()}),
        "  ",
        *good,
    ]
    found = read_lines(one, lines)
    assert len(found) == 3
    assert found.rejected == Counter({"format": 6, "version": 1, "task": 1, "length": 1, "range": 1})
    wire = next(iter(encode_many(one, [1]).wire()))
    column = pa.array([wire, None, wire[:-1], wire], type=pa.binary())
    assert read_arrow(one, pa.table({"report": column})).rejected == Counter({"format": 1, "length": 1})
    fixed = pa.array([wire, b"DL\x01" + bytes(16) + b"\x01", wire[:-1] + b"\xff"], type=pa.binary(len(wire)))
    mixed = read_arrow(one, pa.table({"report": fixed}))
    assert len(mixed) == 1 and mixed.rejected == Counter({"task": 1, "range": 1})
    with pytest.raises(ParameterError):
        read_arrow(one, pa.table({"other": column}))


def test_unused_bits_and_set_sizes_are_checked() -> None:
    """A bitmap with a bit beyond the domain, or a set of the wrong size, could not have been sent."""
    bits, sets = task("unary", 13), task("subset", 13)
    assert not bits.protocol.find_valid(np.array([[0, 1]], dtype=np.uint8))[0]
    assert bits.protocol.find_valid(np.array([[255, 0b11111000]], dtype=np.uint8))[0]
    assert not sets.protocol.find_valid(np.array([[255, 0b11111000]], dtype=np.uint8))[0]


def test_longitudinal_tasks_need_a_person() -> None:
    """A task whose answers are memoised is not encoded without the person's memory."""
    for one in ALL:
        if one.values is not None:
            with pytest.raises(ParameterError, match="longitudinal"):
                encode(one, 1)
            with pytest.raises(ParameterError, match="longitudinal"):
                encode_many(one, [1])


def test_answers_of_every_integer_type() -> None:
    """Arrays of any integer type are read alike, and whole floats; what is out of range is unknown, never wrapped."""
    domain = Domain(size=10)
    for kind in (np.int8, np.uint8, np.int32, np.int64, np.uint64):
        assert domain.indices(np.array([0, 9, 10, 100], dtype=kind)).tolist() == [0, 9, -1, -1]
    assert domain.indices(np.array([2**64 - 1, 3], dtype=np.uint64)).tolist() == [-1, 3]
    assert domain.indices(np.array([-1, 3])).tolist() == [-1, 3]
    assert domain.indices([True, 1.0, 1.5, "1", None, np.int64(4)]).tolist() == [-1, 1, -1, -1, -1, 4]


def test_a_domain_too_large_to_count_is_refused() -> None:
    """An aggregator does not try to hold four billion counts."""
    with pytest.raises(ParameterError, match="too many"):
        Aggregator(task("hash", 2**32 - 1))
