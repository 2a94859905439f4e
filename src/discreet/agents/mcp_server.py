"""The desk over the Model Context Protocol: tools, resources and prompts, by the reference package ``mcp``.

Every refusal is a tool error with the reason and what to do. What nobody foresaw is one constant sentence, and its
words go nowhere: they may hold anything.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.agents.desk import Desk
from discreet.errors import DiscreetError, UsageError
from discreet.row_formats import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp.server.mcpserver import Context, MCPServer

LOG = logging.getLogger("discreet.agents")
UNFORESEEN = "Something went wrong on our side. Call history to see whether anything was charged."
_PACKAGE = Path(__file__).parents[1]
_PAGES = (_PACKAGE / "pages", _PACKAGE.parents[1] / "docs")

INSTRUCTIONS = """\
This server answers statistical questions about private data. It adds noise, and every answer costs a part of a budget
that is shared and never comes back. Work in this order: (1) describe: which tables and columns there are; (2) preview:
what a question would cost and how far off it would be, free, as often as you like; (3) ask, with at_most: the most that
it may cost. Ask few, well-aimed questions: aggregates (COUNT, SUM, AVG, MEDIAN) with GROUP BY, never rows. Asking the
same again is free. Report every number with its interval."""

FindDesk: TypeAlias = "Callable[[Context[Any, Any]], Desk]"


def load_mcp() -> Any:
    """The reference package, or what to install."""
    try:
        from mcp.server import mcpserver
    except ImportError:
        raise UsageError("Agents need one more package: pip install 'discreet[mcp]'.") from None
    return mcpserver


def make_server(find_desk: FindDesk, name: str = "discreet") -> MCPServer[Any]:
    """A server whose tools ask at the desk of whoever calls."""
    mcpserver = load_mcp()
    with _keep_logging():
        server: MCPServer[Any] = mcpserver.MCPServer(
            name, version=version("discreet"), instructions=INSTRUCTIONS, log_level="ERROR"
        )
    _add_tools(server, mcpserver, find_desk)
    _add_resources(server, mcpserver, find_desk)
    _add_prompts(server)
    return server


def _add_tools(server: MCPServer[Any], mcpserver: Any, find_desk: FindDesk) -> None:
    from mcp_types import ToolAnnotations

    free = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    spends = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)
    context: Any = mcpserver.Context

    def describe(ctx: context) -> str:
        """The tables and columns, what is public about them, who is protected, and what is left. Free."""
        return _serve(lambda: find_desk(ctx).describe())

    def preview(sql: str, at_most: str, ctx: context, error: dict[str, float] | None = None) -> str:
        """What a question would cost and how far off its answer would be. Free: nothing is charged, no data is read.

        sql: one SELECT with aggregates. at_most: the most that it may cost: "share 0.02" of the whole budget, or
        "epsilon 0.1". error: the error wanted instead, by column, such as {"n": 20}; then the price follows from it.
        """
        return _serve(lambda: find_desk(ctx).preview(sql, at_most, error))

    def ask(  # noqa: PLR0917  # agents give arguments by name
        sql: str,
        at_most: str,
        ctx: context,
        error: dict[str, float] | None = None,
        confirm: str = "",
        request: str | None = None,
    ) -> str:
        """Answer a question. This spends budget that does not come back, at most what at_most says; preview first.

        sql, at_most, error: as in preview. confirm: the value that a refusal named, for a question that costs much; ask
        the person first. request: an id of your own; the same id again is never charged twice.
        """
        return _serve(lambda: find_desk(ctx).ask(sql, at_most, error, confirm=confirm, request=request))

    def history(ctx: context) -> str:
        """What you asked so far, and what it cost. Free."""
        return _serve(lambda: find_desk(ctx).history())

    def budget(ctx: context) -> str:
        """What is left of the budget, and what your questions cost so far. Free."""
        return _serve(lambda: find_desk(ctx).budget())

    for tool in (describe, preview, history, budget):
        server.add_tool(_settle(tool, context), annotations=free, structured_output=False)
    server.add_tool(_settle(ask, context), annotations=spends, structured_output=False)


def _settle(tool: Callable[..., str], context: Any) -> Callable[..., str]:
    """Give a tool its context's own class: annotations are texts here, and the package looks for the class."""
    tool.__annotations__["ctx"] = context
    return tool


def _serve(work: Callable[[], str]) -> str:
    """What a tool says, or a tool error."""
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        return work()
    except DiscreetError as error:
        raise ToolError(f"{error} [{error.code}]") from None
    except Exception as error:
        LOG.error("An error that nobody foresaw: %s", type(error).__name__)
        raise ToolError(UNFORESEEN) from None


def _add_resources(server: MCPServer[Any], mcpserver: Any, find_desk: FindDesk) -> None:
    def read_codebook(part: str, ctx: Any) -> str:
        return _serve(lambda: _show_part(find_desk(ctx), part))

    server.resource(
        "discreet://codebook/{part}",
        name="codebook",
        description="Public facts of the dataset: part is 'tables', or the name of one table.",
        mime_type="text/plain",
    )(_settle(read_codebook, mcpserver.Context))

    def read_sql_page() -> str:
        return find_page("sql")

    server.resource(
        "discreet://pages/sql", name="sql", description="What can be asked, with every function.",
        mime_type="text/markdown",
    )(read_sql_page)  # fmt: skip


def _show_part(desk: Desk, part: str) -> str:
    if part == "tables":
        return to_json({"tables": list(desk.curator.catalog.tables)})
    return repr(desk.curator.table(part))


def _add_prompts(server: MCPServer[Any]) -> None:
    def answer_privately(question: str) -> str:
        return (
            f"Answer this with the private dataset of this server: {question}\n\n{INSTRUCTIONS}\n\nCall describe. "
            'Write the one SELECT that answers it. Call preview with at_most "share 0.02". If the expected error is '
            "larger than what the question needs, preview with a larger share, or with fewer groups; if it is much "
            "smaller, with less. Then call ask once. Say the numbers with their intervals, what they cost and what is "
            "left."
        )

    def plan_questions(goal: str) -> str:
        return (
            f"Plan which questions to ask for this goal, without asking any yet: {goal}\n\n{INSTRUCTIONS}\n\nCall "
            "describe and budget. List the fewest SELECTs that serve the goal, preview each, and show a table of their "
            "costs and errors. Together they should cost no more than a fifth of what is left. Then wait."
        )

    describe = "Describe, preview, ask: one question answered within the budget."
    server.prompt("answer_privately", description=describe)(answer_privately)
    server.prompt("plan_questions", description="Which questions to ask, and what they would cost.")(plan_questions)


def find_page(name: str) -> str:
    """A page of the documentation: shipped with the package, or beside it in a checkout."""
    for folder in _PAGES:
        page = folder / f"{name}.md"
        if page.is_file():
            return page.read_text(encoding="utf-8")
    raise UsageError(f"The page {name!r} is not part of this installation.")


@contextmanager
def _keep_logging() -> Iterator[None]:
    """The package sets up the log of the whole process when a server is made; here it stays as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
