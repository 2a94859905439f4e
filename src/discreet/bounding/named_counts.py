"""Counts that may name private keys themselves, instead of a count that is used for naming only.

Keys from the data are chosen by a count of the units of each group, of which one unit adds 1 to at most ``max_groups``
groups, which a secret order chooses (``Counts.NAMED``). Where the question asks for this number anyway, one noisy count
can do both. Counts that weigh units or rows in all of their groups cannot: a unit would be in more groups than
``max_groups``, and a group that is one unit's alone by the secret order could have the weight of many.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.bounding.bound import BoundedQuestion
from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.bounding.recipes import AggregateRecipe


def name_by_count(form: BoundedQuestion) -> BoundedQuestion | None:
    """The same question, with its counts of units taken from the measure that names keys; None where it has none.

    Measures that nothing uses any more are left out.
    """
    selector, bounded = form.selector, form.bounded
    if selector is None:
        return None
    moved = tuple(
        replace(recipe, count=selector) if _is_count_of_units(recipe, bounded, selector) else recipe
        for recipe in form.estimates
    )
    used = sorted({p for r in moved for p in (r.count, r.steps, r.squares) if p is not None})
    if selector not in used or len(used) > len(form.measured):
        return None
    places = {position: place for place, position in enumerate(used)}
    return replace(
        form,
        bounded=replace(bounded, measures=tuple(bounded.measures[position] for position in used)),
        estimates=tuple(_renumber(recipe, places) for recipe in moved),
        selector=places[selector],
        weights=None,
    )


def _is_count_of_units(recipe: AggregateRecipe, bounded: BoundedPlan, selector: int) -> bool:
    """Whether an aggregate is a plain count, and by the limits it counts every unit of a group once."""
    if recipe.count is None or recipe.steps is not None or recipe.squares is not None or recipe.spread is not None:
        return False
    measure = bounded.measures[recipe.count]
    return recipe.count == selector or (_is_plain(measure) and _counts_once(measure, bounded))


def _is_plain(measure: Measure) -> bool:
    return measure.argument is None and measure.partial is None


def _counts_once(measure: Measure, bounded: BoundedPlan) -> bool:
    """Whether the measure expects of each unit what the secret order keeps of it on average: min(1, G/g) in a group.

    Where the rows of a unit are limited in all, its groups do not weigh the same, so nothing counts once then.
    """
    if bounded.max_rows is not None:
        return False
    return measure.counts is Counts.UNITS or (measure.counts is Counts.ROWS and bounded.max_rows_per_group == 1)


def _renumber(recipe: AggregateRecipe, places: dict[int, int]) -> AggregateRecipe:
    count, steps, squares = (None if p is None else places[p] for p in (recipe.count, recipe.steps, recipe.squares))
    return replace(recipe, count=count, steps=steps, squares=squares)
