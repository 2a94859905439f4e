"""One line of a CSV file is one row or none, whatever the other lines are."""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import csv
import itertools
import logging
import os
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb import csv_lines
from discreet.engines.duckdb.csv_lines import LineFault, read_block, read_names, read_rows
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.plan.arrow import is_utf8
from discreet.plan.csv_form import PLAIN_FORM, CsvEncoding, CsvForm, to_utf8
from discreet.plan.relations import Scan
from discreet.plan.types import Type
from tests.engines.duckdb.test_sources import catalog_of
from tests.engines.worlds import SALT
from tests.plan.test_csv_form import pack

Row = tuple[str | None, ...]

FIELD = rb'(?:[^",]*|"(?:[^"]|"")*")'


def row_of_line(line: bytes, width: int, form: CsvForm = PLAIN_FORM) -> Row | None:
    """The rule, said slowly, for one line alone without its line feed."""
    line = to_utf8(line, form.encoding)
    if len(line) > csv_lines.LINE_LIMIT or not is_utf8(line) or b"\0" in line:
        return None
    line = line.removesuffix(b"\r")
    sign = re.escape(form.delimiter.encode())
    field = FIELD.replace(b",", sign)
    if b"\r" in line or re.fullmatch(field + b"(?:" + sign + field + b")*", line, re.DOTALL) is None:
        return None
    fields = next(csv.reader([line.decode()], strict=True, delimiter=form.delimiter)) or [""]
    return tuple(field or None for field in fields) if len(fields) == width else None


def rows_of_block(block: bytes, width: int) -> list[Row]:
    columns, _ = read_block(block, width)
    return list(zip(*(column.to_pylist() for column in columns)))


def rows_of_file(path: Path, width: int, form: CsvForm = PLAIN_FORM) -> list[Row]:
    found: list[Row] = []

    def take(columns: Sequence[Any]) -> None:
        found.extend(zip(*(column.to_pylist() for column in columns)))

    read_rows(str(path), (None,) * width, take, form)
    return found


PIECES = [
    b'"', b'""', b",", b",,", b"\r", b"\r\r", b"\0", b"\xff", b"\xc3", b"\xc3\xa4", b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80",
    b"a", b" ", b"1,A,2", b'"x,y"', b'"a""b",', b"\\", b"'", b"\x1a", b"\x0b", b"\x85", b"\xe2\x80\xa8",
    b"\xef\xbb\xbf",
]  # fmt: skip


def hostile_line(rng: random.Random) -> bytes:
    if rng.random() < 0.4:
        return rng.choice([b"1,A,2", b'1,"A, b",2', b'"1","","2"', b",,", b'1,"say ""hi""",3'])
    return b"".join(rng.choice(PIECES) for _ in range(rng.randrange(8)))


@pytest.mark.parametrize("width", [1, 2, 3])
def test_every_short_line_is_read_by_the_rule(width: int) -> None:
    """All lines of up to six of the bytes that matter, alone and next to an open quote."""
    letters = [b'"', b",", b"a", b"\r", b"\xff"]
    lines = [b"".join(line) for size in range(7) for line in itertools.product(letters, repeat=size)]
    wanted = [row for line in lines if (row := row_of_line(line, width)) is not None]
    assert rows_of_block(b"".join(line + b"\n" for line in lines), width) == wanted
    assert rows_of_block(b"".join(line + b'\n"\n' for line in lines), width) == wanted
    assert len(wanted) > 10


