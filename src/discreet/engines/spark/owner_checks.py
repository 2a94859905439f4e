"""What the owner of tables of Spark asks before there is a codebook, or beside one: schemas, and values not read.

Nothing here is part of an engine or a curator, so no analyst can reach it. Schemas are read without any value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from discreet.engines.failure import LOG
from discreet.engines.spark import scanning
from discreet.engines.spark.dialect import DIALECT, quote_name
from discreet.engines.spark.engine import ADDRESS, find_address
from discreet.engines.spark.session import SparkQuestion, start_spark
from discreet.engines.spark.tables import CatalogTable, describe_table, open_source, read_columns
from discreet.engines.sql.unread_values import count_unread_values, pair_columns
from discreet.engines.unread import ValueReport
from discreet.errors import UsageError
from discreet.plan.source_kinds import DatabaseTable, SourceKind
from discreet.plan.types import Type

T = TypeVar("T")

_VIEW = "stored"


def count_unread(
    source: Any, table: str, types: Mapping[str, Type], lengths: Mapping[str, int], unit: str | None = None
) -> ValueReport:
    """Count what questions about a table will miss: values that do not fit, texts too long, rows that name nobody."""
    place = open_source(source, table)

    def count(question: SparkQuestion) -> ValueReport:
        frame = place.load(question, table)
        question.show(_VIEW, frame)
        stored = read_columns(frame, table)
        columns = pair_columns(scanning, stored, types, lengths, place=str(source), write_text=_write_text)

        def run(sql: str, parameters: Mapping[str, str]) -> Sequence[tuple[Any, ...]]:
            return list(question.read(sql, parameters))

        return count_unread_values(run, _VIEW, columns, DIALECT, unit)

    return _do(f"The table {table!r} cannot be read", count, {table: source})


def _write_text(name: str) -> str:
    """A stored column as a text that can be shown, whatever its bytes are."""
    return f"make_valid_utf8(CAST({quote_name(name)} AS STRING))"


def find_stored_tables(text: str) -> Mapping[str, DatabaseTable]:
    """One table (``lake.clinic.visits``), or all tables of a schema (``lake.clinic``), by their names.

    A column of a type that questions cannot use has None. No value is read.
    """
    return _do("The catalog of Spark cannot be read", lambda question: _find_stored_tables(question, text), {})


def _find_stored_tables(question: SparkQuestion, text: str) -> Mapping[str, DatabaseTable]:
    catalog = question.spark.catalog
    parts = _split_name(text)
    if catalog.tableExists(text):
        return {parts[-1]: _describe(question, text)}
    schema = ".".join(map(quote_name, parts))
    names = _list_stored(question, schema) if catalog.databaseExists(schema) else []
    if not names:
        raise UsageError(
            f"There is no table in the schema {text!r}, and no table of that name. Give a schema, such as "
            "spark:lake.clinic, or a table, such as spark:lake.clinic.visits. Nothing was charged."
        )
    return {name: _describe(question, ".".join(map(_write_name, [*parts, name]))) for name in names}


def _list_stored(question: SparkQuestion, schema: str) -> list[str]:
    """The names of a schema's tables. Views compute what they show, so no question can be asked of them."""
    listed = question.run(f"SHOW TABLES IN {schema}").to_pylist()
    names = sorted(row["tableName"] for row in listed if not row["isTemporary"])
    paths = {name: f"{schema}.{quote_name(name)}" for name in names}
    return [name for name, path in paths.items() if describe_table(question.spark, path).get("Type") != "view"]


def _describe(question: SparkQuestion, path: str) -> DatabaseTable:
    columns = read_columns(CatalogTable(path, "").load(question, path), path)
    types = {own: scanning.plan_type(kind) for own, kind in columns.values()}
    return DatabaseTable(path, types, SourceKind.SPARK)


def _split_name(text: str) -> list[str]:
    """The parts of a full name. Between backticks a dot parts nothing.

    >>> _split_name("lake.`my clinic`.`a.``b`")
    ['lake', 'my clinic', 'a.`b']
    """
    parts, quoted = [""], False
    for sign in text.replace("``", "\0"):
        if sign == "`":
            quoted = not quoted
        elif sign == "." and not quoted:
            parts.append("")
        else:
            parts[-1] += "`" if sign == "\0" else sign
    return parts


def _write_name(name: str) -> str:
    """A name as it stands in a full name: quoted where it must be."""
    return name if name.isascii() and name.isidentifier() else quote_name(name)


def _do(problem: str, work: Callable[[SparkQuestion], T], sources: Mapping[str, Any]) -> T:
    """Work in a session. Spark's own words go to the log."""
    try:
        with SparkQuestion(start_spark(find_address(sources))) as question:
            return work(question)
    except UsageError:
        raise
    except Exception as error:
        LOG.error("%s.", problem, exc_info=error)
        raise UsageError(
            f"{problem}. Check the name and the address in {ADDRESS}; the log has details. Nothing was charged."
        ) from None
