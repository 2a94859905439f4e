"""What kind of statement a text is, and its parts: split at semicolons, named by its first word.

This reads words and quotes alone. What a SELECT asks is read by the curator, queries of the catalog by
``catalog_queries``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto

from discreet.late_dataclass import dataclass
from discreet.wire.refusals import SYNTAX_ERROR, WireRefused

MOST_STATEMENTS = 50
_TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*)
    |(?P<comment>/\*)
    |(?P<text>[eE]?'(?:[^'\\]|''|\\.|\\)*')
    |(?P<name>"(?:[^"]|"")*")
    |(?P<dollar>\$(?:[A-Za-z_]\w*)?\$)
    |(?P<word>[^\W\d][\w$]*)
    |(?P<number>\d[\w.]*)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN_TEXT = re.compile(r"'(?:[^']|'')*'")


class StatementKind(Enum):
    """What a statement does."""

    EMPTY = auto()
    SELECT = auto()
    EXPLAIN = auto()
    COPY = auto()
    BEGIN = auto()
    COMMIT = auto()
    ROLLBACK = auto()
    SAVEPOINT = auto()
    SET = auto()
    RESET = auto()
    SHOW = auto()
    DISCARD = auto()
    DEALLOCATE = auto()
    DECLARE = auto()
    FETCH = auto()
    CLOSE = auto()
    PASSED_OVER = auto()
    OTHER = auto()


_KINDS = {
    "SELECT": StatementKind.SELECT, "WITH": StatementKind.SELECT, "VALUES": StatementKind.SELECT,
    "TABLE": StatementKind.SELECT, "FROM": StatementKind.SELECT, "(": StatementKind.SELECT,
    "EXPLAIN": StatementKind.EXPLAIN, "COPY": StatementKind.COPY,
    "BEGIN": StatementKind.BEGIN, "START": StatementKind.BEGIN, "COMMIT": StatementKind.COMMIT,
    "END": StatementKind.COMMIT, "ROLLBACK": StatementKind.ROLLBACK, "ABORT": StatementKind.ROLLBACK,
    "SAVEPOINT": StatementKind.SAVEPOINT, "RELEASE": StatementKind.SAVEPOINT, "SET": StatementKind.SET,
    "RESET": StatementKind.RESET, "SHOW": StatementKind.SHOW, "DISCARD": StatementKind.DISCARD,
    "DEALLOCATE": StatementKind.DEALLOCATE, "DECLARE": StatementKind.DECLARE, "FETCH": StatementKind.FETCH,
    "MOVE": StatementKind.FETCH, "CLOSE": StatementKind.CLOSE, "UNLISTEN": StatementKind.PASSED_OVER,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a statement: its text, where it begins and ends, and whether it is quoted."""

    text: str
    start: int
    end: int
    quoted: bool = False

    @property
    def upper(self) -> str:
        """The word in capital letters; empty for what is quoted."""
        return "" if self.quoted else self.text.upper()

    @property
    def value(self) -> str:
        """What it says: without the quotes of a text or a name."""
        if not self.quoted:
            return self.text
        mark = self.text[-1]
        return self.text.lstrip("eE")[1:-1].replace(mark * 2, mark)


@dataclass(frozen=True, slots=True)
class WireStatement:
    """One statement of a text, and where it begins there."""

    text: str
    offset: int
    words: tuple[Word, ...]

    @property
    def kind(self) -> StatementKind:
        """What it does."""
        return _KINDS.get(self.words[0].upper, StatementKind.OTHER) if self.words else StatementKind.EMPTY

    def cut(self, start: int, end: int | None = None) -> WireStatement:
        """A part of it, as a statement of its own."""
        (found,) = split_statements(self.text[start:end]) or [WireStatement("", 0, ())]
        return WireStatement(found.text, self.offset + start + found.offset, found.words)


