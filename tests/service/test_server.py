"""The running server on loopback: real sockets, signals and kills."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.errors import UsageError
from discreet.service.app import MAX_BODY, SECURITY_HEADERS
from discreet.service.roles import Role
from discreet.service.server import ServerAddress, listen_at
from discreet.service.tokens import TokenStore, tokens_path_of
from tests.cli.commands import Run
from tests.service.served import WARDS

SLOW = 'answer_after = "2s"\n'


@dataclass(frozen=True)
class ServerClient:
    """Requests to a server at a port of this machine."""

    port: int

    def send(self, secret: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
        """Status, headers and body of one request."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= {"Authorization": f"Bearer {secret}"} if secret else {}
        sent |= {} if body is None else {"Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body if body is None else json.dumps(body), sent)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def ask(self, secret: str, key: str, sql: str = WARDS, epsilon: str = "0.1") -> tuple[int, Any]:
        """Ask; the status and the document."""
        body = {"sql": sql, "epsilon": epsilon}
        path = "/api/v1/datasets/hospital/ask"
        status, _, made = self.send(secret, "POST", path, body, Idempotency_Key=key)
        return status, json.loads(made)

    def wait_for_charge(self, secret: str, key: str) -> None:
        """Wait until a request is on record as charged."""
        deadline = time.monotonic() + 60
        while True:
            status, _, body = self.send(secret, "GET", f"/api/v1/requests/{key}")
            if status == 200 and json.loads(body)["charged"]:
                return
            assert time.monotonic() < deadline


@dataclass(frozen=True)
class RunningServer(ServerClient):
    """A server in a process of its own."""

    process: subprocess.Popen[bytes]
    log: Path
    announced: str
    """What it said before it began to serve."""


@contextmanager
def start_server(codebook: Path | None, *more: str, folder: Path | None = None) -> Iterator[RunningServer]:
    """Start a server, wait for its word, and end it in any case. Without a codebook its log is in the folder."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place = folder if codebook is None else codebook.parent
    assert place is not None
    log = place / "server.log"
    books = [] if codebook is None else [str(codebook)]
    command = [sys.executable, "-m", "discreet.cli.main", "serve", *books, "--port", str(port), *more]
    words = {**os.environ, "DISCREET_LINKS": "print"}
    with log.open("ab") as file, subprocess.Popen(command, stderr=subprocess.PIPE, env=words) as process:  # noqa: S603  # ours
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), True)
        seen = b""
        while b"ctrl-C stops" not in seen:
            assert select.select([process.stderr], [], [], 60)[0]
            part = os.read(process.stderr.fileno(), 4096)
            assert part, seen
            seen += part
        pump = threading.Thread(target=_copy, args=(process.stderr.fileno(), file.fileno()))
        pump.start()
        try:
            yield RunningServer(port, process, log, seen.decode())
        finally:
            process.kill()
            process.wait()
            pump.join()


def _copy(source: int, target: int) -> None:
    while part := os.read(source, 65536):
        os.write(target, part)


def create(codebook: Path, name: str, role: Role = Role.ANALYST) -> str:
    return TokenStore(tokens_path_of(codebook)).create(name=name, role=role)[1]


def test_a_day_of_a_server(hospital: Path, run: Run) -> None:
    """Answers, headers, limits, revocation and the log, on one server."""
    ana, olga = create(hospital, "ana"), create(hospital, "olga", Role.OWNER)
    with start_server(hospital) as server:
        status, answer = server.ask(ana, "one")
        assert status == 200 and not answer["replayed"]
        assert server.ask(ana, "one")[1]["rows"] == answer["rows"]
        status, headers, rows = server.send(ana, "GET", "/api/v1/requests/one", Accept="text/csv")
        assert headers["Content-Type"] == "text/csv" and rows.startswith(b'"ward","n"')
        status, headers, words = server.send(ana, "GET", "/api/v1/requests/one/events")
        assert headers["Content-Type"] == "text/event-stream" and words.startswith(b"event: done\ndata: ")
        assert server.send(ana, "HEAD", "/api/v1/requests/one/events")[2] == b""
        _check_progress(server, ana)
        _check_headers(server, ana)
        _check_large_bodies(server, ana)
        _check_lengths(server, ana)
        _check_slow_clients(server, ana)
        assert run("token", "revoke", hospital, "ana")[0] == 0
        assert server.ask(ana, "two")[0] == 401
        assert server.send(olga, "GET", "/api/v1/datasets")[0] == 200
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)
    log = server.log.read_text()
    assert "POST datasets/{dataset}/ask 200" in log and " 401" in log
    for secret in (ana, olga, "SELECT", "ward", "127.0.0.1"):
        assert secret not in log


def _check_progress(server: RunningServer, secret: str) -> None:
    """A question that nobody waits for is told about until its end, on one connection."""
    body = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE age > 7", "epsilon": "0.01"}
    path = "/api/v1/datasets/hospital/ask"
    status, headers, _ = server.send(secret, "POST", path, body, Idempotency_Key="later", Prefer="respond-async")
    assert (status, headers["Location"]) == (202, "/api/v1/requests/later")
    status, _, words = server.send(secret, "GET", f"{headers['Location']}/events")
    assert status == 200 and words.endswith(b'event: done\ndata: {"state": "answered"}\n\n')
    assert json.loads(server.send(secret, "GET", headers["Location"])[2])["answered"]


def _check_headers(server: RunningServer, secret: str) -> None:
    """Every response has them, also refusals of every kind."""
    requests = [
        ("GET", "/healthz"),
        ("POST", "/healthz"),
        ("GET", "/api/v1/datasets"),
        ("GET", "/api/"),
        ("BREW", "/api/v1/x"),
        ("TRACE", "/openapi.json"),
    ]
    requests += [
        ("GET", "/api/v1/datasets/hospital/ask"),
        ("HEAD", "/api/v1/datasets"),
        ("OPTIONS", "/api/v1/datasets"),
    ]
    for who in (secret, ""):
        for method, path in requests:
            status, headers, _ = server.send(who, method, path)
            assert status < 500 and (status != 405 or headers["Allow"])
            assert [name for name, value in SECURITY_HEADERS.items() if headers[name] != value] == [], (method, path)
            assert not [name for name in headers if name.lower().startswith(("access-control", "server", "set-cookie"))]


def _check_large_bodies(server: RunningServer, secret: str) -> None:
    """A body that is too large is refused, whether it says so or comes in parts."""
    path = "/api/v1/datasets/hospital/preview"
    head = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    for more in ({"Content-Length": str(MAX_BODY + 1)}, {"Content-Length": "9" * 30}):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.putrequest("POST", path)
        for name, value in {**head, **more}.items():
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.getresponse().status in (400, 413)
        connection.close()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    parts = (b" " * (1 << 16) for _ in range((MAX_BODY >> 16) + 1))
    connection.request("POST", path, parts, head, encode_chunked=True)
    response = connection.getresponse()
    assert response.status == 413 and json.loads(response.read())["code"] == "too-large"
    connection.close()


def _check_lengths(server: RunningServer, secret: str) -> None:
    """A request that says twice how long it is ends the connection: nothing is read as a second one."""
    head = f"Host: x\r\nAuthorization: Bearer {secret}\r\nContent-Type: application/json\r\n"
    second = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    for lengths, path in (
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", "/api/v1/datasets/hospital/preview"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", "/healthz"),
        ("Content-Length: 5\r\nContent-Length: 6", "/api/v1/datasets"),
        ("Transfer-Encoding: gzip, chunked", "/api/v1/datasets"),
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
            client.sendall(f"POST {path} HTTP/1.1\r\n{head}{lengths}\r\n\r\n0\r\n\r\n{second}".encode())
            answered = b""
            while part := client.recv(65536):
                answered += part
        assert answered.startswith(b"HTTP/1.1 400 ") and answered.count(b"HTTP/1.1") == 1 and b"ok" not in answered


def _check_slow_clients(server: RunningServer, secret: str) -> None:
    """Clients that stop in the middle of a request hold nobody up."""
    start = f"POST /api/v1/datasets/hospital/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n"
    slow = []
    for _ in range(200):
        client = socket.create_connection(("127.0.0.1", server.port))
        client.sendall(f"{start}Content-Length: 100\r\n\r\n{{".encode())
        slow.append(client)
    assert server.send(secret, "GET", "/api/v1/datasets")[0] == 200
    for client in slow:
        client.close()


def test_a_server_that_is_told_to_stop_finishes_what_runs(hospital: Path) -> None:
    secret = create(hospital, "ana")
    _slow_down(hospital)
    found: list[tuple[int, Any]] = []
    took: list[float] = []

    def ask() -> None:
        begun = time.monotonic()
        found.append(server.ask(secret, "one"))
        took.append(time.monotonic() - begun)

    with start_server(hospital, "--behind-proxy") as server:
        # Behind a proxy browsers come by TLS, and are told to stay there; this is in every response.
        for path in ("/healthz", "/codebook.schema.json", "/api/v1/datasets", "/sign-in", "/nothing"):
            assert server.send("", "GET", path)[1]["Strict-Transport-Security"] == "max-age=31536000"
        schema = json.loads(server.send("", "GET", "/codebook.schema.json")[2])
        assert schema["title"] and "budget" in schema["properties"]
        asking = threading.Thread(target=ask)
        asking.start()
        server.wait_for_charge(secret, "one")
        server.process.send_signal(signal.SIGTERM)
        asking.join()
        server.process.wait(60)
    assert found[0][0] == 200 and took[0] >= 2  # answers are held to the raster over the wire, too
    with discreet.open(hospital) as curator:
        assert [entry.answered for entry in curator.history()] == [True]


def test_a_server_that_is_killed_goes_on_under_the_same_charge(hospital: Path) -> None:
    secret = create(hospital, "ana")
    _slow_down(hospital)

    def ask() -> None:
        with pytest.raises((http.client.HTTPException, OSError)):
            server.ask(secret, "one")

    with start_server(hospital) as server:
        asking = threading.Thread(target=ask)
        asking.start()
        server.wait_for_charge(secret, "one")
        server.process.kill()
        asking.join()
    with start_server(hospital) as server:
        status, _ = server.ask(secret, "one")
        assert status == 200
    with discreet.open(hospital) as curator:
        assert [entry.answered for entry in curator.history()] == [True]


def _slow_down(codebook: Path) -> None:
    text = codebook.read_text()
    codebook.write_text(text.replace("[budget]", f"{SLOW}[budget]", 1))


def test_a_response_is_not_held_back_by_the_system() -> None:
    """Connections send at once what is written: head and body of a response would come 40 ms apart otherwise."""
    with listen_at("127.0.0.1", 0, 1) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])  # noqa: S104  # refused
def test_tokens_do_not_travel_in_the_clear(host: str) -> None:
    with pytest.raises(UsageError, match="in the clear"):
        ServerAddress(host=host)
    assert ServerAddress(host=host, behind_proxy=True).certificate is None
    with pytest.raises(UsageError, match="come together"):
        ServerAddress(host=host, certificate=Path("c.pem"))


def test_a_port_that_is_taken_is_told(hospital: Path, run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, err = run("serve", hospital, "--port", taken.getsockname()[1])
    assert code == 2 and "cannot be used" in err


def test_a_dataset_is_served_once(hospital: Path, run: Run) -> None:
    code, _, err = run("serve", hospital, hospital)
    assert code == 2 and "Two codebooks" in err
