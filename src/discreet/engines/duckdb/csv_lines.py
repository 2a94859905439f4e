"""The lines of a CSV file as rows: one line is one row or none, whatever the other lines are.

Rule. A file is cut at line feeds and nowhere else. A line is a row if it is all of this, and else it is left out,
alone: at most ``LINE_LIMIT`` bytes; valid UTF-8; no zero byte; no carriage return but one at its very end, which is
not part of it; quotes by the strict pattern ``field ("," field)*`` with ``field = [^",]* | '"' ([^"] | '""')* '"'``,
where the form of the file may have another delimiter in place of the comma; as many fields as the header names. An
empty field, quoted or not, is NULL. A file in Latin-1 is cut in the same way, and its lines are then taken as UTF-8.

Why no line can change another one. Where a line begins and ends depends on line feeds alone, and no byte inside a line
is one (in Latin-1, too, where every byte is a character). Everything else is decided from the bytes between its two
ends: each array below holds positions, and each number that is counted over them (quotes before a byte, delimiters in a
line) is counted from the beginning of its line. UTF-8 is checked for a whole block first, which is the same: a line
feed is never part of a longer character, so a block is valid exactly if each of its lines is. So adding, removing or
changing a line adds, removes or changes the row of that line, and no other.

Why the local checks are the strict pattern. Number the quotes of a line from 0; even ones open, odd ones close. The
checks are: an even one stands at the beginning of a field or directly behind a quote; an odd one stands at the end
of a field or directly before a quote; their number is even. A quoted field of the pattern passes. And a line that
passes splits at the delimiters that have an even number of quotes before them: a piece without quotes is a plain field;
in a piece with quotes the first is even, so it stands at the piece's beginning (it is behind no quote of the piece),
the last is odd, so it stands at its end, and those between come in pairs of an odd and an even one side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.engines.duckdb.plain_lines import read_plain_block
from discreet.late_dataclass import dataclass
from discreet.plan import csv_form
from discreet.plan.arrow import is_utf8
from discreet.plan.csv_form import PLAIN_FORM, CsvForm, name_columns, open_bytes, read_first_line, split_header, to_utf8
from discreet.plan.types import Type

LINE_LIMIT = csv_form.LINE_LIMIT
BLOCK_BYTES, LEAST_PIECE = 8 << 20, 1 << 20
_FEED, _RETURN, _QUOTE = 10, 13, 34

Positions: TypeAlias = NDArray[np.int64]


class LineFault(IntEnum):
    """Why a line is no row, in the order in which it is said."""

    TOO_LONG = 1
    NOT_UTF8 = 2
    ZERO_BYTE = 3
    CARRIAGE_RETURN = 4
    QUOTES = 5
    BLANK = 6
    FIELDS = 7

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS: Mapping[LineFault, str] = {
    LineFault.TOO_LONG: "longer than 1 MiB",
    LineFault.NOT_UTF8: "not UTF-8",
    LineFault.ZERO_BYTE: "with a zero byte",
    LineFault.CARRIAGE_RETURN: "with a carriage return inside",
    LineFault.QUOTES: "with quotes that do not match (or a quoted line break)",
    LineFault.BLANK: "blank",
    LineFault.FIELDS: "with more or fewer fields than the header",
}


@dataclass(frozen=True, slots=True)
class LineCounts:
    """What became of the lines behind the header, for the owner of the data alone: the numbers are exact."""

    rows: int
    faults: Mapping[LineFault, int]

    @property
    def left_out(self) -> int:
        return sum(self.faults.values())


def read_names(path: str, form: CsvForm = PLAIN_FORM) -> tuple[str, ...] | None:
    """The names in the first line; None where it is no row by the rule. What follows the line is not looked at."""
    fields = split_header(read_first_line(path), form)
    return None if fields is None or not any(fields) else name_columns(fields)


def read_rows(
    path: str, kinds: Sequence[Type | None], write: Callable[[Sequence[Any]], None], form: CsvForm = PLAIN_FORM
) -> LineCounts:
    """Hand the rows behind the header to ``write``, some at a time, as one Arrow column for each kind.

    Columns are texts, or already numbers where their kind is one and all lines of a block are plain.
    """
    rows, faults = 0, Counter[LineFault]()
    for block in cut_into_blocks(path, faults):
        for columns, found in _read_pieces(to_utf8(block, form.encoding), kinds, form.delimiter):
            write(columns)
            rows += len(columns[0])
            faults.update(found)
    return LineCounts(rows, {fault: faults[fault] for fault in LineFault if faults[fault]})


def _read_pieces(
    block: bytes, kinds: Sequence[Type | None], delimiter: str
) -> Iterator[tuple[Sequence[Any], Counter[LineFault]]]:
    """The rows of a block and what was left out, in pieces, so that an odd line costs time for its own piece alone."""
    quoted = b'"' in block
    known = not quoted or not len(_Lines.find(block, delimiter).find_misquoted())
    columns = read_plain_block(block, kinds, delimiter, LINE_LIMIT, quoted=quoted) if known else None
    middle = block.find(b"\n", len(block) // 2) + 1
    if columns is not None:
        yield columns, Counter()
    elif len(block) > LEAST_PIECE and middle < len(block):
        yield from _read_pieces(block[:middle], kinds, delimiter)
        yield from _read_pieces(block[middle:], kinds, delimiter)
    else:
        yield read_block(block, len(kinds), delimiter)


def cut_into_blocks(path: str, faults: Counter[LineFault]) -> Iterator[bytes]:
    """Whole lines, in memory of one block. Of a line beyond the limit nothing is kept; it is counted."""
    with open_bytes(path) as file:
        file.readline(LINE_LIMIT + 1)
        begun, skipping = b"", False
        while piece := file.read(BLOCK_BYTES):
            if skipping:
                end = piece.find(b"\n") + 1
                if not end:
                    continue
                piece, skipping = piece[end:], False
            piece = begun + piece
            end = piece.rfind(b"\n") + 1
            if end:
                yield piece[:end]
            begun = piece[end:]
            if len(begun) > LINE_LIMIT:
                faults[LineFault.TOO_LONG] += 1
                begun, skipping = b"", True
        if begun:
            yield begun + b"\n"


def read_block(block: bytes, width: int, delimiter: str = ",") -> tuple[list[Any], Counter[LineFault]]:
    """The rows of a block of whole lines, as one Arrow array for each of ``width`` columns, and what was left out."""
    import pyarrow as pa

    fields, faults = _Lines.find(block, delimiter).take_fields(width)
    columns = [fields.take(pa.array(np.arange(column, len(fields), width))) for column in range(width)]
    found = {LineFault(fault): int(count) for fault, count in enumerate(np.bincount(faults)) if fault and count}
    return columns, Counter(found)


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of a block: line i is ``data[starts[i]:stops[i]]``, and its line feed is at ``feeds[i]``."""

    block: bytes
    delimiter: int
    data: NDArray[np.uint8]
    starts: Positions
    stops: Positions
    feeds: Positions
    quotes: Positions
    opens: NDArray[np.bool_]

    @classmethod
    def find(cls, block: bytes, delimiter: str) -> _Lines:
        data = np.frombuffer(block, np.uint8)
        feeds = np.flatnonzero(data == _FEED)
        starts = np.concatenate(([0], feeds[:-1] + 1))
        returned = (feeds > starts) & (data[np.maximum(feeds - 1, 0)] == _RETURN)
        quotes = np.flatnonzero(data == _QUOTE)
        # A quote opens if an even number of quotes is before it in its line.
        before = np.searchsorted(quotes, feeds)
        counts = np.diff(before, prepend=0)
        opens = (np.arange(len(quotes)) - np.repeat(before - counts, counts)) % 2 == 0
        return cls(block, ord(delimiter), data, starts, feeds - returned, feeds, quotes, opens)

    def find_lines_of(self, positions: Positions) -> Positions:
        """The number of the line in which each position is, for positions in order."""
        counts = np.diff(np.searchsorted(positions, self.feeds), prepend=0)
        return np.repeat(np.arange(len(self.feeds)), counts)

    def find_separators(self) -> tuple[NDArray[np.bool_], Positions]:
        """Which delimiters separate fields: those with an even number of quotes before them in their line. And all."""
        signs = np.flatnonzero(self.data == self.delimiter)
        if not len(self.quotes):
            return np.ones(len(signs), np.bool_), signs
        odd = np.logical_xor.accumulate(self.data == _QUOTE)  # so many quotes up to a byte, from the block's beginning
        odd_before = np.concatenate(([False], odd[self.feeds[:-1]]))
        return odd[signs] == odd_before[self.find_lines_of(signs)], signs

    def take_fields(self, width: int) -> tuple[Any, NDArray[np.uint8]]:
        """The fields of all rows one after the other, as Arrow texts, and the fault of each line (0 for none)."""
        import pyarrow as pa

        is_separator, signs = self.find_separators()
        separators = signs[is_separator]
        faults = self._find_faults(separators, width)
        good = faults == 0
        if not good.all():
            separators = separators[good[self.find_lines_of(separators)]]
        ends = np.column_stack([separators.reshape(int(good.sum()), width - 1), self.stops[good]]).ravel()
        kept = self._find_kept(separators, good)
        # Ends of fields are never kept, so the number of bytes kept up to one is where its field ends among them.
        offsets = np.concatenate(([0], np.cumsum(kept, dtype=np.int32)[ends])).astype(np.int32)
        filled = np.packbits(np.diff(offsets) > 0, bitorder="little")
        buffers = [pa.py_buffer(filled), pa.py_buffer(offsets), pa.py_buffer(self.data[kept])]
        return pa.Array.from_buffers(pa.string(), len(ends), buffers), faults

    def _find_faults(self, separators: Positions, width: int) -> NDArray[np.uint8]:
        found = np.zeros(len(self.feeds), np.uint8)
        returns = np.flatnonzero(self.data == _RETURN)
        inside = returns[returns != self.stops[self.find_lines_of(returns)]]
        fields = np.searchsorted(separators, self.feeds) - np.searchsorted(separators, self.starts) + 1
        # From the last that is said to the first, so that the first stays.
        found[fields != width] = LineFault.FIELDS
        found[(self.stops == self.starts) & (width > 1)] = LineFault.BLANK
        found[self.find_misquoted()] = LineFault.QUOTES
        found[self.find_lines_of(inside)] = LineFault.CARRIAGE_RETURN
        found[self.find_lines_of(np.flatnonzero(self.data == 0))] = LineFault.ZERO_BYTE
        found[self._find_misencoded()] = LineFault.NOT_UTF8
        found[self.feeds - self.starts > LINE_LIMIT] = LineFault.TOO_LONG
        return found

    def find_misquoted(self) -> Positions:
        """The lines whose quotes break the pattern. A quote is never the last byte of a block, which is a feed."""
        lines = self.find_lines_of(self.quotes)
        before, behind = self.data[np.maximum(self.quotes - 1, 0)], self.data[self.quotes + 1]
        at_start = (self.quotes == self.starts[lines]) | (before == self.delimiter) | (before == _QUOTE)
        at_end = (self.quotes + 1 == self.stops[lines]) | (behind == self.delimiter) | (behind == _QUOTE)
        odd = np.flatnonzero(np.bincount(lines, minlength=len(self.feeds)) % 2)
        return np.concatenate((lines[~np.where(self.opens, at_start, at_end)], odd))

    def _find_misencoded(self) -> list[int]:
        """The lines that are not UTF-8. Only where the block is not, lines are looked at one by one."""
        if is_utf8(self.block):
            return []
        suspects = np.unique(self.find_lines_of(np.flatnonzero(self.data >= 128)))
        return [i for i in suspects.tolist() if not is_utf8(self.block[self.starts[i] : self.stops[i]])]

    def _find_kept(self, separators: Positions, good: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which bytes are text: of the two quotes that stand for one, the first; no other quote, separator or end."""
        kept = np.ones(len(self.data), np.bool_)
        kept[self.quotes[self.opens | (self.data[self.quotes + 1] != _QUOTE)]] = False
        for ends in (separators, self.stops, self.feeds):
            kept[ends] = False
        if not good.all():
            kept &= np.repeat(good, self.feeds - self.starts + 1)
        return kept
