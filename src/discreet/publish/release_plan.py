"""Release plans: what is to be published, as a curator writes it down in TOML or in Python. No data here.

name = "visits-2024"
codebook = "hospital.toml"
table = "visits"            # or: from = "visits JOIN wards USING (ward)"
where = "age >= 18"
epsilon = 1                 # or share, or rho
ways = 2                    # all tables of up to two columns; or marginals = [["ward", "sex"], ...]

[columns.ward]
[columns.age]
bins = 20
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet import parameters
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.offer import Offer
from discreet.parameters import Number
from discreet.plan.catalog import suggest_nearest
from discreet.plan.types import Value
from discreet.publish.columns import ColumnChoice
from discreet.publish.constraints import Constraint
from discreet.publish.plan_entries import QuestionEntry, SeriesEntry, dump_entry, read_entries, split_price
from discreet.publish.priors import Prior
from discreet.publish.range_strategies import RangeWorkload

_WORDS = (
    "name", "codebook", "table", "from", "where", "columns", "ways", "marginals", "epsilon", "rho", "share", "delta",
    "max_rows", "rows", "synthetic", "constraints", "supersedes", "level", "csv", "sdmx", "method",
    "weight", "questions", "series", "priors",
)  # fmt: skip  # a list of words
_MOST_WAYS = 4
_COLUMN_WORDS = ("of", "keys", "max_keys", "low", "high", "resolution", "bins", "edges", "ranges")


class MethodWord(StrEnum):
    """How tables are to be measured; ``method`` says what that means."""

    AUTO = "auto"
    ONE_SHOT = "one shot"
    TWO_STAGES = "two stages"
    INDEPENDENT = "independent"
    DIRECT = "direct"


@dataclass(frozen=True, kw_only=True)
class ReleasePlan:
    """What is published, and what it may cost. ``rows`` is roughly how many rows there are, if that is public.

    ``name`` is the release's own: under one name one thing is published once. ``source`` is what stands after FROM.
    """

    name: str
    source: str
    columns: Mapping[str, ColumnChoice]
    where: str = ""
    ways: int = 2
    marginals: tuple[tuple[str, ...], ...] | None = None
    # How much the error of each of these counts; without it all count alike.
    marginal_weights: tuple[Number, ...] | None = None
    epsilon: Number | None = None
    rho: Number | None = None
    share: Number | None = None
    delta: Number | None = None
    level: Number = 0.95
    max_rows: int | None = None
    rows: int | None = None
    synthetic: bool = True
    constraints: tuple[Constraint, ...] = ()
    supersedes: str = ""
    csv: bool = False
    sdmx: bool = False
    method: MethodWord = MethodWord.AUTO
    # How much of μ² tables get, where there are questions and series beside them; each of these has a weight, too.
    weight: Number = 1
    questions: tuple[QuestionEntry, ...] = ()
    series: tuple[SeriesEntry, ...] = ()
    priors: tuple[Prior, ...] = ()
    codebook: Path | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or len(self.name) > 200:
            raise UsageError("A release needs a name of its own, such as name = 'visits-2024'. Nothing was charged.")
        if not self.columns and not self.questions and not self.series:
            raise UsageError(
                "A release needs columns (a [columns.NAME] for each), questions or series. Nothing was charged."
            )
        for name in ("synthetic", "csv", "sdmx"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"{name} is true or false. Nothing was charged.")
        if isinstance(self.ways, bool) or not isinstance(self.ways, int) or not 1 <= self.ways <= 3:
            raise UsageError("ways is 1, 2 or 3: tables of up to so many columns. Nothing was charged.")
        for name, least in (("max_rows", 1), ("rows", 1)):
            if getattr(self, name) is not None:
                parameters.read_whole(getattr(self, name), name, least=least)
        for marginal in self.marginals or ():
            unknown = [column for column in marginal if column not in self.columns]
            if unknown or len(set(marginal)) < len(marginal) or not 1 <= len(marginal) <= _MOST_WAYS:
                hint = suggest_nearest(unknown[0], self.columns) if unknown else "Name 1 to 4 columns, each once."
                raise UsageError(f"A marginal of the plan cannot be made. {hint} Nothing was charged.")
        for constraint in self.constraints:
            constraint.check(self.columns)
        if self.method not in tuple(MethodWord):
            raise UsageError(f"method is one of {', '.join(map(repr, MethodWord))}. Nothing was charged.")
        object.__setattr__(self, "method", MethodWord(self.method))
        split_price(Fraction(1), self.part_weights)
        _ = self.offer

    @property
    def part_weights(self) -> tuple[Number, ...]:
        """The weights of tables, questions and series, in this order."""
        return (self.weight, *(q.weight for q in self.questions), *(s.weight for s in self.series))

    @property
    def offer(self) -> Offer:
        """What may be spent."""
        alone = self.epsilon is not None  # an ε that is stated for a release is its guarantee
        return Offer(
            epsilon=self.epsilon, rho=self.rho, share=self.share, delta=self.delta, level=self.level, alone=alone
        )

    @property
    def digest(self) -> str:
        """A name for everything that the plan says."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {
            "name": self.name,
            "from": self.source,
            "where": self.where,
            "columns": [{"name": name, **_plain_choice(choice)} for name, choice in self.columns.items()],
            "ways": self.ways,
            "marginals": None if self.marginals is None else [list(each) for each in self.marginals],
            "marginal_weights": _plain(self.marginal_weights),
            "offer": {n: _plain(getattr(self, n)) for n in ("epsilon", "rho", "share", "delta")},
            "level": _plain(self.level),
            "max_rows": self.max_rows,
            "rows": self.rows,
            "synthetic": self.synthetic,
            "constraints": [constraint.to_dict() for constraint in self.constraints],
            "supersedes": self.supersedes,
            "csv": self.csv,
            "sdmx": self.sdmx,
            "method": str(self.method),
            "weight": _plain(self.weight),
            "questions": [dump_entry(entry) for entry in self.questions],
            "series": [dump_entry(entry) for entry in self.series],
            "priors": [prior.to_dict() for prior in self.priors],
        }

    @classmethod
    def read(cls, plan: str | Path | Mapping[str, Any] | ReleasePlan) -> ReleasePlan:
        """A plan from wherever it is: a file, its words as a mapping, or the plan itself."""
        if isinstance(plan, ReleasePlan):
            return plan
        return cls.load(plan) if isinstance(plan, str | Path) else cls.from_dict(plan)

    @classmethod
    def load(cls, path: str | Path) -> ReleasePlan:
        """A plan from a TOML file; its codebook is named from there."""
        place = Path(path)
        try:
            document = tomllib.loads(place.read_text(encoding="utf-8"), parse_float=Fraction)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"{place} cannot be read as a plan: {error}. Nothing was charged.") from None
        codebook = document.pop("codebook", None)
        for entry in document.get("series", ()):
            if isinstance(entry, dict) and isinstance(entry.get("state"), str):
                entry["state"] = place.parent / entry["state"]  # named from the plan, as the codebook is
        found = cls.from_dict(document)
        return found if codebook is None else _with_codebook(found, place.parent / str(codebook))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ReleasePlan:
        """A plan from plain values, as TOML has them."""
        if not isinstance(document, Mapping):
            raise UsageError("A plan is a TOML file, a mapping of its words, or a ReleasePlan. Nothing was charged.")
        _check_words(document, _WORDS, "A plan")
        stated = dict(document)
        if ("table" in stated) is ("from" in stated):
            raise UsageError('A plan names its rows once: table = "visits", or from = "...". Nothing was charged.')
        source = stated.pop("from", None) or f'"{stated.pop("table")}"'
        columns = {name: read_choice(name, words) for name, words in _list_columns(stated.pop("columns", {}))}
        marginals, weights = _read_marginals(stated.pop("marginals", None))
        return cls(
            source=source,
            columns=columns,
            marginals=marginals,
            marginal_weights=weights,
            questions=read_entries(QuestionEntry, stated.pop("questions", ()), "questions"),
            series=read_entries(SeriesEntry, stated.pop("series", ()), "series"),
            priors=tuple(Prior.from_dict(each) for each in stated.pop("priors", ())),
            constraints=tuple(Constraint.from_dict(each) for each in stated.pop("constraints", ())),
            **stated,
        )


