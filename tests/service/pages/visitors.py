"""Browsers without a screen: they keep a cookie, send forms, and read pages."""

from __future__ import annotations

import html
import http.client
import re
import time
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlencode

from discreet.service.messages import ApiRequest
from discreet.service.pages.site import Site

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
    """One browser at one server: at a port, or in this process."""

    place: int | Site
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The host that the browser sees."""
        return f"127.0.0.1:{self.place}" if isinstance(self.place, int) else "in.process"

    def send(self, method: str, path: str, body: str | None = None, **headers: str) -> Seen:
        """One request; a cookie that comes with the response is kept."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            sent.setdefault("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        seen = self._send(self.place, method, path, body, sent)
        for line in seen.headers.get_all("Set-Cookie") or ():
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        return seen

    def _send(self, place: int | Site, method: str, path: str, body: str | None, sent: dict[str, str]) -> Seen:
        if isinstance(place, int):
            connection = http.client.HTTPConnection("127.0.0.1", place, timeout=60)
            try:
                connection.request(method, path, body, sent)
                response = connection.getresponse()
                return Seen(response.status, response.headers, response.read().decode())
            finally:
                connection.close()
        plain, _, query = path.partition("?")
        named = {"host": self.host, **{name.lower(): value for name, value in sent.items()}}
        words = dict(parse_qsl(query))
        made = place.answer(
            ApiRequest(method=method, path=unquote(plain), query=words, headers=named, body=(body or "").encode())
        )
        found = http.client.HTTPMessage()
        for name, value in made.headers.items():
            found[name] = value
        return Seen(made.status, found, made.body.decode())

    def get(self, path: str) -> Seen:
        """A page."""
        return self.send("GET", path)

    def post(self, path: str, words: dict[str, str], **headers: str) -> Seen:
        """A form, sent as a browser sends it from our own page."""
        said = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": f"http://{self.host}",
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
        """Fill in the form of the ask page, send it, and wait for a question that takes long."""
        form = page or self.get("/ask")
        words = {"form_key": form.form_key, "request": form.request, "sql": sql, "percent": percent}
        made = self.post("/ask", {**words, "error": "", "column": ""})
        deadline = time.monotonic() + 60
        while made.status == 303 and 'id="running"' in self.get(made.headers["Location"]).text:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return made


def _find(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    assert found, text
    return html.unescape(found[1])
