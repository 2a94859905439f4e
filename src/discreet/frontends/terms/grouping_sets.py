"""ROLLUP, CUBE and GROUPING SETS as lists of sets of keys, for several groupings in one question.

    ROLLUP(a, b)                = (a, b), (a), ()
    CUBE(a, b)                  = (a, b), (a), (b), ()
    a, ROLLUP(b)                = (a, b), (a)

Each set is a release of its own. All sets share the budget of the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TypeAlias

from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import Term

MAX_SETS = 64

Keys: TypeAlias = tuple[Term, ...]
Sets: TypeAlias = tuple[Keys, ...]


def make_rollup(parts: Sequence[Keys], place: Place | None) -> Sets:
    """The sets of ROLLUP: all parts, then all but the last, and so on down to none."""
    _check(len(parts) + 1, place)
    return tuple(_flatten(parts[:size]) for size in range(len(parts), -1, -1))


def make_cube(parts: Sequence[Keys], place: Place | None) -> Sets:
    """The sets of CUBE: all subsets of the parts, the larger ones first."""
    _check(2 ** min(len(parts), 100), place)
    sizes = range(len(parts), -1, -1)
    return tuple(_flatten(chosen) for size in sizes for chosen in combinations(parts, size))


def cross_sets(elements: Sequence[Sets], place: Place | None) -> Sets:
    """The sets of several elements of GROUP BY together: every combination of one set from each element."""
    found: Sets = ((),)
    for element in elements:
        _check(len(found) * len(element), place)
        found = tuple((*before, *keys) for before in found for keys in element)
    return found


def append_sets(elements: Sequence[Sets], place: Place | None) -> Sets:
    """The sets of GROUPING SETS: those of all elements, one after the other."""
    found = tuple(keys for element in elements for keys in element)
    _check(len(found), place)
    return found


def number_keys(sets: Sets) -> tuple[Keys, tuple[tuple[int, ...], ...] | None]:
    """The keys in the order of their first use, and the sets as positions of keys; None if all sets are equal."""
    keys = tuple(dict.fromkeys(key for chosen in sets for key in chosen))
    if len(set(sets)) == 1:
        return keys, None
    return keys, tuple(tuple(keys.index(key) for key in chosen) for chosen in sets)


def renumber_sets(
    sets: tuple[tuple[int, ...], ...] | None, positions: Sequence[int], count: int
) -> tuple[tuple[int, ...], ...] | None:
    """The sets as positions of resolved keys, each once. Different terms may resolve to the same key.

    ``positions`` gives the key of each term, and there are ``count`` keys. One set of all keys is an ordinary GROUP BY,
    for which the result is None.

    >>> renumber_sets(((0, 1), (0,), (0, 0)), [0, 1], 2), renumber_sets(((0, 1), (1, 0)), [0, 1], 2)
    (((0, 1), (0,)), None)
    """
    if sets is None:
        return None
    unique = tuple(dict.fromkeys(tuple(sorted({positions[term] for term in chosen})) for chosen in sets))
    return None if unique == (tuple(range(count)),) else unique


def _flatten(parts: Iterable[Keys]) -> Keys:
    return tuple(key for part in parts for key in part)


def _check(count: int, place: Place | None) -> None:
    if count > MAX_SETS:
        rule = f"GROUP BY asks for more than {MAX_SETS} groupings."
        raise refusal(place, rule, "Name the few that matter: GROUPING SETS ((a, b), (a), ()).")
