"""Dataclasses whose methods are compiled when they are first needed, so that a command starts quickly.

While a module is imported, the standard library writes and compiles six methods for each frozen dataclass. That is
nine tenths of what the class costs, and a command uses few of the classes that it imports. Here the standard library
makes the class at once, with its fields and slots. Each method is written and compiled when it is looked up for the
first time, and does what that of the standard library does. Type checkers see the decorator of the standard library.

What it saves: about a fifth of the processor time of ``discreet preview`` (benchmarks/README.md has the figures).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

# Stands for an argument that was not given and has to be made.
_UNSET = object()


def make_late(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    repr: bool = True,  # noqa: A002  # the word of the standard library
    eq: bool = True,
) -> Any:
    """``dataclasses.dataclass``, with those of its options that the house uses.

    >>> @make_late(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1, 2) == Point(1), {Point(1): "hashable"}[Point(1, 0)]
    (Point(x=1, y=0), False, 'hashable')
    """

    def make(cls: type) -> Any:
        own = vars(cls)
        wanted = {"__init__": True, "__repr__": repr, "__eq__": eq, "__hash__": eq and frozen}
        # A class that has an ``__eq__`` of its own has None for a hash without asking for it.
        names = [name for name, is_wanted in wanted.items() if is_wanted and own.get(name) is None]
        # Below a frozen class the standard library insists on compiling the guards; otherwise they are ours.
        below = frozen and any(map(dataclasses.is_dataclass, cls.__mro__[1:]))
        options: Any = {"slots": slots, "kw_only": kw_only, "frozen": below}
        made: Any = dataclasses.dataclass(**options, init=False, repr=False, eq=False)(cls)
        if frozen:
            made.__dataclass_params__.frozen = True  # for dataclasses below this one, whoever makes them
            made.__setattr__, made.__delattr__ = _refuse_change, _refuse_removal
        if frozen and slots:
            made.__getstate__, made.__setstate__ = _list_values, _set_values  # copies and pickles set no attributes
        if eq and not frozen and "__hash__" not in own:
            made.__hash__ = None
        for name in names:
            setattr(made, name, _LateMethod(made, name, frozen=frozen))
        return made

    return make if cls is None else make(cls)


class _LateMethod:
    """Stands for a method of a class until it is looked up. Two threads may do that at once: they find the same."""

    def __init__(self, owner: Any, name: str, *, frozen: bool) -> None:
        self._owner, self._name, self._frozen = owner, name, frozen

    def __get__(self, instance: object, owner: type) -> Any:
        method = self._compile()
        setattr(self._owner, self._name, method)
        return method.__get__(instance, owner)

    def _compile(self) -> Any:
        fields = dataclasses.fields(self._owner)
        names: dict[str, Any] = {"_set": object.__setattr__, "_unset": _UNSET}
        match self._name:
            case "__init__":
                text = _write_constructor(
                    fields, names, frozen=self._frozen, post=hasattr(self._owner, "__post_init__")
                )
            case "__repr__":
                shown = ", ".join(f"{field.name}={{self.{field.name}!r}}" for field in fields if field.repr)
                text = f"def __repr__(self):\n return f'{{self.__class__.__qualname__}}({shown})'"
            case "__eq__":
                compared = [field for field in fields if field.compare]
                one, two = (_write_values(compared, which) for which in ("self", "other"))
                same = "other.__class__ is self.__class__"
                text = f"def __eq__(self, other):\n return {one} == {two} if {same} else NotImplemented"
            case _:
                kept = [field for field in fields if (field.compare if field.hash is None else field.hash)]
                text = f"def __hash__(self):\n return hash({_write_values(kept, 'self')})"
        exec(text, names)  # noqa: S102  # names of fields, as the standard library does it
        method = names[self._name]
        method.__qualname__, method.__module__ = f"{self._owner.__qualname__}.{self._name}", self._owner.__module__
        return recursive_repr()(method) if self._name == "__repr__" else method


def _write_values(fields: Sequence[dataclasses.Field[Any]], of: str) -> str:
    """A tuple of the fields."""
    return f"({''.join(f'{of}.{field.name}, ' for field in fields)})"


def _write_constructor(
    fields: Sequence[dataclasses.Field[Any]], names: dict[str, Any], *, frozen: bool, post: bool
) -> str:
    """A constructor that sets every field. Defaults and what makes them are put among the names that it sees."""
    plain, named, lines = ["self"], ["*"], list[str]()
    for field in fields:
        name, value, default = field.name, field.name, ""
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = field.default_factory
            default, made = " = _unset", f"_make_{name}()"
            value = f"{made} if {name} is _unset else {name}" if field.init else made
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = field.default
            default = f" = _default_{name}"
            value = name if field.init else f"_default_{name}"
        elif not field.init:
            continue  # ``__post_init__`` sets it
        if field.init:
            (named if field.kw_only else plain).append(name + default)
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    given = ", ".join([*plain, *(named if len(named) > 1 else [])])
    return "\n ".join([f"def __init__({given}):", *lines, *(["self.__post_init__()"] if post else []), "return None"])


def _refuse_change(_value: object, name: str, _new: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_removal(_value: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _list_values(value: Any) -> list[Any]:
    return [getattr(value, field.name) for field in dataclasses.fields(value)]


def _set_values(value: Any, state: list[Any]) -> None:
    for field, part in zip(dataclasses.fields(value), state):
        object.__setattr__(value, field.name, part)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = make_late
