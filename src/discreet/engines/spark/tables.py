"""Tables as Spark sees them: Parquet files, tables of a catalog, and data frames that are one of these.

A question is promised to be total and to read nothing but rows. A view or a frame may compute anything, and an error
there would tell that a value is there. So what computes is refused, before anything is charged: a frame must be a
stored table, with some of its columns left out or renamed at most. Stored are files whose values have types (Parquet,
ORC) and tables of catalogs; rows that Python makes, texts that are parsed and queries of other databases are not.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from discreet.engines.spark.jobs import is_classic
from discreet.engines.spark.session import SparkQuestion
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.source_kinds import SourceKind, is_spark_frame, kind_of_source

# Nodes of a plan that compute nothing.
_PLAIN_NODES = {"SubqueryAlias", "LocalRelation"}
# Files and tables whose values have types, by what the names of their classes hold; Iceberg's table is a SparkTable.
_PLAIN_FORMATS = ("parquet", "orc")
_PLAIN_TABLES = (*_PLAIN_FORMATS, "delta", "sparktable")
_PLAIN_PROVIDERS = (*_PLAIN_FORMATS, "delta", "iceberg")
_PLAIN_EXPRESSIONS = {"AttributeReference", "Alias"}
# Options of files that make values raise.
_RAISING_OPTION = "rebasemode"


class SparkSource(Protocol):
    """Where the rows of a table are."""

    def version(self) -> str:
        """A text that changes whenever the rows may have changed."""
        ...

    def load(self, question: SparkQuestion, table: str) -> Any:
        """The rows, as a frame in the session of a question; refused where something is computed."""
        ...


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Local Parquet files of one schema, which Spark looks up once for each version: that takes it a job of its own."""

    paths: tuple[str, ...]
    _schemas: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def version(self) -> str:
        """Names and times of change, as one digest. Not sizes: they depend on the rows."""
        digest = hashlib.sha256()
        for path in self.paths:
            try:
                changed = Path(path).stat().st_mtime_ns
            except OSError:
                raise UsageError(f"The file {path!r} is gone. Check the source. Nothing was charged.") from None
            digest.update(f"{path}\0{changed}\0".encode())
        return "files " + digest.hexdigest()[:32]

    def load(self, question: SparkQuestion, table: str) -> Any:  # noqa: ARG002  # files compute nothing
        version, files = self.version(), [f"file://{path}" for path in self.paths]
        known = self._schemas.get(version)
        if known is not None:
            return question.spark.read.schema(known).parquet(*files)
        frame = question.spark.read.parquet(*files)
        self._schemas.clear()
        self._schemas[version] = frame.schema
        return frame


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table of a catalog, with a name for the state of its data."""

    name: str
    release: str

    def version(self) -> str:
        return f"release {self.release}"

    def load(self, question: SparkQuestion, table: str) -> Any:
        frame = question.spark.table(self.name)
        if is_classic(question.spark):
            check_plain(frame, table)
        else:
            _check_described(question.spark, self.name, table)
        return frame


@dataclass(frozen=True, slots=True)
class SparkFrame:
    """A data frame of the owner's. Its version is given once, so what it reads must not be changed afterwards."""

    frame: Any = field(repr=False)
    number: str = field(default_factory=lambda: uuid4().hex)

    def version(self) -> str:
        return f"spark frame {self.number}"

    @property
    def view(self) -> str:
        """The name under which sessions of questions know it; many processes may share a server."""
        return f"discreet_frame_{self.number}"

    def load(self, question: SparkQuestion, table: str) -> Any:
        if is_classic(question.spark):
            check_plain(self.frame, table)
        else:
            _check_connect_plan(question.spark, self.frame._plan, table)  # noqa: SLF001  # there is no other way
        return question.spark.table(f"global_temp.{self.view}")


def open_source(value: Any, table: str) -> SparkSource:
    """A source from what a person gives: a path or pattern, a codebook's source, or a frame of Spark."""
    if is_spark_frame(value):
        source = SparkFrame(value)
        value.createOrReplaceGlobalTempView(source.view)
        return source
    kind = kind_of_source(value, table)
    if kind is SourceKind.PARQUET:
        return ParquetFiles(_expand(str(getattr(value, "path", value))))
    release = getattr(value, "release", None)
    if release is None:
        raise UsageError(
            f"The source of the table {table!r} needs a name for the state of its data, because Spark tells none: "
            'write source = { spark = "...", release = "2024-06" }. Nothing was charged.'
        )
    return CatalogTable(str(value.path), release)


