"""Dates and moments in Spark: parts, beginnings and differences.

Moments have no zone (TIMESTAMP_NTZ). Some functions know moments of a zone alone; sessions are in UTC, where both are
the same (``session``).
"""

from __future__ import annotations

from discreet.errors import InternalError

# Microseconds of a unit of time that is the same always.
_LENGTHS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def write_part(word: str, moment: str) -> str:
    """A part of a moment as an integer. Spark counts days of a week from 1, which is Sunday."""
    part = {"week": f"weekofyear({moment})", "dayofweek": f"(dayofweek({moment}) - 1)"}
    return f"CAST({part.get(word, f'{word}({moment})')} AS BIGINT)"


def write_beginning(word: str, moment: str) -> str:
    """The beginning of the unit of time that a moment is in."""
    return f"CAST(date_trunc('{word}', CAST({moment} AS TIMESTAMP)) AS TIMESTAMP_NTZ)"


def write_microseconds(moment: str) -> str:
    """Microseconds since the beginning of 1970."""
    return f"unix_micros(CAST({moment} AS TIMESTAMP))"


def write_difference(word: str, start: str, end: str) -> str:
    """How many beginnings of a unit of time lie between two moments."""
    if word == "year":
        return f"CAST(year({end}) - year({start}) AS BIGINT)"
    if word == "month":
        months = [f"(year({moment}) * 12 + month({moment}))" for moment in (end, start)]
        return f"CAST({' - '.join(months)} AS BIGINT)"
    if word == "day":
        return f"CAST(datediff(CAST({end} AS DATE), CAST({start} AS DATE)) AS BIGINT)"
    if word not in _LENGTHS:
        raise InternalError(f"There is no difference in the unit {word!r}.")
    begun = [write_microseconds(write_beginning(word, moment)) for moment in (end, start)]
    return f"(({' - '.join(begun)}) div {_LENGTHS[word]})"
