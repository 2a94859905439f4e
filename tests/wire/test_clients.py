"""Real clients at the door: psql, SQLAlchemy with pandas, polars, pgjdbc, and DuckDB's extension where they are."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from discreet.errors import UsageError
from discreet.service.roles import Role
from discreet.service.tokens import TokenStore, tokens_path_of
from discreet.wire.listener import PostgresDoor, WireAddress
from tests.service.served import Hospital, serve_hospital
from tests.service.test_server import start_server
from tests.wire.serving import WARDS, OpenDoor, make_certificate, open_door

PSQL = shutil.which("psql")
JAVA = shutil.which("javac") and shutil.which("java")
JAR = Path("/usr/share/java/postgresql.jar")
# A Python that has duckdb and duckdb-extension-postgres-scanner, which needs a DuckDB of its own version.
DUCKDB = shutil.which(os.environ.get("DISCREET_DUCKDB_POSTGRES", ""))


@pytest.fixture
def door(served: Hospital) -> Iterator[OpenDoor]:
    with open_door(served) as made:
        yield made


def run_psql(door: OpenDoor, *commands: str, cwd: Path | None = None, **more: str) -> tuple[str, str]:
    """What psql prints, and what it complains about."""
    arguments = [each for command in commands for each in ("-c", command)]
    made = subprocess.run(  # noqa: S603
        [str(PSQL), "-X", "-P", "pager=off", door.write_dsn(**more), *arguments],
        capture_output=True, text=True, timeout=120, check=False, cwd=cwd,
    )  # fmt: skip
    return made.stdout, made.stderr


def write_url(door: OpenDoor, scheme: str) -> str:
    """The address with the cost in its options."""
    place = f"ana:{door.hospital.secrets['ana']}@127.0.0.1:{door.port}/hospital"
    return f"{scheme}://{place}?options={quote('-c discreet.epsilon=0.1')}"


@pytest.mark.skipif(PSQL is None, reason="psql is not installed")
def test_psql_shows_what_the_codebook_declares_and_costs_nothing(door: OpenDoor) -> None:
    """Every command that lists something, from public facts."""
    listed = ["l", "dn", "dt+", "d", "d visits", "d+ patients", "d+ wards", "du", "df", "dp", "dT", "dx"]
    out, err = run_psql(door, *(f"\\{command}" for command in listed))
    assert err == ""
    for words in (
        "public | labs     | table", "protects one patient_id", 'Table "public.visits"', "double precision",
        "FOREIGN KEY (ward) REFERENCES wards(ward)", "not null", "from 1910 to 2024", "8 public keys",
    ):  # fmt: skip
        assert words in out, out
    assert door.count_charges() == 0


@pytest.mark.skipif(PSQL is None, reason="psql is not installed")
def test_psql_asks_and_copies(door: OpenDoor, tmp_path: Path) -> None:
    """SET, the question, its notice, a refusal with its place, EXPLAIN, and a copy into a file."""
    copied = rf"\copy ({WARDS}) TO 'wards.csv' CSV HEADER"
    commands = [WARDS, "SET discreet.epsilon=0.1", WARDS, "SELECT * FROM visits", copied, f"EXPLAIN {WARDS}"]
    out, err = run_psql(door, *commands, cwd=tmp_path)
    assert "(8 rows)" in out and "COPY 8" in out and "nothing was charged, no data was read" in out
    assert "ERROR:  This question states no cost, and none is assumed. Nothing was charged." in err
    assert "NOTICE:  cost " in err and "NOTICE:  given before, free now" in err
    assert "LINE 1: SELECT * FROM visits\n               ^" in err and "HINT:  Ask for aggregates" in err
    assert len((tmp_path / "wards.csv").read_text().splitlines()) == 9 and door.count_charges() == 1


def test_one_command_serves_both_doors(hospital: Path) -> None:
    """``discreet serve --postgres``: what is asked at one door is on record at the other, and a signal ends both."""
    _, secret = TokenStore(tokens_path_of(hospital)).create(name="ana", role=Role.ANALYST)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with start_server(hospital, "--postgres", str(port)) as server:
        assert f"port={port}" in server.announced
        dsn = f"host=127.0.0.1 port={port} dbname=hospital user=ana password={secret}"
        with psycopg.connect(dsn, options="-c discreet.epsilon=0.1", autocommit=True) as connection:
            rows = connection.execute(WARDS).fetchall()
            status, document = server.ask(secret, "later")
            assert status == 200 and [row["n"] for row in document["rows"]] == [row[1] for row in rows]
            assert document["replayed"] is True
            server.process.terminate()
            assert server.process.wait(30) is not None
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")


@pytest.mark.skipif(PSQL is None, reason="psql is not installed")
def test_tls_with_channel_binding(hospital: Path, tmp_path: Path) -> None:
    """With a certificate TLS is demanded; the client checks it, and its proof is bound to it."""
    certificate, key = make_certificate(tmp_path)
    served = serve_hospital(hospital)
    try:
        with open_door(served, certificate=certificate, key=key) as door:
            out, err = run_psql(
                door, "SELECT current_user", sslmode="verify-full", sslrootcert=str(certificate),
                channel_binding="require",
            )  # fmt: skip
            assert "ana" in out and err == ""
            _, err = run_psql(door, "SELECT 1", sslmode="disable")
            assert "This server speaks TLS alone" in err and "sslmode=require" in err
    finally:
        served.dataset.close()


def test_other_machines_are_listened_to_by_tls_alone(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="in the clear"):
        WireAddress(host="0.0.0.0")  # noqa: S104  # refused
    certificate, key = make_certificate(tmp_path)
    PostgresDoor(WireAddress(host="0.0.0.0", certificate=certificate, key=key))  # noqa: S104  # nothing is opened
    with pytest.raises(UsageError, match="cannot be read"):
        PostgresDoor(WireAddress(certificate=key, key=certificate))


def test_sqlalchemy_reflects_and_pandas_and_polars_read(door: OpenDoor) -> None:
    """Reflection is free; a question that SQLAlchemy writes from reflected tables is one charge for everybody."""
    import pandas as pd
    import polars as pl
    import sqlalchemy as sa

    engine = sa.create_engine(write_url(door, "postgresql+psycopg"))
    try:
        found = sa.inspect(engine)
        assert set(found.get_table_names()) == {"visits", "patients", "labs", "wards"} and found.has_table("visits")
        assert found.get_pk_constraint("visits")["constrained_columns"] == [] and found.get_indexes("visits") == []
        tables = sa.MetaData()
        tables.reflect(engine)
        visits = tables.tables["visits"]
        assert isinstance(visits.c.cost.type, sa.DOUBLE_PRECISION) and not visits.c.arrival.nullable
        assert {key.target_fullname for key in visits.foreign_keys} == {"patients.patient_id", "wards.ward"}
        assert visits.c.age.comment == "from 0 to 110" and door.count_charges() == 0
        query = sa.select(visits.c.ward, sa.func.count().label("n")).group_by(visits.c.ward)
        with engine.connect() as connection:
            rows = connection.execute(query).fetchall()
            chosen = sa.text("SELECT COUNT(*) AS n FROM visits WHERE age > :age AND ward = :ward")
            assert len(connection.execute(chosen, {"age": 50, "ward": "Surgery"}).one()) == 3
        frame = pd.read_sql(WARDS, engine)
        assert list(frame.columns) == ["ward", "n", "n_low", "n_high"] and list(frame["n"]) == [row[1] for row in rows]
        assert pl.read_database(WARDS, engine).get_column("n").to_list() == list(frame["n"])
        with pytest.raises(Exception, match="neither in GROUP BY nor inside an aggregate"):
            pd.read_sql("visits", engine)
    finally:
        engine.dispose()
    assert door.count_charges() == 2


@pytest.mark.skipif(not JAVA or not JAR.exists(), reason="Java or pgjdbc (libpostgresql-jdbc-java) is not installed")
def test_pgjdbc_connects_as_dbeaver_metabase_and_tableau_do(door: OpenDoor, tmp_path: Path) -> None:
    """The questions about catalogs, tables, columns and keys that tools send at connect; then prepared questions."""
    source = Path(__file__).parent / "Tour.java"
    subprocess.run(["javac", "-d", str(tmp_path), str(source)], check=True, timeout=120)  # noqa: S603, S607
    place = f"jdbc:postgresql://127.0.0.1:{door.port}/hospital"
    made = subprocess.run(  # noqa: S603
        ["java", "-Xshare:auto", "-cp", f"{JAR}:{tmp_path}", "Tour", place, door.hospital.secrets["ana"]],  # noqa: S607
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert made.stderr == "" and "FAILED" not in made.stdout, made.stdout + made.stderr
    assert "tables labs patients visits wards" in made.stdout and "done" in made.stdout
    assert door.count_charges() == 2


@pytest.mark.skipif(DUCKDB is None, reason="DISCREET_DUCKDB_POSTGRES names no Python with DuckDB's postgres extension")
def test_duckdb_attaches_and_asks(door: OpenDoor) -> None:
    """ATTACH lists the tables, postgres_query asks, and reading a table is refused."""
    program = Path(__file__).parent / "duckdb_client.py"
    place = door.write_dsn().replace("'", "")
    made = subprocess.run(  # noqa: S603
        [str(DUCKDB), str(program), place], capture_output=True, text=True, timeout=120, check=False
    )  # fmt: skip
    assert made.stderr == "" and made.stdout.splitlines()[-1] == "done", made.stdout + made.stderr
    assert door.count_charges() == 1
