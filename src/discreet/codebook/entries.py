"""The entries of a codebook file: which words there are, and what kind of value each takes.

These models are the shape of the TOML file and nothing more. ``entry_reader`` makes them from a file, and ``rules``,
``owners`` and ``spending`` check what they must be together. Their descriptions are the reference in docs/codebook.md
and in the JSON Schema beside it. Numbers are exact: 0.1 in the file is one tenth.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

from discreet import parameters
from discreet.errors import ParameterError
from discreet.plan.catalog import DEFAULT_LENGTH, MAX_LENGTH
from discreet.plan.conversions import advise_conversion
from discreet.plan.csv_form import DECIMALS, DELIMITERS, THOUSANDS, CsvEncoding, DateOrder
from discreet.plan.functions import TRUNCATIONS
from discreet.plan.source_kinds import kind_of_path
from discreet.plan.times import to_moment
from discreet.plan.types import Type, Value

# The unit of a codebook that protects single rows.
ROW = "row"
# A blank, which ``discreet init`` writes where only a person can know the answer.
BLANK = "?"
# The name that means everyone else in ``per_analyst`` and ``per_project``.
OTHERS = "*"
TYPES = tuple(map(str, Type))
ENCODINGS, DATE_ORDERS = tuple(map(str, CsvEncoding)), tuple(map(str, DateOrder))
# Words from other systems, and what they are called here.
# What to do about foreign keys that cannot be read.
FOREIGN_KEY_FIX = (
    'Say which column refers to which: foreign_keys = { visit_id = "visits.visit_id" }; where several columns refer '
    'together, foreign_keys = [{ clinic = "visits.clinic", number = "visits.number" }].'
)
SYNONYMS = {
    **dict.fromkeys(("float", "double", "decimal", "number", "numeric"), "real"),
    **dict.fromkeys(("string", "str", "varchar", "char", "category"), "text"),
    **dict.fromkeys(("int", "bigint", "long", "int64"), "integer"),
    **dict.fromkeys(("datetime", "time"), "timestamp"),
    "range": "bounds",
    "domain": "keys",
    "values": "keys",
    "private_id": "unit",
    "privacy_unit": "unit",
    "neighbors": "neighbours",
    "max_contribution": "max_rows",
    "max_ids": "max_rows",
    "references": "foreign_keys",
    "foreign_key": "foreign_keys",
    "primary_key": "unique",
    "max_multiplicity": "max_frequency",
    "path": "source",
}


def _read_number(value: object) -> Fraction:
    if not isinstance(value, int | float | Decimal | Fraction) and not hasattr(value, "dtype"):
        raise PydanticCustomError("number", "must be a number")
    try:
        return parameters.read_number(value, "it")
    except ParameterError as error:
        raise PydanticCustomError("number", "must be a finite number") from error


def _read_key(value: object) -> Value | Fraction:
    value = _from_numpy(value)
    if isinstance(value, dt.datetime):
        return _to_plain_moment(value)
    if isinstance(value, bool | str | dt.date):
        return value
    if type(value).__name__ in {"bool", "bool_"}:  # NumPy's
        return bool(value)
    try:
        return _read_number(value)
    except PydanticCustomError as error:
        raise PydanticCustomError("key", "must be a truth value, number, text, date or timestamp") from error


def _from_numpy(value: Any) -> object:
    """A time of NumPy as one of Python, to the microsecond; anything else as it is."""
    if type(value).__name__ != "datetime64":
        return value
    found: object = value.item()
    return value.astype("datetime64[us]").item() if isinstance(found, int) else found


def _to_plain_moment(value: dt.datetime) -> dt.datetime:
    """A timestamp of pandas as one of Python, which its missing value is not."""
    if value != value:  # noqa: PLR0124  # only what is missing differs from itself
        raise PydanticCustomError("key", "must not be missing")
    return dt.datetime.combine(value.date(), value.time(), value.tzinfo)


def _read_width(value: object) -> Fraction | str:
    if isinstance(value, str) and value in TRUNCATIONS:
        return value
    try:
        return _read_number(value)
    except PydanticCustomError as error:
        words = ", ".join(repr(word) for word in TRUNCATIONS)
        rule = "must be a number, or for dates and timestamps one of {words}"
        raise PydanticCustomError("width", rule, {"words": words}) from error


def _expand_source(value: object) -> object:
    """A plain text means a file, whose ending tells its kind."""
    if not isinstance(value, str) or value == BLANK:
        return value
    kind = kind_of_path(value)
    advice = advise_conversion(value)
    if kind is None and advice is not None:
        raise PydanticCustomError("source", "is of a kind that questions cannot read. {advice}", {"advice": advice})
    if kind is None:
        raise PydanticCustomError(
            "source", 'needs its kind: source = {{ parquet = "..." }}, csv, duckdb, postgres or spark'
        )
    return {str(kind): value}


def _expand_column(value: object) -> object:
    """A plain text means a column with this type. A date among the bounds of a timestamp means its midnight."""
    if isinstance(value, str):
        return {"type": value}
    if not isinstance(value, Mapping) or value.get("type") != Type.TIMESTAMP:
        return value
    bounds = value.get("bounds")
    if not isinstance(bounds, list | tuple):
        return value
    ends = map(_from_numpy, bounds)
    return {**value, "bounds": [to_moment(end) if isinstance(end, dt.date) else end for end in ends]}


def _expand_foreign_keys(value: object) -> object:
    """In a plain table, each column is a foreign key by itself. In a list, each table is one: its columns together."""
    if isinstance(value, Mapping):
        return tuple({column: target} for column, target in value.items())
    if not isinstance(value, list | tuple):
        raise PydanticCustomError("foreign_keys", "must say which column refers to which")
    return value


def _expand_shares(value: object) -> object:
    """A plain number means a cap for each name."""
    return value if isinstance(value, Mapping) else {OTHERS: value}


_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?(ms|s|min)")
_SECONDS = {"ms": Fraction(1, 1000), "s": Fraction(1), "min": Fraction(60)}
SHORTEST, LONGEST = dt.timedelta(milliseconds=10), dt.timedelta(hours=1)


def _read_duration(value: object) -> dt.timedelta:
    """A text such as "2s", "500ms" or "1min"."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) and value.isascii() else None
    seconds = Fraction(0) if found is None else Fraction(found[1]) * _SECONDS[found[2]]
    duration = dt.timedelta(microseconds=min(int(seconds * 10**6), 10**13))
    if not SHORTEST <= duration <= LONGEST:
        raise PydanticCustomError("duration", "must be a duration from 10ms to 60min")
    return duration


