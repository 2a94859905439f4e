"""``discreet token``: who may ask a dataset over the service."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.option_groups import take_groups
from discreet.cli.options import CodebookPath, read_number
from discreet.cli.output import OutputOptions, Printout
from discreet.service.roles import Role

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.service.tokens import Token, TokenStore

app = typer.Typer(
    name="token",
    help="Say who may ask over the service.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_TOKEN = {"id": "text", "name": "text", "role": "text", "project": "text", "per_query": "text", "state": "text"}
_TIMES = {"created": "text", "expires": "text"}


@app.command()
@take_groups
def create(
    codebook: CodebookPath,
    *,
    name: Annotated[str, typer.Option(help="The analyst in whose name questions are asked.")],
    role: Annotated[Role, typer.Option(help="What the bearer may do.")] = Role.ANALYST,
    project: Annotated[str, typer.Option(help="The project that is charged.")] = "",
    per_query: Annotated[str | None, typer.Option(help="The most that one question may cost.", metavar="ε")] = None,
    expires: Annotated[int, typer.Option(help="Days until it ends.", metavar="DAYS", min=1, max=3660)] = 90,
    output: OutputOptions,
) -> None:
    """Make a token and show it, once."""
    cap = None if per_query is None else Fraction(read_number(per_query, "--per-query"))
    made, secret = _open_store(codebook).create(
        name=name, role=role, project=project, per_query=cap, life=timedelta(days=expires)
    )
    shown = {**_describe(made), "token": secret}

    def draw(console: Console) -> None:
        console.out(secret, highlight=False)
        console.out(f"This is the token of {name} ({role}). It is not kept: it cannot be shown again.", highlight=False)

    output.print(_make_printout([shown], {"token": "text"}, draw, shown))


@app.command("list")
@take_groups
def list_tokens(codebook: CodebookPath, *, output: OutputOptions) -> None:
    """Show every token that was made; not the tokens themselves."""
    _print_all(_open_store(codebook).list_all(), output)


@app.command()
@take_groups
def revoke(
    codebook: CodebookPath,
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The id of a token, or the name of whom it was for.")],
    *,
    output: OutputOptions,
) -> None:
    """Revoke a token, or all of a name; they are refused from the next request on."""
    store = _open_store(codebook)
    gone = {each.id for each in store.revoke(token)}
    _print_all([each for each in store.list_all() if each.id in gone], output)


def _open_store(codebook: str) -> TokenStore:
    """The tokens beside a codebook, which must be one."""
    from discreet.codebook import Codebook
    from discreet.service.tokens import TokenStore, tokens_path_of

    Codebook.load(codebook)
    return TokenStore(tokens_path_of(codebook))


def _describe(token: Token) -> dict[str, Any]:
    from datetime import UTC, datetime

    ended = "revoked" if token.revoked else "valid" if token.is_valid(datetime.now(UTC)) else "ended"
    return {
        "id": token.id,
        "name": token.name,
        "role": str(token.role),
        "project": token.project,
        "per_query": None if token.per_query is None else str(token.per_query),
        "state": ended,
        "created": token.created.isoformat(timespec="seconds"),
        "expires": token.expires.isoformat(timespec="seconds"),
    }


def _print_all(tokens: Any, output: OutputOptions) -> None:
    shown = [_describe(token) for token in tokens]

    def draw(console: Console) -> None:
        for each in shown:
            line = f"{each['id']}  {each['role']:<8} {each['state']:<8} ends {each['expires'][:10]}  {each['name']}"
            console.out(line, highlight=False)
        if not shown:
            console.out("No token was made yet: discreet token create CODEBOOK --name NAME", highlight=False)

    output.print(_make_printout(shown, {}, draw, {"tokens": shown}))


def _make_printout(shown: list[dict[str, Any]], more: dict[str, str], draw: Any, document: Any) -> Printout:
    from discreet.cli.rows import make_rows

    return Printout(rows=lambda: make_rows({**_TOKEN, **_TIMES, **more}, shown), document=lambda: document, draw=draw)
