"""Values that are stored as texts, as in CSV: what people write for numbers, truths, dates and times.

Each text is read by itself and by a strict pattern, because DuckDB's own casts accept more than they say (a zone is
read and forgotten). A text that does not fit is NULL, alone, and no text makes an expression fail. Casts inside a
question are another matter: they are narrower and the same on every engine (``engines.sql.text_forms``).

- integer: digits, with a sign; zeros in front and behind a decimal sign are allowed, as in 3750.0;
- real: as in a question, and longer ones; or with the decimal sign and the groups of thousands of the file's form;
- boolean: true, t, yes, y, 1 and false, f, no, n, 0 in any letters, 1.0 and 0.0;
- timestamp: a date, then perhaps a clock (minutes, seconds, up to nine digits behind them), then perhaps a zone: Z, UTC
  or hours and minutes. A time with a zone is the one that a clock in UTC shows. Digits behind microseconds are dropped;
- date: the day of such a time.
"""

from __future__ import annotations

from typing import assert_never

from discreet.engines.duckdb.dialect import DIALECT, quote_text
from discreet.engines.sql.text_forms import DAY, write_real_from_text
from discreet.plan.csv_form import CsvForm, DateOrder
from discreet.plan.types import Type

TRUE_WORDS = ("true", "t", "yes", "y", "1", "1.0")
FALSE_WORDS = ("false", "f", "no", "n", "0", "0.0")

# The most digits in which a whole number of 64 bits is written, but for zeros in front.
_DIGITS = "0*[0-9]{1,19}"
# Like ``text_forms.DECIMAL``, with an exponent of any length: DuckDB reads texts of any length in one pass.
_DECIMAL = r"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)"
_YEAR, _PART = "([0-9]{4})", "([0-9]{1,2})"
_CLOCK = "([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:[.,]([0-9]{1,9}))?)?"
_USUAL_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
# No zone was ever farther from UTC than these.
_ZONE = "(?:Z|z|UTC|GMT|([+-])(0[0-9]|1[0-5])(?::?([0-5][0-9]))?)"
# What the groups of a pattern are, behind the three of the date.
_CLOCK_PARTS = ("h", "i", "s", "f", "sign", "zh", "zi")
# The moments that Python, and so the meaning of the plan, knows.
FIRST_MOMENT, LAST_MOMENT = "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"


def write_from_text(text: str, declared: Type, form: CsvForm) -> str:
    """A text as a value of a declared type, else NULL. ``text`` may be written several times."""
    trimmed = DIALECT.trim(text)
    match declared:
        case Type.BOOLEAN:
            return _write_boolean(trimmed)
        case Type.INTEGER:
            return _write_plain_integer(text) if has_plain_numbers(form) else _write_integer(trimmed, form)
        case Type.REAL:
            plain = has_plain_numbers(form)
            return _write_plain_real(text) if plain else write_real_from_text(DIALECT, _write_number(trimmed, form))
        case Type.DATE:
            return f"CAST({_write_moment(trimmed, form)} AS DATE)"
        case Type.TIMESTAMP:
            return _write_moment(trimmed, form)
        case Type.TEXT:
            return text
        case _:
            assert_never(declared)


def _write_boolean(text: str) -> str:
    small = DIALECT.lower(text)
    true, false = (", ".join(map(quote_text, words)) for words in (TRUE_WORDS, FALSE_WORDS))
    return f"CASE WHEN {small} IN ({true}) THEN true WHEN {small} IN ({false}) THEN false END"


def has_plain_numbers(form: CsvForm) -> bool:
    """Whether numbers are written as in a question: with a decimal point and without groups."""
    return not form.thousands and form.decimal == "."


# One pattern with the blanks in it takes a third of the time of texts that are trimmed first. DuckDB's casts to numbers
# pass over blanks at both ends themselves.


def _write_plain_integer(text: str) -> str:
    whole, pointed = (DIALECT.full_match(text, f" *[+-]?{_DIGITS}{end} *") for end in ("", r"\.0*"))
    return (
        f"CASE WHEN {whole} THEN TRY_CAST({text} AS BIGINT) "
        f"WHEN {pointed} THEN TRY_CAST(split_part({text}, '.', 1) AS BIGINT) END"
    )


