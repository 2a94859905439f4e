"""A small database in memory with what a codebook says in public, in the tables that clients of PostgreSQL ask.

Privacy: there is nothing in it but the public facts of the codebook: names, types, and declared limits. The declared
tables themselves are there without rows. So no query of it can tell anything about data, and none is charged. It reads
no files, loads nothing, and its settings are locked.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, ColumnFacts, Link, TableFacts
from discreet.plan.types import Type
from discreet.wire.catalog_schema import INFORMATION_SCHEMA, MACROS, PG_CATALOG, read_columns
from discreet.wire.refusals import FEATURE_NOT_SUPPORTED, LIMIT_EXCEEDED, WireRefused
from discreet.wire.value_types import OF_PLAN, WireType

if TYPE_CHECKING:
    import duckdb

OWNER, PUBLIC_SCHEMA, CATALOG_SCHEMA, INFORMATION = 10, 2200, 11, 13_000
FIRST_TABLE = 16_384
_FIRST_CONSTRAINT, _DATABASE = 30_000, 5
SECONDS, MOST_ROWS, AT_ONCE = 5.0, 20_000, 4
_TYPE_NAMES = {
    WireType.BOOL: "bool", WireType.BYTEA: "bytea", WireType.CHAR: "char", WireType.NAME: "name",
    WireType.INT8: "int8", WireType.INT2: "int2", WireType.INT4: "int4", WireType.TEXT: "text", WireType.OID: "oid",
    WireType.FLOAT4: "float4", WireType.FLOAT8: "float8", WireType.UNKNOWN: "unknown", WireType.INT4_ARRAY: "_int4",
    WireType.TEXT_ARRAY: "_text", WireType.INT8_ARRAY: "_int8", WireType.OID_ARRAY: "_oid",
    WireType.BPCHAR: "bpchar", WireType.VARCHAR: "varchar", WireType.DATE: "date", WireType.TIMESTAMP: "timestamp",
    WireType.TIMESTAMPTZ: "timestamptz", WireType.NUMERIC: "numeric",
}  # fmt: skip
_CATEGORIES = {
    **dict.fromkeys((WireType.TEXT, WireType.NAME, WireType.BPCHAR, WireType.VARCHAR), "S"),
    **dict.fromkeys((WireType.DATE, WireType.TIMESTAMP, WireType.TIMESTAMPTZ), "D"),
    **dict.fromkeys((WireType.INT4_ARRAY, WireType.TEXT_ARRAY, WireType.INT8_ARRAY, WireType.OID_ARRAY), "A"),
    WireType.BOOL: "B",
}
_ITEMS = {"_int4": WireType.INT4, "_text": WireType.TEXT, "_int8": WireType.INT8, "_oid": WireType.OID}
_STORED = {
    Type.BOOLEAN: "BOOLEAN", Type.INTEGER: "BIGINT", Type.REAL: "DOUBLE", Type.TEXT: "VARCHAR", Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CatalogRows:
    """What a query of the catalog gives."""

    names: tuple[str, ...]
    types: tuple[WireType, ...]
    rows: tuple[tuple[Any, ...], ...]


class CatalogDatabase:
    """The catalog of one codebook."""

    def __init__(self, name: str, catalog: Catalog) -> None:
        import duckdb

        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1,
            "memory_limit": "256MB",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        }
        self._connection = duckdb.connect(":memory:", config=config)
        _fill(self._connection, name, catalog)
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self.tables = {table.lower() for table in catalog.tables}

    def run(self, query: str) -> CatalogRows:
        """The rows of a query that ``catalog_queries`` has read and written anew. It is ended after some seconds.

        Few run at the same time, whoever asks; the others wait.
        """
        with self._places:
            return self._run(query)

    def _run(self, query: str) -> CatalogRows:
        import duckdb

        cursor = self._connection.cursor()
        timer = threading.Timer(SECONDS, cursor.interrupt)
        timer.start()
        try:
            found = cursor.execute(query)
            described = [(str(column[0]), str(column[1])) for column in found.description or ()]
            rows = found.fetchmany(MOST_ROWS)
        except duckdb.InterruptException:
            raise WireRefused(LIMIT_EXCEEDED, f"A query of the catalog takes at most {SECONDS:g} seconds.") from None
        except duckdb.Error:
            rule = "This query of the catalog is more than is answered here."
            hint = "Ask for the tables and columns by information_schema.tables and information_schema.columns."
            raise WireRefused(FEATURE_NOT_SUPPORTED, rule, hint) from None
        finally:
            timer.cancel()
            cursor.close()
        types = tuple(_find_type(kind) for _, kind in described)
        plain = tuple(tuple(_to_plain(cell, kind) for cell, kind in zip(row, types)) for row in rows)
        return CatalogRows(tuple(name for name, _ in described), types, plain)

    def close(self) -> None:
        """Forget it."""
        self._connection.close()


_OF_DUCKDB = {
    "BOOLEAN": WireType.BOOL, "TINYINT": WireType.INT2, "SMALLINT": WireType.INT2, "INTEGER": WireType.INT4,
    "BIGINT": WireType.INT8, "UINTEGER": WireType.OID, "FLOAT": WireType.FLOAT4, "DOUBLE": WireType.FLOAT8,
    "DATE": WireType.DATE, "TIMESTAMP": WireType.TIMESTAMP, "TIMESTAMP WITH TIME ZONE": WireType.TIMESTAMPTZ,
    "HUGEINT": WireType.NUMERIC, "UBIGINT": WireType.NUMERIC, "SMALLINT[]": WireType.INT4_ARRAY,
    "INTEGER[]": WireType.INT4_ARRAY, "BIGINT[]": WireType.INT8_ARRAY, "UINTEGER[]": WireType.OID_ARRAY,
    "VARCHAR[]": WireType.TEXT_ARRAY,
}  # fmt: skip


def _find_type(kind: str) -> WireType:
    if kind.startswith("DECIMAL"):
        return WireType.NUMERIC
    return _OF_DUCKDB.get(kind, WireType.TEXT)


def _to_plain(cell: Any, kind: WireType) -> Any:
    if cell is None or kind is not WireType.TEXT or isinstance(cell, str):
        return cell
    return str(cell)


def _fill(connection: duckdb.DuckDBPyConnection, name: str, catalog: Catalog) -> None:
    """Make every table and function, and put the facts into them."""
    for schema, tables in (("pg", PG_CATALOG), ("info", INFORMATION_SCHEMA)):
        connection.execute(f"CREATE SCHEMA {schema}")
        for table, described in tables.items():
            columns = ", ".join(f'"{column}" {kind}' for column, kind in read_columns(described))
            connection.execute(f"CREATE TABLE {schema}.{table} ({columns})")
    connection.execute("CREATE TABLE pg.titles (oid UINTEGER, title VARCHAR, name VARCHAR)")
    for macro, parameters, body in MACROS:
        connection.execute(f"CREATE MACRO main.{macro}({parameters}) AS {body}")
    for facts in catalog.tables.values():
        columns = ", ".join(f"{_quote(column)} {_STORED[kind]}" for column, (kind, _) in facts.columns.items())
        connection.execute(f"CREATE TABLE main.{_quote(facts.name)} ({columns})")
    for table_name, row in _list_rows(name, catalog):
        words = ", ".join(f'"{column}"' for column in row)
        marks = ", ".join("?" for _ in row)
        connection.execute(f"INSERT INTO {table_name} ({words}) VALUES ({marks})", list(row.values()))  # noqa: S608


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _list_rows(name: str, catalog: Catalog) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind, short in _TYPE_NAMES.items():
        yield "pg.titles", {"oid": kind.oid, "title": kind.title, "name": short}
        yield "pg.pg_type", _describe_type(kind, short)
    schemas = {"pg_catalog": CATALOG_SCHEMA, "public": PUBLIC_SCHEMA, "information_schema": INFORMATION}
    for schema, oid in schemas.items():
        yield "pg.pg_namespace", {"oid": oid, "nspname": schema, "nspowner": OWNER, "xmin": 1}
        yield "info.schemata", {"catalog_name": name, "schema_name": schema, "schema_owner": "owner"}
    yield "pg.pg_database", {
        "oid": _DATABASE, "datname": name, "datdba": OWNER, "encoding": 6, "datlocprovider": "c",
        "datistemplate": False, "datallowconn": True, "datconnlimit": -1, "dattablespace": 1663, "datcollate": "C",
        "datctype": "C",
    }  # fmt: skip
    yield "pg.pg_tablespace", {"oid": 1663, "spcname": "pg_default", "spcowner": OWNER}
    yield "pg.pg_am", {"oid": 2, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}
    yield "pg.pg_timezone_names", {"name": "UTC", "abbrev": "UTC", "utc_offset": "00:00:00", "is_dst": False}
    for own, oid in (("pg_class", 1259), ("pg_type", 1247), ("pg_database", 1262)):
        yield "pg.pg_class", _describe_class(own, oid, CATALOG_SCHEMA, 0, 0)
    oids = {table: FIRST_TABLE + number for number, table in enumerate(catalog.tables)}
    for table in catalog.tables.values():
        yield from _list_table_rows(name, table, oids[table.name])
    links = [(table, link) for table in catalog.tables.values() for link in table.keys]
    for number, (table, link) in enumerate(links):
        yield from _list_link_rows(catalog, table, link, oids=oids, oid=_FIRST_CONSTRAINT + number, database=name)


def _describe_type(kind: WireType, short: str) -> dict[str, Any]:
    item = _ITEMS.get(short)
    arrays = {each.oid: array.oid for name, each in _ITEMS.items() for array in WireType if _TYPE_NAMES[array] == name}
    return {
        "oid": kind.oid, "typname": short, "typnamespace": CATALOG_SCHEMA, "typowner": OWNER, "typlen": kind.size,
        "typbyval": kind.size > 0, "typtype": "p" if kind is WireType.UNKNOWN else "b",
        "typcategory": _CATEGORIES.get(kind, "N" if kind.size > 0 or kind is WireType.NUMERIC else "U"),
        "typispreferred": kind in (WireType.TEXT, WireType.FLOAT8), "typisdefined": True, "typdelim": ",",
        "typrelid": 0, "typsubscript": 0, "typelem": item.oid if item else 0, "typarray": arrays.get(kind.oid, 0),
        "typinput": "array_in" if item else f"{short}in", "typoutput": f"{short}out", "typreceive": f"{short}recv",
        "typsend": f"{short}send", "typalign": "i", "typstorage": "p", "typnotnull": False, "typbasetype": 0,
        "typtypmod": -1, "typndims": 0, "typcollation": 0,
    }  # fmt: skip


def _describe_class(name: str, oid: int, schema: int, columns: int, rows: int) -> dict[str, Any]:
    return {
        "oid": oid, "relname": name, "relnamespace": schema, "reltype": 0, "reloftype": 0, "relowner": OWNER,
        "relam": 2, "relfilenode": oid, "reltablespace": 0, "relpages": 0, "reltuples": float(rows),
        "relallvisible": 0, "reltoastrelid": 0, "relhasindex": False, "relisshared": False, "relpersistence": "p",
        "relkind": "r", "relnatts": columns, "relchecks": 0, "relhasrules": False, "relhastriggers": True,
        "relhassubclass": False, "relrowsecurity": False, "relforcerowsecurity": False, "relispopulated": True,
        "relreplident": "d", "relispartition": False, "relrewrite": 0, "relfrozenxid": 0, "relminmxid": 0, "xmin": 1,
        "relacl": ["=r/owner"],
    }  # fmt: skip


def _list_table_rows(name: str, table: TableFacts, oid: int) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = -1 if table.size is None else table.size
    yield "pg.pg_class", _describe_class(table.name, oid, PUBLIC_SCHEMA, len(table.columns), rows)
    yield "pg.pg_tables", {
        "schemaname": "public", "tablename": table.name, "tableowner": "owner", "hasindexes": False,
        "hasrules": False, "hastriggers": False, "rowsecurity": False,
    }  # fmt: skip
    place = {"table_catalog": name, "table_schema": "public", "table_name": table.name}
    yield "info.tables", {**place, "table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"}
    about = {"objoid": oid, "classoid": 1259}
    yield "pg.pg_description", {**about, "objsubid": 0, "description": describe_table(table)}
    for number, (column, (kind, facts)) in enumerate(table.columns.items(), 1):
        stored = OF_PLAN[kind]
        yield "pg.pg_attribute", {
            "attrelid": oid, "attname": column, "atttypid": stored.oid, "attstattarget": -1, "attlen": stored.size,
            "attnum": number, "attndims": 0, "attcacheoff": -1, "atttypmod": -1, "attbyval": stored.size > 0,
            "attalign": "i", "attstorage": "p", "attcompression": "", "attnotnull": not facts.nullable,
            "atthasdef": False, "atthasmissing": False, "attidentity": "", "attgenerated": "", "attisdropped": False,
            "attislocal": True, "attinhcount": 0, "attcollation": 0,
        }  # fmt: skip
        yield "info.columns", {
            **place, "column_name": column, "ordinal_position": number,
            "is_nullable": "YES" if facts.nullable else "NO", "data_type": stored.title,
            "numeric_precision": {WireType.INT8: 64, WireType.FLOAT8: 53}.get(stored),
            "numeric_precision_radix": 2 if kind.is_number else None,
            "numeric_scale": 0 if kind is Type.INTEGER else None, "datetime_precision": 6 if kind.is_time else None,
            "udt_catalog": name, "udt_schema": "pg_catalog", "udt_name": _TYPE_NAMES[stored],
            "dtd_identifier": str(number), "is_identity": "NO", "is_generated": "NEVER", "is_updatable": "NO",
        }  # fmt: skip
        if words := describe_column(kind, facts):
            yield "pg.pg_description", {**about, "objsubid": number, "description": words}


def _list_link_rows(
    catalog: Catalog, table: TableFacts, link: Link, *, oids: Mapping[str, int], oid: int, database: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A declared foreign key."""
    parent = catalog.tables[link.parent]
    columns, keys = ", ".join(map(_write_name, link.columns)), ", ".join(map(_write_name, link.keys))
    called = f"{table.name}_{'_'.join(link.columns)}_fkey"
    yield "pg.pg_constraint", {
        "oid": oid, "conname": called, "connamespace": PUBLIC_SCHEMA, "contype": "f", "condeferrable": False,
        "condeferred": False, "convalidated": True, "conrelid": oids[table.name], "contypid": 0, "conindid": 0,
        "conparentid": 0, "confrelid": oids[parent.name], "confupdtype": "a", "confdeltype": "a",
        "confmatchtype": "s", "conislocal": True, "coninhcount": 0, "connoinherit": True,
        "conkey": _number_columns(table, link.columns), "confkey": _number_columns(parent, link.keys),
        "words": f"FOREIGN KEY ({columns}) REFERENCES {_write_name(parent.name)}({keys})",
    }  # fmt: skip
    constraint = {"constraint_catalog": database, "constraint_schema": "public", "constraint_name": called}
    place = {"table_catalog": database, "table_schema": "public"}
    yield "info.table_constraints", {**constraint, **place, "table_name": table.name,
                                     "constraint_type": "FOREIGN KEY", "is_deferrable": "NO",
                                     "initially_deferred": "NO", "enforced": "YES"}  # fmt: skip
    for number, (column, key) in enumerate(link.pairs, 1):
        used = {**constraint, **place}
        order = {"ordinal_position": number, "position_in_unique_constraint": number}
        yield "info.key_column_usage", {**used, "table_name": table.name, "column_name": column, **order}
        yield "info.constraint_column_usage", {**used, "table_name": parent.name, "column_name": key}


def _number_columns(table: TableFacts, names: Sequence[str]) -> list[int]:
    order = list(table.columns)
    return [order.index(name) + 1 for name in names]


def _write_name(name: str) -> str:
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else _quote(name)


def describe_table(table: TableFacts) -> str:
    """What is declared of a table, in a line."""
    if table.public:
        return "public: its rows belong to nobody, and questions about it alone are free"
    limits = table.limits
    counted = ((limits.max_rows, "row"), (limits.max_groups, "group"))
    most = [f"at most {n} {what}{'s' * (n != 1)} of each" for n, what in counted if n is not None]
    return "; ".join([f"private: protects {table.unit}", *most])


def describe_column(kind: Type, facts: ColumnFacts) -> str:
    """What is declared of a column, in a line; empty where it is its type alone.

    >>> describe_column(Type.TEXT, ColumnFacts(keys=("a", "b")))
    '2 public keys'
    """
    parts: list[str] = []
    if facts.low is not None and facts.high is not None and not kind.is_time:
        parts.append(f"from {float(facts.low):g} to {float(facts.high):g}")
    if facts.keys is not None:
        parts.append(f"{len(facts.keys):,} public keys")
    return "; ".join(parts)
