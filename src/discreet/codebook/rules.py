"""Checks what the entries of a codebook must be together. Every rule is a small function that yields problems.

``entry_reader`` has checked the shape of each entry before. ``spending`` has the rules about the budget, and ``owners``
those about units and foreign keys. The other rules are here: places, limits and columns. Nothing here reads data, so a
wrong codebook is refused before any data is read.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import assert_never

from discreet.codebook import owners, spending
from discreet.codebook.entries import Bins, ColumnEntry, Document, SourceEntry, TableEntry
from discreet.errors import Problem
from discreet.plan.catalog import DEFAULT_LENGTH, MAX_GROUPS, MAX_KEYS, MAX_LENGTH
from discreet.plan.conversions import advise_conversion
from discreet.plan.functions import TRUNCATIONS
from discreet.plan.times import count_starts
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type

# A double cannot distinguish more steps than this, so a finer resolution would have no meaning.
MAX_STEPS = 2**52
MAX_REAL = Fraction(10) ** 300
# Words about how a CSV file is written.
FORM_WORDS = ("delimiter", "encoding", "decimal", "thousands", "dates")

_EXAMPLES = {
    Type.BOOLEAN: "true",
    Type.INTEGER: "7",
    Type.REAL: "7.5",
    Type.TEXT: '"A"',
    Type.DATE: "2024-12-31",
    Type.TIMESTAMP: "2024-12-31T23:00:00",
}


def find_problems(document: Document, *, files: bool = True) -> Iterator[Problem]:
    """Everything that is wrong with a codebook. ``files`` is false where the data are frames in Python."""
    yield from spending.find_problems(document)
    if not document.tables:
        yield Problem("tables", "is empty", "Declare at least one table: [tables.visits].")
    yield from _check_distinct("tables", document.tables)
    if document.source is not None:
        yield from _check_place("source", document.source, shared=True)
    if document.engine is not None and document.engine.spark is not None:
        yield from _check_spark(document.engine.spark)
    yield from owners.find_problems(document)
    unit = owners.unit_name_of(document)
    for name, table in document.tables.items():
        path = f"tables.{name}"
        if not table.public:
            yield from _check_limits(path, table, None if unit is None else unit.column)
        yield from _check_sizes(path, name, table, document)
        yield from _check_distinct(f"{path}.columns", table.columns)
        if files:
            yield from _check_source(path, table, document)
        for column_name, column in table.columns.items():
            yield from _check_column(f"{path}.columns.{column_name}", column)
            if column.unique and not table.public:
                fix = "Remove it; what holds in private data cannot be promised without telling about it."
                yield Problem(f"{path}.columns.{column_name}.unique", "is for public tables", fix)


def _check_distinct(path: str, names: Iterable[str]) -> Iterator[Problem]:
    """Names must differ in more than capital letters, because SQL does not distinguish these."""
    seen: dict[str, str] = {}
    for name in names:
        if not name.strip():
            yield Problem(path, "has an entry without a name", "Give it a name.")
        if name.lower() in seen:
            yield Problem(
                f"{path}.{name}", f"differs from {seen[name.lower()]!r} in capitals only", "Rename one of them."
            )
        seen[name.lower()] = name


def _check_limits(path: str, table: TableEntry, unit: str | None) -> Iterator[Problem]:
    """Tables of units must limit a unit's rows in one way. Tables whose rows are units must have no limits."""
    limits = [word for word in ("max_rows", "max_groups", "max_rows_per_group") if getattr(table, word) is not None]
    if unit is None:
        for word in limits:
            yield Problem(
                f"{path}.{word}", "limits a unit that is one row already", "Remove it, or name a unit column."
            )
    elif not limits:
        fix = "Write max_rows = 10, or max_groups = 5 with max_rows_per_group = 2."
        yield Problem(path, f"does not say how much one {unit} may contribute", fix)
    elif "max_rows" in limits and len(limits) > 1:
        fix = "Keep max_rows, or keep max_groups and max_rows_per_group."
        yield Problem(path, f"limits a {unit} in two ways", fix)
    elif len(limits) == 1 and limits != ["max_rows"]:
        other = "max_groups" if limits == ["max_rows_per_group"] else "max_rows_per_group"
        yield Problem(f"{path}.{other}", f"is missing; {limits[0]} alone limits nothing", f"Write {other} = 3.")
    if unit is not None and table.rows is not None and table.units is not None and table.units > table.rows:
        yield Problem(f"{path}.units", "are more than rows", f"Every {unit} that counts has a row: check both numbers.")


