"""Releases on record, and what follows from them for nothing.

A draw is recorded with its *frame* (dataset, version of the data, rows, keys, unit, limits) and, for each number that
was drawn, what it measures and by which mechanism. A later question needs no new draw if all that it needs of one frame
was drawn before, with errors no larger than its own offer would buy.

Privacy: what is found is a function of draws that were charged and of public facts, so it costs nothing. Why nothing
else can be found: the frame is a digest of everything that the numbers depend on but the measures themselves, and each
measure is compared by a digest of all of its parts. Other data, limits, rows or keys have another frame.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, get_args

from discreet.bounding.joint_measures import Recovery
from discreet.bounding.strategies import list_shown
from discreet.draw_record import load_groups
from discreet.errors import InternalError
from discreet.exact import Ln
from discreet.late_dataclass import dataclass
from discreet.mechanisms.quantiles.ends import CellEnds
from discreet.privacy import Neighbours, Unit
from discreet.release import CellChoice, KeyRule, Noise, NoisyGroups, NoisyPart, Plan, Release

Mechanism = Noise | CellChoice | CellEnds | KeyRule
_CLASSES: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Mechanism)}
# What a bounded plan measures; the rest of it is the frame.
_MEASURED = ("measures", "spreads", "spread_rows", "whole_totals")
_PRICES = ("epsilon", "rho", "delta")


def frame_of(release: Release, dataset: str, version: str) -> str:
    """The digest of everything that measures of a release have in common."""
    bounded = release.bounded.bounded
    parts = [f"{field.name}={getattr(bounded, field.name)!r}" for field in fields(bounded)]
    kept = [part for part in parts if not part.startswith(tuple(f"{name}=" for name in _MEASURED))]
    return _digest([dataset, version, repr(release.unit), repr(release.neighbours), *kept])


def describe_release(release: Release, frame: str) -> dict[str, Any]:
    """What was drawn by which mechanism, as plain values for the record."""
    return {
        "frame": frame,
        "noises": {str(at): dump_mechanism(noise) for at, noise in release.noises.items()},
        "parts": [part.noise for part in release.parts],
        "measures": {
            str(at): {
                "of": _name_measure(release, at),
                "units": str(recovery.units),
                "terms": [[place, str(factor)] for place, factor in recovery.terms],
            }
            for at, recovery in release.recoveries.items()
        },
        "choices": {
            str(at): {"of": _name_spread(release, at), "by": dump_mechanism(choice)}
            for at, choice in release.choices.items()
        },
        "ends": {
            str(at): {"of": _name_spread(release, at), "by": dump_mechanism(rule)} for at, rule in release.ends.items()
        },
        "selection": None if release.selection is None else dump_mechanism(release.selection),
        "named_by_count": release.counted is not None,
    }


@dataclass(frozen=True, slots=True)
class RecordedPlan:
    """A question that a record answers: its plan with the mechanisms that really drew, and what they drew."""

    plan: Plan
    drawn: tuple[NoisyGroups, ...]
    place: int
    """Which question of a recorded batch it was taken from; 0 outside of batches."""


def find_in_record(plan: Plan, frames: Sequence[str], record: Mapping[str, Any]) -> RecordedPlan | None:
    """A plan as far as the draws of one charge answer it; None where something is missing or less exact."""
    for place, (described, drawn) in enumerate(zip(record.get("releases", ()), record["plans"])):
        found = [_find_release(release, frame, described, drawn) for release, frame in zip(plan.releases, frames)]
        whole = [each for each in found if each is not None]
        if len(whole) == len(found):
            return RecordedPlan(Plan(tuple(r for r, _ in whole)), tuple(g for _, g in whole), place)
    return None


def _find_release(
    release: Release, frame: str, described: Sequence[Mapping[str, Any]], drawn: Sequence[Mapping[str, Any]]
) -> tuple[Release, NoisyGroups] | None:
    for known, groups in zip(described, drawn, strict=True):
        found = _fit(release, known, groups) if known["frame"] == frame else None
        if found is not None:
            return found
    return None


def _fit(release: Release, known: Mapping[str, Any], groups: Mapping[str, Any]) -> tuple[Release, NoisyGroups] | None:
    """A release with recorded mechanisms in place of its own, where none of them is worse."""
    selection = load_mechanism(known["selection"])
    if (selection is None) != (known["selection"] is None) or not _is_as_good_selection(selection, release.selection):
        return None
    # The noise of a count that named its key has another law than one beside the rule, given what is shown.
    if known.get("named_by_count", False) != (release.counted is not None):
        return None
    measures = _fit_measures(release, known)
    if measures is None:
        return None
    choices = _fit_choices(release, release.choices, known["choices"])
    ends = _fit_choices(release, release.ends, known.get("ends", {}))
    if choices is None or ends is None:
        return None
    every = load_groups(groups, release.bounded.bounded)
    places, noisy = measures
    fitted = replace(
        noisy,
        choices={at: law for at, (_, law) in choices.items()},
        ends={at: law for at, (_, law) in ends.items()},
        selection=selection,
    )
    return fitted, NoisyGroups(
        every.keys,
        {at: every.measures[place] for at, place in places.items()},
        {at: every.chosen[place] for at, (place, _) in choices.items()},
        {at: every.ends[place] for at, (place, _) in ends.items()},
    )


def _fit_choices(
    release: Release, wanted: Mapping[int, CellChoice | CellEnds], known: Mapping[str, Mapping[str, Any]]
) -> dict[int, tuple[int, Any]] | None:
    """Where what is chosen from spreads was chosen before, and by which mechanism; None where one is missing."""
    found = {at: _find(known, _name_spread(release, at)) for at in wanted}
    fits = all(_is_as_good_choice(found[at][1], choice, release.level) for at, choice in wanted.items())
    return found if fits else None


def _find(known: Mapping[str, Mapping[str, Any]], name: str) -> tuple[int, Any]:
    """Where something was drawn, and by which mechanism; (-1, None) where it was not, or by one of another version."""
    for place, each in known.items():
        if each["of"] == name:
            return int(place), load_mechanism(each["by"])
    return -1, None


def _fit_measures(release: Release, known: Mapping[str, Any]) -> tuple[dict[int, int], Release] | None:
    """Where the measures of a release were drawn, and the release with the noise that they have there.

    None where one was not drawn, or where something that is shown would have a larger error.
    """
    names = {each["of"]: int(place) for place, each in known.get("measures", {}).items()}
    places = {at: names.get(_name_measure(release, at)) for at in release.recoveries}
    found = {at: place for at, place in places.items() if place is not None}
    if len(found) < len(places):
        return None
    recoveries = {at: _load_recovery(known["measures"][str(place)]) for at, place in found.items()}
    parts = tuple(NoisyPart(noise, ()) for noise in known["parts"])
    used = sorted({parts[place].noise for recovery in recoveries.values() for place, _ in recovery.terms})
    noises = {noise: load_mechanism(known["noises"][str(noise)]) for noise in used}
    if not all(isinstance(noise, get_args(Noise)) for noise in noises.values()):
        return None
    fitted = replace(release, noises=noises, parts=parts, recoveries=recoveries)
    tail = 1 - release.level
    shown = [dict(error) for error in list_shown(release.bounded)]
    if any(fitted.bound(error, part) > release.bound(error, part) for error in shown for part in (tail, tail / 2)):
        return None
    return found, fitted


def _load_recovery(record: Mapping[str, Any]) -> Recovery:
    return Recovery(tuple((int(place), int(factor)) for place, factor in record["terms"]), int(record["units"]))


def _is_as_good_choice(known: Any, wanted: CellChoice | CellEnds, level: Fraction) -> bool:
    """Whether the same was chosen among the same, at no smaller price."""
    return (
        type(known) is type(wanted)
        and _list_public(known) == _list_public(wanted)
        and known.error(1 - level) <= wanted.error(1 - level)
    )


def _is_as_good_selection(known: Any, wanted: KeyRule | None) -> bool:
    """Whether recorded keys were chosen by the same kind of rule, which names groups that are at least as small."""
    if known is None or wanted is None:
        return known is wanted
    shares = (Fraction(1, 2), Fraction(1, 20))
    return (
        type(known) is type(wanted)
        and _list_public(known).get("min_units") == _list_public(wanted).get("min_units")
        and all(known.kept_from(share) <= wanted.kept_from(share) for share in shares)
    )


def _list_public(mechanism: Any) -> dict[str, Any]:
    """The parameters of a mechanism that are not its price."""
    return {
        field.name: getattr(mechanism, field.name)
        for field in fields(mechanism)
        if field.init and field.name not in _PRICES
    }


def _name_measure(release: Release, at: int) -> str:
    return _digest([repr(release.bounded.bounded.measures[at])])


def _name_spread(release: Release, at: int) -> str:
    bounded = release.bounded.bounded
    return _digest([repr(bounded.spreads[at]), repr(bounded.spread_rows)])


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def dump_mechanism(mechanism: Mechanism) -> dict[str, Any]:
    """A mechanism with everything that it knows, as plain values."""
    values = {field.name: _dump_value(getattr(mechanism, field.name)) for field in fields(mechanism)}
    return {"kind": type(mechanism).__name__, "values": values}


def load_mechanism(record: Mapping[str, Any] | None) -> Any:
    """The mechanism that ``dump_mechanism`` wrote; None for one that this version does not have in this form."""
    kind = None if record is None else _CLASSES.get(record["kind"])
    if kind is None or record is None or {field.name for field in fields(kind)} != record["values"].keys():
        return None
    # Its parameters were checked when it was made; they are put back as they were, with what was computed from them.
    mechanism = object.__new__(kind)
    for name, value in record["values"].items():
        object.__setattr__(mechanism, name, _load_value(value))
    return mechanism


# The kinds of parameters that mechanisms have: a word for the record, the type, and the way there and back.
_FORMS: tuple[tuple[str, type[Any], Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    ("neighbours", Neighbours, str, Neighbours),
    ("integer", int, str, int),
    ("real", float, float.hex, float.fromhex),
    ("fraction", Fraction, str, Fraction),
    ("ln", Ln, lambda value: str(value.of), lambda text: Ln(Fraction(text))),
    ("unit", Unit, lambda value: value.column, Unit),
    ("list", tuple, lambda values: [_dump_value(each) for each in values], lambda each: tuple(map(_load_value, each))),
)
_READERS = {word: read for word, _, _, read in _FORMS}


def _dump_value(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    for word, kind, write, _ in _FORMS:
        if isinstance(value, kind):
            return {word: write(value)}
    raise InternalError(f"A parameter of the kind {type(value).__name__} cannot be recorded.")


def _load_value(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    ((word, written),) = value.items()
    return _READERS[word](written)