def check_plain(frame: Any, table: str) -> None:
    """Refuse a frame that computes something. For classic sessions."""
    for node in _walk(frame._jdf.queryExecution().analyzed()):  # noqa: SLF001  # there is no other way to see its plan
        name = node.getClass().getSimpleName()
        if not _is_plain(node, name):
            raise _refuse_computing(table, name)


def _refuse_computing(table: str, what: str) -> UsageError:
    return UsageError(
        f"The source of the table {table!r} computes something ({what}), and that could fail on somebody's "
        "values. Write it to a table or to Parquet files first. Nothing was charged."
    )


def _check_described(spark: Any, name: str, table: str) -> None:
    """Refuse a table of a catalog that is a view or is parsed, by what the catalog says of it."""
    said = describe_table(spark, name)
    if said.get("Type") not in ("managed", "external") or said.get("Provider") not in _PLAIN_PROVIDERS:
        raise _refuse_computing(table, f"{said.get('Type')} {said.get('Provider')}")


def describe_table(spark: Any, name: str) -> Mapping[str, str]:
    """What a catalog says of a table or view: among its columns its ``Type`` and ``Provider``, in small letters."""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").toArrow().to_pylist()
    return {str(row["col_name"]): str(row["data_type"]).lower() for row in rows}


def _check_connect_plan(spark: Any, plan: Any, table: str) -> None:
    """Refuse a frame of Spark Connect that computes something, by the plan that its client holds."""
    while (name := type(plan).__name__) in ("SubqueryAlias", "WithColumnsRenamed", "Drop", "Project"):
        if name == "Project" and not all(_is_plain_column(column._expr) for column in plan._columns):  # noqa: SLF001
            raise _refuse_computing(table, name)
        plan = plan._child  # noqa: SLF001
    if name == "Read":
        _check_described(spark, plan.table_name, table)
    elif name != "DataSource" or plan._format not in _PLAIN_FORMATS or _raises(str(plan._options)):  # noqa: SLF001
        raise _refuse_computing(table, name)


def _is_plain_column(expression: Any) -> bool:
    """Whether a column is another one, perhaps under a new name."""
    if type(expression).__name__ == "ColumnAlias":
        expression = expression._child  # noqa: SLF001
    return type(expression).__name__ == "ColumnReference"


def _raises(options: str) -> bool:
    return _RAISING_OPTION in options.lower()


def _is_plain(node: Any, name: str) -> bool:
    """Whether a node of a plan computes nothing."""
    if name == "Project":
        return not any(map(_computes, _list(node.expressions())))
    if name == "LogicalRelation":
        relation = node.relation()
        files = relation.getClass().getSimpleName() == "HadoopFsRelation"
        return files and _names(relation.fileFormat(), _PLAIN_FORMATS) and not _raises(str(relation.options()))
    if name == "DataSourceV2Relation":
        return _names(node.table(), _PLAIN_TABLES)
    if name == "HiveTableRelation":
        return any(word in str(node.tableMeta().storage().serde()).lower() for word in _PLAIN_FORMATS)
    return name in _PLAIN_NODES


def _names(value: Any, words: tuple[str, ...]) -> bool:
    """Whether the name of a class holds one of some words."""
    return any(word in value.getClass().getSimpleName().lower() for word in words)


def _computes(expression: Any) -> bool:
    """Whether a column is more than another one under a new name."""
    return any(part.getClass().getSimpleName() not in _PLAIN_EXPRESSIONS for part in _walk(expression))


def _walk(tree: Any) -> Iterator[Any]:
    yield tree
    for child in _list(tree.children()):
        yield from _walk(child)


def _list(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]


def read_columns(frame: Any, table: str) -> Mapping[str, tuple[str, str]]:
    """The columns of a table: by name in small letters the name and the type. Values are not looked at."""
    columns: dict[str, tuple[str, str]] = {}
    for column in frame.schema.fields:
        if column.name.lower() in columns:
            raise UsageError(
                f"The source of the table {table!r} has columns that differ from {column.name!r} in capitals alone. "
                "Rename one. Nothing was charged."
            )
        columns[column.name.lower()] = (column.name, column.dataType.simpleString())
    return columns


def _expand(path: str) -> tuple[str, ...]:
    """The files a path or pattern names, absolute and in order."""
    file = Path(path).expanduser()
    found = [file] if file.is_file() else [Path(name) for name in sorted(glob.glob(str(file), recursive=True))]
    if not found:
        raise UsageError(f"There is no file {path!r}. Check the source. Nothing was charged.")
    paths = tuple(str(name.resolve()) for name in found)
    if any(set(name) & set("*?[]{}\\") for name in paths):
        raise UsageError(
            f"A file of {path!r} has one of *?[]{{}}\\ in its name, which Spark takes for a pattern. Rename it. "
            "Nothing was charged."
        )
    return paths