def _check_sizes(path: str, name: str, table: TableEntry, document: Document) -> Iterator[Problem]:
    """An exact size must be one that neighbours cannot change: that of units, where units are replaced."""
    by_row = owners.unit_name_of(document) is None
    for word, right, rough in (("exact_rows", by_row, table.rows), ("exact_units", not by_row, table.units)):
        size = getattr(table, word)
        if size is None:
            continue
        place = f"{path}.{word}"
        if table.public:
            yield Problem(place, "is for private tables", "Remove it.")
        elif document.neighbours != "replace":
            fix = 'Write rows or units, roughly, or neighbours = "replace" if the number is public anyway.'
            yield Problem(place, 'needs neighbours = "replace": with add-remove the number is to be hidden', fix)
        elif not right and by_row:
            yield Problem(place, "is for a unit that is a column", "Write exact_rows: each row is a unit.")
        elif not right:
            fix = "Write exact_units: one unit may have any number of rows, so that of rows is not public."
            yield Problem(place, 'is for unit = "row"', fix)
        elif name in _find_linked(document):
            fix = "Remove it: a unit may have no row in a table that reaches it by others."
            yield Problem(place, "is for tables that name the unit in a column of their own", fix)
        if rough is not None and rough != size:
            yield Problem(place, f"differs from {word.removeprefix('exact_')}", "Keep the exact number only.")
        most = table.rows
        if word == "exact_units" and most is not None and size > most:
            yield Problem(place, "is more than rows", "Every unit that counts has a row: check both numbers.")


def _find_linked(document: Document) -> set[str]:
    """The tables whose rows reach their unit by others."""
    return {name for name, way in owners.find_ways(document).items() if way.link is not None}


def _check_source(path: str, table: TableEntry, document: Document) -> Iterator[Problem]:
    if table.source is not None:
        yield from _check_place(f"{path}.source", table.source)
    elif document.source is None:
        yield Problem(f"{path}.source", "is missing", 'Say where the rows are: source = "visits.parquet".')


def _check_spark(address: str) -> Iterator[Problem]:
    """An address without a secret, because a codebook is public."""
    if re.fullmatch(r"local(\[(\*|[1-9][0-9]*)\])?|(spark|sc)://[^\s\0]+", address) is None:
        fix = 'Write spark = "local[*]", "spark://host:7077" or "sc://host:15002".'
        yield Problem("engine.spark", "is not an address of Spark", fix)
    elif "@" in address or ";" in address:
        fix = "Leave out what follows the host; put an address with a token into the environment: DISCREET_SPARK."
        yield Problem("engine.spark", "may hold a secret, and a codebook is public", fix)


def _check_place(path: str, place: SourceEntry, *, shared: bool = False) -> Iterator[Problem]:
    kinds = [word for word in ("parquet", "csv", "duckdb", "postgres", "spark") if getattr(place, word) is not None]
    if len(kinds) != 1:
        rule = "must name one of parquet, csv, duckdb, postgres or spark"
        yield Problem(path, rule, 'Write source = { parquet = "visits.parquet" }.')
        return
    if shared and (kinds != ["duckdb"] or place.table is not None):
        fix = 'Write source = { duckdb = "hospital.duckdb" }, or give each table its own source.'
        yield Problem(path, "for all tables can only be a DuckDB file", fix)
    if place.table is not None and kinds != ["duckdb"]:
        yield Problem(f"{path}.table", "goes with duckdb only", "Remove it: a file holds one table.")
    stored = kinds[0] in ("postgres", "spark")
    if place.release is not None and not (stored and place.release.strip()):
        fix = 'Write release = "2024-06".' if stored else "Remove it: files have times of their own."
        yield Problem(f"{path}.release", "is a name for the data of postgres or spark", fix)
    if place.release is None and kinds == ["spark"]:
        yield Problem(f"{path}.release", "is missing: Spark tells nothing of changes", 'Write release = "2024-06".')
    forms = [word for word in FORM_WORDS if getattr(place, word) is not None]
    if forms and kinds != ["csv"]:
        yield Problem(
            f"{path}.{forms[0]}", "goes with csv only", "Remove it: other files say themselves how they are written."
        )
    if place.thousands is not None and place.thousands == (place.decimal or "."):
        yield Problem(f"{path}.thousands", "is the decimal sign, too", 'Write decimal = "," if 1.234,5 is a number.')
    target: str = getattr(place, kinds[0])
    if stored:
        kind = kinds[0]
        if "://" in target or "=" in target:
            variable = f"DISCREET_{kind.upper()}"
            fix = f'Write the table, "clinic.visits", and put the address into the environment as {variable}.'
            yield Problem(f"{path}.{kind}", "must not hold an address, which may hold a password", fix)
        elif "." not in target or "\0" in target:
            yield Problem(f"{path}.{kind}", "must name a schema and a table", f'Write {kind} = "clinic.visits".')
        return
    if not target.strip() or "://" in target or "\0" in target:
        advice = advise_conversion(target) if "://" in target else None
        yield Problem(f"{path}.{kinds[0]}", "must be a local file", advice or "Give a path relative to the codebook.")


