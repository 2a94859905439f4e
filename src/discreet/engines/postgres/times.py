"""Dates and moments in PostgreSQL: parts, differences, and texts that name a day or none."""

from __future__ import annotations

from discreet.errors import InternalError


def write_part(word: str, moment: str) -> str:
    """A part of a moment as an integer. Seconds come with their fraction, which is cut off."""
    own = {"dayofweek": "dow"}.get(word, word)
    return f"CAST(floor(extract({own} FROM {moment})) AS bigint)"


def write_difference(word: str, start: str, end: str) -> str:
    """How many beginnings of a unit of time lie between two moments."""
    if word in ("year", "month"):
        months = [f"(extract(year FROM {m}) * 12 + extract(month FROM {m}))" for m in (end, start)]
        years = [f"extract(year FROM {m})" for m in (end, start)]
        return f"CAST({' - '.join(years if word == 'year' else months)} AS bigint)"
    if word == "day":
        return f"CAST(CAST({end} AS date) - CAST({start} AS date) AS bigint)"
    seconds = {"hour": 3600, "minute": 60, "second": 1}.get(word)
    if seconds is None:
        raise InternalError(f"There is no difference in the unit {word!r}.")
    begun = [f"extract(epoch FROM date_trunc('{word}', {moment}))" for moment in (end, start)]
    return f"CAST(({' - '.join(begun)}) / {seconds} AS bigint)"


def write_day(text: str) -> str:
    """The date that a text of the form 2001-12-31 names; NULL where there is no such day."""
    return f"CASE WHEN {_write_names_day(text)} THEN make_date({', '.join(_list_day_parts(text))}) END"


def write_moment(text: str) -> str:
    """The moment that a text of the form 2001-12-31 or 2001-12-31T23:59:59.5 names; NULL where there is none."""
    hour, minute, second = (f"coalesce(nullif(substr({text}, {start}, 2), ''), '0')" for start in (12, 15, 18))
    exact = f"CAST(coalesce(nullif(substr({text}, 18), ''), '0') AS float8)"
    clock = f"CAST({hour} AS int) <= 23 AND CAST({minute} AS int) <= 59 AND CAST({second} AS int) <= 59"
    made = f"make_timestamp({', '.join(_list_day_parts(text))}, CAST({hour} AS int), CAST({minute} AS int), {exact})"
    return f"CASE WHEN {_write_names_day(text)} AND {clock} THEN {made} END"


def _list_day_parts(text: str) -> list[str]:
    return [f"CAST(substr({text}, {start}, {count}) AS int)" for start, count in ((1, 4), (6, 2), (9, 2))]


def _write_names_day(text: str) -> str:
    year, month, day = _list_day_parts(text)
    leap = f"({year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0))"
    longest = (
        f"CASE WHEN {month} = 2 THEN CASE WHEN {leap} THEN 29 ELSE 28 END "
        f"WHEN {month} IN (4, 6, 9, 11) THEN 30 ELSE 31 END"
    )
    return f"{year} >= 1 AND {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND {longest}"
