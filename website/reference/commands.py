"""docs/reference/commands.md: every command with its arguments and options, from what the command line reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from discreet.cli.main import app
from website.reference.tables import MADE, quote, write_table

_EVERYWHERE = "--help"


def write_commands() -> str:
    """The page."""
    parts = [
        "# Commands", MADE,
        "Every command also says this itself: `discreet ask --help`. Exit codes: 0 it is done, 2 the question or the "
        "call is wrong, 3 privacy forbids it, 4 our bug ([errors](../errors.md)).",
    ]  # fmt: skip
    for name, command in list_commands():
        parts += [f"## {name}", _read_help(command), f"```text\n{_show_usage(name, command)}\n```"]
        parts += [table] if (table := _write_parameters(command)) else []
    return "\n\n".join(part.strip() for part in parts) + "\n"


def list_commands() -> Iterator[tuple[str, Any]]:
    """Every command by its whole name, those in groups as well."""
    yield from _walk("discreet", typer.main.get_command(app))


def _walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    loaded = command.load() if hasattr(command, "load") else command
    children = getattr(loaded, "commands", {})
    if not children:
        yield name, loaded
    for child_name, child in children.items():
        yield from _walk(f"{name} {child_name}", child)


def _read_help(command: Any) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


def _show_usage(name: str, command: Any) -> str:
    words = [name]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            shown = parameter.metavar or parameter.name.upper() + ("..." if parameter.nargs == -1 else "")
            words.append(shown if parameter.required else f"[{shown}]")
    return " ".join([*words, "[OPTIONS]"])


def _write_parameters(command: Any) -> str:
    rows = []
    for parameter in command.params:
        if _EVERYWHERE in parameter.opts or getattr(parameter, "hidden", False):
            continue
        names = [*parameter.opts, *parameter.secondary_opts]
        shown = ", ".join(names) if names[0].startswith("-") else (parameter.metavar or parameter.name.upper())
        default = (
            ""
            if parameter.default in (None, False, (), []) or callable(parameter.default)
            else f" Default: {parameter.default}."
        )
        rows.append((quote(shown), (getattr(parameter, "help", None) or "") + default))
    return write_table(("argument or option", "meaning"), rows) if rows else ""
