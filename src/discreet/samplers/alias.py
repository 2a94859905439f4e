"""Walker's alias table in whole numbers: one word and one comparison choose among any number of outcomes.

The masses are word counts, so nothing is rounded: exactly ``masses[i]`` of all words lead to outcome i.
"""

from __future__ import annotations

from collections.abc import Sequence


def make_alias_table(masses: Sequence[int], column: int) -> tuple[list[int], list[int]]:
    """Cut masses that add up to ``len(masses)·column`` into equal columns with at most two outcomes each.

    Column c holds the words from c·column on. Those below ``thresholds[c]`` lead to outcome c, the others to
    ``others[c]``.

    >>> make_alias_table([1, 7], 4)
    ([1, 4], [1, 1])
    """
    left = list(masses)
    thresholds = [c * column for c in range(len(left))]
    others = list(range(len(left)))  # a column that gets no second outcome belongs to its own outcome
    small = [c for c, mass in enumerate(left) if mass < column]
    large = [c for c, mass in enumerate(left) if mass > column]
    while small:
        short, long = small.pop(), large[-1]
        thresholds[short] += left[short]
        others[short] = long
        left[long] -= column - left[short]
        if left[long] <= column:
            large.pop()
            if left[long] < column:
                small.append(long)
    return thresholds, others
