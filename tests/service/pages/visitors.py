"""Browsers without a screen: they keep a cookie, send forms, and read pages."""

from __future__ import annotations

import html
import http.client
import re
from dataclasses import dataclass, field
from urllib.parse import urlencode

_KEY = re.compile(r'name="form_key" value="([0-9a-f]{64})"')
_REQUEST = re.compile(r'name="request" value="([^"]+)"')


@dataclass(frozen=True)
class Seen:
    """A response as a visitor has it."""

    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def form_key(self) -> str:
        """The key in the forms of the page."""
        return _find(_KEY, self.text)

    @property
    def request(self) -> str:
        """The request id in the form for asking."""
        return _find(_REQUEST, self.text)


@dataclass
class Visitor:
    """One browser at one server."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, body: str | None = None, **headers: str) -> Seen:
        """One request; a cookie that comes with the response is kept."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            sent.setdefault("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        for line in response.headers.get_all("Set-Cookie") or ():
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        return Seen(response.status, response.headers, text)

    def get(self, path: str) -> Seen:
        """A page."""
        return self.send("GET", path)

    def post(self, path: str, words: dict[str, str], **headers: str) -> Seen:
        """A form, sent as a browser sends it from our own page."""
        said = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": f"http://127.0.0.1:{self.port}",
            "Sec-Fetch-Site": "same-origin",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        kept = {name: value for name, value in said.items() if value}
        return self.send("POST", path, urlencode(words), **kept)

    def sign_in(self, secret: str) -> Seen:
        """Sign in, and see the first page."""
        made = self.post("/sign-in", {"token": secret})
        assert (made.status, made.headers["Location"]) == (303, "/dataset"), made.text
        return self.get("/dataset")

    def ask(self, sql: str, percent: str = "5", page: Seen | None = None) -> Seen:
        """Fill in the form of the ask page and send it."""
        form = page or self.get("/ask")
        words = {"form_key": form.form_key, "request": form.request, "sql": sql, "percent": percent}
        return self.post("/ask", {**words, "error": "", "column": ""})


def _find(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    assert found, text
    return html.unescape(found[1])
