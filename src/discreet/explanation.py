"""The explanation of a plan: what it rests on, how far one unit can move it, and which noise hides that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.accounting.cost_words import describe_cost
from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Spread, group_count, sensitivity, unit_bits
from discreet.mechanisms.laplace import Laplace
from discreet.plan.expressions import ReleasedValue, walk
from discreet.plan.show import show
from discreet.privacy import Budget
from discreet.release import Plan, Release, format_level

BEYOND = "covers the noise; what lies beyond limits and bounds is outside of it"
"""What an interval says, and what it does not say."""


def list_limits(plan: Plan) -> list[str]:
    """Which limits on the rows of one unit apply, in words. They are public; whether rows lie beyond them is not."""
    found: dict[str, None] = {}
    for release in plan.releases:
        found |= dict.fromkeys(_describe_beyond(release.bounded.bounded, plan.unit.column or "unit"))
    return list(found)


def list_chosen(plan: Plan) -> list[str]:
    """What is to be said of columns that are chosen, in words: how good a mode is, and what ends of quantiles hold."""
    question, release, level = plan.question, plan.releases[0], format_level(plan.level)
    found = []
    for output in question.outputs:
        used = (part.index - len(question.keys) for part in walk(output.expression) if isinstance(part, ReleasedValue))
        for index in (index for index in used if index >= 0):
            recipe = release.bounded.estimates[index]
            if recipe.spread is None:
                continue
            if recipe.share is None:
                rows = release.rank_error(recipe.spread)
                found.append(
                    f"{output.name} has at most {rows:,} rows fewer than the most frequent value ({level}); "
                    "it has no interval"
                )
            elif recipe.spread in release.ends and isinstance(output.expression, ReleasedValue):
                found.append(f"the ends of {output.name} are chosen, too: they hold the quantile with {level} or more")
    return list(dict.fromkeys(found))


def _describe_beyond(bounded: BoundedPlan, unit: str) -> list[str]:
    if bounded.unit is None:
        return ["rows that a join pairs beyond its limits are left out"] if bounded.spread_rows > 1 else []
    limits = (
        (bounded.max_rows, "rows", f"per {unit}"),
        (bounded.max_rows_per_group, "rows", f"per {unit} and group" if bounded.keys else f"per {unit}"),
        (bounded.max_groups, "groups", f"per {unit}"),
    )
    less = [f"{what} beyond the limit of {most:,} {per} count less" for most, what, per in limits if most is not None]
    # Distinct values are limited by their number, and not by the rows that they are in.
    matched = bounded.measures and not bounded.spreads and all(measure.matched for measure in bounded.measures)
    return [*([] if matched else less), *_describe_values(bounded, unit)]


def _describe_values(bounded: BoundedPlan, unit: str) -> list[str]:
    """How many distinct values one unit brings, and what that means for their number."""
    found = {}
    for measure in bounded.measures:
        if measure.matched and measure.argument not in found:
            values = f"{measure.max_values:,} {'value' if measure.max_values == 1 else 'values'}"
            summed = any(m.matched and m.counts is not Counts.DISTINCT for m in bounded.measures)
            then = "and further ones are left out" if summed else "so their number is a lower bound"
            found[measure.argument] = f"each {unit} brings at most {values} of {measure.argument}, {then}"
    return list(found.values())


def explain(plan: Plan, budget: Budget) -> str:
    """The plan, the facts it rests on, its sensitivities, its noise, and why."""
    lines = [show(plan.question)]
    for release in plan.releases:
        title = [] if len(plan.releases) == 1 else ["", f"grouped {describe_grouping(release)}"]
        lines += [
            *title,
            "",
            "bounded",
            *(f"  {line}" for line in _describe_limits(release.bounded.bounded)),
            "",
            "measured",
        ]
        lines += _describe_measures(release)
    return "\n".join(
        [*lines, "", f"cost      {describe_cost(budget, plan.loss)}", f"protects  {plan.unit} ({plan.neighbours})"]
    )


def _describe_measures(release: Release) -> list[str]:
    """What is measured or chosen in one grouping, how far one unit can move it, and the noise."""
    bounded, lines = release.bounded.bounded, []
    for position, measure in enumerate(bounded.measures):
        moves, fine = sensitivity(bounded, measure, release.neighbours), 1 << unit_bits(bounded, measure)
        drawn = "chooses the groups"
        if measure.public is not None:
            lines.append(f"  {_describe_measure(measure)}: {measure.public:,}, which is public and has no noise")
            continue
        if position in release.recoveries:
            places = [place for place, _ in release.recoveries[position].terms]
            noise = release.noises[release.parts[places[0]].noise]
            drawn = f"{len(places)} noisy parts" if len(places) > 1 else _describe_noise(noise, fine)
        if position == release.counted and release.named_count is not None:
            drawn += f", and names the groups where it is {release.named_count.bar:,} or more"
        lines.append(
            f"  {_describe_measure(measure)}: one unit changes {_describe_changed(bounded, measure, moves.l0)}, "
            f"{moves.l1 / fine:g} in all, {moves.linf / fine:g} in one; {drawn}"
        )
    lines += _describe_combinations(release)
    for position, spread in enumerate(bounded.spreads):
        choice, parts = release.choices[position], 1 << bounded.weight_bits
        lines.append(
            f"  spread of {spread.argument} over {spread.last - spread.first + 1:,} cells: one unit changes at most "
            f"{choice.max_rows / parts:g} rows in a group, as if in {choice.groups} groups; "
            "chosen by the exponential mechanism"
        )
        if position in release.ends:
            far = " or ".join(f"{release.ends[position].reach(q) / parts:g}" for q in release.ends[position].qs)
            lines.append(f"  ends of its quantiles: chosen in the same way, for ranks {far} rows beyond each quantile")
    return lines


def _describe_combinations(release: Release) -> list[str]:
    """The combinations of measures that noise is added to, those with one noise together."""
    bounded, lines = release.bounded.bounded, []
    for at, noise in release.noises.items():
        parts = [part.terms for part in release.parts if part.noise == at]
        if all(len(terms) <= 1 for terms in parts):  # a measure by itself, or drawn for another question
            continue
        used = dict.fromkeys(position for terms in parts for position, _ in terms)
        names = ", ".join(_describe_measure(bounded.measures[position]) for position in used)
        fine = 1 << unit_bits(bounded, bounded.measures[next(iter(used))])
        lines.append(f"  {len(parts)} part{'s' * (len(parts) > 1)} of {names}, as one: {_describe_noise(noise, fine)}")
    return lines


def _describe_changed(bounded: BoundedPlan, measure: Measure, most: int) -> str:
    """How many groups one unit changes. Where it weighs less in each, that is any number of private ones."""
    if group_count(bounded) is None and bounded.unit is not None and measure.weighed:
        return "any number of groups"
    return f"at most {most} groups"


def _describe_noise(noise: Any, parts: int) -> str:
    scale = noise.event.scale if isinstance(noise, Laplace) else noise.standard_error
    spread = f"{'scale' if isinstance(noise, Laplace) else 'σ'} {float(scale) / parts:.6g}"
    fine = "" if parts == 1 else f" in steps of 2^-{parts.bit_length() - 1}"
    return f"discrete {type(noise).__name__} noise{fine}, {spread}"


def _describe_measure(measure: Measure) -> str:
    if measure.argument is None:
        return str(measure.counts)
    if measure.counts is Counts.VALUES:
        return f"values of {measure.argument}"
    if measure.counts is Counts.DISTINCT:
        return f"distinct values of {measure.argument}"
    return f"{measure.counts} of {measure.argument} from {float(measure.origin):g} by {float(measure.resolution):g}"


def _describe_limits(bounded: BoundedPlan) -> Sequence[str]:
    if bounded.unit is None and bounded.spread_rows > 1:
        return (f"rows of different units are joined after truncation: one unit changes {bounded.spread_rows:,} rows",)
    if bounded.unit is None:
        return ("each row is its own unit, in one group: no limit is needed",)
    words = []
    if bounded.max_rows is not None:
        words.append(f"at most {bounded.max_rows} rows of a unit in full; the rows of one that has more weigh less")
    if bounded.max_rows_per_group is not None:
        words.append(f"at most {bounded.max_rows_per_group} rows of a unit in a group in full; more weigh less")
    if bounded.max_groups is not None:
        words.append(f"at most {bounded.max_groups} groups of a unit in full; one that is in more weighs less in each")
    elif bounded.keys and bounded.max_rows is None:
        words.append("no cap on groups: there are not more groups than a unit may be in")
    return [*words, *_describe_values(bounded, "unit")]


def describe_grouping(release: Release) -> str:
    """What a grouping groups by, in words."""
    return "by " + ", ".join(map(str, release.bounded.bounded.keys)) if release.bounded.keys else "in all"


def list_clamped(plan: Plan) -> list[str]:
    """What is clamped to its declared bounds, in words."""
    found = {}
    bounded = plan.releases[0].bounded.bounded
    pairs = zip(plan.releases[0].bounded.estimates, plan.question.aggregates)
    times = {e.spread: (aggregate.argument, e.times) for e, aggregate in pairs if e.times is not None}
    steps = (Counts.STEPS, Counts.DISTINCT_STEPS)
    summed = [m for m in bounded.measures if m.counts in steps and m.argument is not None]
    numbers = (s for at, s in enumerate(bounded.spreads) if s.values is None and at not in times)
    parts: list[Measure | Spread] = [*summed, *numbers]
    for part in parts:
        partial = part.partial if isinstance(part, Measure) else None
        low, high = (part.origin + part.resolution * end for end in partial or (part.first, part.last))
        what = f"one unit's sum of {part.argument} in a group" if partial else str(part.argument)
        what = _shorten(what)
        found[what] = f"{what} to [{float(low):g}, {float(high):g}]"
    for argument, grid in times.values():
        what = _shorten(str(argument))
        found[what] = f"{what} to [{grid.start}, {grid.last}]"
    return list(found.values())


def _shorten(words: str) -> str:
    return words if len(words) <= 60 else f"{words[:57]}..."
