"""Arrow's reader gives what the lines give one by one, or nothing at all."""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import itertools
import random
import struct
from contextlib import closing
from typing import Any

import pytest

from discreet.engines.duckdb import csv_lines, plain_lines
from discreet.engines.duckdb.csv_lines import read_block
from discreet.engines.duckdb.plain_lines import read_plain_block
from discreet.engines.duckdb.sources import Csv
from discreet.engines.duckdb.table_copies import NumberReader
from discreet.plan.csv_form import PLAIN_FORM
from discreet.plan.types import Type

KINDS = (Type.INTEGER, Type.REAL, None)
NUMBERS = NumberReader(Csv((), ("i", "r", "t")), KINDS)

Rows = list[tuple[Any, ...]]


def slow_rows(block: bytes) -> Rows:
    """What lines are one by one, and their numbers by the expressions of questions."""
    texts, _ = read_block(block, len(KINDS))
    return list(zip(*(column.to_pylist() for column in NUMBERS.read(texts))))


def plain_rows(block: bytes) -> Rows | None:
    columns = read_plain_block(block, KINDS, ",")
    return None if columns is None else list(zip(*(column.to_pylist() for column in columns)))


def make_block(text: str) -> bytes:
    return f"{text},,a\n,{text},b\n".encode()


TEXTS = [
    "1", "-1", "+1", "007", "0" * 40 + "12", "-" + "0" * 40 + "12", "0x1F", "0X1f", "-0x1", "1_000", " 5", "5 ",
    "  5  ", "\t5", "5\t", "5.0", "5.", "1e3", "-", "", "  ", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", "99999999999999999999", "inf", "nan", "Infinity", "-inf",
    "NaN(abc)", "-nan", "1e400", "1e-400", "-1e-400", "4.9e-324", "2e-324", ".5", "-.5", "+.5", ".", "e5", "1e",
    "1e+", "1E5", "1e+5", "1d5", "0x1p3", "1" * 300, "1" * 400, "0." + "1" * 500, "-0", "-0.0", "0.0", "1 2",
    "1e05", "1e000005", "1e-00000000000000000000000005", "1e99999999999999999999", "0e99999999999999999999",
    "\u0661", "\u00a05", "\x0b5", "5\x0c", "true", "1.5f", "--1", "+-1", "1.7976931348623158e308",
    "1.7976931348623159e308", "9007199254740993", "0b1", "1,5", "\u221e", "\ufeff1", "#N/A", "NULL",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:24]))
def test_numbers_are_the_same_or_not_read(text: str) -> None:
    block = make_block(text)
    found = plain_rows(block)
    assert found is None or found == slow_rows(block)


def test_plain_numbers_are_read() -> None:
    """Negative control: most blocks are not refused."""
    taken = [text for text in TEXTS if plain_rows(make_block(text)) is not None]
    assert {"1", "-1", "007", " 5", "9223372036854775807", "-0", ""} <= set(taken)
    rows = plain_rows(b"1,2.5,x y\r\n,,\n-3,1e3,\xc3\xa4\n")
    assert rows == [(1, 2.5, "x y"), (None, None, None), (-3, 1000.0, "ä")]


@pytest.mark.parametrize("seed", range(4))
def test_reals_of_all_sizes(seed: int) -> None:
    rng, lines = random.Random(seed), []
    for _ in range(3000):
        real = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0]
        forms = [repr(real), f"{real:.17g}", f"{real:.30e}", f"{rng.getrandbits(70)}.{rng.getrandbits(90)}"]
        text = rng.choice(forms)
        if "n" not in text:
            lines.append(f"{rng.randrange(-(2**63), 2**63)},{text},t\n")
    block = "".join(lines).encode()
    assert plain_rows(block) == slow_rows(block) and len(lines) > 2900


