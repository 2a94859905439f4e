"""The door with psycopg: costs, refusals, parameters, formats, transactions, cursors, copies and cancelling."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import psycopg
import pytest

from discreet.service.roles import Role
from tests.service.served import Hospital
from tests.wire.serving import WARDS, OpenDoor, open_door


@pytest.fixture
def door(served: Hospital) -> Iterator[OpenDoor]:
    with open_door(served) as made:
        yield made


def connect(door: OpenDoor, who: str = "ana", **more: str) -> psycopg.Connection[Any]:
    return psycopg.connect(door.write_dsn(who, **more), autocommit=True)


def test_a_question_states_its_cost_and_says_what_it_took(door: OpenDoor) -> None:
    """No cost, no answer; then the cost, what is left and the limits are a notice, and asking again is free."""
    with connect(door) as connection:
        notices: list[tuple[str, str]] = []
        connection.add_notice_handler(
            lambda each: notices.append((str(each.message_primary), str(each.message_detail)))
        )
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(WARDS)
        assert refused.value.sqlstate == "22023"
        assert "states no cost" in str(refused.value) and "Nothing was charged." in str(refused.value)
        assert "SET discreet.epsilon" in str(refused.value.diag.message_hint) and door.count_charges() == 0
        connection.execute("SET discreet.epsilon = 0.1")
        rows = connection.execute(WARDS).fetchall()
        assert len(rows) == 8 and len(rows[0]) == 4
        assert notices[0][0].startswith("cost ") and "left" in notices[0][0] and "limit" in notices[0][1]
        assert connection.execute(WARDS).fetchall() == rows and door.count_charges() == 1
        assert "given before, free now" in notices[-1][0]


def test_the_door_and_http_are_one_service(door: OpenDoor) -> None:
    """What was asked here is free there, in the same name, from the same budget."""
    with connect(door, options="-c discreet.epsilon=0.1") as connection:
        connection.execute(WARDS)
    assert door.hospital.ask("ana", "later").status == 200
    assert door.count_charges() == 1
    assert door.hospital.get("ana", "datasets/hospital/history")["charges"][0]["analyst"] == "ana"


@pytest.mark.parametrize(
    "words",
    ["epsilon = 0.1", "rho = 0.001", "share = 1/50", "error = 'n=900'"],
)
def test_every_form_of_a_cost(door: OpenDoor, words: str) -> None:
    """A new form takes the place of the one before; RESET goes back to the connection string."""
    with connect(door, options="-c discreet.share=0.01") as connection:
        connection.execute(f"SET discreet.{words}")
        assert connection.execute("SELECT COUNT(*) AS n FROM visits").fetchone() is not None
        connection.execute("RESET discreet.share")
        assert connection.execute("SHOW discreet.share").fetchone() == ("0.01",)
        assert connection.execute("SHOW discreet.epsilon").fetchone() == ("",)
    assert door.count_charges() == 1


@pytest.mark.parametrize(
    "question",
    [
        "WITH DP(epsilon=0.1) SELECT COUNT(*) AS n FROM visits",
        "WITH DP(epsilon=0.1, delta=1e-9) SELECT COUNT(*) AS n FROM visits",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1, delta=1e-7) COUNT(*) AS n FROM visits",
    ],
)
def test_costs_in_the_text_come_before_those_of_the_session(door: OpenDoor, question: str) -> None:
    """Both ways to state it in the text; the session's own, which is too much for the budget, is not taken."""
    with connect(door, options="-c discreet.epsilon=2.9") as connection:
        assert connection.execute(question).fetchone() is not None
        left = door.hospital.dataset.curator.ledger.remaining
        assert float(left) > 2