def _write_plain_real(text: str) -> str:
    return f"CASE WHEN {DIALECT.full_match(text, f' *{_DECIMAL} *')} THEN {DIALECT.parse(text, Type.REAL)} END"


def _write_integer(text: str, form: CsvForm) -> str:
    number = _write_number(text, form)
    fits = DIALECT.full_match(number, rf"[+-]?{_DIGITS}(\.0*)?")
    return f"CASE WHEN {fits} THEN TRY_CAST(split_part({number}, '.', 1) AS BIGINT) END"


def _write_number(text: str, form: CsvForm) -> str:
    """A number in a form of its own, with a decimal point and without groups; NULL or no number for other texts."""
    if not form.thousands:
        return f"CASE WHEN NOT contains({text}, '.') THEN replace({text}, ',', '.') END"
    if form.thousands == " ":  # also those that keep a number on one line
        text = f"replace(replace({text}, chr(160), ' '), chr(8239), ' ')"
    sign, decimal = _escape(form.thousands), _escape(form.decimal)
    digits = rf"(?:[0-9]{{1,3}}(?:{sign}[0-9]{{3}})+|[0-9]*)"
    fits = DIALECT.full_match(text, rf"[+-]?{digits}(?:{decimal}[0-9]*)?(?:[eE][+-]?[0-9]+)?")
    plain = f"replace({text}, {quote_text(form.thousands)}, '')"
    plain = plain if form.decimal == "." else f"replace({plain}, ',', '.')"
    return f"CASE WHEN {fits} THEN {plain} END"


def _escape(sign: str) -> str:
    """A sign as it stands in a pattern in quotes."""
    return {".": r"\.", "'": "''"}.get(sign, sign)


def _write_moment(text: str, form: CsvForm) -> str:
    """A time in UTC, or without a zone, within the years that the plan knows.

    A year of four digits in front cannot be taken for a day, so that order is read in every form.
    """
    # Most times are written in one way, which is also the fastest to read.
    usual = f"{DIALECT.full_match(text, f'{DAY}([ T]{_USUAL_CLOCK})?')} AND {text} >= '0001'"
    branches = [f"WHEN {usual} THEN {DIALECT.parse(text, Type.TIMESTAMP)}"]
    branches += [_write_branch(text, order) for order in dict.fromkeys((DateOrder.YMD, form.dates))]
    return f"CASE {' '.join(branches)} END"


def _write_branch(text: str, order: DateOrder) -> str:
    """What a text in one order of year, month and day is, as a branch of CASE."""
    pattern = f"{'[-/.]'.join(_YEAR if part == 'y' else _PART for part in order)}(?:[ T]{_CLOCK}(?: ?{_ZONE})?)?"
    names = ", ".join(f"'{part}'" for part in (*order, *_CLOCK_PARTS))
    # An empty part is not there. A fraction is filled up with zeros to microseconds, and cut behind them.
    local = (
        "TRY_CAST(p.y || '-' || lpad(p.m, 2, '0') || '-' || lpad(p.d, 2, '0') || ' ' || lpad(p.h, 2, '0') || ':' || "
        "lpad(p.i, 2, '0') || ':' || lpad(p.s, 2, '0') || '.' || rpad(p.f, 6, '0') AS TIMESTAMP)"
    )
    minutes = "(TRY_CAST('0' || p.zh AS BIGINT) * 60 + TRY_CAST('0' || p.zi AS BIGINT))"
    shift = f"CASE p.sign WHEN '+' THEN -{minutes} WHEN '-' THEN {minutes} ELSE 0 END"
    # A list of one is how DuckDB names a value inside an expression, so that it is computed once.
    parts = f"[regexp_extract({text}, '^(?:{pattern})$', [{names}])]"
    moments = f"list_transform({parts}, lambda p: TRY({local} + to_minutes({shift})))"
    known = f"list_filter({moments}, lambda m: m BETWEEN {FIRST_MOMENT} AND {LAST_MOMENT})[1]"
    return f"WHEN {DIALECT.full_match(text, pattern)} THEN {known}"
