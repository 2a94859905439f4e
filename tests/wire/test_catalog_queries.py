"""The catalog: what is a query of it, what it may run, and that nothing but public facts is in reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.wire.catalog_database import CatalogDatabase
from discreet.wire.catalog_queries import CatalogContext, SelectAim, bind_values, find_aim, write_query
from discreet.wire.refusals import WireRefused
from discreet.wire.session_settings import SessionSettings
from discreet.wire.sign_in import _list_functions, _list_session_tables
from discreet.wire.value_types import WireType


class Catalog:
    """The catalog of the demo's hospital, for ana."""

    def __init__(self, codebook: Path) -> None:
        with discreet.open(codebook) as curator:
            self.database = CatalogDatabase("hospital", curator.catalog)
        self.settings = SessionSettings("ana", "", {})

    def ask(self, text: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        aim, tree = find_aim(text, self.database.tables)
        assert aim is SelectAim.CATALOG and tree is not None
        bind_values(tree, values)
        functions = _list_functions("ana", "hospital", 7)
        context = CatalogContext(functions, _list_session_tables("ana", self.settings), self.settings.set)
        self.found = self.database.run(write_query(tree, context))
        return list(self.found.rows)


@pytest.fixture(scope="module")
def catalog(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    import shutil

    folder = Path(shutil.copytree(files, tmp_path_factory.mktemp("wire") / "hospital"))
    made = Catalog(folder / "hospital.toml")
    yield made
    made.database.close()


@pytest.mark.parametrize(
    ("text", "aim"),
    [
        ("SELECT 1", SelectAim.CATALOG),
        ("SELECT relname FROM pg_class", SelectAim.CATALOG),
        ("SELECT * FROM information_schema.tables", SelectAim.CATALOG),
        ("WITH t AS (SELECT oid FROM pg_class) SELECT * FROM t", SelectAim.CATALOG),
        ("SELECT * FROM visits LIMIT 0", SelectAim.CATALOG),
        ("SELECT * FROM visits", SelectAim.QUESTION),
        ("SELECT COUNT(*) FROM public.visits", SelectAim.QUESTION),
        ("SELECT COUNT(*) FROM nothing", SelectAim.QUESTION),
        ("SELECT COUNT(*) FROM nothing LIMIT 0", SelectAim.QUESTION),
        ("SELECT * FROM (SELECT * FROM visits LIMIT 0) t", SelectAim.QUESTION),
        ("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM visits", SelectAim.QUESTION),
        ("SELECT (", SelectAim.QUESTION),
        ("DROP TABLE visits", SelectAim.QUESTION),
    ],
)
def test_what_a_select_is_about(text: str, aim: SelectAim) -> None:
    assert find_aim(text, {"visits"})[0] is aim


def test_a_declared_table_is_never_one_of_the_catalog() -> None:
    """A codebook that declares pg_class means its own table; with the schema written, the catalog is meant."""
    assert find_aim("SELECT COUNT(*) FROM pg_class", {"pg_class"})[0] is SelectAim.QUESTION
    assert find_aim("SELECT COUNT(*) FROM pg_catalog.pg_class", {"pg_class"})[0] is SelectAim.CATALOG
    with pytest.raises(WireRefused, match="cannot be joined"):
        find_aim("SELECT 1 FROM pg_catalog.pg_class c JOIN visits v ON true", {"visits"})


def test_public_facts_are_there(catalog: Catalog) -> None:
    names = catalog.ask("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1")
    assert [name for (name,) in names] == ["labs", "patients", "visits", "wards"]
    assert catalog.ask("SELECT to_regclass('visits')::oid, 'pg_class'::regclass::oid, 16384::regclass") == [
        (16384, 1259, "visits")
    ]
    columns = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'visits'::regclass"
    assert ("cost", "double precision") in catalog.ask(columns)
    assert catalog.ask("SELECT relname FROM pg_class WHERE oid = $1", **{"1": 16384}) == [("visits",)]
    assert catalog.found.types == (WireType.TEXT,)


def test_the_session_is_there(catalog: Catalog) -> None:
    assert catalog.ask("SELECT current_user, current_database(), pg_backend_pid(), current_setting('TimeZone')") == [
        ("ana", "hospital", 7, "UTC")
    ]
    assert catalog.found.names == ("current_user", "current_database", "pg_backend_pid", "current_setting")
    assert catalog.ask("SELECT setting FROM pg_settings WHERE name = 'server_encoding'") == [("UTF8",)]
    catalog.ask("SELECT set_config('discreet.epsilon', '0.2', false)")
    assert catalog.settings.show("discreet.epsilon") == "0.2"


def test_declared_tables_are_empty_there(catalog: Catalog) -> None:
    """Whatever is asked of them where no rows are wanted, there are none: data is not in this database."""
    assert catalog.ask("SELECT * FROM visits LIMIT 0") == []
    assert catalog.found.names[:3] == ("visit_id", "patient_id", "arrival")
    assert catalog.database.run("SELECT count(*) FROM main.visits").rows == ((0,),)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_sleep(100)",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM pg_catalog.duckdb_secrets()",
        "SELECT getenv('HOME')",
        "SELECT pg_catalog.getenv('HOME')",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT repeat('x', 1000000000)",
        "SELECT lpad('x', 1000000000)",
        "SELECT nextval('x')",
        "SELECT * FROM pg_shadow",
        "SELECT * FROM pg_catalog.titles",
        "SELECT * FROM information_schema.secrets",
        "SELECT 'x'::secret",
        "SELECT relname FROM pg_class FOR UPDATE",
        "SELECT query('SELECT 1')",
        "SELECT * FROM query_table('pg.titles')",
    ],
)
def test_what_is_not_listed_is_refused(catalog: Catalog, text: str) -> None:
    with pytest.raises(WireRefused):
        catalog.ask(text)


