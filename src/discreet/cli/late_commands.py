"""Commands that are known by name and help, and imported when they run.

So ``discreet --help`` and the completion of a shell list every command without importing one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


class LateCommand(TyperCommand):
    """A command at ``module:function`` or a group of commands at ``module:app``, in this room."""

    def __init__(self, name: str, place: str, short_help: str) -> None:
        super().__init__(name, short_help=short_help)
        self.place = place

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """The first step of running it, of its own help and of completing its options: the command itself does it."""
        return self.load().make_context(*arguments, **options)

    def load(self) -> Any:
        """The command itself."""
        module, member = self.place.split(":")
        found = getattr(import_module(f"discreet.cli.{module}"), member)
        if isinstance(found, typer.Typer):
            return typer.main.get_command(found)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(self.name)(found)
        return typer.main.get_command(alone)


class LateGroup(TyperGroup):
    """Commands by their names: the place of each, and the line that the help shows."""

    late: ClassVar[Mapping[str, tuple[str, str]]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, (place, short_help) in self.late.items():
            self.add_command(LateCommand(name, place, short_help))
