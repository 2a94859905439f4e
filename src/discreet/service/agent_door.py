"""The door for agents at ``/mcp``: the desk of ``agents`` over HTTP, for those who have a token.

Each call carries its token and stands alone: there are no sessions, so a revocation holds at once. The desk asks the
service itself, by the routes of the API, so that limits, roles, keys, logs and caps are those of every other request.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from discreet.agents.confirmations import Confirmations
from discreet.agents.desk import CONFIRM_ABOVE, Desk
from discreet.agents.mcp_server import make_server
from discreet.remote.patience import Patience
from discreet.remote.remote_curator import connect_over
from discreet.remote.remote_requests import RemoteRequests
from discreet.remote.wire import WireRequest
from discreet.service.inner_wire import InnerWire
from discreet.service.routes import Service

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

LOG = logging.getLogger("discreet.service")
PATH = "/mcp"
_GOOD = 200
_ONE_BODY = 1 << 20
_OTHER_SITES = ("cross-site", "same-site")


class AgentDoor:
    """Serves agents beside the API and the pages."""

    def __init__(self, service: Service, headers: dict[str, str], *, confirm_above: Fraction = CONFIRM_ABOVE) -> None:
        from mcp.server.transport_security import TransportSecuritySettings

        self._service, self._headers, self._confirm_above = service, headers, confirm_above
        self._confirmations = Confirmations()
        self._server = make_server(self._find_desk)
        # Who has no token is not let in, so that the name by which the server is called proves nothing more.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._server.streamable_http_app(
            stateless_http=True, json_response=True, transport_security=security, max_request_body_size=_ONE_BODY
        )

    @asynccontextmanager
    async def live(self) -> AsyncIterator[None]:
        """While the server runs."""
        async with self._server.session_manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request: who has no valid token gets the refusal of the API."""
        incoming = Request(scope)
        wire = InnerWire(self._service, incoming.headers.get("authorization", ""))
        known = await anyio.to_thread.run_sync(wire.send, WireRequest(method="GET", path="datasets"))
        foreign = incoming.headers.get("sec-fetch-site") in _OTHER_SITES
        status = 403 if foreign else known.status
        if status != _GOOD:
            body = b"" if foreign else known.body
            media = known.headers["content-type"]
            await Response(body, status, {**self._headers, "Content-Type": media})(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                LOG.info("- %s mcp %d", incoming.method, message["status"])
                own = [(name.lower().encode(), value.encode()) for name, value in self._headers.items()]
                taken = {name for name, _ in own}
                rest = [pair for pair in message.get("headers", []) if pair[0].lower() not in taken]
                message = {**message, "headers": [*rest, *own]}
            await send(message)

        await self._server.session_manager.handle_request(scope, receive, send_with_headers)

    def _find_desk(self, context: Any) -> Desk:
        """The desk of whoever sent this very request."""
        authorization = str((context.headers or {}).get("authorization", ""))
        requests = RemoteRequests(InnerWire(self._service, authorization), Patience(tries=1))
        return Desk(
            curator=connect_over(requests, None, place="this server"),
            who=hashlib.sha256(authorization.encode()).hexdigest(),
            confirm_above=self._confirm_above,
            confirmations=self._confirmations,
        )
