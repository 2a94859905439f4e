"""The service under load, kills and company: nothing is overspent, handed out uncharged, or leaked."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import discreet
from tests.ledger import server as postgres
from tests.service.served import WARDS
from tests.service.test_kills import ask_in_vain
from tests.service.test_server import RunningServer, create, start_server

long = pytest.mark.long


def test_64_analysts_never_exceed_a_tight_cap(hospital: Path) -> None:
    """They race for what is left; what was accepted is within the budget, and the rest is refused without a charge."""
    secrets = [create(hospital, f"analyst {number}") for number in range(64)]
    found: list[tuple[int, Any]] = []
    with start_server(hospital) as server:

        def race(number: int) -> None:
            sql = f"SELECT COUNT(*) AS n FROM visits WHERE age > {number}"
            found.append(server.ask(secrets[number], "one", sql, epsilon="0.9"))

        threads = [threading.Thread(target=race, args=(number,)) for number in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    answered = [made for status, made in found if status == 200]
    refused = [made for status, made in found if status != 200]
    assert len(found) == 64 and {made["code"] for made in refused} == {"budget-exceeded"}
    assert not any(made["charged"] for made in refused)
    with discreet.open(hospital) as curator:
        assert len(curator.history()) == len(answered) >= 3
        assert all(entry.answered for entry in curator.history())
        assert curator.ledger.spent <= curator.budget.amount()


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=long)])
def test_a_soak_leaks_nothing(hospital: Path, count: int) -> None:
    """Mixed requests: the second half takes no more memory, descriptors or threads; charges are those answered."""
    secrets = [create(hospital, f"analyst {number}") for number in range(20)]
    with start_server(hospital) as server:
        charged = {number for number in range(count // 2) if _mix(server, secrets, number)}
        before = _measure(server.process.pid)
        charged |= {number for number in range(count // 2, count) if _mix(server, secrets, number)}
        after = _measure(server.process.pid)
    assert after["fds"] <= before["fds"] + 5 and after["threads"] <= before["threads"] + 5
    assert after["memory"] <= before["memory"] + 40_000 + 2 * count  # in KiB; the ledger's index grows with charges
    with discreet.open(hospital) as curator:
        assert {entry.charge.request for entry in curator.history()} == {f"r{number}" for number in charged}
        assert all(entry.answered for entry in curator.history())


def _mix(server: RunningServer, secrets: list[str], number: int) -> bool:
    """One request of a kind; whether it was charged."""
    secret = secrets[number % len(secrets)]
    below = "/api/v1/datasets/hospital"
    match number % 10:
        case 0:
            sql = f"SELECT COUNT(*) AS n FROM visits WHERE age > {number % 100} AND length_of_stay >= {number // 100}"
            status, made = server.ask(secret, f"r{number}", sql, epsilon="0.0001")
            return status == 200 and not made["replayed"]
        case 1:
            assert server.send(secret, "POST", f"{below}/preview", {"sql": WARDS, "epsilon": "0.1"})[0] == 200
        case 2:
            assert server.send(secret, "POST", f"{below}/preview", {"sql": "SELECT * FROM visits"})[0] == 422
        case 3:
            assert server.send("discreet_nobody", "GET", "/api/v1/datasets")[0] == 401
        case 4:
            assert server.ask(secret, f"r{number}", "SELECT COUNT(*) AS n FROM visits", epsilon="100")[0] == 403
        case 5:
            assert server.send(secret, "GET", "/api/v1/requests/nothing/events")[0] == 404
        case 6:
            assert server.send("", "GET", "/sign-in")[0] == 200
        case 7:
            assert server.send(secret, "GET", f"{below}/history?limit=3")[0] == 200
        case 8:
            assert server.send("", "GET", "/metrics")[0] == 200
        case _:
            assert server.send(secret, "GET", f"{below}/budget")[0] == 200
    return False


def _measure(pid: int) -> dict[str, int]:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
    )  # fmt: skip
    return {
        "fds": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": int(status["Threads"]),
        "memory": int(status["VmRSS"].split()[0]),
    }


@pytest.fixture
def two(hospital: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two codebooks of one dataset in two places, with one ledger in PostgreSQL."""
    if postgres.missing():
        pytest.skip(postgres.missing())
    text = hospital.read_text().replace(
        'name = "hospital"', f'name = "hospital"\nledger = "{postgres.server().address}"'
    )
    other = Path(shutil.copytree(hospital.parent, tmp_path / "other")) / "hospital.toml"
    for codebook in (hospital, other):
        codebook.write_text(text)
    return hospital, other


def test_one_of_two_servers_is_killed_and_the_other_goes_on(two: tuple[Path, Path]) -> None:
    """Under one ledger: the question that the dead one had charged is answered by the other, under that charge."""
    first, second = two
    for codebook in two:
        text = codebook.read_text()
        codebook.write_text(text.replace("[budget]", 'answer_after = "2s"\n[budget]', 1))
    ana = create(first, "ana")
    shutil.copy(first.with_suffix(".tokens"), second.with_suffix(".tokens"))
    with start_server(second) as other:
        with start_server(first) as server:
            seen: dict[str, Any] = {}
            asking = threading.Thread(target=ask_in_vain, args=(server, ana, "one", WARDS, seen))
            asking.start()
            server.wait_for_charge(ana, "one")
            server.process.kill()
            asking.join()
        status, made = other.ask(ana, "one", epsilon="0.0005")
        deadline = time.monotonic() + 120
        while status == 409 and time.monotonic() < deadline:  # until the lease of the dead server has ended
            time.sleep(1)
            status, made = other.ask(ana, "one", epsilon="0.0005")
        assert status == 200 and seen["one"]["rows"] in (None, made["rows"])
        _, _, body = other.send(ana, "GET", "/api/v1/datasets/hospital/history")
        assert [charge["answered"] for charge in json.loads(body)["charges"]] == [True]