ExactNumber: TypeAlias = Annotated[Fraction, PlainValidator(_read_number, json_schema_input_type=float)]
KeyValue: TypeAlias = Annotated[
    Any, PlainValidator(_read_key, json_schema_input_type=bool | float | str | dt.datetime | dt.date)
]
ListField: TypeAlias = Field(strict=False)  # type: ignore[valid-type]  # a list in the file, a tuple here
NameText: TypeAlias = Annotated[str, Field(min_length=1)]
PositiveCount: TypeAlias = Annotated[int, Field(ge=1, le=parameters.MAX_SIZE)]
Shares: TypeAlias = Annotated[
    dict[NameText, ExactNumber], BeforeValidator(_expand_shares, json_schema_input_type=float | dict[str, float])
]


class CodebookEntry(BaseModel):
    """A table of the file. It refuses unknown words, converts nothing silently, and cannot be changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class BudgetEntry(CodebookEntry):
    """``[budget]``: what may be spent in all, over all analysts and all time."""

    epsilon: ExactNumber | None = Field(None, description="The loss ε allowed in all.")
    delta: ExactNumber | None = Field(
        None,
        description="With `epsilon`: the small probability of a larger loss. Far below one over the number of people.",
    )
    rho: ExactNumber | None = Field(None, description="Instead of `epsilon`: the loss ρ in zero-concentrated terms.")
    mu: ExactNumber | None = Field(
        None,
        description="Instead of `epsilon`: the loss μ in Gaussian terms. All noise is Gaussian, and keys are public.",
    )
    per_query: ExactNumber | None = Field(
        None,
        description="The most that one question may cost, in the same terms as the budget.",
    )
    per_analyst: Shares | None = Field(
        None,
        description='The most that each analyst may spend: a number, or one by name, `{ ana = 2, "*" = 1 }`, where '
        '`"*"` is everyone else.',
    )
    per_project: Shares | None = Field(None, description="The same for projects, which a question may name.")
    per_day: ExactNumber | None = Field(
        None, description="The most that all analysts together may spend in a day (UTC), in the terms of the budget."
    )
    per_week: ExactNumber | None = Field(None, description="The same for a week, from Monday on.")
    per_month: ExactNumber | None = Field(None, description="The same for a month.")
    per_year: ExactNumber | None = Field(None, description="The same for a year.")
    stops: Literal["dataset", "analyst"] = Field(
        "dataset",
        description="Who may not ask after a question failed, until the owner has looked: everyone, or, where "
        "`analysts` are listed, the one who asked.",
    )


class SourceEntry(CodebookEntry):
    """Where a table's rows are. A plain text such as `"visits.parquet"` is a file whose ending tells its kind."""

    parquet: str | None = Field(None, description="A Parquet file, or a pattern for several: `visits/*.parquet`.")
    csv: str | None = Field(
        None,
        description="A text file with a header and double quotes, or a pattern for several; `.gz`, `.zst` and `.bz2` "
        "are unpacked.",
    )
    duckdb: str | None = Field(None, description="A DuckDB database file.")
    postgres: str | None = Field(
        None,
        description='A table in a PostgreSQL database, with its schema: `"clinic.visits"`. The environment variable '
        "`DISCREET_POSTGRES` says where the database is.",
    )
    spark: str | None = Field(
        None,
        description='A table of a catalog of Spark, with its full name: `"catalog.schema.table"`, together with '
        "`release`. The environment variable `DISCREET_SPARK` says where Spark runs; without it, on this machine.",
    )
    release: str | None = Field(
        None,
        description='With `postgres` or `spark`: a name for the present state of the data, such as `"2024-06"`. While '
        "it stays, a question asked again is given its recorded answer. Without it every write to the database of "
        "`postgres` is new data; `spark` needs it.",
    )
    table: str | None = Field(None, description="With `duckdb`: the table in it, if it has another name there.")
    delimiter: Literal[DELIMITERS] | None = Field(  # type: ignore[valid-type]  # a tuple of signs
        None,
        description='With `csv`: what separates fields, `","`, `";"`, `"\\t"` or `"|"`. Without it, a tab in `.tsv` '
        "files, a bar in `.psv` files, else a comma.",
    )
    encoding: Literal[ENCODINGS] | None = Field(  # type: ignore[valid-type]  # a tuple of words
        None, description='With `csv`: `"utf-8"`, the default, or `"latin-1"` (Windows-1252).'
    )
    decimal: Literal[DECIMALS] | None = Field(  # type: ignore[valid-type]  # a tuple of signs
        None, description='With `csv`: the decimal sign of numbers, `"."`, the default, or `","`.'
    )
    thousands: Literal[THOUSANDS] | None = Field(  # type: ignore[valid-type]  # a tuple of signs
        None,
        description='With `csv`: what stands between groups of three digits, such as `","` in 1,234.5. Without it, '
        "numbers with groups are NULL.",
    )
    dates: Literal[DATE_ORDERS] | None = Field(  # type: ignore[valid-type]  # a tuple of words
        None, description='With `csv`: the order of dates in digits, `"ymd"`, the default, `"dmy"` or `"mdy"`.'
    )