def test_refusals_have_a_state_a_place_a_hint_and_no_charge(door: OpenDoor) -> None:
    """Rows of a table, unknown columns, too much, and what writes."""
    cases = {
        "SELECT * FROM visits": ("42601", "8"),
        "SELECT ward,\n  wrd, COUNT(*) FROM visits GROUP BY 1, 2": ("42601", "16"),
        "SELECT COUNT(*) FROM nothing": ("42601", "22"),
        "WITH DP(epsilon=4) SELECT COUNT(*) AS n FROM visits": ("53400", None),
        "WITH DP(epsilon=-1) SELECT COUNT(*) AS n FROM visits": ("22023", None),
        "WITH DP(price=1) SELECT COUNT(*) AS n FROM visits": ("42601", None),
        "INSERT INTO visits VALUES (1)": ("25006", "1"),
        "DROP TABLE visits": ("25006", "1"),
        "COPY visits TO STDOUT": ("0A000", "1"),
        "COPY visits FROM STDIN": ("0A000", "1"),
        "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits": ("0A000", "1"),
        "SELECT c.relname, v.ward FROM pg_class c, visits v": ("0A000", None),
        "SET discreet.project = 'other'": ("42501", None),
        "SET discreet.budget = 3": ("42704", None),
    }
    with connect(door, options="-c discreet.epsilon=0.1") as connection:
        for text, (state, position) in cases.items():
            with pytest.raises(psycopg.Error) as refused:
                connection.execute(text.encode())
            assert (refused.value.sqlstate, refused.value.diag.statement_position) == (state, position), text
            assert "Nothing was charged." in str(refused.value), text
    assert door.count_charges() == 0


def test_explain_is_the_preview(door: OpenDoor) -> None:
    """Rows of a preview; without a cost, what shares would buy."""
    with connect(door) as connection:
        curve = [line for (line,) in connection.execute(f"EXPLAIN {WARDS}").fetchall()]
        assert any("public groups" in line for line in curve) and "nothing was charged, no data was read" in curve[-1]
        connection.execute("SET discreet.epsilon = 0.1")
        lines = [line for (line,) in connection.execute(f"EXPLAIN {WARDS}").fetchall()]
        assert any(line.startswith("cost") for line in lines)
    assert door.count_charges() == 0


def test_parameters_and_results_as_text_and_in_binary_form(door: OpenDoor) -> None:
    """Typed parameters in both formats give one question; both formats of results give the same values."""
    text = (
        "SELECT ward, COUNT(*) AS n, AVG(cost) AS c FROM visits "
        "WHERE age >= %s AND ward <> %s AND arrival > %s GROUP BY ward"
    )
    values = (50, "Surgery", dt.date(2024, 3, 1))
    with connect(door, options="-c discreet.epsilon=0.1") as connection:
        plain = connection.execute(text, values).fetchall()
        binary = connection.cursor(binary=True).execute(text, values).fetchall()
        assert plain == binary and isinstance(plain[0][1], int) and isinstance(plain[0][4], float)
        marked = text.replace("%s", "%b")
        assert connection.execute(marked, values).fetchall() == plain
        again = connection.execute(text, values, prepare=True).fetchall()
        assert again == plain
        assert (
            connection.execute("SELECT emergency, COUNT(*) AS n FROM visits GROUP BY emergency").fetchall()[0][0]
            is False
        )
    assert door.count_charges() == 2


def test_public_tables_are_free_and_exact(door: OpenDoor) -> None:
    with connect(door) as connection:
        assert connection.execute("SELECT COUNT(*) AS n FROM wards").fetchall() == [(8,)]
    assert door.count_charges() == 0


def test_a_charge_is_never_rolled_back(door: OpenDoor) -> None:
    """BEGIN, COMMIT and ROLLBACK are accepted; settings go back, charges stay, and it is said."""
    notices: list[str] = []
    with psycopg.connect(door.write_dsn()) as connection:
        connection.add_notice_handler(lambda each: notices.append(str(each.message_primary)))
        connection.execute("SET discreet.epsilon = 0.1")
        connection.execute(WARDS)
        connection.rollback()
        assert any("never rolled back" in each for each in notices) and door.count_charges() == 1
        assert connection.execute("SHOW discreet.epsilon").fetchone() == ("",)
        with pytest.raises(psycopg.errors.SyntaxError):
            connection.execute("SELECT * FROM visits")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_cursors_hand_rows_out_in_parts(door: OpenDoor) -> None:
    """A server-side cursor asks once."""
    dsn = door.write_dsn(options="-c discreet.epsilon=0.1")
    with psycopg.connect(dsn) as connection, connection.cursor(name="wards") as cursor:
        cursor.itersize = 3
        cursor.execute(WARDS)
        assert [row[0] for row in cursor][:2] == ["Cardiology", "Emergency"]
    assert door.count_charges() == 1


