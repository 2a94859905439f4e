"""Groups of options: a frozen dataclass stands for the options that several commands share.

A command names a group as the type of one parameter. The shell sees the options of the group one by one, and the
command gets them as one value, which has checked itself before anything else happens.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, wraps
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from discreet.late_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Options of a group that a command does not have."""

    names: frozenset[str]


def leave_out(*names: str) -> LeftOut:
    """Options that a command does not take; stands beside the group in ``Annotated``."""
    return LeftOut(frozenset(names))


def take_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command for typer from one whose parameters may be groups."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, tuple[str, ...]]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group, left_out = _find_group(parameter.annotation)
        if group is None:
            parameters.append(parameter)
            continue
        options = _list_options(group, left_out)
        groups[parameter.name] = (group, tuple(option.name for option in options))
        parameters += options

    @wraps(command)
    def run(**given: Any) -> None:
        values = {name: group(**{option: given.pop(option) for option in options})
                  for name, (group, options) in groups.items()}  # fmt: skip
        command(**given, **values)

    # typer reads both; the annotations are already values, so no name has to be looked up again.
    vars(run).update(__signature__=inspect.Signature(parameters))
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _find_group(annotation: Any) -> tuple[type | None, frozenset[str]]:
    """The group that a parameter's type names, and the options it leaves out; None for an ordinary option."""
    kind, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    left_out = frozenset(name for mark in marks if isinstance(mark, LeftOut) for name in mark.names)
    return (kind if isinstance(kind, type) and is_dataclass(kind) else None), left_out


def _list_options(group: type, left_out: frozenset[str]) -> list[inspect.Parameter]:
    """The options of a group in their order, without those that are left out."""
    options = _read_options(group)
    unknown = left_out - {option.name for option in options}
    if unknown:
        raise TypeError(f"{group.__name__} has no option {', '.join(sorted(unknown))}.")
    return [option for option in options if option.name not in left_out]


@cache
def _read_options(group: Any) -> tuple[inspect.Parameter, ...]:
    """Every option of a group. Kept, because many commands share a group and the help should be quick."""
    types = get_type_hints(group, include_extras=True)
    return tuple(
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=types[field.name],
        )
        for field in fields(group)
    )