class EngineEntry(CodebookEntry):
    """`[engine]`: where questions are computed, if not in the curator's own process."""

    spark: str | None = Field(
        None,
        description='Where Spark runs: `"local[*]"`, `"spark://host:7077"` or, for Spark Connect, `"sc://host:15002"`, '
        "without a token. The environment variable `DISCREET_SPARK` goes before it. With it, Spark reads Parquet "
        "files, too.",
    )


class Bins(CodebookEntry):
    """The values of a column that holds starts of bins, written short. They become its `keys`."""

    width: Annotated[Fraction | str, PlainValidator(_read_width, json_schema_input_type=float | str)] | None = Field(
        None,
        description='Every value from the lower bound up in steps of this width; for dates and timestamps `"day"`, '
        '`"week"`, `"month"`, `"quarter"` or `"year"`, for timestamps also `"hour"`, `"minute"` or `"second"`. Needs '
        "`bounds`.",
    )
    edges: Annotated[tuple[KeyValue, ...], ListField] | None = Field(
        None,
        description="The values themselves, in ascending order.",
    )


class ColumnEntry(CodebookEntry):
    """A column that questions may use. A plain text such as `"integer"` is its type."""

    type: Literal[TYPES] = Field(  # type: ignore[valid-type]  # a tuple of words
        description="What it holds: `boolean`, `integer`, `real`, `text`, `date` or `timestamp`.",
    )
    bounds: Annotated[tuple[KeyValue, KeyValue], ListField] | None = Field(
        None,
        description="The least and the largest value that count; values beyond are moved to the nearer one in sums "
        "and averages, which need bounds, and are in no bin. Of dates and timestamps they make `date_trunc` and "
        "`year` public keys; a date as a bound of timestamps is its midnight.",
    )
    resolution: ExactNumber | None = Field(
        None,
        description="The step in which sums are taken, such as `0.01` for money. Whole numbers have 1.",
    )
    keys: Annotated[tuple[KeyValue, ...], ListField] | None = Field(
        None,
        description="All values that may appear as a group, if they are publicly known. Rows with other values are "
        "left out when grouping.",
    )
    bins: Bins | None = Field(None, description="Instead of `keys`: evenly spaced or listed starts of bins.")
    null_key: bool = Field(default=False, description="Whether NULL is a group of its own, besides the keys.")
    nullable: bool = Field(default=True, description="Whether values may be missing.")
    constant_per_unit: bool = Field(
        default=False,
        description="Whether all rows of one unit hold the same value, as with a year of birth.",
    )
    unique: bool = Field(
        default=False,
        description="In a public table: whether rows are looked up by this column. A value that several rows hold "
        "finds none.",
    )
    max_frequency: PositiveCount | None = Field(
        None,
        description="How many rows with the same value take part in a join on this column that does not keep units "
        "together. Without it such joins are refused.",
    )
    max_length: PositiveCount | None = Field(
        None,
        description=f"In a text column: the most characters (code points) of a value, {DEFAULT_LENGTH:,} if not given "
        f"and at most {MAX_LENGTH:,}. Longer values are read as NULL.",
    )
    max_values: PositiveCount | None = Field(
        None,
        description="How many distinct values of this column one unit brings to `COUNT(DISTINCT ...)`, in all groups "
        "together. Without it, as many as its rows that count.",
    )


