"""What people write for numbers, truths and times is read as they mean it, each text alone, and never fails."""

# ruff: noqa: DTZ001, S311  # plan timestamps have no zone; worlds need seeds, not secrets
from __future__ import annotations

import datetime as dt
import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from discreet.engines.duckdb.scanning import StoredColumn, write_stored_column
from discreet.engines.duckdb.stored_texts import FALSE_WORDS, TRUE_WORDS
from discreet.plan.csv_form import DECIMALS, PLAIN_FORM, THOUSANDS, CsvForm, DateOrder
from discreet.plan.types import Type

TYPED = [kind for kind in Type if kind is not Type.TEXT]


def read(texts: Sequence[str | None], kind: Type, form: CsvForm = PLAIN_FORM) -> list[Any]:
    """What a scan makes of texts, in a session of a zone far from UTC."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Pacific/Auckland'")
        connection.register("stored", pa.table({"n": range(len(texts)), "x": pa.array(texts, pa.string())}))
        value = write_stored_column(StoredColumn("x", "VARCHAR", form), kind, 1000)
        found = connection.execute(f"SELECT {value} FROM stored ORDER BY n").fetchall()
    return [row[0] for row in found]


MOMENT = re.compile(
    r"(?P<day>[0-9./-]+)(?:[ T](?P<h>[0-9]{1,2}):(?P<i>[0-9]{2})(?::(?P<s>[0-9]{2})(?:[.,](?P<f>[0-9]{1,9}))?)?"
    r"(?: ?(?P<z>Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?)?"
)


def moment_of(text: str, order: DateOrder) -> dt.datetime | None:
    """The rule, said slowly: the year first, or the order of the form."""
    found = [moment for way in {DateOrder.YMD, order} if (moment := moment_in(text, way)) is not None]
    return found[0] if found else None


def moment_in(text: str, order: DateOrder) -> dt.datetime | None:
    found = MOMENT.fullmatch(text.strip(" "))
    if found is None or not text.isascii():
        return None
    part = dict(zip(order, re.split("[-/.]", found["day"])))
    widths = {name: len(value) for name, value in part.items()}
    if len(re.split("[-/.]", found["day"])) != 3 or widths["y"] != 4 or not {widths["m"], widths["d"]} <= {1, 2}:
        return None
    zone = found["z"] or "Z"
    hours, minutes = (0, 0) if zone[0] not in "+-" else (int(zone[1:3]), int(zone[3:].lstrip(":") or 0))
    if hours > 15 or minutes > 59:
        return None
    try:
        local = dt.datetime(int(part["y"]), int(part["m"]), int(part["d"]), int(found["h"] or 0), int(found["i"] or 0),
                            int(found["s"] or 0), int((found["f"] or "0").ljust(6, "0")[:6]))  # fmt: skip
        return local - dt.timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)
    except (ValueError, OverflowError):
        return None


DATES = ["2013-01-31", "2013/1/5", "31.12.2013", "1/2/2013", "12/31/2013", "2013-02-29", "2012-02-29", "0001-01-01",
         "9999-12-31", "0000-01-01", "13-1-2", "2013-1", "20130105", "2013-13-01"]  # fmt: skip
CLOCKS = ["", " 05:07", "T05:07:09", " 5:07", " 23:59:59.9999999", "T00:00:00.123456789", " 12:00:00,5", " 24:00:00",
          " 23:60", " 23:59:60", " 05", "  05:07"]  # fmt: skip
ZONES = [
    "",
    "Z",
    "z",
    " UTC",
    "+02:00",
    "-0530",
    "+14",
    "-15:59",
    "+16:00",
    "+2",
    " +05:30",
    " Europe/Berlin",
    "+02:60",
]


@pytest.mark.parametrize("order", DateOrder)
def test_all_ways_to_write_a_time(order: DateOrder) -> None:
    """Every date with every clock and every zone, against the slow rule; a date is the day of the time."""
    texts = ["".join(parts) for parts in itertools.product(DATES, CLOCKS, ZONES)]
    texts += [f" {text} " for text in texts[:50]] + ["", " ", "x", "infinity", "now", "epoch", "２０１３-01-01"]
    wanted = [moment_of(text, order) for text in texts]
    form = CsvForm(dates=order)
    assert read(texts, Type.TIMESTAMP, form) == wanted
    assert read(texts, Type.DATE, form) == [None if moment is None else moment.date() for moment in wanted]
    assert sum(moment is not None for moment in wanted) > 100


def test_times_that_people_have() -> None:
    noon = dt.datetime(2013, 7, 1, 12)
    for text in (
        "2013-07-01T12:00:00Z",
        "2013-07-01 12:00",
        "2013-07-01T14:00:00+02:00",
        "2013-07-01 14:00:00.000+0200",
        "2013-07-01 12:00:00.000000000 UTC",
        "2013-07-01T05:00:00.000000-07",
        "2013/07/01 12:00:00",
    ):
        assert read([text], Type.TIMESTAMP) == [noon], text


def test_integers_that_people_have() -> None:
    largest = 2**63 - 1
    cases = {"3750.0": 3750, "3750": 3750, " 7 ": 7, "+7": 7, "-7.": -7, "7.00": 7, "0.0": 0, "-0.0": 0,
             str(largest): largest, f"{largest}.0": largest, str(largest + 1): None, str(-largest - 1): -largest - 1,
             "7.5": None, "7e3": None, "1,234": None, "": None, "x": None, "0x10": None, "1_000": None, "٣": None,
             "9" * 400: None, "7." + "0" * 400: 7, ".0": None, "-": None}  # fmt: skip
    assert dict(zip(cases, read(list(cases), Type.INTEGER))) == cases


def test_truths_that_people_have() -> None:
    words = [*TRUE_WORDS, *FALSE_WORDS]
    assert {"yes", "y", "t", "1", "no", "n", "f", "0"} <= set(words)
    for shape in (str.lower, str.upper, str.title, lambda word: f" {word} "):
        found = read([shape(word) for word in words], Type.BOOLEAN)
        assert found == [True] * len(TRUE_WORDS) + [False] * len(FALSE_WORDS)
    assert read(["2", "ja", "", None, "yess", "-1", "ＹＥＳ"], Type.BOOLEAN) == [None] * 7


@pytest.mark.parametrize("decimal", DECIMALS)
@pytest.mark.parametrize("thousands", ["", *THOUSANDS])
def test_numbers_in_every_form(decimal: str, thousands: str) -> None:
    """What is written in a form is read back; the same digits in another form are NULL, not another number."""
    if decimal == thousands:
        return
    form = CsvForm(decimal=decimal, thousands=thousands)

    def write(number: float, places: int) -> str:
        swap = {",": thousands, ".": decimal}
        return "".join(swap.get(sign, sign) for sign in f"{number:,.{places}f}")

    numbers = [0.0, 1.5, -12.25, 999.0, 1234.5, -9876543.25, 1e9]
    assert read([write(number, 2) for number in numbers], Type.REAL, form) == numbers
    whole = [number for number in numbers if number == int(number)]
    assert read([write(number, 1) for number in whole], Type.INTEGER, form) == [int(number) for number in whole]
    if thousands:
        wrong = [
            f"1{thousands}23",
            f"1{thousands}2345",
            f"1{thousands}23{thousands}456",
            f"12{thousands}{thousands}345",
            f"1{decimal}5{thousands}000",
        ]
        assert read(wrong, Type.REAL, form) == [None] * 5
    other = {".": ",", ",": "."}[decimal]
    assert read([f"1{other}5"], Type.REAL, form) == [None]
    if thousands == " ":
        assert read(["1\u00a0234", "1\u202f234"], Type.INTEGER, form) == [1234, 1234]


@pytest.mark.parametrize("seed", range(8))
def test_one_odd_cell_changes_no_other(seed: int) -> None:
    """Neighbours: any text, in any form and type, with and without an odd one; what the others are stays."""
    rng = random.Random(seed)
    pieces = ["2013-01-31", "T", " ", "05:07:09", "+02:00", "Z", ".", ",", "'", "1", "234", "-", "e9", "yes", "t",
              "NaN", "inf", "ä", "\u202f", "9" * 30, "\\", "%", "\n", "🙂"]  # fmt: skip
    texts = ["".join(rng.choice(pieces) for _ in range(rng.randrange(6))) for _ in range(200)]
    for kind in TYPED:
        form = replace(
            PLAIN_FORM, dates=rng.choice(list(DateOrder)), decimal=",", thousands=rng.choice([".", " ", "'"])
        )
        alone = [read([text], kind, form)[0] for text in texts[:6]]
        together = read(texts, kind, form)
        assert together[:6] == alone
        odd = rng.randrange(200)
        assert read(texts[:odd] + texts[odd + 1 :], kind, form) == together[:odd] + together[odd + 1 :]
