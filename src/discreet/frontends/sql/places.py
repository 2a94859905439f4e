"""Finds the places of the parser's nodes in the text.

The parser stores the place of names, constants and calls. The place of any other node is that of the nodes inside it,
or of the nearest keyword that belongs to it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING

from discreet.frontends.terms.positions import Place

if TYPE_CHECKING:
    from sqlglot.expressions import Expr
    from sqlglot.tokenizer_core import Token

# Nodes that begin with a word or sign which no node inside them covers.
LEADING = {
    "Case": ("CASE",),
    "If": ("IF", "WHEN"),
    "Cast": ("CAST", "DATE", "TIMESTAMP"),
    "TryCast": ("TRY_CAST",),
    "Extract": ("EXTRACT",),
    "Not": ("NOT", "!"),
    "Neg": ("-",),
    "Substring": ("SUBSTRING",),
    "Trim": ("TRIM",),
    "Concat": ("CONCAT",),
    "Coalesce": ("COALESCE", "IFNULL"),
    "Interval": ("INTERVAL",),
    "Boolean": ("TRUE", "FALSE"),
    "Null": ("NULL",),
    "CurrentDate": ("CURRENT_DATE", "TODAY"),
    "CurrentTimestamp": ("CURRENT_TIMESTAMP", "NOW"),
    "Placeholder": ("?", "$", ":"),
    "Max": ("MAX",),
    "Min": ("MIN",),
}

# Words that can stand before a parenthesis and are not functions.
KEYWORDS = frozenset(
    {"SELECT", "FROM", "WHERE", "HAVING", "AND", "OR", "NOT", "IN", "WHEN", "THEN", "ELSE", "AS", "BY"}
)


class Places:
    """The places of nodes in one text."""

    def __init__(self, text: str, tokens: Iterable[Token]) -> None:
        self.text = text
        self.tokens = list(tokens)
        self.starts = [token.start for token in self.tokens]

    def of(self, node: Expr, word: str = "") -> Place:
        """The place of a node, or of a word near it."""
        start, end = self._find_span(node)
        if word:
            found = self._find_nearest(word, start)
            if found is not None:
                return self.of_token(found)
        own = self._find_own(node)
        if own is not None:
            return own
        for lead in LEADING.get(type(node).__name__, ()):
            found = self._find_before(lead, start) if end else self._find_nearest(lead, start)
            if found is not None:
                return Place(self.text, found.start, max(end, found.end + 1))
        if end:
            ancestors = {kind.__name__ for kind in type(node).__mro__}
            name = self._find_call(start) if "Func" in ancestors and "Binary" not in ancestors else None
            return name or Place(self.text, start, end)
        return self.of(node.parent) if node.parent is not None else self.find_first_word()

    def find_first_word(self) -> Place:
        """The first word of the text."""
        return self.of_token(self.tokens[0]) if self.tokens else Place(self.text, 0, 0)

    def find_word(self, word: str) -> Place:
        """The first place of a keyword."""
        found = self._find_nearest(word, 0)
        return self.of_token(found) if found is not None else self.find_first_word()

    def find_last_word(self, word: str) -> Place:
        """The last place of a keyword."""
        found = next((token for token in reversed(self.tokens) if token.text.upper() == word), None)
        return self.of_token(found) if found is not None else self.find_first_word()

    def of_token(self, token: Token) -> Place:
        """The place of a token."""
        return Place(self.text, token.start, token.end + 1)

    def _find_own(self, node: Expr) -> Place | None:
        start, end = node.meta.get("start"), node.meta.get("end")
        if isinstance(start, int) and isinstance(end, int):
            return Place(self.text, start, end + 1)
        return None

    def _find_span(self, node: Expr) -> tuple[int, int]:
        """From the first to the last place that is known inside a node.

        If none is known, this is where the parent begins and 0, and (0, 0) without a parent.
        """
        known = [place for part in node.walk() if (place := self._find_own(part)) is not None]
        if known:
            return min(place.start for place in known), max(place.end for place in known)
        parent = node.parent
        return (self._find_span(parent)[0], 0) if parent is not None else (0, 0)

    def _find_call(self, start: int) -> Place | None:
        """The name before the parenthesis that stands directly before a place, as in ``name(place``."""
        before = self._find_preceding(start, 2)
        if len(before) < 2 or before[1].text != "(" or not before[0].text.isidentifier():
            return None
        return self.of_token(before[0]) if before[0].token_type.name not in KEYWORDS else None

    def _find_preceding(self, start: int, count: int) -> list[Token]:
        """The last few tokens before a place."""
        end = bisect_left(self.starts, start)
        return self.tokens[max(0, end - count) : end]

    def _find_nearest(self, word: str, start: int) -> Token | None:
        same = [token for token in self.tokens if token.text.upper() == word]
        return min(same, key=lambda token: abs(token.start - start), default=None)

    def _find_before(self, word: str, start: int) -> Token | None:
        """The last token with this text among the three before a place."""
        before = reversed(self._find_preceding(start, 3))
        return next((token for token in before if token.text.upper() == word), None)
