"""Requests and responses as values, and what the service refuses by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from enum import StrEnum
from http import HTTPStatus

from discreet.late_dataclass import dataclass

JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request as it came in. The names of headers are in small letters; the path is decoded."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStream:
    """Words that are told as they come: ``tell`` gives the present one and whether it is the last.

    ``hold`` takes a place for as long as somebody listens, or refuses.
    """

    tell: Callable[[], tuple[str, bool]]
    hold: Callable[[], AbstractContextManager[None]] = nullcontext


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResponse:
    """What is sent back. ``route`` and ``token`` (its id) are for the log. ``events`` follow instead of a body."""

    status: int
    body: bytes
    media: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    route: str = ""
    token: str = ""
    events: EventStream | None = None


class RefusalCode(StrEnum):
    """Why the service itself refuses a request. Nothing is read or charged, but before a question was cancelled."""

    BAD_REQUEST = "bad-request"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"
    METHOD_NOT_ALLOWED = "method-not-allowed"
    NOT_ACCEPTABLE = "not-acceptable"
    TOO_LARGE = "too-large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type"
    TOO_MANY_REQUESTS = "too-many-requests"
    CANCELLED = "cancelled"

    @property
    def status(self) -> int:
        """The status of HTTP that says the same."""
        return _STATUS[self]


_STATUS = {
    RefusalCode.BAD_REQUEST: HTTPStatus.BAD_REQUEST,
    RefusalCode.UNAUTHORIZED: HTTPStatus.UNAUTHORIZED,
    RefusalCode.FORBIDDEN: HTTPStatus.FORBIDDEN,
    RefusalCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    RefusalCode.METHOD_NOT_ALLOWED: HTTPStatus.METHOD_NOT_ALLOWED,
    RefusalCode.NOT_ACCEPTABLE: HTTPStatus.NOT_ACCEPTABLE,
    RefusalCode.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    RefusalCode.UNSUPPORTED_MEDIA_TYPE: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    RefusalCode.TOO_MANY_REQUESTS: HTTPStatus.TOO_MANY_REQUESTS,
    RefusalCode.CANCELLED: HTTPStatus.CONFLICT,
}


class RequestRefused(Exception):
    """A request that the service does not hand to the curator."""

    def __init__(
        self,
        code: RefusalCode,
        rule: str,
        fix: str,
        *,
        parameter: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code, self.rule, self.fix = code, rule, fix
        self.parameter, self.headers = parameter, headers or {}
        super().__init__(f"{rule} {fix}")


def refuse_body(rule: str, fix: str, parameter: str | None = None) -> RequestRefused:
    """The refusal of a body, a header or a parameter that cannot be read."""
    return RequestRefused(RefusalCode.BAD_REQUEST, rule, fix, parameter=parameter)
