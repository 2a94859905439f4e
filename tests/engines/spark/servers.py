"""Servers of Spark that tests start and end: a master with workers, and Spark Connect. Each is a process of its own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

PATIENCE = 180  # seconds until a server must be there


def find_spark_home() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A process with all that it starts; what it says goes to a file."""

    def __init__(self, folder: Path, name: str, *words: str) -> None:
        home = find_spark_home()
        self.log = folder / f"{name}.log"
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        with self.log.open("w") as log:
            self.process = subprocess.Popen(  # noqa: S603  # of PySpark itself
                [str(home / "bin" / "spark-class"), *words],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )

    def wait_for(self, pattern: str) -> re.Match[str]:
        """What the server says when it is ready."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = re.search(pattern, self.log.read_text())
            if found is not None:
                return found
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            time.sleep(0.2)
        raise AssertionError(f"{pattern!r} was not said: {self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        """End the process and all that it started, without a word to them."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def run_cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[Server]]]:
    """A master with workers of one core each: its address, and the workers."""
    master = Server(folder, "master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0",
                    "--webui-port", "0")  # fmt: skip  # pairs of words
    own: list[Server] = []
    try:
        address = master.wait_for(r"spark://127\.0\.0\.1:\d+")[0]
        words = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g"]
        words += ["--webui-port", "0", address]
        own += [Server(folder, f"worker{number}", *words) for number in range(workers)]
        for worker in own:
            worker.wait_for("Successfully registered with master")
        yield address, own
    finally:
        for server in (*own, master):
            server.kill()


@contextmanager
def run_connect(folder: Path) -> Iterator[str]:
    """The address of a server of Spark Connect."""
    port = find_free_port()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "Asia/Kolkata",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dderby.system.home={folder}",
    }
    listed = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    server = Server(folder, "connect", "org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", *listed,
                    "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")  # fmt: skip
    try:
        server.wait_for("Spark Connect server started")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()