def test_copy_hands_out_answers(door: OpenDoor) -> None:
    """As text, CSV and binary; never a table."""
    with connect(door, options="-c discreet.epsilon=0.1") as connection:
        rows = connection.execute(WARDS).fetchall()
        with connection.cursor().copy(f"COPY ({WARDS}) TO STDOUT") as copy:
            assert list(copy.rows())[0] == tuple(map(str, rows[0]))  # noqa: RUF015  # to its end
        with connection.cursor().copy(f"COPY ({WARDS}) TO STDOUT (FORMAT csv, HEADER)") as copy:
            lines = b"".join(bytes(part) for part in copy).decode().splitlines()
        assert lines[:2] == ["ward,n,n_low,n_high", ",".join(map(str, rows[0]))]
        with connection.cursor().copy(f"COPY ({WARDS}) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["text", "int8", "int8", "int8"])
            assert list(copy.rows()) == rows
    assert door.count_charges() == 1


def test_a_select_around_a_question_picks_from_its_answer(door: OpenDoor) -> None:
    """As tools write it; a column that is not there is refused before anything is charged."""
    with connect(door, options="-c discreet.epsilon=0.1") as connection:
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute(f'SELECT "nobody" FROM ({WARDS}) AS t')
        assert door.count_charges() == 0
        found = connection.execute(f'SELECT "n" AS number, t."ward" FROM ({WARDS}) AS t LIMIT 2')
        assert [each.name for each in found.description or ()] == ["number", "ward"]
        rows = found.fetchall()
        assert [row[1] for row in rows] == ["Cardiology", "Emergency"]
        assert connection.execute(f"SELECT * FROM ({WARDS}) x").fetchall()[0][:2] == rows[0][::-1]
    assert door.count_charges() == 1


def test_a_token_decides_what_a_session_may_do(door: OpenDoor) -> None:
    """Wrong tokens, other datasets, auditors, caps, defaults, and a token that is taken back while it is used."""
    tokens = door.hospital.dataset.tokens
    for dsn in (door.write_dsn("ana", user="ben"), door.write_dsn("nobody"), door.write_dsn("ben", user="olga")):
        with pytest.raises(psycopg.OperationalError) as refused:
            psycopg.connect(dsn)
        assert "no such token" in str(refused.value) and "discreet token create" in str(refused.value)
    with pytest.raises(psycopg.OperationalError, match="no such dataset"):
        psycopg.connect(door.write_dsn(dbname="ana"))
    dsn = door.write_dsn("audit", options="-c discreet.epsilon=0.1")
    with psycopg.connect(dsn) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(WARDS)
    made, secret = tokens.create(name="eva", role=Role.ANALYST, per_query=Fraction(1, 20), offer="epsilon=0.02")
    door.hospital.secrets["eva"] = secret
    with connect(door, "eva") as connection:
        assert connection.execute("SHOW discreet.epsilon").fetchone() == ("0.02",)
        connection.execute(WARDS)
        with pytest.raises(psycopg.Error, match="at most"):
            connection.execute("WITH DP(epsilon=0.5) SELECT COUNT(*) AS n FROM visits")
        tokens.revoke(made.id)
        with pytest.raises(psycopg.OperationalError, match="no longer valid"):
            connection.execute(WARDS)
    lines = door.hospital.dataset.access.read()
    assert {line["kind"] for line in lines} >= {"refused", "signed-in"}


def test_two_tokens_of_one_name_both_open(door: OpenDoor) -> None:
    """The salt is that of the name, so the proof finds the token that was meant."""
    _, second = door.hospital.dataset.tokens.create(name="ana", role=Role.OWNER)
    for secret in (second, door.hospital.secrets["ana"]):
        with psycopg.connect(door.write_dsn(password=secret)) as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("ana",)


def test_a_question_can_be_cancelled(door: OpenDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancel request with the secret of the connection ends what runs; the charge stands, and asking goes on."""
    engine = type(door.hospital.dataset.curator._engine)
    original, begun = engine.run, threading.Event()

    def run_slowly(self: Any, *arguments: Any, watch: Any = None, **words: Any) -> Any:
        begun.set()
        while watch is not None and not over.is_set():
            watch(0.1)
            time.sleep(0.02)
        return original(self, *arguments, watch=watch, **words)

    over = threading.Event()
    monkeypatch.setattr(engine, "run", run_slowly)
    with connect(door, options="-c discreet.epsilon=0.1") as connection:

        def cancel() -> None:
            begun.wait(20)
            connection.cancel_safe()

        timer = threading.Thread(target=cancel)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled, match="ended"):
            connection.execute(WARDS)
        timer.join()
        over.set()
        assert door.count_charges() == 1
        assert len(connection.execute(WARDS).fetchall()) == 8
