"""Splits a text with several questions, each of which ends with a semicolon."""

from __future__ import annotations

from discreet.frontends.terms.positions import refusal

MAX_QUESTIONS = 1_000
MAX_SCRIPT = 1_000_000


def split_statements(text: str) -> list[str]:
    """The questions of a script, without their semicolons. Comments and quotes may contain semicolons.

    >>> split_statements("SELECT COUNT(*) FROM a; SELECT ';' FROM b -- ;")
    ['SELECT COUNT(*) FROM a', "SELECT ';' FROM b -- ;"]
    """
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import SqlglotError

    if len(text) > MAX_SCRIPT:
        raise refusal(None, f"The script is longer than {MAX_SCRIPT:,} characters.", "Ask in several batches.")
    try:
        tokens = DuckDB().tokenize(text)
    except (SqlglotError, ValueError, IndexError):
        raise refusal(None, "A quote or comment is opened and not closed.", "Close it.") from None
    cuts = [token.start for token in tokens if token.token_type.name == "SEMICOLON"]
    starts, ends = [0, *(cut + 1 for cut in cuts)], [*cuts, len(text)]
    words = [token.start for token in tokens if token.token_type.name != "SEMICOLON"]
    parts = [text[a:b].strip() for a, b in zip(starts, ends) if any(a <= word < b for word in words)]
    if not parts:
        raise refusal(None, "The script holds no question.", "Write SELECT ...; for each.")
    if len(parts) > MAX_QUESTIONS:
        raise refusal(None, f"The script holds more than {MAX_QUESTIONS:,} questions.", "Ask in several batches.")
    return parts
