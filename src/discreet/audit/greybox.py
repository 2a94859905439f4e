"""The grey box: records the mechanism calls of a function on D, replays them on D' with the same outputs, and compares.

On D every call of a mechanism is recorded: the mechanism with its parameters, the exact values it was given, and what
it drew. On D' the same calls return the recorded outputs instead of fresh noise. If the function keeps its claim, the
two runs differ only in the values inside the calls, and these differ by no more than the mechanisms declare:

- the same mechanisms, with the same parameters, in the same order, the same number of times;
- the same final output, or the same error: any difference has reached the output without passing a mechanism;
- values no further apart than the declared sensitivity.

The grey box is deterministic, it shows factors that no number of samples would show, and it needs one run on each
dataset. It trusts the mechanisms themselves; the exact checks and the black box check those.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.audit.claims import Claim, ClaimLike
from discreet.audit.findings import Finding, Verdict, Witness
from discreet.audit.output_encoding import RaisedError, encode
from discreet.errors import DiscreetError
from discreet.late_dataclass import dataclass
from discreet.mechanisms.exponential import Exponential, SelectionMechanism
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.grid_noise import GridNoise
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.noisy_max import NoisyMax, TopK
from discreet.mechanisms.permute_and_flip import PermuteAndFlip
from discreet.mechanisms.quantiles.cells import CellMode, CellQuantiles
from discreet.mechanisms.quantiles.column_quantiles import Quantile, Quantiles
from discreet.mechanisms.quantiles.ends import CellEnds
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.mechanisms.sparse_vector import SparseVector
from discreet.mechanisms.threshold import KeyMechanism, KeySelection, NoisyThreshold
from discreet.mechanisms.weighted_selection import WeightedSelection
from discreet.privacy import Neighbours

# The methods that add noise to private values. All other releases of the package call these.
PRIMITIVES: tuple[tuple[type, str], ...] = (
    (GridNoise, "release"),
    (RandomizedResponse, "release"),
    (Exponential, "release"),
    (PermuteAndFlip, "release"),
    (NoisyMax, "release"),
    (TopK, "release"),
    (SparseVector, "release"),
    (Quantile, "release"),
    (Quantiles, "release"),
    (NoisyThreshold, "release"),
    (NoisyThreshold, "release_array"),
    (KeySelection, "release"),
    (KeySelection, "release_array"),
    (WeightedSelection, "release"),
    (WeightedSelection, "release_array"),
    (CellQuantiles, "release_all"),
    (CellMode, "release_all"),
    (CellEnds, "release_all"),
)


@dataclass(frozen=True, slots=True)
class MechanismCall:
    """One call of a mechanism: the mechanism with its parameters, the exact (private) values, and what it drew."""

    mechanism: Any
    method: str
    values: Any
    output: Any

    def is_same_kind(self, other: MechanismCall) -> bool:
        """Whether both calls are of the same mechanism with the same parameters."""
        return (self.method, repr(self.mechanism)) == (other.method, repr(other.mechanism))


@dataclass(slots=True)
class CallRecorder:
    """The calls of one run. With ``frozen`` calls of another run, it returns their outputs."""

    frozen: Sequence[MechanismCall] = ()
    replaying: bool = False
    calls: list[MechanismCall] = field(default_factory=list)
    busy: bool = False

    def record(self, call: Callable[[], Any], mechanism: Any, method: str, values: Any) -> Any:
        """Run a call. On replay, return what the recorded call drew, if it is the same call."""
        kept, place = _copy(values), len(self.calls)
        self.busy = True
        try:
            output = call()  # also on replay, where only its errors count
        finally:
            self.busy = False
        if self.replaying and place < len(self.frozen):
            recorded = self.frozen[place]
            output = recorded.output if recorded.is_same_kind(MechanismCall(mechanism, method, kept, None)) else output
        self.calls.append(MechanismCall(mechanism, method, kept, output))
        return _copy(output)


_RECORDER: ContextVar[CallRecorder | None] = ContextVar("discreet_audit_recorder", default=None)


@contextmanager
def record_calls(recorder: CallRecorder) -> Iterator[CallRecorder]:
    """While this context is open, calls of mechanisms in this thread go to the recorder."""
    plain = [(kind, name, vars(kind)[name]) for kind, name in PRIMITIVES]
    token = _RECORDER.set(recorder)
    for kind, name, method in plain:
        setattr(kind, name, _wrap_method(method, name))
    try:
        yield recorder
    finally:
        for kind, name, method in plain:
            setattr(kind, name, method)
        _RECORDER.reset(token)


def _wrap_method(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def wrapper(self: Any, values: Any, /, *args: Any, **options: Any) -> Any:
        recorder = _RECORDER.get()

        def call() -> Any:
            return method(self, values, *args, **options)

        # A method of the list that calls another one counts as one call.
        return call() if recorder is None or recorder.busy else recorder.record(call, self, name, values)

    return wrapper


def _copy(values: Any) -> Any:
    return values.copy() if isinstance(values, np.ndarray | dict | list) else values


@dataclass(frozen=True, slots=True)
class Run:
    """The calls and the output of one run."""

    calls: tuple[MechanismCall, ...]
    output: Any


def run(fn: Callable[[Any], Any], data: Any, frozen: Run | None = None) -> Run:
    """Run a function under a recorder, with the recorded outputs of another run if there is one."""
    recorder = CallRecorder() if frozen is None else CallRecorder(frozen.calls, replaying=True)
    with record_calls(recorder):
        try:
            output = fn(data)
        except Exception as error:
            output = RaisedError(type(error).__name__, str(error))
    return Run(tuple(recorder.calls), output)


def replay(
    fn: Callable[[Any], Any],
    d: Any,
    d2: Any,
    claim: ClaimLike | None = None,
    *,
    tries: int = 3,
    name: str | None = None,
    words: tuple[str, str] | None = None,
) -> Finding:
    """Record a function on ``d``, replay it on its neighbour ``d2`` with the same noise, and compare.

    With a ``claim``, what the recorded mechanisms cost together must be within it. Several ``tries`` show several paths
    of a function whose path depends on what was drawn.

    >>> from discreet.mechanisms import Laplace
    >>> noise = Laplace(sensitivity=1, epsilon=1)
    >>> replay(lambda rows: noise.release(len(rows)), [1, 2], [1, 2, 3], claim=1).verdict
    <Verdict.HOLDS: 'holds'>
    >>> replay(lambda rows: noise.release(sum(rows)), [1, 2], [1, 2, 3], claim=1).detail
    'call 1, Laplace: values are 3 apart, declared 1'
    """
    start = time.monotonic()
    label = name or str(getattr(fn, "__name__", "function"))
    first_words, second_words = words or (_shorten(d), _shorten(d2))
    calls = 0
    for _ in range(max(1, tries)):
        recorded = run(fn, d)
        replayed = run(fn, d2, recorded)
        calls = max(calls, len(recorded.calls))
        problem = find_difference(recorded, replayed) or find_overspending(recorded, claim)
        verdict = Verdict.BROKEN if problem else _verdict_of(recorded)
        if verdict is not Verdict.HOLDS:
            break
    return Finding(
        name=label,
        method="grey box",
        verdict=verdict,
        detail=problem or f"{calls} calls of mechanisms, the same on both",
        claim="" if claim is None else Claim.read(claim).words(),
        witness=Witness(first=first_words, second=second_words, event=problem) if problem else None,
        seconds=time.monotonic() - start,
    )


def _verdict_of(recorded: Run) -> Verdict:
    if isinstance(recorded.output, RaisedError):
        return Verdict.RAISES
    return Verdict.EMPTY if recorded.output is None else Verdict.HOLDS


def find_difference(recorded: Run, replayed: Run) -> str:
    """How two runs on neighbours differ, in words; empty where they agree as they must."""
    if len(recorded.calls) != len(replayed.calls):
        return f"{len(recorded.calls)} calls of mechanisms on D, {len(replayed.calls)} on D'"
    for number, (one, other) in enumerate(zip(recorded.calls, replayed.calls), 1):
        kind = type(one.mechanism).__name__
        if not one.is_same_kind(other):
            return f"call {number} is {one.mechanism!r} on D, {other.mechanism!r} on D'"
        problem = check_distance(one.mechanism, one.values, other.values)
        if problem:
            return f"call {number}, {kind}: {problem}"
    errors = [isinstance(r.output, RaisedError) for r in (recorded, replayed)]
    if any(errors) and errors != [True, True]:
        return f"an error on {'D' if errors[0] else 'D-prime'} only"
    one_print, other_print = encode([recorded.output, replayed.output]).prints.tolist()
    if one_print != other_print:
        return "the outputs differ though every mechanism gave the same: something went around the mechanisms"
    return ""


def find_overspending(recorded: Run, claim: ClaimLike | None) -> str:
    """Whether the mechanisms that ran cost more than was claimed."""
    if claim is None or not recorded.calls:
        return ""
    spent = [event for call in recorded.calls for event in call.mechanism.events if not is_rehearsal(call)]
    if not spent:
        return ""
    loss = compose(spent).loss
    for epsilon, delta in Claim.read(claim).points:
        if loss.epsilon(delta) > epsilon * (1 + 1e-9):
            return f"the mechanisms that ran cost ε = {loss.epsilon(delta):.4g}, claimed {epsilon:.4g}"
    return ""


def is_rehearsal(call: MechanismCall) -> bool:
    """Whether a call adds noise to zeros only, which reveals nothing; intervals are simulated so."""
    return isinstance(call.values, np.ndarray) and call.values.size > 1 and not call.values.any()


def check_distance(mechanism: Any, one: Any, other: Any) -> str:
    """How the values of a mechanism on neighbours are further apart than it declares; empty if they are not."""
    try:
        match mechanism:
            case Laplace() | Gaussian() | RoundedGaussian():
                return _check_noise(mechanism, one, other)
            case SelectionMechanism() | NoisyMax() | SparseVector():
                return _check_scores(mechanism, one, other)
            case KeyMechanism():
                return _check_counts(mechanism, one, other)
            case RandomizedResponse():
                same = np.shape(one) == np.shape(other)
                changed = int(np.sum(np.asarray(one) != np.asarray(other))) if same else -1
                return "" if 0 <= changed <= 1 else "more than one answer differs"
            case Quantile() | Quantiles():
                return _check_rows(mechanism, one, other)
            case CellQuantiles() | CellEnds() | CellMode():
                return _check_cells(mechanism, one, other)
            case WeightedSelection():
                return _check_weights(mechanism, one, other)
            case _:
                return "a mechanism without a rule for distances"
    except (DiscreetError, TypeError, ValueError) as error:
        return f"values that the mechanism cannot read ({type(error).__name__})"


def _check_noise(mechanism: Laplace | Gaussian | RoundedGaussian, one: Any, other: Any) -> str:
    here, there = (np.atleast_1d(np.asarray(mechanism.grid.read(v, "values"), dtype=object)) for v in (one, other))
    if here.shape != there.shape:
        return f"{here.size} values on D, {there.size} on D'"
    changes = [abs(int(a) - int(b)) for a, b in zip(here.ravel(), there.ravel()) if a != b]
    event = mechanism.event
    if isinstance(event, events.DiscreteLaplace):
        declared: Any = event.sensitivity
        actual, what = sum(changes), "values are"
    else:
        declared, actual, what = event.squared_sensitivity, sum(c * c for c in changes), "squared, values are"
        if isinstance(event, events.DiscreteGaussian) and len(changes) > event.dimension:
            return f"{len(changes)} values differ, declared {event.dimension}"
    return "" if actual <= declared else f"{what} {actual} apart, declared {declared}"


def _check_scores(mechanism: Any, one: Any, other: Any) -> str:
    here, there = (_to_fractions(v) for v in (one, other))
    if len(here) != len(there):
        return f"{len(here)} scores on D, {len(there)} on D'"
    changes = [b - a for a, b in zip(here, there)]
    declared = Fraction(mechanism.sensitivity)
    largest = max(map(abs, changes), default=Fraction(0))
    if largest > declared:
        return f"a score moved by {float(largest):g}, declared {float(declared):g}"
    if getattr(mechanism, "monotone", False) and min(changes, default=0) < 0 < max(changes, default=0):
        return "scores moved both ways, declared monotone"
    return ""


def _to_fractions(scores: Any) -> list[Fraction]:
    listed = np.asarray(scores, dtype=object).ravel().tolist()
    return [Fraction(x) if isinstance(x, int | float | Fraction) else Fraction(float(x)) for x in listed]


def _check_counts(mechanism: KeyMechanism, one: Any, other: Any) -> str:
    here, there = (v if isinstance(v, Mapping) else dict(enumerate(np.asarray(v).tolist())) for v in (one, other))
    changes = {key: there.get(key, 0) - here.get(key, 0) for key in here.keys() | there.keys()}
    moved = [c for c in changes.values() if c]
    most = mechanism.max_groups * (2 if mechanism.neighbours == Neighbours.REPLACE else 1)
    if len(moved) > most:
        return f"the units of {len(moved)} keys differ, declared {most}"
    largest = mechanism.most if isinstance(mechanism, NoisyThreshold) else 1
    return "" if all(abs(c) <= largest for c in moved) else f"a key's units differ by more than {largest}"


def _check_rows(mechanism: Any, one: Any, other: Any) -> str:
    here, there = (Counter(np.asarray(v).ravel().tolist()) for v in (one, other))
    gone, come = (here - there).total(), (there - here).total()
    both = mechanism.neighbours == Neighbours.REPLACE
    changed = max(gone, come) if both else gone + come
    return "" if changed <= mechanism.max_rows else f"{changed} rows differ, declared {mechanism.max_rows}"


def _check_cells(mechanism: CellQuantiles | CellEnds | CellMode, one: Any, other: Any) -> str:
    if len(one) != len(other):
        return f"{len(one)} groups on D, {len(other)} on D'"
    in_place = not isinstance(mechanism, CellMode) and mechanism.in_place
    relation = Neighbours.read(mechanism.neighbours)
    return check_bundles(one, other, mechanism.max_rows, mechanism.groups, relation, in_place=in_place)


def check_bundles(one: Any, other: Any, rows: int, groups: int, relation: Neighbours, *, in_place: bool) -> str:
    """How more rows of histograms moved than one unit may move; empty if not.

    The rows that are added or removed in each group go into the first bundle with room, and the bundles are counted.
    Where a replaced unit stays ``in_place`` there is one group only, and as many rows may come as may go.
    """
    moved = [_count_moved_rows(a, b) for a, b in zip(one, other)]
    if in_place and (len(moved) > 1 or any(max(change) > rows for change in moved)):
        return f"rows of {len(moved)} groups are declared to stay in one, {rows} of them"
    most = rows * (2 if relation is Neighbours.REPLACE else 1)
    room: list[int] = []
    for changed in sorted(map(sum, moved), reverse=True):
        if changed > most:
            return f"{changed} rows of a group come or go, declared {most}"
        place = next((i for i, left in enumerate(room) if left >= changed), None)
        if place is not None:
            room[place] -= changed
        elif changed:
            room.append(most - changed)
    used = len(room)
    return "" if used <= groups else f"{used} bundles of {most} rows differ, declared {groups}"


def _count_moved_rows(one: Any, other: Any) -> tuple[int, int]:
    """How many rows go, and how many come."""
    here, there = (Counter(dict(zip(np.asarray(h[0]).tolist(), np.asarray(h[1]).tolist()))) for h in (one, other))
    return (here - there).total(), (there - here).total()


def _check_weights(mechanism: WeightedSelection, one: Any, other: Any) -> str:
    here, there = (v if isinstance(v, Mapping) else dict(enumerate(np.asarray(v).tolist())) for v in (one, other))
    moved = [c for key in here.keys() | there.keys() if (c := there.get(key, 0) - here.get(key, 0))]
    units = 2 if mechanism.neighbours == Neighbours.REPLACE else 1
    if len(moved) > units * mechanism.max_groups:
        return f"the weights of {len(moved)} keys differ, declared {units * mechanism.max_groups}"
    gap = sum(c * c for c in moved)
    if gap > units * mechanism.whole**2:
        return f"squared, weights are {gap} apart, declared {units * mechanism.whole**2}"
    for mine, others in ((here, there), (there, here)):
        alone = [weight for key, weight in mine.items() if weight and not others.get(key, 0)]
        if alone and max(alone) > mechanism.weight(len(alone)):
            return f"{len(alone)} keys of one unit alone have more weight than it can give them"
    return ""


def _shorten(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 120 else f"{text[:117]}..."