@pytest.mark.parametrize("seed", range(60))
def test_the_rows_of_a_file_are_those_of_its_lines(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hostile files, in blocks of all sizes: each line gives the row that it gives alone."""
    rng = random.Random(seed)
    limit = rng.choice([6, 12, 1 << 20])
    monkeypatch.setattr(csv_lines, "LINE_LIMIT", limit)
    monkeypatch.setattr(csv_lines, "BLOCK_BYTES", rng.choice([1, 2, 3, 7, 64, 8 << 20]))
    monkeypatch.setattr(csv_lines, "LEAST_PIECE", rng.choice([1, 20, 1 << 20]))
    lines = [hostile_line(rng) for _ in range(rng.randrange(60))]
    path = tmp_path / "v.csv"
    path.write_bytes(b"\n".join([b"a,b,c", *lines]) + rng.choice([b"", b"\n"]))
    if lines and not lines[-1] and path.read_bytes().endswith(b"\n\n") is False:
        lines.pop()  # nothing behind the last line feed is no line
    assert rows_of_file(path, 3) == [row for line in lines if (row := row_of_line(line, 3)) is not None]


@pytest.mark.parametrize("seed", range(20))
def test_one_line_more_is_one_row_more(seed: int) -> None:
    """Neighbours: taking one line out takes its own row out, and leaves all others as they were."""
    rng = random.Random(seed)
    lines = [hostile_line(rng) for _ in range(12)]
    alone = [rows_of_block(line + b"\n", 3) for line in lines]
    for i in range(len(lines)):
        without = b"".join(line + b"\n" for line in lines[:i] + lines[i + 1 :])
        assert rows_of_block(without or b"\n", 3) == [row for rows in alone[:i] + alone[i + 1 :] for row in rows]


FORMS = [
    CsvForm(delimiter=delimiter, encoding=encoding)
    for delimiter in (",", ";", "\t", "|")
    for encoding in CsvEncoding
]  # fmt: skip


@pytest.mark.parametrize("ending", ["", ".gz", ".zst", ".bz2"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.delimiter!r} {form.encoding}")
def test_neighbouring_files_of_every_form(
    form: CsvForm, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without one odd line, in every delimiter, encoding and compression: all other rows stay as they were."""
    rng = random.Random(repr((form, ending)))
    monkeypatch.setattr(csv_lines, "BLOCK_BYTES", 64)
    monkeypatch.setattr(csv_lines, "LINE_LIMIT", 90)
    sign = form.delimiter.encode()
    odd_lines = [hostile_line(rng).replace(b",", sign) for _ in range(12)]
    odd_lines += [b'1"' + sign, b"\xff\xfe\x81\x8d", b"x" * 91, b"x" * 300, b'"' + sign + b"\xe4", b"\xef\xbb\xbf", b""]
    for odd in odd_lines:
        lines = [hostile_line(rng).replace(b",", sign) for _ in range(10)]
        place = rng.randrange(10)
        alone = [[] if (row := row_of_line(line, 3, form)) is None else [row] for line in lines]
        odd_row = row_of_line(odd, 3, form)
        found = []
        for name, written in (("without", lines), ("with", [*lines[:place], odd, *lines[place:]])):
            path = tmp_path / f"{name}.csv{ending}"
            pack(path, b"".join(line + b"\n" for line in [sign.join([b"a", b"b", b"c"]), *written]))
            found.append(rows_of_file(path, 3, form))
        before, behind = ([row for rows in part for row in rows] for part in (alone[:place], alone[place:]))
        assert found[0] == [*before, *behind]
        assert found[1] == [*before, *([] if odd_row is None else [odd_row]), *behind]


def test_the_form_matters(tmp_path: Path) -> None:
    """Negative control: the same bytes are other rows in another form."""
    path = tmp_path / "v.csv"
    path.write_bytes(b"a;b\n1;\xe4\n")
    assert rows_of_file(path, 2, CsvForm(delimiter=";", encoding=CsvEncoding.LATIN1)) == [("1", "ä")]
    assert rows_of_file(path, 2, CsvForm(delimiter=";")) == [] == rows_of_file(path, 2)


def test_every_fault_is_counted(tmp_path: Path) -> None:
    """The owner is told why lines are left out; the first reason counts."""
    path = tmp_path / "v.csv"
    bad = [b"x" * (csv_lines.LINE_LIMIT + 1), b"\xff,1", b"a\0,1", b"a\rb,1", b'"a,1', b"", b"1", b"1,2,3"]
    path.write_bytes(b"\n".join([b"a,b", *bad, b"1,2", b"z" * (9 << 20), b"3,4\r"]))
    counts = read_rows(str(path), (None, None), lambda _: None)
    assert counts.rows == 2 and counts.left_out == 9
    assert counts.faults == dict.fromkeys(LineFault, 1) | {LineFault.TOO_LONG: 2, LineFault.FIELDS: 2}


def test_odd_lines_cost_time_for_their_own_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a block with one odd line an eighth is looked at line by line, and all rows are there, in order."""
    monkeypatch.setattr(csv_lines, "LEAST_PIECE", 4 << 10)
    path, looked = tmp_path / "v.csv", list[int]()

    def look(block: bytes, width: int, delimiter: str) -> tuple[list[Any], Counter[LineFault]]:
        looked.append(len(block))
        return read_block(block, width, delimiter)

    monkeypatch.setattr(csv_lines, "read_block", look)
    lines = [f"{i},x{i}" for i in range(4000)]
    path.write_text("\n".join(["a,b", *lines[:1000], '1,"open', *lines[1000:]]))
    assert [f"{a},{b}" for a, b in rows_of_file(path, 2)] == lines
    assert len(looked) == 1 and looked[0] < 4 << 10 < path.stat().st_size / 8


def test_headers_follow_the_same_rule(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    for header, names in {
        b"\xef\xbb\xbfa,b\r\n\xff": ("a", "b"),
        b'"a, ""b""",c': ("a, \"b\"", "c"),
        b"a\rb\n1\n": None,
        b'a,"b\n': None,
        b"": None,
        b",year, Year": ("column_1", "year", "Year_2"),
    }.items():  # fmt: skip
        path.write_bytes(header)
        assert read_names(str(path)) == names


