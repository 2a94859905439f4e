"""The domain of a task: one of d values, any text, or a number in a range. It turns answers into whole numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import cached_property

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.entropy import EntropySource, Words
from discreet.errors import ParameterError
from discreet.exact import Integers
from discreet.late_dataclass import dataclass
from discreet.local.hashing import text_keys
from discreet.local.words import HALF, pick

_FIX = "Give size=4, labels=['red', 'green'], low=0 and high=120, or open=True."
MAX_LABELS = 1 << 20
_PLAIN = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,3})?")  # every language reads these alike


@dataclass(frozen=True, kw_only=True)
class Domain:
    """Exactly one of: ``size`` (answers 0 to size − 1), ``labels``, ``low`` with ``high``, or ``open`` (any text).

    >>> Domain(labels=("no", "yes")).count
    2
    >>> Domain(low=0, high=120).json
    {'low': '0', 'high': '120'}
    """

    size: int | None = None
    labels: tuple[str, ...] | None = None
    low: object = None
    high: object = None
    open: bool = False

    def __post_init__(self) -> None:
        bounded = self.low is not None or self.high is not None
        if (self.size is not None) + (self.labels is not None) + bounded + bool(self.open) != 1:
            raise ParameterError("domain", "must be given in exactly one form", _FIX)
        if self.size is not None:
            parameters.read_whole(self.size, "domain size", least=2, most=HALF - 1)
        if self.labels is not None:
            object.__setattr__(self, "labels", _read_labels(self.labels))
        if bounded:
            low, high = _read_decimal(self.low, "low"), _read_decimal(self.high, "high")
            if not float(low) < float(high) or not math.isfinite(float(high) - float(low)):
                raise ParameterError("domain", "must have low below high", "Give for example low=0, high=120.")
            object.__setattr__(self, "low", low)
            object.__setattr__(self, "high", high)

    @classmethod
    def of(cls, given: object) -> Domain:
        """A domain from itself, a number of values, a list of labels, or a pair (low, high)."""
        if isinstance(given, Domain):
            return given
        if isinstance(given, int) and not isinstance(given, bool):
            return cls(size=given)
        if isinstance(given, tuple) and len(given) == 2 and not any(isinstance(end, str) for end in given):
            return cls(low=given[0], high=given[1])
        if isinstance(given, Sequence) and not isinstance(given, str | bytes):
            return cls(labels=tuple(given))
        raise ParameterError("domain", f"must say what may be answered; got {parameters.kind_of(given)}", _FIX)

    @classmethod
    def read(cls, given: object) -> Domain:
        """A domain from a task's JSON."""
        if not isinstance(given, Mapping):
            raise ParameterError("domain", "must be an object", _FIX)
        forms = {"size": {"size"}, "labels": {"labels"}, "open": {"open"}, "low": {"low", "high"}}
        keys = set(given)
        if keys not in forms.values():
            raise ParameterError("domain", "must be given in exactly one form", _FIX)
        if "labels" in keys:
            if not isinstance(given["labels"], list):
                raise ParameterError("domain.labels", "must be a list", _FIX)
            return cls(labels=tuple(given["labels"]))
        if "open" in keys and given["open"] is not True:
            raise ParameterError("domain.open", "must be true", _FIX)
        if "low" in keys and not all(isinstance(end, str) for end in given.values()):
            raise ParameterError("domain", "must have low and high as strings of digits", _FIX)
        return cls(**given)

    @property
    def json(self) -> dict[str, object]:
        """The domain as a task carries it."""
        if self.size is not None:
            return {"size": self.size}
        if self.labels is not None:
            return {"labels": list(self.labels)}
        if self.open:
            return {"open": True}
        return {"low": str(self.low), "high": str(self.high)}

    @property
    def closed(self) -> bool:
        """Whether the values can be listed."""
        return self.size is not None or self.labels is not None

    @property
    def numeric(self) -> bool:
        """Whether answers are numbers of a range."""
        return self.low is not None

    @property
    def count(self) -> int:
        """How many values there are, where they can be listed."""
        if self.labels is not None:
            return len(self.labels)
        if self.size is None:
            raise ParameterError("domain", "has no list of values", "Use a domain with size or labels.")
        return self.size

    @property
    def ends(self) -> tuple[float, float]:
        """The two ends of a range."""
        return float(str(self.low)), float(str(self.high))

    def names(self) -> list[str]:
        """The values as texts, in order."""
        return list(self.labels) if self.labels is not None else [str(value) for value in range(self.count)]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: place for place, label in enumerate(self.labels or ())}

    def indices(self, answers: Sequence[object] | npt.NDArray[np.generic]) -> Integers:
        """The index of each answer; −1 where the domain does not have it. It never raises, so no error reveals it."""
        if self.labels is not None:
            places = self._places
            if isinstance(answers, np.ndarray) and answers.dtype.kind == "U":
                answers = answers.tolist()
            return np.array([places.get(a, -1) if isinstance(a, str) else -1 for a in answers], dtype=np.int64)
        if isinstance(answers, np.ndarray) and answers.dtype.kind in "iu":
            given: Integers = answers.astype(np.int64, copy=False)
            if answers.dtype == np.uint64:  # a number above int64 became negative; it is out of range anyway
                given = np.where(answers.view(np.int64) < 0, -1, given)
            outside = (given < 0) | (given >= self.count)
            return np.where(outside, -1, given) if outside.any() else given
        return np.array([_index_of(answer, self.count) for answer in answers], dtype=np.int64)

    def scale(self, answers: Sequence[object] | npt.NDArray[np.generic]) -> Integers:
        """Each number as X from 0 (the low end) to 2^32 (the high end), clamped; −1 where there is none."""
        low, high = self.ends
        if not (isinstance(answers, np.ndarray) and answers.dtype.kind in "iuf"):
            answers = np.array([_to_float(answer) for answer in answers], dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.floor((answers.astype(np.float64) - low) / (high - low) * HALF + 0.5)
        missing = np.isnan(steps)
        steps[missing] = 0
        return np.where(missing, -1, np.clip(steps, 0, HALF).astype(np.int64))

    def keys(self, answers: Sequence[object]) -> Words:
        """The key words of texts; an answer that is not a text counts as the empty text."""
        return text_keys([as_text(answer) for answer in answers])


def as_text(answer: object) -> str:
    """An answer of an open domain as text that has a UTF-8 form; anything else is the empty text."""
    if not isinstance(answer, str):
        return ""
    return answer.encode("utf-8", "replace").decode()


def replace_unknown(indices: Integers, choices: int, source: EntropySource) -> Integers:
    """Replace unknown answers by random ones, so that a report does not show them."""
    unknown = indices < 0
    if not unknown.any():
        return indices
    filled = indices.copy()
    filled[unknown] = pick(source.words(int(unknown.sum())), choices)
    return filled


def _index_of(answer: object, count: int) -> int:
    """The index that an answer is; −1 for an unknown one. A whole float counts: JavaScript has no other numbers.

    A column of a frame in which one answer is missing holds floats, 1.0 for 1, and NaN for the missing one.
    """
    if isinstance(answer, float | np.floating) and answer.is_integer():
        answer = int(answer)
    if isinstance(answer, bool | np.bool_) or not isinstance(answer, int | np.integer):
        return -1
    return int(answer) if 0 <= answer < count else -1


def _to_float(answer: object) -> float:
    if isinstance(answer, bool) or not isinstance(answer, int | float | Decimal | np.integer | np.floating):
        return math.nan
    try:
        return float(answer)
    except (OverflowError, ValueError):
        return math.nan


def _read_labels(given: object) -> tuple[str, ...]:
    labels = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
    if not all(isinstance(label, str) and label.isprintable() and label for label in labels):
        raise ParameterError("domain.labels", "must be texts that can be printed", _FIX)
    if not 2 <= len(labels) <= MAX_LABELS or len(set(labels)) != len(labels):
        raise ParameterError("domain.labels", "must be at least two, and all different", _FIX)
    return labels


def _read_decimal(value: object, name: str) -> str:
    """A bound as the shortest decimal text of its value."""
    fix = f"Give a finite number, for example {name}=0."
    try:
        exact = Decimal(value if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value))
    except (InvalidOperation, ValueError):
        raise ParameterError(name, "must be a number", fix) from None
    written = value if isinstance(value, str) else str(exact)
    if isinstance(value, bool) or not _PLAIN.fullmatch(written) or abs(exact.adjusted()) > 300:
        raise ParameterError(name, "must be a finite number, written plainly", fix)
    return written
