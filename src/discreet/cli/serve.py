"""``discreet serve``: the curator over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def serve(
    codebooks: Annotated[list[str], typer.Argument(metavar="CODEBOOK...", help="The TOML files of the datasets.")],
    *,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.", min=1, max=65535)] = 8780,
    certificate: Annotated[Path | None, typer.Option(help="The certificate for TLS.", metavar="FILE")] = None,
    key: Annotated[Path | None, typer.Option(help="The key of the certificate.", metavar="FILE")] = None,
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="A proxy speaks TLS for it.")] = False,
) -> None:
    """Serve datasets to those who have a token, over HTTP."""
    from discreet.service.server import ServerAddress
    from discreet.service.server import serve as run

    address = ServerAddress(host=host, port=port, certificate=certificate, key=key, behind_proxy=behind_proxy)
    run(codebooks, address, lambda line: typer.echo(line, err=True), links=sys.stderr.isatty())
