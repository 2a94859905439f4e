"""Small and capital letters by a table of ours, for engines whose own depend on a locale or change lengths."""

from __future__ import annotations

from functools import cache

from discreet.plan.evaluate import STRICT

# Beyond this Unicode has no letters with a case.
_LAST = 0x20000


@cache
def list_letters(function: str, first: int) -> tuple[str, str]:
    """The letters from ``first`` on that lower or upper changes, and what they become, in the same order.

    >>> list_letters("lower", 0)[0][:3], list_letters("lower", 0)[1][:3]
    ('ABC', 'abc')
    """
    change = STRICT[function]
    letters = [chr(i) for i in range(first, _LAST) if not 0xD800 <= i < 0xE000]
    cased = [letter for letter in letters if {letter.lower(), letter.upper(), letter.title()} != {letter}]
    pairs = [(letter, str(change(letter))) for letter in cased]
    changed = [(old, new) for old, new in pairs if old != new]
    return "".join(old for old, _ in changed), "".join(new for _, new in changed)
