"""Many biased bits at once: compares 16 planes of random bits with a 16-bit threshold, in all places together.

Bit i of plane 0 is the most significant digit of a 16-bit number u_i, bit i of plane 15 the least significant. The
comparison u_i < T is computed from the least digit up, with one AND or OR on whole machine words for each digit of T.
So it costs the same whatever the digits are, and the result is packed.
"""

from __future__ import annotations

import numpy as np

from discreet.exact import Flags, Integers, ceil_div
from discreet.local.words import Bytes

DIGITS = 16
ALWAYS = 1 << DIGITS
_BYTE = 8


def row_bytes(bits: int) -> int:
    """Bytes that hold this many bits."""
    return ceil_div(bits, _BYTE)


def compare(random: Bytes, threshold: int) -> Bytes:
    """Packed flags u_i < threshold, from rows of 16 planes of equal length."""
    width = random.shape[1] // DIGITS
    if threshold in (0, ALWAYS):
        return np.full((random.shape[0], width), 255 * (threshold > 0), dtype=np.uint8)
    planes = random.reshape(random.shape[0], DIGITS, width)
    # Digits of u below the lowest one of T do not change the comparison, so it starts there.
    lowest = (threshold & -threshold).bit_length() - 1
    less = ~planes[:, DIGITS - 1 - lowest]
    for digit in range(lowest + 1, DIGITS):
        plane = planes[:, DIGITS - 1 - digit]
        if threshold >> digit & 1:
            np.bitwise_not(np.bitwise_and(plane, ~less, out=less), out=less)
        else:
            np.bitwise_and(less, ~plane, out=less)
    return less


def compare_at(random: Bytes, places: Integers, threshold: int) -> Flags:
    """The flag u_i < threshold at one place i of each row."""
    count, width = random.shape[0], random.shape[1] // DIGITS
    if threshold in (0, ALWAYS):
        return np.full(count, threshold > 0, dtype=np.bool_)
    needed = DIGITS - ((threshold & -threshold).bit_length() - 1)
    rows, shift = np.arange(count), (7 - (places & 7)).astype(np.uint8)
    number = np.zeros(count, dtype=np.int64)
    for plane in range(needed):
        number = number << 1 | (random[rows, plane * width + (places >> 3)] >> shift) & 1
    return number < threshold >> (DIGITS - needed)


def clear_tail(packed: Bytes, bits: int) -> None:
    """Set the unused bits of the last byte to zero."""
    packed[:, -1] &= np.uint8(0xFF << (-bits % _BYTE) & 0xFF)


def put(packed: Bytes, places: Integers, flags: Flags) -> None:
    """Write one flag into each row."""
    rows, byte = np.arange(packed.shape[0]), places >> 3
    mask = (0x80 >> (places & 7)).astype(np.uint8)
    packed[rows, byte] = packed[rows, byte] & ~mask | mask * flags


def tail_is_clear(packed: Bytes, bits: int) -> Flags:
    """Which rows have only zeros in their unused bits."""
    return np.asarray(packed[:, -1] & np.uint8(0xFF >> (bits - 1) % _BYTE + 1) == 0)


_GROUP = 63  # rows that one group of six digits can count
_BLOCK = 1 << 16  # bytes of one row of a group: six digits of them stay in the cache


def count_columns(packed: Bytes, bits: int) -> Integers:
    """How many rows have each bit set, without unpacking them.

    63 blocks of rows are added place by place with full adders on whole machine words: three bits of one weight become
    one of that weight and one of the next. Only the six digits that remain are counted bit by bit.
    """
    rows, width = packed.shape
    totals = np.zeros((_BYTE, width), dtype=np.int64)
    height = max(1, min(_BLOCK // width, rows // _GROUP))
    first = 0
    while rows - first >= _GROUP * height and rows >= _GROUP:
        blocks = packed[first : first + _GROUP * height].reshape(_GROUP, height, width)
        for weight, digit in enumerate(_add_up(list(blocks))):
            totals += _count_bits(digit) << weight
        first += _GROUP * height
    totals += _count_bits(packed[first:])
    return totals.T.reshape(-1)[:bits].copy()


def _add_up(terms: list[Bytes]) -> list[Bytes]:
    """The binary digits, least first, of how many of the terms have each bit set; 2^k − 1 terms."""
    digits = []
    while terms:
        carries = []
        while len(terms) > 1:
            a, b, c = terms.pop(), terms.pop(), terms.pop()
            half = a ^ b
            carries.append(a & b | half & c)
            terms.append(half ^ c)
        digits.append(terms[0])
        terms = carries
    return digits


def _count_bits(packed: Bytes) -> Integers:
    """For each bit of a byte and each byte of a row, how many rows have it set; sums of 255 rows fit a byte."""
    totals = np.zeros((_BYTE, packed.shape[1]), dtype=np.int64)
    for start in range(0, packed.shape[0], 255):
        piece = packed[start : start + 255]
        for bit in range(_BYTE):
            ones = (piece >> np.uint8(_BYTE - 1 - bit)) & np.uint8(1)
            totals[bit] += np.add.reduce(ones, axis=0, dtype=np.uint8)
    return totals
