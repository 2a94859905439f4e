"""One line of a CSV file is one row or none, whatever the other lines are."""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import csv
import itertools
import logging
import os
import random
import re
from pathlib import Path

import duckdb
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb import csv_lines
from discreet.engines.duckdb.csv_lines import LineFault, read_block, read_names, read_rows
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.plan.arrow import is_utf8
from discreet.plan.relations import Scan
from discreet.plan.types import Type
from tests.engines.duckdb.test_sources import catalog_of
from tests.engines.worlds import SALT

Row = tuple[str | None, ...]

FIELD = rb'(?:[^",]*|"(?:[^"]|"")*")'


def row_of_line(line: bytes, width: int) -> Row | None:
    """The rule, said slowly, for one line alone without its line feed."""
    if len(line) > csv_lines.LINE_LIMIT or not is_utf8(line) or b"\0" in line:
        return None
    line = line.removesuffix(b"\r")
    if b"\r" in line or re.fullmatch(FIELD + rb"(?:," + FIELD + rb")*", line, re.DOTALL) is None:
        return None
    fields = next(csv.reader([line.decode()], strict=True)) or [""]
    return tuple(field or None for field in fields) if len(fields) == width else None


def rows_of_block(block: bytes, width: int) -> list[Row]:
    columns, _ = read_block(block, width)
    return list(zip(*(column.to_pylist() for column in columns)))


def rows_of_file(path: Path, width: int) -> list[Row]:
    found: list[Row] = []
    read_rows(str(path), width, lambda columns: found.extend(zip(*(column.to_pylist() for column in columns))))
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


def test_every_fault_is_counted(tmp_path: Path) -> None:
    """The owner is told why lines are left out; the first reason counts."""
    path = tmp_path / "v.csv"
    bad = [b"x" * (csv_lines.LINE_LIMIT + 1), b"\xff,1", b"a\0,1", b"a\rb,1", b'"a,1', b"", b"1", b"1,2,3"]
    path.write_bytes(b"\n".join([b"a,b", *bad, b"1,2", b"z" * (9 << 20), b"3,4\r"]))
    counts = read_rows(str(path), 2, lambda _: None)
    assert counts.rows == 2 and counts.left_out == 9
    assert counts.faults == dict.fromkeys(LineFault, 1) | {LineFault.TOO_LONG: 2, LineFault.FIELDS: 2}


def test_headers_follow_the_same_rule(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    for header, names in {
        b"\xef\xbb\xbfa,b\r\n\xff": ("a", "b"),
        b'"a, ""b""",c': ("a, \"b\"", "c"),
        b"a\rb\n1\n": None,
        b'a,"b\n': None,
        b"": ("",),
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
