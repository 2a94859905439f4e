"""A visit: who looks at a page, and how the page asks the API in their name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from discreet.late_dataclass import dataclass
from discreet.service.api_routes import ROOT
from discreet.service.callers import Caller
from discreet.service.documents import make_not_found
from discreet.service.messages import JSON, ApiRequest, ApiResponse
from discreet.service.pages.markup import Html
from discreet.service.routes import Service

_NUMBER = re.compile(r"[0-9]{1,15}([.,][0-9]{1,12})?")

PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    # A form that is sent under no-referrer has the origin null, and could not be told from one of another site.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiReply:
    """What the API says: a document, or a problem document."""

    status: int
    document: Any

    @property
    def is_good(self) -> bool:
        """Whether it is no refusal."""
        return self.status == HTTPStatus.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request for a page by somebody who is signed in. ``words`` are those of the form or of the query."""

    service: Service
    caller: Caller
    form_key: str
    argument: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    guided: bool = False
    """Whether the server has a guide to a first codebook."""
    others: Sequence[str] = ()
    """Other datasets that the session may turn to."""

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return self.caller.dataset.curator.name

    def word(self, name: str) -> str:
        """A word of the form or of the query, without spaces at its ends."""
        return self.words.get(name, "").strip()

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        argument: str = "",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiResponse:
        """The response of the API to a request in the visitor's name.

        In the path ``{d}`` is the dataset and ``{x}`` the argument, which is one part of a path and never more.
        """
        if "/" in argument:
            raise make_not_found()
        parts = {"{d}": self.dataset, "{x}": argument}
        below = "/".join(parts.get(part, part) for part in path.split("/"))
        sent = ApiRequest(
            method=method,
            path=ROOT + below,
            query=query or {},
            headers={"content-type": JSON, **(headers or {})},
            body=b"" if body is None else json.dumps(body).encode(),
        )
        return self.service.answer_caller(self.caller, sent)

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> ApiReply:
        """The same, read as a document."""
        made = self.send(method, path, body, **more)
        return ApiReply(status=made.status, document=json.loads(made.body))


def read_decimal(text: str) -> Decimal | None:
    """A number that a person wrote, with a point or a comma.

    >>> read_decimal("2,5"), read_decimal("1e9"), read_decimal("-1")
    (Decimal('2.5'), None, None)
    """
    return Decimal(text.replace(",", ".")) if _NUMBER.fullmatch(text) else None


def make_page_response(page: Html, status: int = 200, **headers: str) -> ApiResponse:
    """A page as a response."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    start = "<!doctype html>\n" if page.startswith("<html") else ""  # a part of a page has none
    body = (start + page).encode("utf-8", "replace")
    return ApiResponse(status=status, body=body, media="text/html; charset=utf-8", headers={**PAGE_HEADERS, **named})


def redirect(path: str, **headers: str) -> ApiResponse:
    """Go on to another of our pages, by GET."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ApiResponse(status=303, body=b"", media="text/plain", headers={**PAGE_HEADERS, **named, "Location": path})


def quote_part(text: str) -> str:
    """A part of a path."""
    return quote(text, safe="")
