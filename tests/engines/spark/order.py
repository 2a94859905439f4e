"""Spark's keyed hash in Python, for the oracle to follow: a question to Spark for each value would take too long.

XXH64 is chained: the hash of a value is the seed of the next one, and NULL is passed over.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.engines.order import HASH_BITS, TypedValue
from discreet.engines.spark.dialect import derive_key
from discreet.plan.types import Type

_ONE, _TWO, _THREE = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_FOUR, _FIVE = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MASK, _SEED = 2**64 - 1, 42


def hash_bytes(data: bytes, seed: int) -> int:
    """XXH64."""
    end, place = len(data), 0
    if end >= 32:
        lanes = [seed + _ONE + _TWO, seed + _TWO, seed, seed - _ONE]
        while place <= end - 32:
            words = struct.unpack_from("<4Q", data, place)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words)]
            place += 32
        found = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18))) & _MASK
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _ONE + _FOUR) & _MASK
    else:
        found = (seed + _FIVE) & _MASK
    found = (found + end) & _MASK
    while place + 8 <= end:
        found ^= _round(0, struct.unpack_from("<Q", data, place)[0])
        found = (_rotate(found, 27) * _ONE + _FOUR) & _MASK
        place += 8
    if place + 4 <= end:
        found ^= struct.unpack_from("<I", data, place)[0] * _ONE & _MASK
        found = (_rotate(found, 23) * _TWO + _THREE) & _MASK
        place += 4
    for byte in data[place:]:
        found = _rotate(found ^ (byte * _FIVE & _MASK), 11) * _ONE & _MASK
    found = (found ^ found >> 33) * _TWO & _MASK
    found = (found ^ found >> 29) * _THREE & _MASK
    return found ^ found >> 32


def _rotate(word: int, by: int) -> int:
    word &= _MASK
    return (word << by | word >> 64 - by) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotate(lane + word * _TWO, 31) * _ONE & _MASK


def to_bytes(value: TypedValue) -> bytes | None:
    """What Spark hashes of a value; None for NULL."""
    match value:
        case (None, _):
            return None
        case (bool() as truth, _):
            return struct.pack("<i", truth)
        case (float() | int() as number, Type.REAL):
            return struct.pack("<d", number + 0.0)
        case (int() as number, _):
            return struct.pack("<q", number)
        case (str() as text, _):
            return text.encode()
        case (dt.datetime() as moment, _):
            return struct.pack("<q", _microseconds(moment))
        case (dt.date() as day, _):
            return struct.pack("<i", day.toordinal() - dt.date(1970, 1, 1).toordinal())
    raise AssertionError(value)


def _microseconds(moment: dt.datetime) -> int:
    return (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001  # plan times have no zone


def hash_values(values: Sequence[TypedValue]) -> int:
    """Spark's ``xxhash64``, as an integer with a sign."""
    found = _SEED
    for value in values:
        data = to_bytes(value)
        found = found if data is None else hash_bytes(data, found)
    return found - 2**64 if found >= 2**63 else found


@dataclass(frozen=True)
class SparkOrder:
    """The places that statements give to groups and rows."""

    bits: int = HASH_BITS

    def place_of_group(self, salt: bytes, unit: TypedValue, key: Sequence[TypedValue]) -> int:
        identity: TypedValue = (_identify(unit), Type.INTEGER)
        return (_hash_keyed([identity, *key], salt) & _MASK) >> (64 - self.bits)

    def place_of_row(self, salt: bytes, values: Sequence[TypedValue]) -> int:
        return _hash_keyed(values, salt)


def _identify(unit: TypedValue) -> int:
    value, kind = unit
    if isinstance(value, dt.datetime):
        return _microseconds(value)
    if isinstance(value, dt.date):
        return value.toordinal() - dt.date(1970, 1, 1).toordinal()
    return int(value) if isinstance(value, int) and kind is not Type.REAL else hash_values([unit])


def _hash_keyed(values: Sequence[TypedValue], salt: bytes) -> int:
    marked = [part for value in values for part in ((value[0] is None, Type.BOOLEAN), value)]
    keys: list[TypedValue] = [(derive_key(salt, purpose), Type.INTEGER) for purpose in ("first", "last")]
    return hash_values([keys[0], *marked, keys[1]])
