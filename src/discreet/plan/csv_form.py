"""How a CSV file is written: its delimiter, encoding, numbers and dates, and the names in its header.

All of this is public. It is declared in the codebook or follows from the file's name and its first line; nothing is
guessed from rows, because a guess would change with one person's row. Each value is read by itself, so a form never
lets one line change what another one means.
"""

from __future__ import annotations

import bz2
import gzip
import io
import re
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, cast

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass

LINE_LIMIT = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# How files in 16-bit characters begin, as some spreadsheets write them.
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")

DELIMITERS = (",", ";", "\t", "|")
DECIMALS = (".", ",")
THOUSANDS = (",", ".", " ", "'")
# Endings of text tables; behind each of them may stand one of a compressed file.
_DELIMITER_OF_ENDING = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t", ".psv": "|"}
TEXT_ENDINGS = tuple(_DELIMITER_OF_ENDING)
PACKED_ENDINGS = (".gz", ".zst", ".bz2")


class CsvEncoding(StrEnum):
    """How bytes are characters. Latin-1 is read as browsers do, as Windows-1252: then every byte is a character."""

    UTF8 = "utf-8"
    LATIN1 = "latin-1"


class DateOrder(StrEnum):
    """The order of year, month and day where a date is written in digits."""

    YMD = "ymd"
    DMY = "dmy"
    MDY = "mdy"


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvForm:
    """How a CSV file, or a column of texts, is written. The defaults are those of most programs."""

    delimiter: str = ","
    encoding: CsvEncoding = CsvEncoding.UTF8
    decimal: str = "."
    thousands: str = ""
    dates: DateOrder = DateOrder.YMD


PLAIN_FORM = CsvForm()


def find_text_ending(path: str) -> str | None:
    """The ending of a text table, without that of a compressed file; None for other files.

    >>> find_text_ending("Visits.TSV.gz"), find_text_ending("visits.parquet")
    ('.tsv', None)
    """
    name = path.lower()
    packed = next((ending for ending in PACKED_ENDINGS if name.endswith(ending)), "")
    return next((ending for ending in TEXT_ENDINGS if name.removesuffix(packed).endswith(ending)), None)


def delimiter_of_path(path: str) -> str:
    """The delimiter that the name of a file says, a comma where it says none.

    >>> delimiter_of_path("a.psv"), delimiter_of_path("a.csv.gz")
    ('|', ',')
    """
    return _DELIMITER_OF_ENDING.get(find_text_ending(path) or "", ",")


def open_bytes(path: str) -> BinaryIO:
    """A file to read, decompressed if its ending says that it is compressed."""
    name = path.lower()
    if name.endswith(".gz"):
        return cast(BinaryIO, gzip.open(path, "rb"))
    if name.endswith(".bz2"):
        return cast(BinaryIO, bz2.open(path, "rb"))
    if name.endswith(".zst"):
        import pyarrow as pa

        return io.BufferedReader(cast(Any, pa.input_stream(path, compression="zstd")))
    return Path(path).open("rb")


def read_first_line(path: str) -> bytes:
    """The first line without a byte order mark. What follows it is not looked at; damaged files are refused."""
    import zlib

    from pyarrow import ArrowException

    try:
        with open_bytes(path) as file:
            return file.readline(LINE_LIMIT + 1).removeprefix(BYTE_ORDER_MARK)
    except (OSError, EOFError, zlib.error, ArrowException):
        raise UsageError(f"The file {path!r} cannot be read. Nothing was charged.") from None


def to_utf8(text: bytes, encoding: CsvEncoding) -> bytes:
    """Bytes of a file as UTF-8. A file that is said to be UTF-8 is left as it is, faults included."""
    if encoding is CsvEncoding.UTF8 or text.isascii():
        return text
    return text.decode("latin-1").translate(_WINDOWS).encode()


def _list_windows() -> dict[int, str]:
    """What Windows-1252 has where Latin-1 has control characters. Five bytes stay what they are in Latin-1."""
    found = {}
    for byte in range(0x80, 0xA0):
        try:
            found[byte] = bytes([byte]).decode("cp1252")
        except UnicodeDecodeError:
            continue
    return found


_WINDOWS = _list_windows()


def split_header(line: bytes, form: CsvForm) -> tuple[str, ...] | None:
    """The fields of a first line as they stand, by the strict pattern of ``engines.duckdb.csv_lines``; else None."""
    text = to_utf8(line.removesuffix(b"\n").removesuffix(b"\r"), form.encoding)
    try:
        whole = text.decode()
    except UnicodeDecodeError:
        return None
    if len(text) > LINE_LIMIT or "\0" in whole or "\r" in whole:
        return None
    sign = re.escape(form.delimiter)
    field = re.compile(rf'(?:"((?:[^"]|"")*)"|([^"{sign}]*))({sign}|$)')
    fields, place, more = [], 0, True
    while more:
        found = field.match(whole, place)
        if found is None:
            return None
        fields.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        place, more = found.end(), bool(found[3])
    return tuple(fields)


def name_columns(fields: tuple[str, ...]) -> tuple[str, ...]:
    """The names of columns: those of the header without spaces around them, each once.

    A field without a name, as pandas writes above row numbers, is called after its place; a name that is there again
    gets a number. Names that differ in capitals only are the same name.

    >>> name_columns(("", "age", " Age", "column_1"))
    ('column_1', 'age', 'Age_2', 'column_1_2')
    """
    taken: set[str] = set()
    names: list[str] = []
    for place, field in enumerate(fields, start=1):
        wanted = name = field.strip() or f"column_{place}"
        again = 1
        while name.lower() in taken:
            again += 1
            name = f"{wanted}_{again}"
        taken.add(name.lower())
        names.append(name)
    return tuple(names)


def guess_form(line: bytes, path: str) -> CsvForm:
    """The delimiter and the encoding that a first line shows: of the delimiters the one that makes most fields.

    >>> guess_form("größe;alter;ort, land".encode("latin-1"), "a.csv") == CsvForm(delimiter=";", encoding="latin-1")
    True
    """
    try:
        line.decode()
        encoding = CsvEncoding.UTF8
    except UnicodeDecodeError:
        encoding = CsvEncoding.LATIN1
    forms = [CsvForm(delimiter=sign, encoding=encoding) for sign in (delimiter_of_path(path), *DELIMITERS)]
    return max(forms, key=lambda form: len(split_header(line, form) or ()))
