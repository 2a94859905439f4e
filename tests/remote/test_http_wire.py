"""HTTP itself: real sockets, progress, interrupts, and a process that has neither an engine nor a reader of SQL."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import discreet
from discreet.errors import ServiceRefused, ServiceUnreachable, UsageError
from discreet.remote.http_wire import HttpWire
from tests.service.served import WARDS
from tests.service.test_server import create, start_server

# Everything that a light installation does not have.
_LIGHT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"duckdb", "sqlglot", "scipy", "typer", "rich", "starlette", "uvicorn", "pandas"}:
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
import discreet
curator = discreet.connect(sys.argv[1])
chain = curator.table("visits").where(discreet.col("age") > 30).group_by("ward").agg(n=discreet.count())
print(chain.preview(share=0.01))
answer = chain.ask(share=0.01)
assert answer.table.num_rows == 8 and "<table" in answer._repr_html_() and answer["n_low"]
print(curator.ask("SELECT AVG(cost) AS c FROM visits", share=0.01), curator.history(), curator.remaining)
import discreet.dbapi
cursor = discreet.dbapi.connect(sys.argv[1], share=0.01).cursor()
assert len(cursor.execute("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward").fetchall()) == 8
assert not {"duckdb", "sqlglot"} & set(sys.modules)
"""


def test_a_day_with_a_server(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One server: a light process, progress, a wrong token, a server that is gone."""
    secret = create(hospital, "ana")
    with start_server(hospital) as server:
        address = f"http://127.0.0.1:{server.port}"
        words = {**os.environ, "DISCREET_TOKEN": secret}
        light = [sys.executable, "-c", _LIGHT, address]
        done = subprocess.run(light, env=words, capture_output=True, text=True, check=False)  # noqa: S603  # our own
        assert done.returncode == 0, done.stderr
        monkeypatch.setenv("DISCREET_TOKEN", secret)
        curator = discreet.connect(address, dataset="hospital")
        assert secret not in repr(curator) and secret not in str(vars(curator))
        shares: list[float] = []
        assert len(curator.ask(WARDS, epsilon=0.2, watch=shares.append)) == 8
        assert shares == sorted(shares)
        with pytest.raises(UsageError, match="does not open 'other'"):
            discreet.connect(address, dataset="other")
        with pytest.raises(ServiceRefused) as refused:
            discreet.connect(address, token="discreet_wrong")  # noqa: S106  # no token
        assert refused.value.refusal == "unauthorized" and "discreet_wrong" not in str(refused.value)
    with pytest.raises(ServiceUnreachable) as gone:
        discreet.connect(address, tries=2)
    assert secret not in str(gone.value)


def test_an_interrupt_ends_the_question_there(hospital: Path, interruptible: None) -> None:
    """ctrl-C while it waits: the server is told, the note names the request, and the same request goes on."""
    secret = create(hospital, "ana")
    with start_server(hospital) as server:
        curator = discreet.connect(f"http://127.0.0.1:{server.port}", token=secret)
        sent: list[Any] = []
        wire = curator._requests.wire
        real = wire.send

        def listen(request: Any) -> Any:
            sent.append(request)
            if request.key is not None:
                threading.Timer(0, os.kill, (os.getpid(), signal.SIGINT)).start()
                time.sleep(5)
            return real(request)

        wire.send = listen  # type: ignore[method-assign]  # so that the interrupt comes while it waits
        with pytest.raises(KeyboardInterrupt) as ended:
            curator.ask(WARDS, share=0.01, request="mine")
        assert sent[-1].path == "requests/mine/cancel" and "request='mine'" in str(ended.value.__notes__)
        wire.send = real  # type: ignore[method-assign]  # as it was
        assert len(curator.ask(WARDS, share=0.01, request="mine")) == 8


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of this machine that nobody else vouches for, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(secret)
    return paths


def test_certificates_are_verified(hospital: Path, tmp_path: Path) -> None:
    """A server that this machine does not trust gets no token; with its certificate it is asked."""
    secret = create(hospital, "ana")
    certificate, key = make_certificate(tmp_path)
    with start_server(hospital, "--certificate", str(certificate), "--key", str(key)) as server:
        address = f"https://127.0.0.1:{server.port}"
        with pytest.raises(ServiceUnreachable, match="does not trust"):
            discreet.connect(address, token=secret)
        assert "401" not in server.log.read_text()
        curator = discreet.connect(address, token=secret, certificate=certificate)
        assert curator.preview(WARDS, share=0.01).fits
        with pytest.raises(ServiceUnreachable, match="No answer came"):
            discreet.connect(address.replace("https", "http"), token=secret, tries=1)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org",
        "ftp://127.0.0.1",
        "curator",
        "",
        "https://u:p@example.org",
        "https://h/?a=1",
        "http://10.0.0.1:80",
    ],
)
def test_addresses_that_are_refused(url: str) -> None:
    """Tokens go to no other machine in the clear, and are in no address."""
    with pytest.raises(UsageError, match="Nothing was sent"):
        HttpWire(url, "discreet_x")


def test_what_is_said_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain HTTP by one's own word; a token by its look; certificates are verified."""
    monkeypatch.delenv("DISCREET_TOKEN", raising=False)
    assert HttpWire("http://10.0.0.1", "discreet_x", allow_http=True).address == "http://10.0.0.1"
    for token in ("with space", "line\nbreak", "ümlaut"):
        with pytest.raises(UsageError, match="no token"):
            HttpWire("http://127.0.0.1", token)
    with pytest.raises(UsageError, match="DISCREET_TOKEN"):
        discreet.connect("http://127.0.0.1")
    context = HttpWire("https://example.org", "discreet_x")._context
    assert context is not None and context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    with pytest.raises(UsageError, match="certificate"):
        HttpWire("https://example.org", "discreet_x", certificate="/nowhere.pem")
