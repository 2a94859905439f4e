"""A server that is killed: nothing is handed out uncharged, and what can finish does so under the same charge."""

from __future__ import annotations

import http.client
import random
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.ledger.base_ledger import BaseLedger
from tests.service.forked import die_at, fork_server
from tests.service.test_server import ServerClient, create

EPSILON = "0.0005"


@pytest.mark.parametrize(
    ("moment", "left"),
    [
        ("before reserve", "nothing"),
        ("after reserve", "charged"),
        ("before claim", "charged"),
        ("after claim", "claimed"),
        ("before record_draw", "claimed"),
        ("after record_draw", "drawn"),
        ("before commit", "drawn"),
        ("after commit", "answered"),
    ],
)
def test_each_moment_of_a_kill(hospital: Path, moment: str, left: str) -> None:
    """One charge at most, and one draw for it; the same key ends as the moment allows, the second time as well."""
    secret = create(hospital, "ana")
    seen: dict[str, Any] = {}
    with fork_server(hospital, partial(die_at, moment)) as (server, _):
        ask_in_vain(server, secret, "one", "SELECT COUNT(*) AS n FROM visits", seen)
    assert seen["one"]["rows"] is None and find_end(hospital, "one") == left
    with fork_server(hospital) as (server, _):
        first, second = (server.ask(secret, "one", seen["one"]["sql"], EPSILON) for _ in range(2))
        check_end(first, left)
        check_end(second, left)
        assert left == "claimed" or first[1]["rows"] == second[1]["rows"]
    with discreet.open(hospital) as curator:
        assert [entry.answered for entry in curator.history()] == [left != "claimed"]
        assert isinstance(curator.ledger, BaseLedger)
        curator.ledger.scan()  # the whole log is as it should be


def check_end(found: tuple[int, Any], left: str) -> None:
    """What the same key gets, after a kill that left this on record."""
    status, made = found
    if left == "claimed":
        assert (status, made["code"], made["charged"]) == (409, "draw-lost", True)
    else:
        assert status == 200, made


def find_end(codebook: Path, request: str) -> str:
    """What a server left on record of a request."""
    with closing(sqlite3.connect(codebook.with_suffix(".ledger"))) as connection:
        query = "SELECT claimed, drawn, answered FROM reservations WHERE request = ?"
        row = connection.execute(query, (request,)).fetchone()
    if row is None:
        return "nothing"
    return ["charged", "claimed", "drawn", "answered"][sum(each is not None for each in row)]


@pytest.mark.parametrize("kills", [8, pytest.param(1000, marks=pytest.mark.long)])
def test_a_server_that_is_killed_hands_out_nothing_uncharged(hospital: Path, kills: int) -> None:
    """kill -9 at any moment of a question. What came through is on record, and the same key ends under one charge.

    A charge buys one draw: a server that is killed while noise is drawn has lost it. Then nothing came through, the
    charge stands, and the same key is told so. In every other case the same key has its answer.
    """
    secret = create(hospital, "ana")
    moments = random.Random(18)  # noqa: S311  # when to kill
    ends: Counter[str] = Counter()
    came, lost, took = 0, set(), 0.1
    discreet.open(hospital).close()  # the last look uses the same program as the servers, whatever is edited meanwhile
    for number in range(kills):
        key: str = f"kill-{number}"
        seen: dict[str, Any] = {}
        sql = f"SELECT COUNT(*) AS n FROM visits WHERE age > {number % 100} AND length_of_stay >= {number // 100}"
        with fork_server(hospital) as (server, kill):
            asking = threading.Thread(target=ask_in_vain, args=(server, secret, key, sql, seen))
            asking.start()
            time.sleep(moments.uniform(0, 1.2 * took))
            kill()
            asking.join()
        left, rows = find_end(hospital, key), seen[key]["rows"]
        assert rows is None or left == "answered"  # what came through is charged and on record
        ends[left], came = ends[left] + 1, came + (rows is not None)
        with fork_server(hospital) as (server, _):
            begun = time.monotonic()
            found = server.ask(secret, key, sql, EPSILON)
            took = time.monotonic() - begun if left == "nothing" else took
        check_end(found, left)
        assert rows is None or found[1]["rows"] == rows
        if left == "claimed":
            lost.add(key)
        print(f"{number + 1} kills, {came} answers came through, left on record: {dict(ends)}", flush=True)  # noqa: T201
    with discreet.open(hospital) as curator:
        history = curator.history()
        assert len({entry.charge.request for entry in history}) == len(history) == kills
        assert {entry.charge.request for entry in history if not entry.answered} == lost
        assert curator.ledger.spent <= curator.budget.amount()
        assert isinstance(curator.ledger, BaseLedger)
        curator.ledger.scan()  # the whole log is as it should be
    assert kills < 1000 or len(lost) <= kills // 5  # of a few, chance and a busy machine may lose any share


def ask_in_vain(server: ServerClient, secret: str, key: str, sql: str, seen: dict[str, Any]) -> None:
    rows = None
    try:
        status, made = server.ask(secret, key, sql, epsilon=EPSILON)
        assert status == 200
        rows = made["rows"]
    except (http.client.HTTPException, OSError):
        pass  # killed before the answer came through
    seen[key] = {"sql": sql, "rows": rows}