def _with_codebook(plan: ReleasePlan, path: Path) -> ReleasePlan:
    object.__setattr__(plan, "codebook", path)  # where it lies is no part of what it says
    return plan


def _read_marginals(
    marginals: Any,
) -> tuple[tuple[tuple[str, ...], ...] | None, tuple[Number, ...] | None]:
    """The columns of each marginal, and their weights: ["ward", "sex"], or { columns = [...], weight = 5 }."""
    if marginals is None:
        return None, None
    columns, weights = [], []
    for each in marginals:
        words = each if isinstance(each, Mapping) else {"columns": each}
        _check_words(words, ("columns", "weight"), "A marginal of a plan")
        columns.append(tuple(words.get("columns", ())))
        weights.append(words.get("weight", 1))
        parameters.read_positive(weights[-1], "weight")
    return tuple(columns), None if all(weight == 1 for weight in weights) else tuple(weights)


def _list_columns(columns: Any) -> Sequence[tuple[str, Mapping[str, Any]]]:
    if isinstance(columns, Mapping):
        return list(columns.items())
    if isinstance(columns, list | tuple) and all(isinstance(name, str) for name in columns):
        if len(set(columns)) < len(columns):
            raise UsageError("A plan names a column twice. Nothing was charged.")
        return [(name, {}) for name in columns]
    raise UsageError("columns is a list of names, or a [columns.NAME] for each. Nothing was charged.")


