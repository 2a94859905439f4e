"""The entries of a codebook file: which words there are, and what kind of value each takes.

These models are the shape of the TOML file and nothing more; what the entries mean together is checked in
``rules.py``. Their descriptions are the reference in docs/codebook.md and the JSON Schema beside it.
Numbers are exact: 0.1 in the file is one tenth.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from discreet import parameters
from discreet.errors import ParameterError, Problem
from discreet.plan.functions import TRUNCATIONS
from discreet.plan.types import Value

# What ``discreet init`` writes where only a person can know the answer.
BLANK = "?"
# Endings of files, and what they hold.
ENDINGS = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    ".csv": "csv",
    **dict.fromkeys((".duckdb", ".ddb", ".db"), "duckdb"),
}
TYPES = ("boolean", "integer", "real", "text", "date", "timestamp")
# Words from other systems, and what they are called here.
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
    "path": "source",
}
# What to do about an entry that is missing or blank.
FIXES = {
    "name": 'Give the dataset a name: name = "hospital".',
    "unit": 'Say who is protected: unit = "patient_id" (a column), or unit = "row" where no one has two rows.',
    "budget": "Say how much may be spent: [budget] with epsilon = 1, or epsilon = 1 and delta = 1e-9, or rho = 0.1.",
    "epsilon": "Say how much may be spent in all, for example epsilon = 1.",
    "delta": "Give a probability far below one over the number of people, for example delta = 1e-9.",
    "rho": "Give a number, for example rho = 0.1.",
    "per_query": "Give a number, for example per_query = 0.5.",
    "resolution": "Give the step of the values, for example resolution = 0.01.",
    "bounds": "Give the least and the largest value that count: bounds = [0, 110].",
    "keys": 'List the values: keys = ["A", "B"].',
    "edges": "List the starts of the bins: edges = [0, 18, 65].",
    "width": 'Give a step such as width = 10, or for dates width = "month".',
    "analysts": 'List names: analysts = ["ana", "ben"].',
    "tables": "Declare at least one table: [tables.visits].",
    "columns": 'List the columns that questions may use, such as age = { type = "integer" }.',
    "type": f"Say what the column holds: {', '.join(TYPES)}.",
    "max_rows": "Say how many rows of one unit may count, for example max_rows = 10.",
}


def _number(value: object) -> Fraction:
    if not isinstance(value, int | float | Decimal | Fraction) and not hasattr(value, "dtype"):
        raise PydanticCustomError("number", "must be a number")
    try:
        return parameters.number(value, "it")
    except ParameterError as error:
        raise PydanticCustomError("number", "must be a finite number") from error


def _key(value: object) -> Value | Fraction:
    if isinstance(value, bool | str | dt.date):
        return value
    if type(value).__name__ in {"bool", "bool_"}:  # NumPy's
        return bool(value)
    try:
        return _number(value)
    except PydanticCustomError as error:
        raise PydanticCustomError("key", "must be a truth value, number, text, date or timestamp") from error


def _width(value: object) -> Fraction | str:
    if isinstance(value, str) and value in TRUNCATIONS[:5]:
        return value
    try:
        return _number(value)
    except PydanticCustomError as error:
        words = ", ".join(repr(word) for word in TRUNCATIONS[:5])
        raise PydanticCustomError("width", "must be a number, or for dates one of {words}", {"words": words}) from error


def _source(value: object) -> object:
    """A plain text is a file; its ending says of which kind."""
    if not isinstance(value, str) or value == BLANK:
        return value
    kind = next((kind for ending, kind in ENDINGS.items() if value.lower().endswith(ending)), None)
    if kind is None:
        raise PydanticCustomError("source", 'needs its kind: source = {{ parquet = "..." }}, csv or duckdb')
    return {kind: value}


def _column(value: object) -> object:
    """A plain text is a type."""
    return {"type": value} if isinstance(value, str) else value


Exact: TypeAlias = Annotated[Fraction, PlainValidator(_number, json_schema_input_type=float)]
Key: TypeAlias = Annotated[Any, PlainValidator(_key, json_schema_input_type=bool | float | str | dt.datetime | dt.date)]
Several: TypeAlias = Field(strict=False)  # type: ignore[valid-type]  # a list in the file, a tuple here
Name: TypeAlias = Annotated[str, Field(min_length=1)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=parameters.MAX_SIZE)]


class Entry(BaseModel):
    """A table of the file: no unknown words, nothing converted silently, nothing changed later."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Spending(Entry):
    """``[budget]``: what may be spent in all, over all analysts and all time."""

    epsilon: Exact | None = Field(None, description="The loss ε allowed in all.")
    delta: Exact | None = Field(
        None,
        description="With `epsilon`: the small probability of a larger loss. Far below one over the number of people.",
    )
    rho: Exact | None = Field(None, description="Instead of `epsilon`: the loss ρ in zero-concentrated terms.")
    per_query: Exact | None = Field(
        None,
        description="The most that one question may cost, in the same terms as the budget.",
    )


