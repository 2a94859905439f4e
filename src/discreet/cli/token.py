"""``discreet token``: who may ask a dataset over the service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.option_groups import take_groups
from discreet.cli.options import CodebookPath, read_number
from discreet.cli.output import OutputOptions, Printout
from discreet.service.roles import Role

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.service.tokens import TokenStore

app = typer.Typer(
    name="token",
    help="Say who may ask over the service.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_TOKEN = {"id": "text", "name": "text", "role": "text", "project": "text", "per_query": "text", "state": "text",
          "created": "text", "expires": "text"}  # fmt: skip


@app.command()
def create(
    codebook: CodebookPath,
    *,
    name: Annotated[str, typer.Option(help="The analyst in whose name questions are asked.")],
    role: Annotated[Role, typer.Option(help="What the bearer may do.")] = Role.ANALYST,
    project: Annotated[str, typer.Option(help="The project that is charged.")] = "",
    per_query: Annotated[str | None, typer.Option(help="The most that one question may cost.", metavar="ε")] = None,
    expires: Annotated[int, typer.Option(help="Days until it ends.", metavar="DAYS", min=1, max=3660)] = 90,
    offer: Annotated[
        str,
        typer.Option(help="What a question of a PostgreSQL client costs that states nothing.", metavar="epsilon=0.1"),
    ] = "",
) -> None:
    """Make a token and show it, once: the token on standard output, what it is for on standard error."""
    cap = None if per_query is None else Fraction(read_number(per_query, "--per-query"))
    made, secret = _open_store(codebook).create(
        name=name, role=role, project=project, per_query=cap, life=timedelta(days=expires), offer=offer
    )
    typer.echo(secret)
    typer.echo(f"The token {made.id} of {name} ({role}). It is not kept: it cannot be shown again.", err=True)


@app.command("list")
@take_groups
def list_tokens(codebook: CodebookPath, *, output: OutputOptions) -> None:
    """Show every token that was made; not the tokens themselves."""
    from discreet.cli.rows import make_rows
    from discreet.service.descriptions import describe_token

    now = datetime.now(UTC)
    shown = [describe_token(token, now) for token in _open_store(codebook).list_all()]

    def draw(console: Console) -> None:
        for each in shown:
            line = f"{each['id']}  {each['role']:<8} {each['state']:<8} ends {each['expires'][:10]}  {each['name']}"
            console.out(line, highlight=False)
        if not shown:
            console.out("No token was made yet: discreet token create CODEBOOK --name NAME", highlight=False)

    output.print(Printout(rows=lambda: make_rows(_TOKEN, shown), document=lambda: {"tokens": shown}, draw=draw))


@app.command()
def revoke(
    codebook: CodebookPath,
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The id of a token, or the name of whom it was for.")],
) -> None:
    """Revoke a token, or all of a name; they are refused from the next request on."""
    for each in _open_store(codebook).revoke(token):
        typer.echo(f"The token {each.id} of {each.name} is revoked.")


def _open_store(codebook: str) -> TokenStore:
    """The tokens beside a codebook, which must be one."""
    from discreet.codebook import Codebook
    from discreet.service.tokens import TokenStore, tokens_path_of

    Codebook.load(codebook)
    return TokenStore(tokens_path_of(codebook))
