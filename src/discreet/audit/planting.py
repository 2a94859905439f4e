"""Bugs planted on purpose: small changes of the running program, each of which breaks a promise.

A planted bug is the audit's negative control. Inside its context one function or property is another one, as if
somebody had changed a line of the source. The audit must find it; outside the context everything is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeAlias

from discreet.late_dataclass import dataclass

Planter: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Opens the context in which a bug is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug:
    """A bug: what it changes, the section of the audit that must find it, and how it is planted."""

    name: str
    changes: str
    section: str
    plant: Planter

    def __str__(self) -> str:
        return self.name


def swap(owner: Any, name: str, change: Callable[[Any], Any]) -> Planter:
    """A bug in one attribute of a class or a module: ``change`` makes the wrong one from the right one."""

    @contextmanager
    def plant() -> Iterator[None]:
        right = vars(owner)[name]
        setattr(owner, name, change(right))
        try:
            yield
        finally:
            setattr(owner, name, right)

    return plant


def swap_all(*planters: Planter) -> Planter:
    """A bug that needs several changes."""

    @contextmanager
    def plant() -> Iterator[None]:
        with ExitStack() as stack:
            for one in planters:
                stack.enter_context(one())
            yield

    return plant


def get(right: Any, owner: Any) -> Any:
    """The value of a property, cached or not, as it would be without the bug. Nothing is kept in the cache."""
    return right.func(owner) if hasattr(right, "func") else right.fget(owner)
