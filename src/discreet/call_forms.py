"""Calls that do not fit a function, refused in our own words with the call to write."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from discreet.errors import CallError

P = ParamSpec("P")
T = TypeVar("T")


def check_call(example: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Give a function the call that is shown where arguments are too many, missing or unknown.

    >>> @check_call("double(number=2)")
    ... def double(*, number: int) -> int:
    ...     return 2 * number
    >>> double(2)
    Traceback (most recent call last):
        ...
    discreet.errors.CallError: double(): too many positional arguments. Write double(number=2). Nothing was charged.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                # An error of the call itself comes from here, one of the function's own lines from further down.
                trace = error.__traceback__
                if trace is None or trace.tb_next is not None:
                    raise
            raise refuse_call(function, args, kwargs, example)

        return call

    return decorate


def refuse_call(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object], example: str
) -> CallError:
    """What is wrong with the arguments of a call, the nearest name where one is unknown, and the call to write."""
    import difflib
    import inspect

    name, signature = function.__name__, inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
        words = "these arguments do not go together"
    except TypeError as error:
        words = str(error)
    unknown = [word for word in kwargs if word not in signature.parameters]
    near = [difflib.get_close_matches(word, signature.parameters, n=1, cutoff=0.4) for word in unknown]
    hint = "".join(f" Did you mean {found[0]}?" for found in near if found)
    return CallError(f"{name}(): {words}.{hint} Write {example}. Nothing was charged.")
