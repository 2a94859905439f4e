"""SQLAlchemy over a codebook and over a running server: reflection for nothing, questions, pandas.read_sql."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa

from discreet.dbapi.sqlalchemy_dialect import DiscreetDialect
from tests.service.test_server import create, start_server


def check_everything(url: Any, expected: int) -> None:
    """Reflect, select, and read a frame; one charge for each question."""
    engine = sa.create_engine(url)
    found = sa.inspect(engine)
    assert found.get_table_names() == ["visits", "patients", "labs", "wards"] and found.get_view_names() == []
    assert found.get_foreign_keys("labs")[0]["referred_table"] == "visits" and found.get_indexes("visits") == []
    metadata = sa.MetaData()
    metadata.reflect(engine)
    visits = metadata.tables["visits"]
    assert isinstance(visits.c.cost.type, sa.Double) and not visits.c.arrival.nullable and visits.comment
    with engine.connect() as connection:
        assert connection.connection.dbapi_connection is not None
        curator: Any = connection.connection.dbapi_connection.curator
        assert list(curator.history()) == [], "what SQLAlchemy does by itself is free"
        question = (
            sa.select(visits.c.ward, sa.func.count().label("n"))
            .where(visits.c.age > 30)
            .group_by(visits.c.ward)
            .order_by(sa.desc("n"))
            .limit(3)
        )
        rows = connection.execute(question).mappings().all()
        assert len(rows) == 3 and rows[0]["n_low"] <= rows[0]["n"] <= rows[0]["n_high"]
        with pytest.raises(sa.exc.ProgrammingError, match="neither in GROUP BY"):
            connection.execute(sa.select(visits))
    frame = pd.read_sql("SELECT ward, COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY ward", engine)
    assert len(frame) == 8 and list(frame.columns) == ["ward", "n", "n_low", "n_high"]
    assert (
        len(pd.read_sql(sa.text("SELECT AVG(age) AS a FROM visits WHERE age > :low"), engine, params={"low": 20})) == 1
    )
    with engine.connect() as connection:
        assert connection.connection.dbapi_connection is not None
        again: Any = connection.connection.dbapi_connection.curator
        assert len(again.history()) == expected, "the frame follows from the first answer"
    engine.dispose()


def test_a_codebook(hospital: Path) -> None:
    check_everything(f"discreet:///{hospital}?share=1/100&analyst=ana", 2)


def test_a_server(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over real sockets, with the token in the address, which SQLAlchemy hides, or in the environment."""
    token = create(hospital, "ana")
    with start_server(hospital) as server:
        url = sa.engine.URL.create(
            "discreet", "ana", token, "127.0.0.1", server.port, "hospital", query={"share": "0.01"}
        )
        assert token not in repr(url) and token not in str(sa.create_engine(url))
        check_everything(url, 2)
        monkeypatch.setenv("DISCREET_TOKEN", token)
        assert sa.inspect(sa.create_engine(f"discreet://127.0.0.1:{server.port}")).has_table("visits")


def test_the_entry_point_and_its_addresses() -> None:
    """The dialect is found by its name; addresses mean what the page says."""
    (found,) = entry_points(group="sqlalchemy.dialects", name="discreet")
    assert found.load() is DiscreetDialect

    def read(text: str) -> Any:
        return DiscreetDialect().create_connect_args(sa.make_url(text))

    assert read("discreet://u:t@curator.example/hospital?epsilon=0.5")[0] == ["https://curator.example"]
    assert read("discreet://[::1]:8780/h")[0] == ["http://[::1]:8780"]
    assert read("discreet://h.example/h?allow_http=true")[0] == ["http://h.example"]
    assert read("discreet:////data/h.toml")[0] == ["/data/h.toml"]
    for wrong in ("discreet://", "discreet:///h.toml?speed=1", "discreet:///h.toml?share=much"):
        with pytest.raises(sa.exc.ArgumentError):
            read(wrong)