class Place(Entry):
    """Where a table's rows are. A plain text such as `"visits.parquet"` is a file whose ending tells its kind."""

    parquet: str | None = Field(None, description="A Parquet file, or a pattern for several: `visits/*.parquet`.")
    csv: str | None = Field(
        None, description="A CSV file with a header, commas and double quotes, in UTF-8, or a pattern for several."
    )
    duckdb: str | None = Field(None, description="A DuckDB database file.")
    table: str | None = Field(None, description="With `duckdb`: the table in it, if it has another name there.")


class Bins(Entry):
    """The values of a column that holds starts of bins, written short. They become its `keys`."""

    width: Annotated[Fraction | str, PlainValidator(_width, json_schema_input_type=float | str)] | None = Field(
        None,
        description='Every value from the lower bound up in steps of this width; for dates `"day"`, `"week"`, '
        '`"month"`, `"quarter"` or `"year"`. Needs `bounds`.',
    )
    edges: Annotated[tuple[Key, ...], Several] | None = Field(
        None,
        description="The values themselves, in ascending order.",
    )


class Column(Entry):
    """A column that questions may use. A plain text such as `"integer"` is its type."""

    type: Literal[TYPES] = Field(  # type: ignore[valid-type]  # a tuple of words
        description="What it holds: `boolean`, `integer`, `real`, `text`, `date` or `timestamp`.",
    )
    bounds: Annotated[tuple[Key, Key], Several] | None = Field(
        None,
        description="The least and the largest value that count; values beyond are moved to the nearer one. Needed "
        "for sums and averages.",
    )
    resolution: Exact | None = Field(
        None,
        description="The step in which sums are taken, such as `0.01` for money. Whole numbers have 1.",
    )
    keys: Annotated[tuple[Key, ...], Several] | None = Field(
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


class Table(Entry):
    """`[tables.NAME]`: one table that questions may use, under this name."""

    source: Annotated[Place, BeforeValidator(_source, json_schema_input_type=str | Place)] | None = Field(
        None,
        description="Where the rows are; relative to the codebook.",
    )
    max_rows: Count | None = Field(None, description="How many rows of one unit may count in a question.")
    max_groups: Count | None = Field(
        None,
        description="Instead of `max_rows`, with `max_rows_per_group`: in how many groups of a question one unit may"
        " count.",
    )
    max_rows_per_group: Count | None = Field(None, description="How many rows of one unit may count in one group.")
    rows: Count | None = Field(
        None,
        description="The number of rows, roughly, if it is public. Never read from the data.",
    )
    units: Count | None = Field(None, description="The number of units (people), roughly, if it is public.")
    columns: dict[str, Annotated[Column, BeforeValidator(_column, json_schema_input_type=str | Column)]] = Field(
        description="The columns that questions may use, by name.",
    )


class Document(Entry):
    """A codebook: the curator's file about one dataset."""

    name: Name = Field(description="The name of the dataset.")
    description: str = Field("", description="What the data is about, for people.")
    unit: Name = Field(
        description='Who is protected: `"row"`, or the column that says to whom a row belongs. Every table has it.',
    )
    neighbours: Literal["add-remove", "replace"] = Field(
        "add-remove",
        description='Which datasets must look alike: `"add-remove"` hides whether a unit is in the data; `"replace"`'
        " hides what its values are, and the number of units is public.",
    )
    budget: Spending = Field(description="What may be spent.")
    source: Annotated[Place, BeforeValidator(_source, json_schema_input_type=str | Place)] | None = Field(
        None,
        description="A DuckDB file that holds every table without a `source` of its own.",
    )
    analysts: Annotated[tuple[Name, ...], Several] | None = Field(
        None,
        description="Who may ask, by name. Without it, anyone who can open the codebook.",
    )
    tables: dict[str, Table] = Field(description="The tables, by name. What is not declared does not exist.")


def read_entries(raw: Mapping[str, Any]) -> Document | tuple[Problem, ...]:
    """The document, or everything that is wrong with its shape."""
    blanks = tuple(_blanks(raw))
    if blanks:
        return blanks
    try:
        return Document.model_validate(raw)
    except ValidationError as error:
        return tuple(_problem(detail) for detail in error.errors(include_url=False))


def _blanks(raw: object, path: str = "") -> Iterable[Problem]:
    """Every entry that was left blank."""
    if isinstance(raw, Mapping):
        for word, value in raw.items():
            yield from _blanks(value, f"{path}.{word}" if path else str(word))
    elif raw == BLANK:
        yield Problem(path, "is still blank", FIXES.get(path.rpartition(".")[2], "Fill it in."))


def _problem(detail: ErrorDetails) -> Problem:
    """A shape error in our words: entry, rule, fix."""
    path = [str(part) for part in detail["loc"]]
    entry, word = ".".join(path) or "The file", path[-1] if path else ""
    match detail["type"]:
        case "extra_forbidden":
            return Problem(entry, "is an unknown word", did_you_mean(word, _model_at(path[:-1]).model_fields))
        case "missing":
            return Problem(entry, "is missing", FIXES.get(word, "Add it."))
        case "literal_error":
            known = re.findall(r"'([^']+)'", detail.get("ctx", {}).get("expected", ""))
            return Problem(entry, "is not a known word", did_you_mean(str(detail["input"]), known))
        case "tuple_type" | "too_short" | "too_long":
            return Problem(entry, "must be a list" + " of two" * (word == "bounds"), FIXES.get(word, ""))
        case "dict_type" | "model_type":
            return Problem(entry, "must be a table of entries", f"Write [{entry}] and its entries below.")
        case "greater_than_equal" | "less_than_equal":
            return Problem(entry, f"must be between 1 and {parameters.MAX_SIZE:,}", "Give a whole number.")
        case _:
            words = detail["msg"][:1].lower() + detail["msg"][1:]
            words = words.replace("input should be", "must be").removeprefix("value error, ").replace(" valid ", " ")
            return Problem(entry, words, FIXES.get(word, ""))


def _model_at(path: list[str]) -> type[Entry]:
    """The model that describes the entry at a path."""
    match path:
        case ["budget"]:
            return Spending
        case ["source"] | ["tables", _, "source"]:
            return Place
        case ["tables", _]:
            return Table
        case ["tables", _, "columns", _]:
            return Column
        case ["tables", _, "columns", _, "bins"]:
            return Bins
        case _:
            return Document


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The nearest known word, or all of them.

    >>> did_you_mean("float", TYPES), did_you_mean("max_row", ["max_rows", "max_groups"])
    ("Did you mean 'real'?", "Did you mean 'max_rows'?")
    """
    names = list(known)
    close = [SYNONYMS[word.lower()]] if SYNONYMS.get(word.lower()) in names else []
    close = close or difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f"Did you mean {close[0]!r}?" if close else f"Use one of: {', '.join(names)}."
