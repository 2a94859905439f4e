"""The protocol in bytes: wrong orders, wrong lengths, floods and noise. No crash, no leak, no charge."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.wire import frontend_messages as frontend
from discreet.wire.frontend_messages import ProtocolViolation
from discreet.wire.listener import WireLimits
from tests.service.served import Hospital
from tests.wire.serving import WARDS, OpenDoor, RawClient, open_door, read_fields

LIMITS = WireLimits(connections=40, for_a_token=3, sign_in_seconds=2, idle_seconds=1.5)


@pytest.fixture
def door(served: Hospital) -> Iterator[OpenDoor]:
    with open_door(served, LIMITS) as made:
        yield made


def sign_in(door: OpenDoor, **settings: str) -> RawClient:
    client = RawClient(door.port)
    messages = client.sign_in(door.hospital.secrets["ana"], **settings)
    assert messages[-1] == (b"Z", b"I")
    return client


def is_alive(door: OpenDoor) -> bool:
    """Whether somebody is served, once those who were sent away have left their places."""
    for _ in range(40):
        try:
            with psycopg.connect(door.write_dsn("ben")) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            time.sleep(0.25)
    return False


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.binary(min_size=1, max_size=1))
def test_any_bytes_are_a_message_or_a_violation(body: bytes, tag: bytes) -> None:
    """Nothing else is raised, whatever the bytes are."""
    for read in (
        lambda: frontend.read_start(body),
        lambda: frontend.read_message(tag, body),
        lambda: frontend.read_sasl(body, first=True),
    ):
        with suppress(ProtocolViolation):
            read()


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=20), st.lists(st.one_of(st.none(), st.binary(max_size=20)), max_size=5), st.data())
def test_messages_are_read_as_they_were_written(name: str, values: list[bytes | None], data: Any) -> None:
    """A Bind that is cut anywhere is a violation; whole, it says what was meant."""
    words = name.replace("\0", "").encode("utf-8", "replace").decode()
    body = b"\0" + words.encode() + b"\0" + struct.pack("!H", 0) + struct.pack("!H", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    body += struct.pack("!Hh", 1, 1)
    read = frontend.read_message(b"B", body)
    assert isinstance(read, frontend.BindPortal)
    assert (read.statement, read.values, read.results) == (words, tuple(values), (1,))
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(ProtocolViolation):
        frontend.read_message(b"B", body[:cut])


def test_bytes_that_are_no_client_end_the_connection(door: OpenDoor) -> None:
    """Noise, HTTP, TLS without a request, huge and tiny lengths, and old protocols, before anybody has signed in."""
    noise = random.Random(1)  # noqa: S311  # a test
    first = [
        b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", struct.pack("!II", 8, 131072),
        struct.pack("!I", 0xFFFFFFFF), struct.pack("!I", 4), struct.pack("!II", 9, 196608) + b"u",
        struct.pack("!II", 8, 80877103) * 4, struct.pack("!II", 8, 80877104) + b"\0" * 8,
        *(noise.randbytes(noise.randrange(1, 60)) for _ in range(20)),
    ]  # fmt: skip
    for data in first:
        client = RawClient(door.port)
        client.socket.sendall(data)
        client.socket.shutdown(1)
        found = client.read_until(b"E") if data[:1] == b"\0" else []
        assert all(b"Traceback" not in body for _, body in found)
        client.close()
    assert is_alive(door) and door.count_charges() == 0


def test_messages_before_a_token_was_shown_do_nothing(door: OpenDoor) -> None:
    """A question instead of a proof, a proof of nothing, and passwords in the clear: one refusal."""
    for tag, body in (
        (b"Q", WARDS.encode() + b"\0"), (b"p", door.hospital.secrets["ana"].encode() + b"\0"),
        (b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", 3) + b"n,,"), (b"p", b"PLAIN\0" + struct.pack("!i", 0)),
        (b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", 2**31 - 1)), (b"p", b"SCRAM-SHA-256-PLUS\0\xff\xff\xff\xff"),
    ):  # fmt: skip
        client = RawClient(door.port)
        client.start(user="ana", database="hospital")
        assert client.read()[0] == b"R"
        client.send(tag, body)
        answer = client.read_until(b"E")[-1]
        assert answer[0] == b"E" and read_fields(answer[1])["C"] in ("28P01", "08P01")
        assert client.read() == (b"", b"")
    assert door.count_charges() == 0


def test_a_wrong_proof_is_refused_like_an_unknown_name(door: OpenDoor) -> None:
    """Every failure has the same words, so that names cannot be tried out."""
    said = []
    for user in ("ana", "nobody", "", "ana\u00e9"):
        client = RawClient(door.port)
        messages = client.sign_in("discreet_wrong", user=user)
        said.append(messages[-1])
    assert len(set(said)) == 1 and read_fields(said[0][1])["C"] == "28P01"


@pytest.mark.parametrize("data", [b"", b"\0\0\0\x55", struct.pack("!II", 20, 196608) + b"user"])
def test_who_says_nothing_is_sent_away(door: OpenDoor, data: bytes) -> None:
    """The time to sign in is short."""
    client = RawClient(door.port)
    client.socket.sendall(data)
    begun = time.monotonic()
    client.read_until(b"E")
    assert client.read() == (b"", b"") and time.monotonic() - begun < 15


def test_a_session_is_robust(door: OpenDoor) -> None:
    """Wrong names, wrong orders and wrong values are errors; the session goes on, and nothing is charged."""
    client = sign_in(door, options="-c discreet.epsilon=0.1")
    wrong = [
        (b"E", b"nobody\0\0\0\0\0"), (b"B", b"\0nobody\0\0\0\0\0\0\0"), (b"D", b"Snobody\0"), (b"D", b"Pnobody\0"),
        (b"P", b"\0SELECT 1; SELECT 2\0\0\0"), (b"B", b"\0q\0\0\0\0\x01\0\0\0\x01x\0\0"),
    ]  # fmt: skip
    for tag, body in wrong:
        client.send(tag, body)
        client.send(b"E", b"\0\0\0\0\0")  # passed over until Sync
        client.send(b"S")
        messages = client.read_until(b"Z")
        assert [each[0] for each in messages] == [b"E", b"Z"], (tag, messages)
    assert [each[0] for each in client.query("")] == [b"I", b"Z"]
    client.send(b"F", b"\0\0\0\0")
    assert client.read_until(b"Z")[0][0] == b"E"
    client.send(b"d", b"copied")
    found = client.query("SELECT 'unclosed")
    assert found[0][0] == b"E"
    for text in ("SELECT " + "(" * 5000, "SELECT " + "x" * 50_000, "/* " * 3000, "$$" * 500, ";" * 5000):
        assert client.query(text)[-1] == (b"Z", b"I")
    client.send(b"?", b"what")
    assert read_fields(client.read_until(b"E")[-1][1])["C"] == "08P01" and client.read() == (b"", b"")
    assert door.count_charges() == 0 and is_alive(door)


def test_too_large_a_message_is_not_read(door: OpenDoor) -> None:
    """Its length alone ends the connection."""
    client = sign_in(door)
    client.socket.sendall(b"Q" + struct.pack("!I", 1 << 30))
    assert client.read_until(b"E")[-1][0] == b"E" and client.read() == (b"", b"")


def test_describe_costs_nothing_and_rows_come_in_parts(door: OpenDoor) -> None:
    """Names and types of all columns before the question is asked; then three rows at a time, under one charge."""
    client = sign_in(door, options="-c discreet.epsilon=0.1")
    text = b"SELECT ward, AVG(cost) AS c, MAX(arrival) AS m, COUNT(*) AS n FROM visits WHERE age > $1 GROUP BY ward"
    client.send(b"P", b"q\0" + text + b"\0" + struct.pack("!HI", 1, 23))
    client.send(b"D", b"Sq\0")
    client.send(b"B", b"\0q\0" + struct.pack("!Hh", 1, 1) + struct.pack("!HiiHh", 1, 4, 50, 1, 1))
    client.send(b"D", b"P\0")
    client.send(b"S")
    described = dict(client.read_until(b"Z"))
    assert described[b"t"] == struct.pack("!HI", 1, 23)
    assert struct.unpack("!H", described[b"T"][:2]) == (8,)
    assert [name in described[b"T"] for name in (b"c_low\0", b"c_high\0", b"n_high\0")] == [True] * 3
    assert door.count_charges() == 0
    client.send(b"B", b"\0q\0" + struct.pack("!Hh", 1, 1) + struct.pack("!HiiHh", 1, 4, 50, 1, 1))
    for _ in range(4):
        client.send(b"E", b"\0" + struct.pack("!i", 3))
    client.send(b"S")
    tags = b"".join(tag for tag, _ in client.read_until(b"Z"))
    assert tags.replace(b"N", b"") == b"2DDDsDDDsDDCCZ" and door.count_charges() == 1


def test_describing_a_fetch_asks_nothing(door: OpenDoor) -> None:
    """The columns of a cursor are told before its first FETCH, and cost nothing either."""
    client = sign_in(door, options="-c discreet.epsilon=0.1")
    client.query(f"BEGIN; DECLARE wards CURSOR FOR {WARDS}")
    client.send(b"P", b"f\0FETCH 3 FROM wards\0" + struct.pack("!H", 0))
    client.send(b"B", b"\0f\0" + struct.pack("!HHH", 0, 0, 0))
    client.send(b"D", b"P\0")
    client.send(b"S")
    assert b"n_high\0" in dict(client.read_until(b"Z"))[b"T"] and door.count_charges() == 0
    client.send(b"B", b"\0f\0" + struct.pack("!HHH", 0, 0, 0))
    client.send(b"E", b"\0" + struct.pack("!i", 0))
    client.send(b"S")
    tags = b"".join(tag for tag, _ in client.read_until(b"Z"))
    assert tags.count(b"D") == 3 and door.count_charges() == 1


def test_places_are_few_and_the_idle_leave_them(door: OpenDoor) -> None:
    """A token has so many connections; who says nothing for too long is told so."""
    clients = [sign_in(door) for _ in range(3)]
    fourth = RawClient(door.port)
    assert read_fields(fourth.sign_in(door.hospital.secrets["ana"])[-1][1])["C"] == "53300"
    assert is_alive(door)  # others are not in the way
    assert read_fields(clients[0].read_until(b"E")[-1][1])["C"] == "57P05"
    time.sleep(0.2)
    assert sign_in(door).query("SELECT 1")[-1] == (b"Z", b"I")


@pytest.mark.parametrize("far", ["nothing", "half", "named"])
def test_who_is_too_slow_to_sign_in_is_told(door: OpenDoor, far: str) -> None:
    """Whoever says nothing, half of a first message, or a name and no proof: the same words, and the place is free."""
    client = RawClient(door.port)
    if far == "half":
        client.socket.sendall(struct.pack("!I", 80))
    if far == "named":
        client.start(user="ana", database="hospital")
    begun = time.monotonic()
    last = read_fields(client.read_until(b"E")[-1][1])
    assert last["C"] == "57014" and "longer than 2 seconds" in last["M"] and last["S"] == "FATAL"
    assert 1 < time.monotonic() - begun < 15 and client.read() == (b"", b"")
    assert is_alive(door) and door.count_charges() == 0


def test_a_flood_of_connections_ends(door: OpenDoor) -> None:
    """More than there are places: those above are refused, and later everybody is served again."""
    clients = [RawClient(door.port) for _ in range(60)]
    time.sleep(2.6)
    for client in clients:
        client.close()
    time.sleep(0.3)
    assert is_alive(door) and door.count_charges() == 0


def test_only_the_secret_cancels(door: OpenDoor) -> None:
    """A cancel request with another secret, or of nobody, says and does nothing."""
    for body in (struct.pack("!II", 80877102, 1) + b"aaaa", struct.pack("!II", 80877102, 1)):
        client = RawClient(door.port)
        client.socket.sendall(struct.pack("!I", len(body) + 4) + body)
        client.read_until(b"E")
        assert client.read() == (b"", b"")
    assert is_alive(door)


def test_a_newer_protocol_is_spoken_down(door: OpenDoor) -> None:
    """Version 3.2 and options that nobody knows are answered with what is spoken here."""
    client = RawClient(door.port)
    words = b"user\0ana\0_pq_.wonder\x001\0\0"
    client.socket.sendall(struct.pack("!II", len(words) + 8, 196610) + words)
    tag, body = client.read()
    assert tag == b"v" and body == struct.pack("!II", 0, 1) + b"_pq_.wonder\0"
    assert client.read()[0] == b"R"
