"""A door on a free port of this machine, in a thread of its own, and a client that speaks the protocol in bytes."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.wire.listener import DEFAULT_LIMITS, PostgresDoor, WireAddress, WireLimits
from tests.service.served import Hospital

WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@dataclass(frozen=True)
class OpenDoor:
    """A door that serves."""

    hospital: Hospital
    port: int

    def write_dsn(self, who: str = "ana", **more: str) -> str:
        """The connection string of somebody."""
        words = {"host": "127.0.0.1", "port": str(self.port), "dbname": "hospital", "user": who}
        words |= {"password": self.hospital.secrets.get(who, "discreet_none"), **more}
        return " ".join(f"{name}='{value}'" for name, value in words.items() if value)

    def count_charges(self) -> int:
        """How many charges are on record."""
        return len(self.hospital.dataset.curator.history())


@contextmanager
def open_door(hospital: Hospital, limits: WireLimits = DEFAULT_LIMITS, **address: Any) -> Iterator[OpenDoor]:
    """Serve a hospital to clients of PostgreSQL until the end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ready, stop = threading.Event(), threading.Event()
    failed: list[BaseException] = []

    async def serve(door: PostgresDoor) -> None:
        async with door.open():
            ready.set()
            while not stop.is_set():
                await asyncio.sleep(0.02)

    def run() -> None:
        try:
            with ExitStack() as stack:
                door = PostgresDoor(WireAddress(port=port, **address), limits)
                door.listen(hospital.service, stack)
                asyncio.run(serve(door))
        except BaseException as error:
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(30)
    try:
        if failed:
            raise failed[0]
        yield OpenDoor(hospital, port)
    finally:
        while _OPEN:
            _OPEN.pop().close()
        stop.set()
        thread.join(60)
        assert not thread.is_alive()


# Clients of bytes, which are closed with the door.
_OPEN: list[RawClient] = []


class RawClient:
    """A client of bytes, to send what no driver sends."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        _OPEN.append(self)

    def close(self) -> None:
        self.socket.close()

    def start(self, **settings: str) -> None:
        """The first message."""
        words = b"".join(f"{name}\0{value}\0".encode() for name, value in settings.items()) + b"\0"
        self.socket.sendall(struct.pack("!II", len(words) + 8, 196608) + words)

    def send(self, tag: bytes, body: bytes = b"") -> None:
        """One message."""
        self.socket.sendall(tag + struct.pack("!I", len(body) + 4) + body)

    def read(self) -> tuple[bytes, bytes]:
        """The next message; two empty ones at the end of the connection."""
        head = self._read_exactly(5)
        if len(head) < 5:
            return b"", b""
        return head[:1], self._read_exactly(struct.unpack("!I", head[1:])[0] - 4)

    def _read_exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            try:
                part = self.socket.recv(count - len(found))
            except ConnectionError:
                return b""
            if not part:
                return b""
            found += part
        return found

    def read_until(self, *tags: bytes) -> list[tuple[bytes, bytes]]:
        """All messages up to one of these, or the end."""
        found = []
        while True:
            message = self.read()
            found.append(message)
            if message[0] in (*tags, b""):
                return found

    def sign_in(self, secret: str, user: str = "ana", **settings: str) -> list[tuple[bytes, bytes]]:
        """Show a token by SCRAM; the messages up to the first ReadyForQuery, or the refusal."""
        self.start(user=user, database="hospital", **settings)
        assert self.read()[0] == b"R"
        bare = "n=,r=clientnonce"
        first = f"n,,{bare}".encode()
        self.send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first)
        tag, body = self.read()
        assert tag == b"R", body
        said = body[4:].decode()
        fields = dict(part.split("=", 1) for part in said.split(","))
        last = f"c=biws,r={fields['r']}"
        salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        signed = f"{bare},{said},{last}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature))).decode()
        self.send(b"p", f"{last},p={proof}".encode())
        return self.read_until(b"Z", b"E")

    def query(self, text: str) -> list[tuple[bytes, bytes]]:
        """A simple query."""
        self.send(b"Q", text.encode() + b"\0")
        return self.read_until(b"Z")


def read_fields(body: bytes) -> dict[str, str]:
    """The fields of an ERROR or NOTICE."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of this machine, signed by itself."""
    import datetime as dt
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    alternatives = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=10))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, private