def test_the_database_is_locked_even_if_a_query_came_through(catalog: Catalog) -> None:
    """Negative control: behind the list of functions stands the lock of the database itself."""
    for query in (
        "SELECT * FROM read_text('/etc/passwd')", "SET enable_external_access = true", "ATTACH '/tmp/x.db' AS x",
        "COPY pg.titles TO '/tmp/wire-titles.csv'", "INSTALL httpfs", "SELECT * FROM catalog", "SELECT * FROM context",
    ):  # fmt: skip
        with pytest.raises(WireRefused):
            catalog.database.run(query)
    assert not Path("/tmp/wire-titles.csv").exists()  # noqa: S108


def test_a_long_query_is_ended(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """An analyst who tries to keep the catalog busy is stopped after some seconds."""
    monkeypatch.setattr("discreet.wire.catalog_database.SECONDS", 0.3)
    with pytest.raises(WireRefused, match="seconds"):
        catalog.ask(
            "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b, pg_class c "
            "WHERE a.generate_series + b.generate_series < c.oid"
        )


def test_many_catalog_queries_of_tools_run(catalog: Catalog) -> None:
    """Kept from what tools were seen to send: an empty answer is fine, a refusal is not."""
    for text in (
        "SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d "
        "ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass ORDER BY nspname",
        "SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT datistemplate",
        "SELECT c.oid, c.*, pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS partition_expr FROM pg_catalog.pg_class c "
        "WHERE c.relnamespace = 2200 AND c.relkind NOT IN ('i', 'I', 'c')",
        "SELECT oid, typname, typreceive FROM pg_catalog.pg_type WHERE (typreceive != 0 OR typsend != 0)",
        "SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind = ANY (ARRAY['r', 'p'])",
        "SELECT has_schema_privilege('public', 'USAGE'), has_table_privilege('visits', 'SELECT')",
        "SELECT tc.constraint_name, kcu.column_name FROM information_schema.table_constraints tc JOIN "
        "information_schema.key_column_usage kcu ON tc.constraint_name = kcu.constraint_name",
    ):
        catalog.ask(text)
        assert catalog.found.names, text
