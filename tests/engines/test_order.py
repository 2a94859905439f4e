"""The portable order: a keyed hash of typed values, written so that no two lists of values are alike."""

from __future__ import annotations

import itertools

from discreet.engines.order import EngineHash, PortableOrder, TypedValue
from discreet.plan.types import Type
from tests.engines.nasty import VALUES
from tests.engines.worlds import SALT

N, R, X = Type.INTEGER, Type.REAL, Type.TEXT
ORDER = PortableOrder()


def test_every_value_has_a_place_of_its_own() -> None:
    """All nasty values of all types, NULLs among them, alone and in pairs: no two places are equal."""
    typed: list[TypedValue] = [(value, kind) for kind in Type for value in VALUES[kind]]
    alone = {ORDER.place_of_row(SALT, [value]) for value in typed}
    assert len(alone) == len(typed)
    texts: list[TypedValue] = [(text, X) for text in ("", "a", "aa", "a\0", "\0a", "1:a", "null", None)]
    pairs = list(itertools.product(texts, repeat=2))
    assert len({ORDER.place_of_row(SALT, pair) for pair in pairs}) == len(pairs)
    split: list[list[TypedValue]] = [
        [("ab", X), ("c", X)],
        [("a", X), ("bc", X)],
        [("abc", X)],
        [("abc", X), ("", X)],
        [("abc", X), (None, X)],
    ]
    assert len({ORDER.place_of_row(SALT, values) for values in split}) == len(split)


def test_a_place_depends_on_the_salt_and_on_what_it_is_for() -> None:
    unit, key = (1, N), [("a", X)]
    places = {ORDER.place_of_group(bytes([i] * 16), unit, key) for i in range(5)}
    assert len(places) == 5
    assert ORDER.place_of_group(SALT, unit, key) == ORDER.place_of_group(SALT, unit, key)
    assert ORDER.place_of_group(SALT, unit, key) != ORDER.place_of_row(SALT, [unit, *key])
    assert ORDER.place_of_group(SALT, (2, N), key) != ORDER.place_of_group(SALT, unit, key)


def test_zero_has_one_place() -> None:
    """−0.0 equals 0.0, so both stand at one place; an integer is another value than a real."""
    assert ORDER.place_of_row(SALT, [(-0.0, R)]) == ORDER.place_of_row(SALT, [(0.0, R)])
    assert ORDER.place_of_row(SALT, [(0, N)]) != ORDER.place_of_row(SALT, [(0.0, R)])


def test_orders_are_values() -> None:
    assert PortableOrder() == PortableOrder() and EngineHash(3) == EngineHash(bits=3) != EngineHash()