class TableEntry(CodebookEntry):
    """`[tables.NAME]`: one table that questions may use, under this name."""

    source: Annotated[SourceEntry, BeforeValidator(_expand_source, json_schema_input_type=str | SourceEntry)] | None = (
        Field(
            None,
            description="Where the rows are; relative to the codebook.",
        )
    )
    public: bool = Field(
        default=False,
        description="Whether the rows belong to nobody and may be known to everyone, such as a list of wards.",
    )
    foreign_keys: Annotated[
        tuple[dict[NameText, NameText], ...],
        ListField,
        BeforeValidator(
            _expand_foreign_keys, json_schema_input_type=dict[NameText, NameText] | list[dict[NameText, NameText]]
        ),
    ] = Field(
        (),
        description='Columns that hold a key of another table: `{ visit_id = "visits.visit_id" }`. Rows without the '
        "unit's column reach it this way. Columns that hold a key together stand in one entry of a list: "
        '`[{ clinic = "visits.clinic", number = "visits.number" }]`.',
    )
    max_rows: PositiveCount | None = Field(None, description="How many rows of one unit may count in a question.")
    max_groups: PositiveCount | None = Field(
        None,
        description="Instead of `max_rows`, with `max_rows_per_group`: in how many groups of a question one unit may"
        " count.",
    )
    max_rows_per_group: PositiveCount | None = Field(
        None, description="How many rows of one unit may count in one group."
    )
    rows: PositiveCount | None = Field(
        None,
        description="The number of rows, roughly, if it is public. Never read from the data.",
    )
    units: PositiveCount | None = Field(None, description="The number of units (people), roughly, if it is public.")
    exact_rows: PositiveCount | None = Field(
        None,
        description='With `unit = "row"` and `neighbours = "replace"`: exactly how many rows there are, which is public'
        " there. `COUNT(*)` of the whole table is then this number, without noise and for free, and averages divide by"
        " it.",
    )
    exact_units: PositiveCount | None = Field(
        None,
        description='With `neighbours = "replace"`: exactly how many units (people) have rows in the table. Counting '
        "the units of the whole table is then this number, without noise and for free.",
    )
    columns: dict[
        str, Annotated[ColumnEntry, BeforeValidator(_expand_column, json_schema_input_type=str | ColumnEntry)]
    ] = Field(
        description="The columns that questions may use, by name.",
    )


