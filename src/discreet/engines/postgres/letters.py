"""Small and capital letters in PostgreSQL: by a table of ours, because a server's own depends on its locale.

In the collation "C" PostgreSQL changes the letters of ASCII alone. The others are changed letter by letter, by what
``plan.evaluate`` says of each.
"""

from __future__ import annotations

from discreet.engines.sql.letters import list_letters


def write_changed(text: str, function: str) -> str:
    """A text in small or capital letters; ``function`` is lower or upper. Most texts are ASCII and leave early."""
    old, new = list_letters(function, 0x80)
    plain, ascii_only = f"{function}({text})", f"octet_length({text}) = char_length({text})"
    return f"CASE WHEN {ascii_only} THEN {plain} ELSE translate({plain}, '{old}', '{new}') END"
