"""Tools put a SELECT around a question: ``SELECT "ward", "n" FROM (SELECT ward, COUNT(*) ...) AS t LIMIT 100``.

Where the outer SELECT only picks columns and a number of rows, the inner one is the question, and the rest is done with
what was released: a post-processing, free. The curator itself refuses such an outer SELECT in every case, since it
shows columns without an aggregate; so nothing that it accepts is read in another way here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.late_dataclass import dataclass
from discreet.wire.backend_messages import WireColumn
from discreet.wire.refusals import WireRefused
from discreet.wire.statement_words import WireStatement, Word, find_close

UNDEFINED_COLUMN = "42703"
_DEEPEST = 5


@dataclass(frozen=True, slots=True)
class AnswerPick:
    """Which columns are shown under which names, all for None, and how many rows at most."""

    columns: tuple[tuple[str, str], ...] | None
    most: int | None

    def pick(self, columns: Sequence[WireColumn]) -> tuple[tuple[WireColumn, ...], tuple[int, ...]]:
        """The columns that are shown, and their numbers."""
        if self.columns is None:
            return tuple(columns), tuple(range(len(columns)))
        order = {column.name.lower(): number for number, column in enumerate(columns)}
        wrong = [name for name, _ in self.columns if name.lower() not in order]
        if wrong:
            hint = f"It has {', '.join(column.name for column in columns)}."
            raise WireRefused(UNDEFINED_COLUMN, f'The question has no column "{wrong[0][:60]}".', hint)
        numbers = tuple(order[name.lower()] for name, _ in self.columns)
        shown = tuple(WireColumn(title, columns[n].type) for (_, title), n in zip(self.columns, numbers))
        return shown, numbers

    def apply(self, columns: Sequence[WireColumn], rows: Sequence[Sequence[Any]]) -> tuple[Any, list[tuple[Any, ...]]]:
        """Columns and rows as they are shown."""
        shown, numbers = self.pick(columns)
        return shown, [tuple(row[n] for n in numbers) for row in rows[: self.most]]


def take_projections(statement: WireStatement) -> tuple[WireStatement, list[AnswerPick]]:
    """The question inside of what only picks from it, and what is picked, from the inside out."""
    found: list[AnswerPick] = []
    for _ in range(_DEEPEST):
        taken = _take_one(statement)
        if taken is None:
            break
        statement, projection = taken
        found.insert(0, projection)
    return statement, found


def _take_one(statement: WireStatement) -> tuple[WireStatement, AnswerPick] | None:
    words = statement.words
    at = next((n for n, word in enumerate(words) if word.upper == "FROM"), None)
    if at is None or words[0].upper != "SELECT" or words[at + 1 : at + 2] == () or words[at + 1].upper != "(":
        return None
    close = find_close(words, at + 1)
    inner = words[at + 2].upper if at + 2 < len(words) else ""
    if close is None or inner not in ("SELECT", "WITH", "("):
        return None
    picked = _read_columns(words[1:at])
    rest = list(words[close + 1 :])
    rest = rest[1:] if rest and rest[0].upper == "AS" else rest
    rest = rest[1:] if (rest and rest[0].upper not in ("", "LIMIT")) or (rest and rest[0].quoted) else rest
    most = None
    if len(rest) == 2 and rest[0].upper == "LIMIT" and rest[1].text.isdecimal() and len(rest[1].text) < 10:
        most, rest = int(rest[1].text), []
    if picked is False or rest:
        return None
    columns = None if picked is None else picked
    return statement.cut(words[at + 1].end, words[close].start), AnswerPick(columns, most)


def _read_columns(words: Sequence[Word]) -> Any:
    """The columns of a SELECT that names columns alone; None for *, False for anything else."""
    if [word.upper for word in words] == ["*"] or (
        [word.upper for word in words[-2:]] == [".", "*"] and len(words) == 3
    ):
        return None
    found: list[tuple[str, str]] = []
    part: list[Word] = []
    for word in [*words, Word(",", 0, 0)]:
        if word.upper != ",":
            part.append(word)
            continue
        title = part[-1] if part else word
        if len(part) >= 3 and part[-2].upper == "AS":
            part = part[:-2]
        if len(part) == 3 and part[1].upper == ".":
            part = part[2:]
        if len(part) != 1 or not _is_name(part[0]) or not _is_name(title):
            return False
        found.append((part[0].value, title.value))
        part = []
    return tuple(found)


def _is_name(word: Word) -> bool:
    return word.text[:1] == '"' if word.quoted else word.text.isidentifier()
