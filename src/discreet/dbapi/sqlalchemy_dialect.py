"""``discreet://`` for SQLAlchemy: questions by ``text`` or ``select``, and tables reflected from public facts.

    discreet:///hospital.toml?share=0.02                               a codebook
    discreet://ana:TOKEN@curator.example/hospital?share=0.02           a server, by https
    discreet://127.0.0.1:8780/hospital?share=0.02                      a server here; the token is DISCREET_TOKEN's

What SQLAlchemy does when it connects costs nothing: it is answered from the codebook, without a question.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sqlalchemy import types
from sqlalchemy.engine import default, reflection
from sqlalchemy.engine.interfaces import (
    ReflectedCheckConstraint,
    ReflectedColumn,
    ReflectedForeignKeyConstraint,
    ReflectedIndex,
    ReflectedPrimaryKeyConstraint,
    ReflectedTableComment,
    ReflectedUniqueConstraint,
)
from sqlalchemy.engine.url import URL
from sqlalchemy.exc import ArgumentError, NoSuchTableError
from sqlalchemy.sql.compiler import SQLCompiler

from discreet.plan.catalog import Catalog, TableFacts
from discreet.plan.types import Type
from discreet.remote.http_wire import is_loopback

_TYPES: dict[Type, type[types.TypeEngine[Any]]] = {
    Type.BOOLEAN: types.Boolean,
    Type.INTEGER: types.BigInteger,
    Type.REAL: types.Double,
    Type.TEXT: types.Text,
    Type.DATE: types.Date,
    Type.TIMESTAMP: types.DateTime,
}
_WORDS = ("epsilon", "rho", "share", "delta", "level", "analyst", "project")


class DiscreetCompiler(SQLCompiler):
    """Writes LIMIT and OFFSET as numbers: they are part of the question."""

    def limit_clause(self, select: Any, **kw: Any) -> str:
        return str(super().limit_clause(select, **{**kw, "literal_binds": True}))  # type: ignore[no-untyped-call]


class DiscreetDialect(default.DefaultDialect):
    """The dialect. Nothing can be written, and nothing is rolled back."""

    name = "discreet"
    driver = "dbapi"
    default_paramstyle = "named"
    statement_compiler = DiscreetCompiler
    supports_statement_cache = True
    supports_native_boolean = True
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    insert_returning = False
    postfetch_lastrowid = False

    @classmethod
    def import_dbapi(cls) -> Any:
        """The module of the database standard."""
        return import_module("discreet.dbapi")

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of ``discreet.dbapi.connect``."""
        words = dict(url.query)
        allow_http = words.pop("allow_http", "") == "true"
        unknown = [word for word in words if word not in _WORDS]
        if unknown:
            raise ArgumentError(f"discreet:// does not know {unknown[0]!r}. Known are {', '.join(_WORDS)}.")
        given: dict[str, Any] = {name: value if name in ("analyst", "project") else _read_number(name, value)
                                 for name, value in words.items()}  # fmt: skip
        if url.host is None:
            if not url.database:
                raise ArgumentError("discreet:///hospital.toml names a codebook, discreet://host/dataset a server.")
            return [url.database], given
        scheme = "http" if is_loopback(url.host) or allow_http else "https"
        host = f"[{url.host}]" if ":" in url.host else url.host
        port = "" if url.port is None else f":{url.port}"
        token = None if url.password is None else str(url.password)
        more = {"token": token, "dataset": url.database or None, "allow_http": allow_http}
        return [f"{scheme}://{host}{port}"], {**given, **more}

    def initialize(self, connection: Any) -> None:  # noqa: ARG002  # a hook
        """Nothing is asked when it connects."""
        self.default_schema_name = None

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Whether the connection is open; no question is asked for it."""
        return not dbapi_connection.closed

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Nothing is undone: charges stand."""

    def get_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        """The declared tables."""
        return [] if schema is not None else list(_find_catalog(connection).tables)

    def get_view_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:  # noqa: ARG002  # a hook
        """There are none."""
        return []

    def get_schema_names(self, connection: Any, **_: Any) -> list[str]:  # noqa: ARG002  # a hook
        """There are none."""
        return []

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> bool:
        """Whether a table is declared."""
        return schema is None and table_name in _find_catalog(connection).tables

    @reflection.cache
    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedColumn]:
        """The declared columns with their types."""
        columns = _find_table(connection, table_name, schema).columns
        return [
            {"name": name, "type": _TYPES[kind](), "nullable": facts.nullable, "default": None}
            for name, (kind, facts) in columns.items()
        ]

    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> ReflectedPrimaryKeyConstraint:
        """None is declared."""
        _find_table(connection, table_name, schema)
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedForeignKeyConstraint]:
        """The declared foreign keys."""
        return [
            {
                "name": None,
                "constrained_columns": list(link.columns),
                "referred_schema": None,
                "referred_table": link.parent,
                "referred_columns": list(link.keys),
            }
            for link in _find_table(connection, table_name, schema).keys
        ]

    def get_indexes(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedIndex]:
        """There are none."""
        _find_table(connection, table_name, schema)
        return []

    def get_unique_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedUniqueConstraint]:
        """There are none."""
        _find_table(connection, table_name, schema)
        return []

    def get_check_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedCheckConstraint]:
        """There are none."""
        _find_table(connection, table_name, schema)
        return []

    def get_table_comment(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> ReflectedTableComment:
        """Who is protected."""
        table = _find_table(connection, table_name, schema)
        return {"text": "public" if table.public else f"private: ask aggregates; protects {table.unit}"}


def _find_catalog(connection: Any) -> Catalog:
    """The public facts, which the curator has already: no question is asked."""
    found: Catalog = connection.connection.dbapi_connection.curator.catalog
    return found


def _find_table(connection: Any, name: str, schema: str | None) -> TableFacts:
    tables = _find_catalog(connection).tables
    if schema is not None or name not in tables:
        raise NoSuchTableError(name)
    return tables[name]


def _read_number(name: str, text: Any) -> Any:
    from fractions import Fraction

    try:
        return Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        raise ArgumentError(f"{name} in discreet:// must be a number.") from None
