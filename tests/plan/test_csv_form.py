"""How CSV files are written: forms and names follow from public things, the file's name and its first line."""

from __future__ import annotations

import bz2
import gzip
import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.errors import UsageError
from discreet.plan.csv_form import (
    DELIMITERS,
    CsvEncoding,
    CsvForm,
    guess_form,
    name_columns,
    open_bytes,
    read_first_line,
    split_header,
    to_utf8,
)

LATIN = CsvForm(encoding=CsvEncoding.LATIN1)


def pack(path: Path, data: bytes) -> None:
    """Write a file as its ending says, in two pieces where a format allows that."""
    halves = data[: len(data) // 2], data[len(data) // 2 :]
    match path.suffix:
        case ".gz":
            path.write_bytes(b"".join(gzip.compress(half) for half in halves))
        case ".bz2":
            path.write_bytes(b"".join(bz2.compress(half) for half in halves))
        case ".zst":
            path.write_bytes(b"".join(pa.Codec("zstd").compress(half, asbytes=True) for half in halves))
        case _:
            path.write_bytes(data)


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".zst"])
def test_compressed_files_are_unpacked_whole(ending: str, tmp_path: Path) -> None:
    """Also files that were made of several compressed pieces, as ``cat a.gz b.gz`` makes them."""
    path = tmp_path / f"v.csv{ending}"
    data = b"a,b\n" + b"1,2\n" * 300_000
    pack(path, data)
    with open_bytes(str(path)) as file:
        assert file.readline(1 << 20) == b"a,b\n" and file.read() == data[4:]
    assert read_first_line(str(path)) == b"a,b\n"


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".zst"])
def test_damaged_files_are_refused_in_our_own_words(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"v.csv{ending}"
    for data in (b"Jane Doe,1\n", b"\x1f\x8b\x08\x00Jane"):
        path.write_bytes(data)
        with pytest.raises(UsageError, match="cannot be read") as refused:
            read_first_line(str(path))
        assert "Jane" not in str(refused.value) and refused.value.__suppress_context__
    pack(path, b"a,b\n" * 300_000)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises((OSError, EOFError)), open_bytes(str(path)) as file:
        file.read()


def test_headers_are_split_by_the_strict_pattern() -> None:
    for line, form, fields in (
        (b'a;"b ""c"";d";\n', CsvForm(delimiter=";"), ("a", 'b "c";d', "")),
        (b"a|b,c\r\n", CsvForm(delimiter="|"), ("a", "b,c")),
        ("größe,ä\n".encode("latin-1"), LATIN, ("größe", "ä")),
        (b"\x80\n", LATIN, ("€",)),
        ("größe\n".encode("latin-1"), CsvForm(), None),
        (b'a,"b\n', CsvForm(), None),
        (b'a,b"c"\n', CsvForm(), None),
        (b"a\0b\n", CsvForm(), None),
        (b"a\rb\n", CsvForm(), None),
    ):
        assert split_header(line, form) == fields


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_every_short_header_splits_as_joined(delimiter: str) -> None:
    """All headers of up to three fields out of hostile ones: what was joined is what is split."""
    fields = ["", "a", '"', delimiter, "\t", ",", 'x"y', " "]
    for size in (1, 2, 3):
        for row in itertools.product(fields, repeat=size):
            line = delimiter.join('"' + field.replace('"', '""') + '"' for field in row)
            assert split_header(line.encode(), CsvForm(delimiter=delimiter)) == row


def test_every_byte_is_a_character_of_latin_1() -> None:
    """Byte by byte, so that no byte changes what another one is; as browsers read it."""
    whole = bytes(range(256))
    one_by_one = [to_utf8(bytes([byte]), CsvEncoding.LATIN1) for byte in whole]
    assert b"".join(one_by_one) == to_utf8(whole, CsvEncoding.LATIN1)
    assert one_by_one[0xE4] == "ä".encode() and one_by_one[0x80] == "€".encode() and one_by_one[0x81] == b"\xc2\x81"
    assert [piece for piece in one_by_one if b"\n" in piece] == [b"\n"]


def test_names_are_there_once() -> None:
    assert name_columns(("", "year", "month")) == ("column_1", "year", "month")
    assert name_columns(("a", "A", "a", "a_2", "")) == ("a", "A_2", "a_3", "a_2_2", "column_5")


@pytest.mark.parametrize(
    ("line", "path", "delimiter"),
    [
        (b"a;b;c,d", "x.csv", ";"), (b"a\tb", "x.txt", "\t"), (b"a|b", "x.csv.gz", "|"), (b"a,b;c", "x.csv", ","),
        (b"alone", "x.csv", ","), (b"alone", "x.tsv", "\t"), (b'"a;b;c",d', "x.csv", ","), (b'"open', "x.csv", ","),
    ],
)  # fmt: skip
def test_delimiters_follow_from_the_header(line: bytes, path: str, delimiter: str) -> None:
    assert guess_form(line, path).delimiter == delimiter
