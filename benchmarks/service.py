"""What does the service add to a question? Latency and processor time over HTTP, against the curator in process.

    python benchmarks/service.py [--questions 60] [--json]

Questions are new ones, each charged once, asked in turn in process and over HTTP on one kept connection, on two copies
of the demo's dataset, after some that are not counted, because both load a part of the program with the first. So what
else the machine does slows down both. Then the same questions again, which the record answers: little work is done, so
what the service adds by itself is seen best there. Also the seconds from the start of a server until it listens.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import discreet
from discreet import demo
from discreet.curator import Curator
from discreet.service.roles import Role
from discreet.service.tokens import TokenStore, tokens_path_of

EPSILON = "0.001"
WARM = 5


def make_question(number: int) -> str:
    return f"SELECT ward, COUNT(*) AS n FROM visits WHERE age > {number} GROUP BY ward"  # noqa: S608  # our own number


def find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def read_seconds(pid: int) -> float:
    """User and system seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(codebook: Path, port: int) -> tuple[subprocess.Popen[bytes], float]:
    """A server, and the seconds until it answers."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "discreet.cli.main", "serve", str(codebook), "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return process, time.perf_counter() - begun
        except OSError:
            time.sleep(0.01)


class Asked:
    """Milliseconds of the same questions in process and over HTTP."""

    def __init__(self, curator: Curator, connection: http.client.HTTPConnection, secret: str) -> None:
        self._curator, self._connection, self._secret = curator, connection, secret
        self.inside: list[float] = []
        self.outside: list[float] = []
        self.own = 0.0
        # As the service does: in the main thread the curator would pay for being out of reach of interrupts.
        self._thread = ThreadPoolExecutor(1)

    def ask(self, number: int) -> None:
        """One question in both ways."""
        sql = make_question(number)
        cpu, begun = time.process_time(), time.perf_counter()
        self._thread.submit(self._ask_inside, sql, f"r{number}").result()
        self.inside.append(1000 * (time.perf_counter() - begun))
        self.own += time.process_time() - cpu
        body = json.dumps({"sql": sql, "epsilon": EPSILON})
        head = {"Authorization": f"Bearer {self._secret}", "Content-Type": "application/json"}
        begun = time.perf_counter()
        self._connection.request(
            "POST", "/api/v1/datasets/hospital/ask", body, {**head, "Idempotency-Key": f"r{number}"}
        )
        response = self._connection.getresponse()
        response.read()
        self.outside.append(1000 * (time.perf_counter() - begun))
        if response.status != 200:
            raise SystemExit(f"status {response.status}")

    def _ask_inside(self, sql: str, request: str) -> None:
        self._curator.ask(sql, epsilon=float(EPSILON), analyst="ana", request=request).to_dict()

    def find_added(self) -> float:
        """What HTTP adds to one question, in the middle."""
        return statistics.median(b - a for a, b in zip(self.inside, self.outside))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        here, there = (demo.write(Path(name) / each) for each in ("here", "there"))
        _, secret = TokenStore(tokens_path_of(there)).create(name="ana", role=Role.ANALYST)
        port = find_port()
        process, started = start(there, port)
        begun_with = read_seconds(process.pid)
        connection = http.client.HTTPConnection("127.0.0.1", port)
        try:
            with discreet.open(here) as curator:
                first, new, again = (Asked(curator, connection, secret) for _ in range(3))
                for number in range(-WARM, 0):  # what is loaded with the first question is behind both
                    first.ask(number)
                before = read_seconds(process.pid)
                for number in range(options.questions):
                    new.ask(number)
                theirs = read_seconds(process.pid) - before
                for number in range(options.questions):
                    again.ask(number)
        finally:
            process.kill()
            process.wait()
    found = {
        "start_seconds": started,
        "start_cpu_seconds": begun_with,
        "in_process_ms": statistics.median(new.inside),
        "over_http_ms": statistics.median(new.outside),
        "added_ms": new.find_added(),
        "latency_ratio": statistics.median(b / a for a, b in zip(new.inside, new.outside)),
        "cpu_in_process_ms": 1000 * new.own / options.questions,
        "cpu_over_http_ms": 1000 * theirs / options.questions,
        "cpu_added_ms": 1000 * (theirs - new.own) / options.questions,
        "cpu_ratio": theirs / new.own,
        "again_in_process_ms": statistics.median(again.inside),
        "again_over_http_ms": statistics.median(again.outside),
        "again_added_ms": again.find_added(),
    }
    print(json.dumps(found) if options.json else "\n".join(f"{name:<20}{value:10.3f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
