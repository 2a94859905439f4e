"""The service on Starlette: bytes from the wire become a request, and its response becomes bytes again.

The curator works in threads, because it computes and waits. The body is read and the response is sent by the event
loop, so that a slow client holds no thread.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.codebook.entries import make_json_schema
from discreet.row_formats import to_json
from discreet.service import problems
from discreet.service.messages import ApiRequest, ApiResponse, EventStream, RefusalCode, RequestRefused, refuse_body
from discreet.service.openapi import make_openapi
from discreet.service.pages.site import Site
from discreet.service.routes import TABLE, Service
from discreet.service.running_requests import write_refusal

if TYPE_CHECKING:
    from discreet.service.agent_door import AgentDoor

LOG = logging.getLogger("discreet.service")
MAX_BODY = 4 << 20
THREADS = 128
_BODY_SECONDS = 60.0
_TICK = 0.2
_TICKS_OF_SILENCE = 25
_MOST_TICKS = 18_000  # an hour; who follows longer begins anew
# Below these, refusals are problem documents; everywhere else they are pages.
_FOR_PROGRAMS = ("/api/", "/healthz", "/metrics", "/openapi.json", "/codebook.schema.json")
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def make_app(
    service: Service,
    site: Site,
    agents: AgentDoor | None = None,
    beside: Sequence[Callable[[], AbstractAsyncContextManager[None]]] = (),
) -> Starlette:
    """The application of a service, its pages and its door for agents, and what runs beside it in the event loop."""
    threads: list[anyio.CapacityLimiter] = []

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        threads.append(anyio.CapacityLimiter(THREADS))
        async with AsyncExitStack() as stack:
            for enter in (*beside, *(() if agents is None else (agents.live,))):
                await stack.enter_async_context(enter())
            yield

    async def answer(incoming: Request) -> Response:
        try:
            request = await _read_request(incoming)
        except RequestRefused as refused:
            return _to_response(incoming.method, problems.refuse_request(refused))
        chosen = service.answer if request.path.startswith(_FOR_PROGRAMS) else site.answer
        made = await anyio.to_thread.run_sync(chosen, request, limiter=threads[0])
        return _to_response(incoming.method, made)

    return Starlette(
        routes=[
            Route("/healthz", _report_health, methods=["GET"]),
            Route("/openapi.json", _describe_service, methods=["GET"]),
            Route("/codebook.schema.json", _describe_codebooks, methods=["GET"]),
            Route("/metrics", _make_metrics(service), methods=["GET"]),
            *([] if agents is None else [Route("/mcp", agents)]),
            Route("/{path:path}", _answer_in_any_case(answer), methods=_METHODS),
        ],
        exception_handlers={HTTPException: _refuse_method},
        middleware=[Middleware(OneLength)],
        lifespan=live,
    )


class OneLength:
    """Refuses a request that says in two ways how long its body is, and ends the connection.

    A proxy in front could take the other one for true, and what follows for a request of somebody else.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, or refuse it."""
        names = {name for name, _ in scope.get("headers", ())}
        if not {b"content-length", b"transfer-encoding"} <= names:
            await self._app(scope, receive, send)
            return
        rule = "The request says in two ways how long its body is."
        refused = RequestRefused(
            RefusalCode.BAD_REQUEST, rule, "Send Content-Length alone.", headers={"Connection": "close"}
        )
        await _to_response("-", problems.refuse_request(refused))(scope, receive, send)


async def _refuse_method(incoming: Request, _: Exception) -> Response:
    """A method that no route has; the routes cover all paths, so nothing else is refused by Starlette."""
    allowed = "GET" if incoming.url.path in _FOR_PROGRAMS else "GET, POST"
    refused = RequestRefused(
        RefusalCode.METHOD_NOT_ALLOWED, "The route has no such method.", f"Use {allowed.replace(', ', ' or ')}.",
        headers={"Allow": allowed},
    )  # fmt: skip
    return _to_response(incoming.method, problems.refuse_request(refused))


async def _report_health(_: Request) -> Response:
    return Response(b'{"status": "ok"}', media_type="application/json", headers=SECURITY_HEADERS)


async def _describe_service(_: Request) -> Response:
    return Response(to_json(make_openapi(TABLE)), media_type="application/json", headers=SECURITY_HEADERS)


async def _describe_codebooks(_: Request) -> Response:
    return Response(to_json(make_json_schema()), media_type="application/schema+json", headers=SECURITY_HEADERS)


def _make_metrics(service: Service) -> Callable[[Request], Awaitable[Response]]:
    async def report(_: Request) -> Response:
        return Response(service.metrics.to_text(), media_type="text/plain; version=0.0.4", headers=SECURITY_HEADERS)

    return report


def _answer_in_any_case(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """The last resort: what goes wrong outside the service is one constant document, too."""

    async def call(incoming: Request) -> Response:
        try:
            return await answer(incoming)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody is there to read it
        except Exception as error:
            LOG.error("An error that nobody foresaw: %s", type(error).__name__)
            return _to_response(incoming.method, problems.describe_unforeseen(charged=None))

    return call


async def _read_request(incoming: Request) -> ApiRequest:
    """A request as a value. A body that is too large is refused as soon as it is, and one that does not come, too."""
    declared = incoming.headers.get("content-length", "0")
    body = bytearray()
    if not declared.isdecimal() or len(declared) > 19 or int(declared) > MAX_BODY:
        raise _make_too_large()
    try:
        with anyio.fail_after(_BODY_SECONDS):
            async for part in incoming.stream():
                body += part
                if len(body) > MAX_BODY:
                    raise _make_too_large()
    except TimeoutError:
        raise refuse_body("The body did not come within a minute.", "Send the request again.") from None
    return ApiRequest(
        method="GET" if incoming.method == "HEAD" else incoming.method,
        path=str(incoming.scope["path"]),
        query=dict(incoming.query_params),
        # A header that is sent twice has both values, so that no two readers can take different ones for true.
        headers={name: ", ".join(incoming.headers.getlist(name)) for name in incoming.headers},
        body=bytes(body),
    )


async def _tell(events: EventStream) -> AsyncIterator[str]:
    """The words of a stream as they change; between them it holds no thread. It ends with the last, or in an hour."""
    said, silent = "", 0
    try:
        with events.hold():
            for _ in range(_MOST_TICKS):
                word, last = await anyio.to_thread.run_sync(events.tell)  # it may look into a file
                if word != said:
                    said, silent = word, 0
                    yield word
                elif (silent := silent + 1) % _TICKS_OF_SILENCE == 0:
                    yield ": it runs\n\n"  # so that a client that has gone is noticed
                if last:
                    return
                await anyio.sleep(_TICK)
    except RequestRefused as refused:
        yield write_refusal(refused.code)


def _make_too_large() -> RequestRefused:
    return RequestRefused(
        RefusalCode.TOO_LARGE, f"The body has more than {MAX_BODY:,} bytes.", "Send less, or declare public tables."
    )


def _to_response(method: str, made: ApiResponse) -> Response:
    """The bytes of a response, and its line in the log: who, what and how it ended; no token, question or answer."""
    known = method if method in _METHODS else "-"
    LOG.info("%s %s %s %d", made.token or "-", known, made.route or "-", made.status)
    headers = {**SECURITY_HEADERS, **made.headers, "Content-Type": made.media}
    if made.events is not None and method != "HEAD":
        return StreamingResponse(_tell(made.events), status_code=made.status, headers=headers)
    return Response(made.body, status_code=made.status, headers=headers)
