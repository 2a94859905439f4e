"""Opens codebooks and serves them with uvicorn, on loopback unless the owner says how tokens are kept from others."""

from __future__ import annotations

import ipaddress
import logging
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.service.data_folder import DataFolder
from discreet.service.oidc import OidcProvider, read_settings
from discreet.service.routes import Service
from discreet.service.served_dataset import ServedDataset
from discreet.service.sessions import GUIDE, SessionStore

if TYPE_CHECKING:
    from discreet.service.agent_door import AgentDoor

# How long a server that is told to stop waits for the questions that run.
_PATIENCE = 30
_BACKLOG = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where to listen, and how what is sent is kept from others on the way."""

    host: str = "127.0.0.1"
    port: int = 8780
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise UsageError("A certificate and its key come together. Give --certificate and --key, or neither.")
        if not is_loopback(self.host) and self.certificate is None and not self.behind_proxy:
            raise UsageError(
                "Tokens and answers would travel in the clear to other machines. Give --certificate and --key, or "
                "--behind-proxy where a proxy on this machine speaks TLS; or leave out --host."
            )

    @property
    def secure(self) -> bool:
        """Whether browsers reach it by TLS."""
        return self.certificate is not None or self.behind_proxy

    @property
    def url(self) -> str:
        """The address for people."""
        scheme = "http" if self.certificate is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class SideDoor(Protocol):
    """Another way in to the same service, in the same process."""

    def listen(self, service: Service, stack: ExitStack) -> str:
        """Take a port, which the stack gives back; words that say where it is."""
        ...

    def open(self) -> AbstractAsyncContextManager[None]:
        """Serve for as long as the event loop of the service does."""
        ...


def open_service(codebooks: Sequence[str | Path], stack: ExitStack) -> Service:
    """The service of some codebooks. The stack closes their curators."""
    datasets: dict[str, ServedDataset] = {}
    stack.callback(_close_all, datasets)  # those of the guide, too
    for path in codebooks:
        dataset = ServedDataset(path)
        if dataset.name in datasets:
            dataset.close()
            raise UsageError(f"Two codebooks describe a dataset {dataset.name!r}. Serve one of them.")
        datasets[dataset.name] = dataset
    return Service(datasets=datasets)


def _close_all(datasets: Mapping[str, ServedDataset]) -> None:
    for dataset in datasets.values():
        dataset.close()


def serve(
    codebooks: Sequence[str | Path],
    address: ServerAddress,
    announce: Callable[[str], None],
    *,
    links: bool = False,
    guide: Path | None = None,
    oidc: Path | None = None,
    mcp: bool = False,
    doors: Sequence[SideDoor] = (),
) -> None:
    """Serve until told to stop. Questions that run then are finished, within half a minute.

    With ``links`` a one-time link for the owner of each dataset is announced: for a terminal, and not for a log.
    ``guide`` is the folder of data files for which the guide makes a first codebook. ``oidc`` is the file about an
    OpenID provider. With ``mcp`` agents are served, too. ``doors`` are other ways in, to the same service.
    """
    uvicorn = _load_uvicorn()
    from discreet.service.app import make_app
    from discreet.service.pages.site import Site

    _log_to_stderr()
    with ExitStack() as stack:
        service = open_service(codebooks, stack)
        stack.callback(service.threads.wait, _PATIENCE)
        for name, dataset in service.datasets.items():
            if not dataset.tokens.list_all():
                announce(f"Nobody may ask {name} yet: discreet token create CODEBOOK --name NAME")
        sessions, folder = SessionStore(service.datasets), None if guide is None else DataFolder(guide.resolve())
        provider = None if oidc is None else OidcProvider(read_settings(oidc))
        site = Site(service=service, sessions=sessions, secure=address.secure, guide=folder, oidc=provider)
        config = uvicorn.Config(
            make_app(service, site, _open_agent_door(service) if mcp else None, [door.open for door in doors]),
            ssl_certfile=address.certificate,
            ssl_keyfile=address.key,
            access_log=False,
            log_level="warning",
            proxy_headers=False,
            server_header=False,
            date_header=False,
            # Browsers that came by TLS once are told to come in no other way.
            headers=[("Strict-Transport-Security", "max-age=31536000")] if address.secure else [],
            timeout_graceful_shutdown=_PATIENCE,
            h11_max_incomplete_event_size=1 << 16,
        )
        listening = stack.enter_context(_listen(address))
        for door in doors:
            announce(door.listen(service, stack))
        for name in service.datasets if links else ():
            announce(f"The owner of {name} signs in, once, at {address.url}/once/{site.sessions.make_link(name)}")
        if links and guide is not None:
            announce(f"The guide to a first codebook opens, once, at {address.url}/once/{sessions.make_link(GUIDE)}")
        what = ", ".join(service.datasets) or "the guide"
        announce(f"Serving {what} at {address.url}/ and {address.url}/api/v1/ (ctrl-C stops)")
        uvicorn.Server(config).run(sockets=[listening])


def _open_agent_door(service: Service) -> AgentDoor:
    """The door for agents, where their package is installed."""
    from discreet.agents.mcp_server import load_mcp
    from discreet.service.app import SECURITY_HEADERS

    load_mcp()
    from discreet.service.agent_door import AgentDoor

    return AgentDoor(service, SECURITY_HEADERS)


def _listen(address: ServerAddress) -> socket.socket:
    try:
        return listen_at(address.host, address.port, _BACKLOG)
    except OSError as error:
        raise UsageError(f"{address.url} cannot be used: {error.strerror}. Give another --port or --host.") from None


def listen_at(host: str, port: int, backlog: int) -> socket.socket:
    """A socket that listens, whose connections send each part of a response at once.

    Otherwise the system holds the second part back until the client has acknowledged the first, which many do 40 ms
    later. Connections inherit it; asyncio would set it only where the socket names its protocol.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.create_server((host, port), family=family, backlog=backlog)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _load_uvicorn() -> Any:
    try:
        import starlette  # noqa: F401  # both are needed
        import uvicorn
    except ImportError:
        raise UsageError("The service needs two more packages: pip install 'discreet[serve]'.") from None
    return uvicorn


def _log_to_stderr() -> None:
    """The log of requests goes to standard error, where no other place was set."""
    log = logging.getLogger("discreet.service")
    log.setLevel(logging.INFO)
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        log.addHandler(handler)