class Document(CodebookEntry):
    """A codebook: the curator's file about one dataset."""

    name: NameText = Field(description="The name of the dataset.")
    description: str = Field("", description="What the data is about, for people.")
    unit: NameText = Field(
        description='Who is protected: `"row"`, or the column that says to whom a row belongs: '
        '`"patients.patient_id"`, or `"patient_id"` where every table has it.',
    )
    neighbours: Literal["add-remove", "replace"] = Field(
        "add-remove",
        description='Which datasets must look alike: `"add-remove"` hides whether a unit is in the data; `"replace"`'
        " hides what its values are, and the number of units is public.",
    )
    budget: BudgetEntry = Field(description="What may be spent.")
    source: Annotated[SourceEntry, BeforeValidator(_expand_source, json_schema_input_type=str | SourceEntry)] | None = (
        Field(
            None,
            description="A DuckDB file that holds every table without a `source` of its own.",
        )
    )
    engine: EngineEntry | None = Field(None, description="Where questions are computed.")
    analysts: Annotated[tuple[NameText, ...], ListField] | None = Field(
        None,
        description="Who may ask, by name. Without it, anyone who can open the codebook.",
    )
    projects: Annotated[tuple[NameText, ...], ListField] | None = Field(
        None,
        description="For what one may ask, by name. Without it, for anything.",
    )
    shared_answers: bool = Field(
        default=False,
        description="Whether an analyst gets for free what was answered to another. Without it, to each from their own "
        "record, so that nobody learns what others asked.",
    )
    answer_after: Annotated[dt.timedelta, PlainValidator(_read_duration, json_schema_input_type=str)] | None = Field(
        None,
        description='With `"2s"`, what read data is handed out 2, 4, 8, ... seconds after the request arrived and at '
        "no other time: answers, failures and refusals. Without it, as soon as it is there.",
    )
    ledger: NameText | None = Field(
        None,
        description="Where charges and answers are kept: a file relative to the codebook, or a database, "
        '`"postgresql://host/database"`, without a password. Without it, a file beside the codebook.',
    )
    ledger_id: Annotated[str, Field(pattern=r"^[0-9a-zA-Z-]{8,64}$")] | None = Field(
        None,
        description="The identity of the ledger, as `discreet init` wrote it. A ledger with another one is refused.",
    )
    max_joined_rows: PositiveCount | None = Field(
        None,
        description="The most rows of one unit that joins may make, 10,000 if it is not given. Joins that could make "
        "more are refused; rows of a unit beyond what fits are left out before they are joined.",
    )
    tables: dict[str, TableEntry] = Field(description="The tables, by name. What is not declared does not exist.")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint: the known word that is nearest, or all known words.

    >>> did_you_mean("float", TYPES), did_you_mean("max_row", ["max_rows", "max_groups"])
    ("Did you mean 'real'?", "Did you mean 'max_rows'?")
    """
    names = list(known)
    close = [SYNONYMS[word.lower()]] if SYNONYMS.get(word.lower()) in names else []
    close = close or difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f"Did you mean {close[0]!r}?" if close else f"Use one of: {', '.join(names)}."


def make_json_schema() -> dict[str, Any]:
    """The JSON Schema of codebook files, for editors and forms."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Document.model_json_schema()}
