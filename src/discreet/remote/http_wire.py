"""HTTP to a server, by the standard library alone.

The token goes to that one server and nowhere else: redirects are not followed, certificates are verified, and plain
HTTP is for this machine, unless the caller says otherwise. It is in no text that this module makes.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet.errors import UsageError
from discreet.remote.wire import ROOT, WireRequest, WireResponse

_FIX = 'Write for example connect("https://curator.example", token=...).'
# The longest line of a stream; a share of the work done is much shorter.
_MAX_LINE = 1 << 20
_GOOD = 200


class HttpWire:
    """Carries requests to one server, in the name of one token."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 60.0,
        certificate: str | Path | None = None,
        allow_http: bool = False,
    ) -> None:
        parts = _read_url(url)
        self._secure = parts.scheme == "https"
        self._host, self._port = str(parts.hostname), parts.port
        if not self._secure and not is_loopback(self._host) and not allow_http:
            raise UsageError(
                "The token would travel in the clear to another machine. Use https, or say allow_http=True where a "
                "tunnel protects the way. Nothing was sent."
            )
        self._root = parts.path.rstrip("/") + ROOT
        self._token, self._timeout = _check_token(token), timeout
        self._context = _make_context(certificate) if self._secure else None
        port = "" if self._port is None else f":{self._port}"
        self.address = f"{parts.scheme}://{self._host}{port}{parts.path.rstrip('/')}"

    def send(self, request: WireRequest) -> WireResponse:
        """One request over a connection of its own."""
        connection = self._connect()
        try:
            sent = {**request.list_headers(), **self._sign()}
            connection.request(request.method, self._root + request.path, request.payload, sent)
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return WireResponse(status=response.status, body=response.read(), headers=headers)
        finally:
            connection.close()

    def follow(self, path: str) -> Iterator[dict[str, Any]]:
        """The events of a stream until it ends; none where the server has no stream."""
        connection = self._connect()
        try:
            connection.request("GET", self._root + path, headers={"Accept": "text/event-stream", **self._sign()})
            response = connection.getresponse()
            name = ""
            while response.status == _GOOD and (line := response.readline(_MAX_LINE)):
                title, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(": ")
                if title == "event":
                    name = value
                elif title == "data":
                    yield {**_read_data(value), "event": name}
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._context)

    def _sign(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def __repr__(self) -> str:
        return f"HttpWire({self.address!r})"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "10.0.0.1", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _read_url(url: str) -> Any:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except (ValueError, AttributeError):
        good = False
    if not good or parts.query or parts.fragment:
        raise UsageError(f"This is not the address of a server. {_FIX} Nothing was sent.")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"An address holds no secrets: it is shown and kept in logs. {_FIX} Nothing was sent.")
    return parts


def _check_token(token: str) -> str:
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError("This is no token. Give the one that the owner made for you. Nothing was sent.")
    return token


def _make_context(certificate: str | Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if certificate is None else str(certificate))
    except (OSError, ssl.SSLError):
        raise UsageError("The certificate cannot be read. Give a file in PEM form. Nothing was sent.") from None


def _read_data(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
