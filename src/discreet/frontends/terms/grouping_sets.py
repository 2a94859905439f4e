"""Several groupings at once: ROLLUP, CUBE and GROUPING SETS, as lists of sets of keys.

    ROLLUP(a, b)                = (a, b), (a), ()
    CUBE(a, b)                  = (a, b), (a), (b), ()
    a, ROLLUP(b)                = (a, b), (a)

Every set is a release of its own; all of them share the budget of the question.
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
    """All parts, then all but the last, and so on down to none."""
    _check(len(parts) + 1, place)
    return tuple(_flatten(parts[:size]) for size in range(len(parts), -1, -1))


def make_cube(parts: Sequence[Keys], place: Place | None) -> Sets:
    """All choices of parts, the larger ones first."""
    _check(2 ** min(len(parts), 100), place)
    sizes = range(len(parts), -1, -1)
    return tuple(_flatten(chosen) for size in sizes for chosen in combinations(parts, size))


def cross_sets(elements: Sequence[Sets], place: Place | None) -> Sets:
    """What several elements of GROUP BY mean together: each choice of one set from each."""
    found: Sets = ((),)
    for element in elements:
        _check(len(found) * len(element), place)
        found = tuple((*before, *keys) for before in found for keys in element)
    return found


def append_sets(elements: Sequence[Sets], place: Place | None) -> Sets:
    """GROUPING SETS: the sets of one element after those of the other."""
    found = tuple(keys for element in elements for keys in element)
    _check(len(found), place)
    return found


def number_keys(sets: Sets) -> tuple[Keys, tuple[tuple[int, ...], ...] | None]:
    """The keys in the order of their first appearance, and the sets as positions of keys; None for one plain set."""
    keys = tuple(dict.fromkeys(key for chosen in sets for key in chosen))
    if len(set(sets)) == 1:
        return keys, None
    return keys, tuple(tuple(keys.index(key) for key in chosen) for chosen in sets)


def renumber_sets(
    sets: tuple[tuple[int, ...], ...] | None, positions: Sequence[int], count: int
) -> tuple[tuple[int, ...], ...] | None:
    """The sets in positions of resolved keys, each once. Different terms may be the same key.

    ``positions`` leads from terms to keys, of which there are ``count``. One set of all keys is no choice at all.

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