def split_statements(text: str) -> list[WireStatement]:
    """The statements of a text without the semicolons between them; empty ones are left out."""
    found: list[WireStatement] = []
    words: list[Word] = []
    for word in [*_list_words(text), Word(";", len(text), len(text))]:
        if word.text != ";" or word.quoted:
            words.append(word)
            continue
        if words:
            start = words[0].start
            moved = tuple(Word(each.text, each.start - start, each.end - start, each.quoted) for each in words)
            found.append(WireStatement(text[start : words[-1].end], start, moved))
        words = []
    if len(found) > MOST_STATEMENTS:
        raise WireRefused(SYNTAX_ERROR, f"A text has at most {MOST_STATEMENTS} statements.")
    return found


def _list_words(text: str) -> Iterator[Word]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:  # a quote that is not closed is the last word: the reader says what is wrong with it
            yield Word(text[at:], at, len(text))
            return
        end = found.end()
        match found.lastgroup:
            case "blank":
                pass
            case "comment":
                end = _skip_comment(text, at)
            case "dollar":
                close = text.find(found[0], end)
                end = len(text) if close < 0 else close + len(found[0])
                yield Word(text[at:end], at, end, quoted=True)
            case "text":
                plain = None if found[0][0] in "eE" else _PLAIN_TEXT.match(text, at)
                end = end if plain is None else plain.end()
                yield Word(text[at:end], at, end, quoted=True)
            case group:
                yield Word(found[0], at, end, quoted=group == "name")
        at = end


def _skip_comment(text: str, at: int) -> int:
    """Where a comment ends; comments may stand inside of comments."""
    depth = 0
    for sign in re.finditer(r"/\*|\*/", text[at:]):
        depth += 1 if sign[0] == "/*" else -1
        if not depth:
            return at + sign.end()
    return len(text)


@dataclass(frozen=True, slots=True)
class StatedSelect:
    """A SELECT, and the words of the offer that stand before it: ``WITH DP(epsilon=0.1) SELECT``."""

    statement: WireStatement
    offer: dict[str, str]


def read_stated(statement: WireStatement) -> StatedSelect:
    """Take the words of ``WITH DP(...)`` away from the beginning of a SELECT, where they are."""
    words = statement.words
    if [word.upper for word in words[:3]] != ["WITH", "DP", "("]:
        return StatedSelect(statement, {})
    close = find_close(words, 2)
    if close is None or close + 1 >= len(words) or words[close + 1].upper in ("AS", ","):
        return StatedSelect(statement, {})  # a WITH query that is called dp
    inside = statement.text[words[2].end : words[close].start]
    offer: dict[str, str] = {}
    for part in inside.split(","):
        name, mark, value = part.partition("=")
        word = name.strip().lower()
        if not mark or word in offer:
            hint = "Write WITH DP(epsilon=0.1) SELECT, with delta, rho, share or level where they are meant."
            raise WireRefused(SYNTAX_ERROR, "WITH DP(...) cannot be read.", hint, place=words[2].start)
        offer[word] = value.strip().strip("'")
    return StatedSelect(statement.cut(words[close + 1].start), offer)


def find_close(words: tuple[Word, ...], opening: int) -> int | None:
    """The parenthesis that closes another one."""
    depth = 0
    for at in range(opening, len(words)):
        depth += (words[at].upper == "(") - (words[at].upper == ")")
        if not depth:
            return at
    return None


def read_assignment(statement: WireStatement) -> tuple[str, str, bool]:
    """Name and value of SET name = value or SET name TO value, and whether it is SET LOCAL. DEFAULT gives ''."""
    words = list(statement.words[1:])
    local = bool(words) and words[0].upper in ("LOCAL", "SESSION")
    only_now = local and words[0].upper == "LOCAL"
    words = words[1:] if local else words
    if [word.upper for word in words[:2]] == ["TIME", "ZONE"]:
        return "TimeZone", "".join(word.value for word in words[2:]), only_now
    at = next((n for n, word in enumerate(words) if word.upper in ("=", "TO")), None)
    if not at or at + 1 >= len(words):
        hint = "Write SET discreet.epsilon = 0.1."
        raise WireRefused(SYNTAX_ERROR, "SET has no name or no value.", hint, place=0)
    name = "".join(word.value for word in words[:at])
    after = words[at + 1 :]
    if len(after) == 1:
        return name, "" if after[0].upper == "DEFAULT" else after[0].value, only_now
    return name, statement.text[after[0].start : after[-1].end], only_now
