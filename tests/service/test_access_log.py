"""The log of access holds what it says, shows every change, and cannot be made to fill the disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from discreet.errors import LedgerDamaged
from discreet.ledger.chain import Head
from discreet.service.access_log import MOST_A_MINUTE, AccessEvent, AccessKind, AccessLog
from tests.service.served import WARDS, Hospital

EVENT = AccessEvent(kind=AccessKind.REFUSED, route="x", status=403, code="forbidden", token="t", name="ana")  # noqa: S106  # an id


def write(path: Path, count: int = 4) -> tuple[AccessLog, Head]:
    log = AccessLog(path)
    for _ in range(count):
        log.record(EVENT)
    head = log.find_head()
    assert head is not None
    return log, head


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE lines SET line = replace(line, 'ana', 'ben') WHERE number = 1",
        "UPDATE lines SET line = replace(line, 'ana', 'ben') WHERE number = 3",
        "DELETE FROM lines WHERE number = 0",
        "DELETE FROM lines WHERE number = 2",
        "DELETE FROM lines WHERE number = 3",
        "DELETE FROM lines",
        "UPDATE lines SET number = number + 10",
    ],
)
def test_a_change_is_seen(tmp_path: Path, change: str) -> None:
    """In the middle by the chain alone, at the end by a head that was kept elsewhere."""
    log, head = write(tmp_path / "x.access")
    assert log.verify([head]) == 4
    with sqlite3.connect(tmp_path / "x.access") as connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(LedgerDamaged):
        log.verify([head])


def test_a_flood_is_counted_and_not_written(tmp_path: Path) -> None:
    """The next line of the same source says how many were left out; another source is not held up."""
    now = [0.0]
    log = AccessLog(tmp_path / "x.access", clock=lambda: now[0])
    for _ in range(MOST_A_MINUTE + 7):
        log.record(EVENT)
    assert log.verify() == MOST_A_MINUTE
    now[0] = 60.0
    log.record(EVENT)
    last = log.read()[-1]
    assert last["left_out"] == 7 and log.verify() == MOST_A_MINUTE + 1


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    """The refusal stays a refusal."""
    strange = b"no database at all, but some bytes " * 100
    (tmp_path / "x.access").write_bytes(strange)
    AccessLog(tmp_path / "x.access").record(EVENT)
    AccessLog(tmp_path / "nowhere" / "x.access").record(EVENT)
    assert (tmp_path / "x.access").read_bytes() == strange and not (tmp_path / "nowhere").exists()


def test_refusals_and_acts_are_logged_without_secrets(served: Hospital) -> None:
    """Who, where, which code; neither a token nor a question; the file is its owner's alone."""
    served.send("", "GET", "datasets", authorization="Bearer discreet_secret")
    served.send("ana", "GET", "datasets/hospital/tokens")
    served.ask("ana", "one", {"sql": WARDS.replace("ward", "wrd"), "epsilon": 1})
    served.ask("ana", "one", {"sql": WARDS, "epsilon": 100})
    mistake = {"sql": WARDS.replace("ward", "wrd"), "epsilon": 1}  # while somebody types: it has no line
    assert served.send("ana", "POST", "datasets/hospital/preview", mistake).status == 422
    served.send("olga", "POST", "datasets/hospital/tokens", {"name": "eva", "role": "analyst"})
    found = served.get("audit", "datasets/hospital/access")
    said = [(line["kind"], line["name"], line.get("code")) for line in found["lines"]]
    assert said == [
        ("refused", "", "unauthorized"),
        ("refused", "ana", "forbidden"),
        ("refused", "ana", "question"),
        ("refused", "ana", "budget-exceeded"),
        ("done", "olga", None),
    ]
    verified = served.send("audit", "POST", "datasets/hospital/access/verify", {"heads": [found["head"]]})
    assert verified.status == 200
    path = next(Path(served.dataset._codebook.parent).glob("*.access"))
    text = path.read_bytes()
    assert not any(secret.encode() in text for secret in [*served.secrets.values(), "discreet_secret", "wrd", "SELECT"])
    assert path.stat().st_mode & 0o077 == 0