def test_every_short_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of up to three pieces that matter. Negative control: without its own looks it would differ."""
    pieces = [b",,", b",1,", b"\n", b"1", b"\r", b"\t", b"0x"]
    blocks = [b"".join(some) + b"\n" for size in range(4) for some in itertools.product(pieces, repeat=size)]

    def count_wrong() -> tuple[int, int]:
        found = {block: rows for block in blocks if (rows := plain_rows(block))}
        return sum(rows != slow_rows(block) for block, rows in found.items()), len(found)

    wrong, read = count_wrong()
    assert not wrong and read > 10
    for look, answer in (("_is_odd", False), ("_has_all_fields", True)):
        with monkeypatch.context() as careless:
            careless.setattr(plain_lines, look, lambda *_, answer=answer: answer)
            assert count_wrong()[0] > 0


@pytest.mark.parametrize(
    "block", [b"\xef\xbb\xbf1,1,a\n", b'1,1,"a"\n', b"1,1,\0\n", b"1,1,\xff\n", b"1,1,a\rb\n", b"1,1\n", b"1,1,a,b\n"]
)
def test_odd_blocks_are_not_read(block: bytes) -> None:
    assert plain_rows(block) is None


def quoted_rows(block: bytes, width: int) -> tuple[Rows | None, Rows]:
    """What Arrow reads where the quotes of all lines are right, and what the lines are one by one."""
    lines = csv_lines._Lines.find(block, ",")
    right = b'"' in block and not len(lines.find_misquoted())
    columns = read_plain_block(block, (None,) * width, ",", quoted=True) if right else None
    texts, _ = read_block(block, width)
    slow: Rows = list(zip(*(column.to_pylist() for column in texts)))
    return None if columns is None else list(zip(*(column.to_pylist() for column in columns))), slow


@pytest.mark.parametrize("width", [1, 2])
def test_quotes_that_follow_the_pattern(width: int) -> None:
    """All blocks of up to five signs. Negative control: many are read, and other quotes would be read otherwise."""
    letters = [b'"', b",", b"a", b"\n", b"\r"]
    blocks = [b"".join(some) + b"\n" for size in range(6) for some in itertools.product(letters, repeat=size)]
    blocks = [block for block in blocks if b'"' in block and b"\r\r" not in block]
    found = [quoted_rows(block, width) for block in blocks]
    assert all(plain is None or plain == slow for plain, slow in found)
    assert sum(plain is not None for plain, _ in found) > 30
    careless = read_plain_block(b'a"b,c\nd,e\n"f"g,h\n', (None, None), ",", quoted=True)
    assert len(careless[0]) > len(read_block(b'a"b,c\nd,e\n"f"g,h\n', 2)[0][0]) == 1


def test_quoted_numbers_and_empty_texts() -> None:
    columns = read_plain_block(b'"1","2.5","a, ""b"""\n"","",""\n', KINDS, ",", quoted=True)
    assert [column.to_pylist() for column in columns] == [[1, None], [2.5, None], ['a, "b"', None]]


def test_long_lines_are_not_read() -> None:
    for size, read in ((10, True), (11, False)):
        line = b"1,1," + b"x" * (size - 4)
        found = read_plain_block(b"1,1,a\n" + line + b"\n1,1,a\n", KINDS, ",", limit=10)
        assert (found is not None) is read


def test_tabs_may_separate() -> None:
    columns = read_plain_block(b"1\t2\ta\n", KINDS, "\t")
    assert [column.to_pylist() for column in columns] == [[1], [2.0], ["a"]]


def test_the_reader_of_numbers_keeps_rows_together() -> None:
    """A block that is not plain goes through DuckDB: its rows stay in order, and bad fields are NULL alone."""
    lines = [f'{i},"{i}.5",t{i}' if i % 7 else f"0x{i},nan,t{i}" for i in range(5000)]
    rows = slow_rows("".join(line + "\n" for line in lines).encode())
    assert rows == [(i, i + 0.5, f"t{i}") if i % 7 else (None, None, f"t{i}") for i in range(5000)]
    with closing(NumberReader(Csv((), ("a",), PLAIN_FORM), (None,))) as plain:
        assert plain.read(read_block(b'"x"\n', 1)[0])[0].to_pylist() == ["x"]
