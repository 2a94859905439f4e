"""The kinds of places that rows come from, and how to tell them. ``engines.registry`` says who reads which."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.conversions import advise_conversion
from discreet.plan.csv_form import PACKED_ENDINGS, TEXT_ENDINGS
from discreet.plan.types import Type


class SourceKind(StrEnum):
    """What a table's source is."""

    PARQUET = "parquet"  # one or more files of one schema
    CSV = "csv"  # one or more text files with a header, as ``csv_form`` says
    DUCKDB = "duckdb"  # a table in a DuckDB file
    POSTGRES = "postgres"  # a table in a PostgreSQL database
    SPARK = "spark"  # a table of a catalog of Spark, or a data frame of Spark
    FRAME = "frame"  # a table in memory


# Endings of files, and what they hold.
ENDINGS: Mapping[str, SourceKind] = {
    **dict.fromkeys((".parquet", ".pq"), SourceKind.PARQUET),
    **{text + packed: SourceKind.CSV for text in TEXT_ENDINGS for packed in ("", *PACKED_ENDINGS)},
    **dict.fromkeys((".duckdb", ".ddb", ".db"), SourceKind.DUCKDB),
}


STORED_KINDS = frozenset({SourceKind.POSTGRES, SourceKind.SPARK})
"""The kinds of tables that stay where they are and have a full name there; all others are files or in memory."""


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table of a PostgreSQL database or of a catalog of Spark by its full name, with the types of its columns there.

    A column of a type that questions cannot use has None. ``release`` may name the state of the data.
    """

    path: str
    types: Mapping[str, Type | None]
    kind: SourceKind
    release: str | None = None


def split_stored(text: str) -> tuple[SourceKind, str] | None:
    """The kind and the name of tables that stay where they are, as they stand among names of files; None for a file.

    >>> split_stored("postgres:clinic.visits"), split_stored("visits.csv")
    ((<SourceKind.POSTGRES: 'postgres'>, 'clinic.visits'), None)
    """
    kind, _, name = text.partition(":")
    return (SourceKind(kind), name) if kind in STORED_KINDS and name else None


def kind_of_path(path: str) -> SourceKind | None:
    """The kind of a file, by its ending; None where it tells nothing.

    >>> kind_of_path("visits-*.PARQUET"), kind_of_path("visits.xlsx")
    (<SourceKind.PARQUET: 'parquet'>, None)
    """
    return next((kind for ending, kind in ENDINGS.items() if path.lower().endswith(ending)), None)


def require_kind(path: str) -> SourceKind:
    """The kind of a local file; refused where its ending tells none, with the command that converts it."""
    kind = kind_of_path(path)
    advice = advise_conversion(path)
    if kind is None or "://" in path:
        what = "is not a local file" if "://" in path else "is of a kind that questions cannot read"
        raise UsageError(f"{path!r} {what}. {advice or 'Use .parquet, .csv or .duckdb.'} Nothing was charged.")
    return kind


def kind_of_source(source: Any, table: str) -> SourceKind:
    """The kind of what a person gives for a table: a path or pattern, a codebook's source, or a frame."""
    if isinstance(source, str | Path):
        return require_kind(str(source))
    if is_spark_frame(source):
        return SourceKind.SPARK
    if not hasattr(source, "kind") or not hasattr(source, "path"):
        return SourceKind.FRAME
    if source.kind not in set(SourceKind):
        raise UsageError(
            f"The source of the table {table!r} is of the kind {str(source.kind)!r}, which is not known. "
            f"There are {', '.join(SourceKind)}. Nothing was charged."
        )
    return SourceKind(source.kind)


def is_spark_frame(source: Any) -> bool:
    """Whether something is a data frame of Spark. PySpark need not be there."""
    return any(own.__module__.startswith("pyspark.sql") and own.__name__ == "DataFrame" for own in type(source).mro())