def _check_column(path: str, column: ColumnEntry) -> Iterator[Problem]:
    kind = Type(column.type)
    yield from _check_bounds(path, column, kind)
    yield from _check_resolution(path, column, kind)
    yield from _check_length(path, column, kind)
    if column.keys is not None and column.bins is not None:
        yield Problem(f"{path}.bins", "and keys both list the groups", "Keep one of them.")
    elif column.keys is not None:
        yield from _check_values(f"{path}.keys", column.keys, kind)
    elif column.bins is not None:
        yield from _check_bins(f"{path}.bins", column.bins, column, kind)
    elif column.null_key and kind is not Type.BOOLEAN:
        yield Problem(f"{path}.null_key", "adds NULL to keys that are not there", "Add keys, or remove it.")
    if column.null_key and not column.nullable:
        yield Problem(f"{path}.null_key", "makes NULL a group of a column without NULL", "Keep one of the two.")


def _check_bounds(path: str, column: ColumnEntry, kind: Type) -> Iterator[Problem]:
    if column.bounds is None:
        return
    path = f"{path}.bounds"
    if not (kind.is_number or kind.is_time):
        yield Problem(path, f"are for numbers, dates and timestamps; a {kind} has none", "Remove them.")
        return
    wrong = list(dict.fromkeys(problem for value in column.bounds for problem in _check_value(path, value, kind)))
    yield from wrong
    low, high = column.bounds
    if not wrong and low > high:
        yield Problem(path, "go from high to low", "Swap them: the least value comes first.")


def _check_resolution(path: str, column: ColumnEntry, kind: Type) -> Iterator[Problem]:
    step = column.resolution
    if step is None:
        return
    path = f"{path}.resolution"
    if not kind.is_number:
        yield Problem(path, f"is for numbers; a {kind} has none", "Remove it.")
    elif step <= 0 or (kind is Type.INTEGER and step.denominator != 1):
        must = "a whole number above 0" if kind is Type.INTEGER else "above 0"
        yield Problem(path, f"must be {must}", f"Write resolution = {'1' if kind is Type.INTEGER else '0.01'}.")
    elif (ends := _ends_of(column)) is not None and (ends[1] - ends[0]) / step > MAX_STEPS:
        yield Problem(path, "is finer than a double can tell over these bounds", "Give a coarser step.")


def _check_length(path: str, column: ColumnEntry, kind: Type) -> Iterator[Problem]:
    """A length is for texts, is at most what a question can use, and is not below that of a listed key."""
    path, length = f"{path}.max_length", column.max_length
    if length is not None and kind is not Type.TEXT:
        yield Problem(path, f"is for texts; a {kind} has none", "Remove it.")
    elif length is not None and length > MAX_LENGTH:
        yield Problem(path, f"is above {MAX_LENGTH:,}", f"Give at most {MAX_LENGTH:,}; longer values are read as NULL.")
    elif kind is Type.TEXT:
        listed = (*(column.keys or ()), *((column.bins.edges if column.bins else None) or ()))
        longest = max((len(value) for value in listed if isinstance(value, str)), default=0)
        if longest > (length or DEFAULT_LENGTH):
            fix = f"Give max_length = {longest}." if longest <= MAX_LENGTH else "Remove the key."
            yield Problem(path, f"is below the {longest:,} characters of a key, which would be read as NULL", fix)


