"""The transaction of a question: one state of the data, nothing written, no setting of the database followed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from discreet.engines.postgres.session import PostgresSession
from tests.engines.postgres.loading import database, load


def open_session() -> PostgresSession:
    return PostgresSession(database().reader, work_memory="64MB")


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE clinic.mine (x int)", "CREATE TEMP TABLE mine (x int)",
     "SELECT set_config('transaction_read_only', 'off', true)",
     "INSERT INTO {table} VALUES (1)", "DELETE FROM {table}", "SELECT nextval('clinic.numbers')"],
)  # fmt: skip
def test_nothing_is_written(statement: str) -> None:
    import psycopg

    table = load(pa.table({"x": [1]})).path
    database().execute("CREATE SEQUENCE IF NOT EXISTS clinic.numbers", "GRANT ALL ON SEQUENCE clinic.numbers TO PUBLIC")
    database().execute(f"GRANT ALL ON {table} TO PUBLIC")
    with open_session() as session:
        session.run("SELECT 1")
        with pytest.raises(psycopg.Error):
            session.run(statement.format(table=table))


def test_the_role_needs_nothing_but_the_right_to_read() -> None:
    with open_session() as session:
        rights = "has_database_privilege(current_database(), 'TEMP'), has_schema_privilege('clinic', 'CREATE')"
        assert session.run(f"SELECT {rights}") == [(False, False)]


def test_a_question_sees_one_state() -> None:
    """What is written while a question runs is not seen by any of its statements."""
    table = load(pa.table({"x": [1, 2]})).path
    with open_session() as session:
        assert session.run(f"SELECT count(*) FROM {table}") == [(2,)]
        database().execute(f"INSERT INTO {table} VALUES (3)")
        assert session.run(f"SELECT count(*) FROM {table}") == [(2,)]
    with open_session() as session:
        assert session.run(f"SELECT count(*) FROM {table}") == [(3,)]


def test_settings_of_the_database_are_not_followed() -> None:
    """The difficult database sets all of these otherwise, and has functions that stand before PostgreSQL's own."""
    wanted = {"datestyle": "ISO, YMD", "timezone": "UTC", "statement_timeout": "0", "extra_float_digits": "1",
              "standard_conforming_strings": "on", "transform_null_equals": "off", "transaction_read_only": "on",
              "transaction_isolation": "repeatable read", "jit": "off"}  # fmt: skip
    with open_session() as session:
        found = {name: session.run(f"SELECT current_setting('{name}')")[0][0] for name in wanted}
        assert found == wanted
        assert session.run("SELECT abs(CAST(-3 AS float8)), char_length('abc')") == [(3.0, 3)]


def test_public_tables_need_no_table() -> None:
    """They come as bound arrays, with NULLs, in their types; texts that no row can hold are left out."""
    import datetime as dt

    table = pa.table(
        {
            "k0": ["b", None, "a\0", "B"],
            "k1": pa.array([1, None, 3, 2**63 - 1], pa.int64()),
            "k2": [dt.date(1, 1, 1), None, None, dt.date(9999, 12, 31)],
            "k3": [True, None, False, False],
            "k4": [0.1, None, 5e-324, 1.7976931348623157e308],
            "k5": pa.array([dt.datetime(2001, 1, 1, 1, 1, 1, 1), None, None, None], pa.timestamp("us")),  # noqa: DTZ001
        }
    )
    with open_session() as session:
        session.fill("given_rows", table)
        found = session.run("SELECT * FROM given_rows ORDER BY k0 NULLS LAST")
        assert found == [tuple(row.values()) for row in (table.to_pylist()[i] for i in (3, 0, 1))]
        session.fill("empty", pa.table({"k0": pa.array([], pa.string())}))
        assert session.run("SELECT count(*) FROM empty") == [(0,)]
