"""The database standard, point by point, over a codebook and over a server."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet import dbapi
from discreet.dbapi.connection import Connection
from tests.remote.remote_hospital import reach
from tests.service.served import WARDS, Hospital, serve_hospital


@pytest.fixture(scope="module")
def served_once(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hospital]:
    """One hospital for all tests here: each makes its own question."""
    made = serve_hospital(Path(shutil.copytree(files, tmp_path_factory.mktemp("h") / "h")) / "hospital.toml")
    yield made
    made.dataset.close()


@pytest.fixture(params=["home", "server"])
def connection(request: Any, served_once: Hospital) -> Connection:
    """A connection to the curator of this process, and one to it as a server."""
    if request.param == "home":
        return dbapi.connect(served_once.dataset.curator, share=0.001, analyst="olga")
    return dbapi.connect(reach(served_once), share=0.001)


def test_the_module() -> None:
    """What the standard asks of a module."""
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "named")
    assert issubclass(dbapi.Warning, Exception) and issubclass(dbapi.Error, Exception)
    assert issubclass(dbapi.InterfaceError, dbapi.Error) and issubclass(dbapi.DatabaseError, dbapi.Error)
    for name in ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported"):
        assert issubclass(getattr(dbapi, f"{name}Error"), dbapi.DatabaseError)
        assert getattr(Connection, f"{name}Error") is getattr(dbapi, f"{name}Error")
    assert dbapi.Date(2024, 1, 31) == dt.date(2024, 1, 31) and dbapi.Timestamp(2024, 1, 31, 8) > dbapi.Timestamp(
        2024, 1, 1
    )
    assert dbapi.Time(8, 30) == dt.time(8, 30) and dbapi.Binary(b"x") == b"x"
    noon = dt.datetime(2024, 1, 31, 12).timestamp()  # noqa: DTZ001  # the standard means local time
    assert dbapi.DateFromTicks(noon) == dt.date(2024, 1, 31) and dbapi.TimeFromTicks(noon) == dt.time(12)
    assert dbapi.TimestampFromTicks(noon).hour == 12
    assert dbapi.STRING == "text" and dbapi.NUMBER != "text" and dbapi.DATETIME == "date"
    assert len({dbapi.STRING, dbapi.NUMBER, dbapi.DATETIME, dbapi.BINARY, dbapi.ROWID}) == 5


def test_fetching(connection: Connection) -> None:
    """fetchone, fetchmany, fetchall and iteration give each row once, in order; then nothing."""
    cursor = connection.cursor()
    assert cursor.description is None and cursor.rowcount == -1
    with pytest.raises(dbapi.Error):
        cursor.fetchall()
    assert cursor.execute(WARDS) is cursor
    assert cursor.description is not None and cursor.answer is not None
    assert [(name, kind) for name, kind, *_ in cursor.description] == [
        ("ward", "text"), ("n", "integer"), ("n_low", "integer"), ("n_high", "integer"),
    ]  # fmt: skip
    assert cursor.description[0][1] == dbapi.STRING and cursor.description[1][1] == dbapi.NUMBER
    whole = [tuple(row.values()) for row in cursor.answer]
    first, some, rest = cursor.fetchone(), cursor.fetchmany(2), cursor.fetchall()
    assert [first, *some, *rest] == whole and cursor.rowcount == len(whole)
    assert cursor.fetchone() is None and cursor.fetchmany() == [] == cursor.fetchall()
    assert list(cursor.execute(WARDS)) == whole, "the same again is free and the same"
    cursor.arraysize = 3
    assert len(cursor.execute(WARDS).fetchmany()) == 3
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)


def test_columns_are_described_before_anything_is_asked(connection: Connection) -> None:
    """As the answer has them, and free."""
    sql = "SELECT arrival, emergency, AVG(cost) AS c FROM visits WHERE age > :age GROUP BY arrival, emergency"
    before = len(connection.curator.history())
    described = connection.cursor().describe(sql, {"age": 40})
    assert [(name, kind) for name, kind, *_ in described] == [
        ("arrival", "date"), ("emergency", "boolean"), ("c", "real"), ("c_low", "real"), ("c_high", "real"),
    ]  # fmt: skip
    lines = connection.cursor().execute(f"EXPLAIN {sql}", {"age": 40}).fetchall()
    assert any("nothing was charged" in line for (line,) in lines) and len(connection.curator.history()) == before


def test_parameters_are_named(connection: Connection) -> None:
    """A value is a value, whatever is in it; a missing one and one without a name are refused."""
    cursor = connection.cursor()
    sql = "SELECT COUNT(*) AS n FROM visits WHERE ward = :ward AND age > :age"
    assert len(cursor.execute(sql, {"ward": "Surgery' OR 1=1 --", "age": 40}).fetchall()) == 1
    for wrong in ({"ward": "Surgery"}, ("Surgery", 40)):
        with pytest.raises(dbapi.ProgrammingError, match="Nothing was charged"):
            cursor.execute(sql, wrong)  # type: ignore[arg-type]  # one of them is no mapping
    with pytest.raises(dbapi.NotSupportedError, match="charge of its own"):
        cursor.executemany(sql, [{"ward": "Surgery", "age": 1}])


def test_what_a_question_may_cost_is_said(connection: Connection) -> None:
    """By the connection, by SET, or in the text; a question without it is refused and not priced silently."""
    cursor = connection.cursor()
    sql = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
    connection.offer = {}
    with pytest.raises(dbapi.DataError) as refused:
        cursor.execute(sql)
    assert refused.value.code == "parameter"
    cursor.execute("SET discreet.epsilon = 0.01")
    assert cursor.description is None and list(connection.offer) == ["epsilon"]
    cursor.execute("set discreet.share to '1/100'")
    assert list(connection.offer) == ["share"] and len(cursor.execute(sql).fetchall()) == 3
    stated = sql.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.02, delta=1e-9)", 1)
    assert len(cursor.execute(stated).fetchall()) == 3
    cursor.execute("SET discreet.share = DEFAULT")
    assert connection.offer == {}
    with pytest.raises(dbapi.Error):
        cursor.execute("SET discreet.secret = 1")


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT * FROM visits", dbapi.ProgrammingError),
        ("DROP TABLE visits", dbapi.ProgrammingError),
        ("SELECT COUNT(*) FROM nowhere", dbapi.ProgrammingError),
        ("SELECT SUM(visit_id) AS s FROM visits", dbapi.NotSupportedError),
    ],
)
def test_refusals_are_the_standards(connection: Connection, sql: str, kind: type[Exception]) -> None:
    """With our own error as the cause."""
    with pytest.raises(kind) as refused:
        connection.cursor().execute(sql)
    assert refused.value.__cause__ is not None and getattr(refused.value, "code", None)


def test_more_than_the_budget(connection: Connection) -> None:
    """An OperationalError: the budget does not allow it."""
    connection.offer = {"epsilon": 50}
    with pytest.raises(dbapi.OperationalError):
        connection.cursor().execute("SELECT AVG(age) AS a FROM visits")


def test_transactions_and_closing(connection: Connection) -> None:
    """commit and rollback do nothing; rollback says that charges stand; what is closed is closed."""
    cursor = connection.cursor()
    cursor.execute(WARDS)
    connection.commit()
    assert connection.messages == []
    connection.rollback()
    assert "stay charged" in connection.messages[0][1] and len(cursor.fetchall()) > 1
    with connection.cursor() as other:
        other.execute(WARDS)
    for use in (other.fetchone, lambda: other.execute(WARDS)):
        with pytest.raises(dbapi.InterfaceError):
            use()
    with connection:
        pass
    closed: list[Callable[[], object]] = [connection.cursor, connection.commit, connection.rollback, cursor.fetchall]
    for door in closed:
        with pytest.raises(dbapi.InterfaceError):
            door()
    connection.close()


def test_a_codebook_by_its_path(hospital: Path) -> None:
    """The connection opens the curator, and closes it."""
    with dbapi.connect(str(hospital), share=0.01, analyst="ana") as opened:
        assert len(opened.cursor().execute(WARDS).fetchall()) > 1
        assert opened.curator.history()[0].charge.analyst == "ana"
    with pytest.raises(dbapi.ProgrammingError, match="'speed'"):
        dbapi.connect(str(hospital), speed=3)
    with pytest.raises(dbapi.OperationalError):
        dbapi.connect(str(hospital.with_name("nowhere.toml")))