COUNT = BoundedPlan(source=Scan("visits"), keys=(), domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),))


def test_an_open_quote_takes_no_other_line_along(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One person's line before 2,000 good ones. Negative control: a plain ``read_csv`` loses them all."""
    path = tmp_path / "v.csv"
    path.write_text('who,ward,cost\n0,"open,40\n' + "".join(f"{i},A,{i}\n" for i in range(2000)))
    engine = DuckDBEngine(
        {"visits": path}, catalog_of({"who": Type.INTEGER, "ward": Type.TEXT}), temp_directory=tmp_path
    )
    with caplog.at_level(logging.WARNING, logger="discreet.curator"):
        assert engine.run(COUNT, salt=SALT).values == ((2000,),)
        assert engine.run(COUNT, salt=SALT).values == ((2000,),)
    assert [record.getMessage() for record in caplog.records] == [
        f"1 lines of {path} are left out: {LineFault.QUOTES.words}."
    ]
    (copy,) = tmp_path.glob("discreet-*/copy-*")
    assert copy.stat().st_mode & 0o777 == 0o600
    plain = (
        duckdb.connect()
        .execute(
            f"SELECT count(*) FROM read_csv('{path}', auto_detect = false, header = true, delim = ',', quote = '\"', "
            "escape = '\"', columns = {'a': 'VARCHAR', 'b': 'VARCHAR', 'c': 'VARCHAR'}, ignore_errors = true, "
            "strict_mode = false)"
        )
        .fetchall()
    )
    assert plain != [(2000,)]
    engine.close()


def test_a_copy_follows_the_data(tmp_path: Path) -> None:
    """A changed file is copied again, and the copy of the old one is gone."""
    path = tmp_path / "v.csv"
    path.write_text("who,ward\n1,A\n")
    engine = DuckDBEngine({"visits": path}, catalog_of({"who": Type.INTEGER}), temp_directory=tmp_path)
    assert engine.run(COUNT, salt=SALT).values == ((1,),)
    path.write_text("who,ward\n1,A\n2,B\n")
    os.utime(path, ns=(1, 1))
    assert engine.run(COUNT, salt=SALT).values == ((2,),)
    assert len(list(tmp_path.glob("discreet-*/copy-*"))) == 1
    engine.close()
