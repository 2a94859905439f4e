"""Dataclasses whose methods are compiled when they are first needed, so that a command starts quickly.

While a module is imported, the standard library writes and compiles six methods for each frozen dataclass. That is
nine tenths of what the class costs, and a command uses few of the classes that it imports. Here the class is made at
once, with its fields and slots. Its methods are those of the standard library, too; they are compiled when one of them
is looked up for the first time. Type checkers see the decorator of the standard library.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_TAKEN_OVER = ("__module__", "__qualname__", "__post_init__")
# What to ask the standard library for to get one method and no other.
_WORDS = {"__init__": "init", "__repr__": "repr", "__eq__": "eq", "__hash__": "unsafe_hash"}


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
        """The method of a class with the same fields that the standard library makes."""
        fields = {field.name: field for field in dataclasses.fields(self._owner)}
        kept = {name: getattr(self._owner, name) for name in _TAKEN_OVER if hasattr(self._owner, name)}
        types = {name: field.type for name, field in fields.items()}
        # For a class without words the standard library writes its signature down, which costs more than the method.
        words = {"__doc__": self._owner.__doc__ or "draft"}
        draft: Any = type(self._owner.__name__, (), {**fields, **kept, **words, "__annotations__": types})
        options: Any = {word: name == self._name for name, word in _WORDS.items()}
        # Only the constructor needs to know that attributes cannot be set.
        made = dataclasses.dataclass(**options, frozen=self._frozen and options["init"])(draft)
        return vars(made)[self._name]


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
