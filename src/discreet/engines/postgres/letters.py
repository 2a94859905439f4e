"""Small and capital letters in PostgreSQL: by a table of ours, because a server's own depends on its locale.

In the collation "C" PostgreSQL changes the letters of ASCII alone. The others are changed letter by letter, by what
``plan.evaluate`` says of each.
"""

from __future__ import annotations

from functools import cache

from discreet.plan.evaluate import STRICT

# Beyond this Unicode has no letters with a case.
_LAST = 0x20000


def write_changed(text: str, function: str) -> str:
    """A text in small or capital letters; ``function`` is lower or upper. Most texts are ASCII and leave early."""
    old, new = _list_letters(function)
    plain, ascii_only = f"{function}({text})", f"octet_length({text}) = char_length({text})"
    return f"CASE WHEN {ascii_only} THEN {plain} ELSE translate({plain}, '{old}', '{new}') END"


@cache
def _list_letters(function: str) -> tuple[str, str]:
    """The letters beyond ASCII that a function changes, and what they become, in the same order."""
    change = STRICT[function]
    letters = [chr(i) for i in range(0x80, _LAST) if not 0xD800 <= i < 0xE000]
    cased = [letter for letter in letters if {letter.lower(), letter.upper(), letter.title()} != {letter}]
    pairs = [(letter, str(change(letter))) for letter in cased]
    changed = [(old, new) for old, new in pairs if old != new]
    return "".join(old for old, _ in changed), "".join(new for _, new in changed)
