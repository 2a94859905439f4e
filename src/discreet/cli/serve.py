"""``discreet serve``: the curator over HTTP."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer


def serve(
    codebooks: Annotated[
        list[str] | None, typer.Argument(metavar="CODEBOOK...", help="The TOML files of the datasets.")
    ] = None,
    *,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.", min=1, max=65535)] = 8780,
    certificate: Annotated[Path | None, typer.Option(help="The certificate for TLS.", metavar="FILE")] = None,
    key: Annotated[Path | None, typer.Option(help="The key of the certificate.", metavar="FILE")] = None,
    guide: Annotated[
        Path | None, typer.Option(help="A folder of data files for the guide to a first codebook.", metavar="FOLDER")
    ] = None,
    oidc: Annotated[
        Path | None,
        typer.Option(help="A TOML file about the OpenID provider with which people sign in.", metavar="FILE"),
    ] = None,
    mcp: Annotated[bool, typer.Option("--mcp", help="Serve agents at /mcp, too.")] = False,
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="A proxy speaks TLS for it.")] = False,
    postgres: Annotated[
        int | None,
        typer.Option(help="A port for psql and every other client of PostgreSQL.", metavar="PORT", min=1, max=65535),
    ] = None,
) -> None:
    """Serve datasets to those who have a token, over HTTP, and to clients of PostgreSQL."""
    from discreet.errors import UsageError
    from discreet.service.server import ServerAddress, SideDoor
    from discreet.service.server import serve as run

    address = ServerAddress(host=host, port=port, certificate=certificate, key=key, behind_proxy=behind_proxy)
    if not codebooks and guide is None:
        raise UsageError("Name a codebook; or --guide FOLDER, where a first one is to be made from a data file there.")
    if guide is not None and not guide.is_dir():
        raise UsageError(f"{guide} is no folder. Give --guide the folder that has the data files.")
    doors: list[SideDoor] = []
    if postgres is not None:
        from discreet.wire.listener import PostgresDoor, WireAddress

        doors.append(PostgresDoor(WireAddress(host=host, port=postgres, certificate=certificate, key=key)))
    announce = partial(typer.echo, err=True)
    run(
        codebooks or [], address, announce, links=_shows_links(), guide=guide, oidc=oidc, mcp=mcp, doors=doors
    )  # fmt: skip


def _shows_links() -> bool:
    """Whether one-time links may be printed: to a terminal, which no log keeps; or where it is asked for."""
    return sys.stderr.isatty() or os.environ.get("DISCREET_LINKS") == "print"
