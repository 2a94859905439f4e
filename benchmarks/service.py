"""What does the service add to a question? Latency and processor time over HTTP, against the curator in process.

    python benchmarks/service.py [--questions 60] [--json]

Questions are new ones, each charged once, asked in turn in process and over HTTP on one kept connection, on two copies
of the demo's dataset, after some that are not counted, because both load a part of the program with the first. So what
else the machine does slows down both. Also the seconds from the start of a server until it listens.
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
from pathlib import Path

import discreet
from discreet import demo
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
        inside: list[float] = []
        outside: list[float] = []
        own, before = 0.0, begun_with
        try:
            with discreet.open(here) as curator:
                for number in range(-WARM, options.questions):
                    if number == 0:  # what is loaded with the first question is behind both
                        inside.clear()
                        outside.clear()
                        own, before = 0.0, read_seconds(process.pid)
                    sql = make_question(number)
                    cpu, begun = time.process_time(), time.perf_counter()
                    curator.ask(sql, epsilon=float(EPSILON), analyst="ana", request=f"r{number}")
                    inside.append(time.perf_counter() - begun)
                    own += time.process_time() - cpu
                    body = json.dumps({"sql": sql, "epsilon": EPSILON})
                    head = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
                    begun = time.perf_counter()
                    connection.request(
                        "POST", "/api/v1/datasets/hospital/ask", body, {**head, "Idempotency-Key": f"r{number}"}
                    )
                    response = connection.getresponse()
                    response.read()
                    outside.append(time.perf_counter() - begun)
                    if response.status != 200:
                        raise SystemExit(f"status {response.status}")
                theirs = read_seconds(process.pid) - before
        finally:
            process.kill()
            process.wait()
    found = {
        "start_seconds": started,
        "start_cpu_seconds": begun_with,
        "in_process_ms": 1000 * statistics.median(inside),
        "over_http_ms": 1000 * statistics.median(outside),
        "added_ms": 1000 * statistics.median(b - a for a, b in zip(inside, outside)),
        "latency_ratio": statistics.median(b / a for a, b in zip(inside, outside)),
        "cpu_in_process_ms": 1000 * own / options.questions,
        "cpu_over_http_ms": 1000 * theirs / options.questions,
        "cpu_added_ms": 1000 * (theirs - own) / options.questions,
        "cpu_ratio": theirs / own,
    }
    print(json.dumps(found) if options.json else "\n".join(f"{name:<20}{value:10.3f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
