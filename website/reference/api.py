"""docs/reference/api.md: every stable name with its signature and the first sentence about it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import Any

from website.reference.tables import MADE, read_summary, write_list

MODULES = (
    "discreet", "discreet.mechanisms", "discreet.accounting", "discreet.accounting.events", "discreet.samplers",
    "discreet.local", "discreet.audit", "discreet.pictures", "discreet.attacks", "discreet.codebook",
)  # fmt: skip  # a list of names
"""The modules whose names are for users; what they offer is in docs/stability.md."""
OBJECTS = (
    ("discreet.curator", "Curator"),
    ("discreet.answer", "Answer"),
    ("discreet.preview", "Preview"),
    ("discreet.preview", "BatchPreview"),
    ("discreet.frontends.chain.builder", "TableBuilder"),
)
"""Objects that these names give, with their public methods."""

_DEFAULT_OBJECT = re.compile(r"<(?:object|class|function) [^>]*>|<([\w.]+): [^>]*>")
_MODULE_NAME = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Za-z_])")


def write_api() -> str:
    """The page."""
    parts = [
        "# Python", MADE,
        "What you can rely on from version to version: [what stays the same](../stability.md).",
    ]  # fmt: skip
    for name in MODULES:
        module = import_module(name)
        parts += [f"## {name}", read_summary(module), write_list(_list_names(module))]
    for module_name, name in OBJECTS:
        kind = getattr(import_module(module_name), name)
        parts += [f"## {name}", read_summary(kind), write_list(_list_members(kind))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _list_names(module: ModuleType) -> Iterator[tuple[str, str, str]]:
    names = getattr(module, "__all__", None) or [name for name in vars(module) if _is_own(module, name)]
    for name in sorted(names, key=str.lower):
        thing = _find_function(getattr(module, name))
        yield name, show_signature(thing), _describe(thing)


def _find_function(thing: Any) -> Any:
    """What a name means. A package that can be called hides its function of the same name once it is imported."""
    if not inspect.ismodule(thing) or not callable(thing):
        return thing
    return getattr(import_module(f"{thing.__name__}.publication"), thing.__name__.rpartition(".")[2])


def _is_own(module: ModuleType, name: str) -> bool:
    thing = getattr(module, name)
    return inspect.isclass(thing) and not name.startswith("_") and thing.__module__ == module.__name__


def _list_members(kind: type) -> Iterator[tuple[str, str, str]]:
    for name, member in inspect.getmembers(kind):
        if name.startswith("_") or not (callable(member) or isinstance(member, property)):
            continue
        yield f".{name}", "" if isinstance(member, property) else show_signature(member), read_summary(member)


def _describe(thing: Any) -> str:
    if inspect.ismodule(thing) or callable(thing):
        return read_summary(thing)
    return f"a {type(thing).__name__} of {len(thing)}" if hasattr(thing, "__len__") else f"a {type(thing).__name__}"


class _Bare(str):
    """An annotation, shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _MODULE_NAME.sub("", str(self))


def show_signature(thing: Any) -> str:
    """The parameters of a call, without modules in front of types and without addresses of objects."""
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Enum)):
        return ""
    try:
        found = inspect.signature(thing)
    except ValueError:
        return ""
    kept = [_bare(part) for name, part in found.parameters.items() if name != "self"]
    shown = str(found.replace(parameters=kept, return_annotation=inspect.Signature.empty))
    return _DEFAULT_OBJECT.sub(lambda hit: hit[1] or "...", shown)


def _bare(part: inspect.Parameter) -> inspect.Parameter:
    if part.annotation is inspect.Parameter.empty:
        return part
    named = part.annotation if isinstance(part.annotation, str) else inspect.formatannotation(part.annotation)
    return part.replace(annotation=_Bare(named))