def read_choice(name: str, words: Any) -> ColumnChoice:
    """What a plan says of one column."""
    if isinstance(words, ColumnChoice):
        return words
    if not isinstance(words, Mapping):
        raise UsageError(f"What is said of the column {name!r} must be a table of words. Nothing was charged.")
    _check_words(words, _COLUMN_WORDS, f"The column {name!r} of a plan")
    stated = dict(words)
    if stated.get("keys") == "private":
        stated["private"] = True
        del stated["keys"]
    elif "max_keys" in stated:
        raise UsageError(f'max_keys of {name!r} goes with keys = "private". Nothing was charged.')
    for listed in ("keys", "edges"):
        if listed in stated:
            if not isinstance(stated[listed], list | tuple):
                raise UsageError(f"{listed} of the column {name!r} must be a list. Nothing was charged.")
            stated[listed] = tuple(_settle(value) for value in stated[listed])
    for bound in ("low", "high"):
        stated[bound] = _settle(stated.get(bound))
    if stated.get("ranges") not in (None, *RangeWorkload):
        raise UsageError(f"ranges of {name!r} is 'all', 'short' or 'distribution'. Nothing was charged.")
    if "resolution" in stated:
        stated["resolution"] = parameters.read_positive(stated["resolution"], "resolution")
    return ColumnChoice(**stated)


def _settle(value: Any) -> Value:
    """A value of a plan: reals come from TOML as fractions."""
    return float(value) if isinstance(value, Fraction) else value


def _check_words(given: Mapping[str, Any], known: Sequence[str], who: str) -> None:
    for word in given:
        if word not in known:
            raise UsageError(f"{who} has no word {word!r}. {suggest_nearest(word, known)} Nothing was charged.")


def _plain_choice(choice: ColumnChoice) -> dict[str, Any]:
    return {word: _plain(value) for word, value in asdict(choice).items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if value is None or isinstance(value, str | bool | int) else str(value)