def _check_values(path: str, values: tuple[object, ...], kind: Type) -> Iterator[Problem]:
    """A list of groups must not be empty or too long, and its values must be distinct and of the column's type."""
    if not values:
        yield Problem(path, "is empty", "List the values that may appear as a group, or remove it.")
    if len(values) > MAX_GROUPS:
        yield Problem(path, f"has more than {MAX_GROUPS:,} values", "Each is a row of noise: list fewer, or none.")
        return
    wrong = [problem for value in values for problem in _check_value(path, value, kind)][:1]
    yield from wrong
    if not wrong and len(set(values)) < len(values):
        yield Problem(path, "lists a value twice", "List each value once.")


def _check_value(path: str, value: object, kind: Type) -> Iterator[Problem]:
    """A value must have the column's type and lie within its range."""
    if not is_of_kind(value, kind):
        bare = ", without quotes" if isinstance(value, str) and kind is not Type.TEXT else ""
        yield Problem(path, f"must hold values of the type {kind}", f"Write them like {_EXAMPLES[kind]}{bare}.")
    elif kind is Type.INTEGER and isinstance(value, Fraction) and not INTEGER_MIN <= value <= INTEGER_MAX:
        yield Problem(path, "goes beyond 64 bits", "Give the bounds that the values really have.")
    elif kind is Type.REAL and isinstance(value, Fraction) and abs(value) > MAX_REAL:
        yield Problem(path, "goes beyond 1e300", "Give the bounds that the values really have.")


def is_of_kind(value: object, kind: Type) -> bool:
    """Whether a value from the file has a column's type. Numbers are fractions here."""
    match kind:
        case Type.BOOLEAN:
            return isinstance(value, bool)
        case Type.INTEGER:
            return isinstance(value, Fraction) and value.denominator == 1
        case Type.REAL:
            return isinstance(value, Fraction)
        case Type.TEXT:
            return isinstance(value, str)
        case Type.DATE:
            return isinstance(value, dt.date) and not isinstance(value, dt.datetime)
        case Type.TIMESTAMP:
            return isinstance(value, dt.datetime) and value.tzinfo is None
        case _:
            assert_never(kind)


def _check_bins(path: str, bins: Bins, column: ColumnEntry, kind: Type) -> Iterator[Problem]:
    if (bins.width is None) == (bins.edges is None):
        yield Problem(
            path, "must have either width or edges", "Write bins = { width = 10 } or { edges = [0, 18, 65] }."
        )
    elif bins.edges is not None:
        yield from (wrong := list(_check_values(f"{path}.edges", bins.edges, kind)))
        if not wrong and list(bins.edges) != sorted(bins.edges):
            yield Problem(f"{path}.edges", "are not in ascending order", "Sort them.")
    elif not (kind.is_number or kind.is_time):
        rule = f"is for numbers, dates and timestamps; a {kind} has none"
        yield Problem(f"{path}.width", rule, "List keys instead.")
    elif isinstance(bins.width, str) != kind.is_time or (kind is Type.DATE and bins.width in TRUNCATIONS[5:]):
        like = '"month"' if kind.is_time else "10"
        yield Problem(f"{path}.width", f"does not fit the type {kind}", f"Write width = {like}.")
    elif column.bounds is None:
        yield Problem(f"{path}.width", "needs bounds to start and stop", "Add bounds = [first, last].")
    elif isinstance(bins.width, Fraction) and (bins.width <= 0 or (kind is Type.INTEGER and bins.width % 1)):
        yield Problem(f"{path}.width", "must be above 0, and whole for integers", "Write width = 10.")
    elif _has_too_many_bins(bins.width, column):
        yield Problem(f"{path}.width", f"makes more than {MAX_KEYS:,} bins", "Make them wider.")


def _ends_of(column: ColumnEntry) -> tuple[Fraction, Fraction] | None:
    """The bounds if they are two numbers, else None."""
    match column.bounds:
        case (Fraction() as low, Fraction() as high):
            return low, high
        case _:
            return None


def _has_too_many_bins(width: Fraction | str | None, column: ColumnEntry) -> bool:
    ends = _ends_of(column)
    if isinstance(width, Fraction) and ends is not None:
        return (ends[1] - ends[0]) / width >= MAX_KEYS
    match column.bounds:
        case (dt.date() as first, dt.date() as last) if isinstance(width, str):
            return count_starts(width, first, last) > MAX_KEYS
        case _:
            return False
