"""``discreet mcp``: a dataset for an agent, over standard input and output."""

from __future__ import annotations

from contextlib import ExitStack
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from discreet.agents.desk import Desk


def serve_agent(
    source: Annotated[
        str, typer.Argument(metavar="CODEBOOK", help="The TOML file of a dataset, or the address of a server.")
    ],
    *,
    analyst: Annotated[str, typer.Option(help="In whose name the agent asks; a server's token says it.")] = "agent",
    project: Annotated[str, typer.Option(help="The project that is charged.")] = "",
    per_query: Annotated[str | None, typer.Option(help="The most that one question may cost.", metavar="ε")] = None,
    confirm_above: Annotated[
        str, typer.Option(help="From which share of the budget on a question has to be confirmed.", metavar="SHARE")
    ] = "0.1",
) -> None:
    """Serve a dataset to an agent, over standard input and output.

    It speaks the Model Context Protocol. With the address of a server, the agent asks there, with the token of
    DISCREET_TOKEN.
    """
    from discreet.agents.mcp_server import make_server
    from discreet.cli.options import read_number

    share = Fraction(read_number(confirm_above, "--confirm-above"))
    cap = None if per_query is None else Fraction(read_number(per_query, "--per-query"))
    with ExitStack() as stack:
        desk = _open_desk(source, stack, analyst=analyst, project=project, cap=cap, confirm_above=share)
        make_server(lambda _: desk).run("stdio")


def _open_desk(
    source: str, stack: ExitStack, *, analyst: str, project: str, cap: Fraction | None, confirm_above: Fraction
) -> Desk:
    from discreet.agents.desk import Desk

    if source.startswith(("http://", "https://")):
        from discreet.errors import UsageError
        from discreet.remote.remote_curator import connect

        if cap is not None or project or analyst != "agent":
            raise UsageError(
                "A server's token says who asks and how much: leave out --analyst, --project, --per-query."
            )
        return Desk(curator=connect(source), confirm_above=confirm_above)
    from discreet.opening import open_codebook

    curator = stack.enter_context(open_codebook(source))
    names = {"analyst": analyst, "project": project}
    return Desk(curator=curator if cap is None else curator.limit(cap), names=names, confirm_above=confirm_above)
