"""What a codebook says about spending: caps, names and the place of the ledger, as the ledger gets them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import discreet
from discreet.cli.main import app
from discreet.codebook import Codebook
from discreet.errors import BudgetExceeded, CodebookError, LedgerError
from discreet.ledger.policy import Cap
from discreet.ledger.sqlite import SQLiteLedger
from discreet.opening import ledger_path_of, open_existing_ledger, schema_of, terms_of
from tests.ledger.server import Server, server

GOOD = """
name = "clinic"
unit = "person"
analysts = ["ana", "ben"]
projects = ["thesis"]
[budget]
epsilon = 2
per_query = 0.5
per_analyst = { ana = 1.5, "*" = 1 }
per_project = 1.5
per_day = 1
per_week = 1.25
per_month = 1.5
per_year = 1.75
[tables.visits]
source = "visits.parquet"
max_rows = 1
[tables.visits.columns]
person = "integer"
"""
COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"person": list(range(50))}), tmp_path / "visits.parquet")
    return tmp_path


def book(folder: Path, text: str) -> Path:
    path = folder / "clinic.toml"
    path.write_text(text)
    return path


def wrong(text: str) -> str:
    with pytest.raises(CodebookError) as caught:
        Codebook.read(text)
    assert all(problem.entry and problem.rule and problem.fix for problem in caught.value.problems)
    return " ".join(str(caught.value).split())


def test_every_cap_reaches_the_ledger() -> None:
    """All words become caps and names of the policy, with exact amounts."""
    policy = terms_of(Codebook.read(GOOD)).policy
    assert policy is not None and policy.analysts == ("ana", "ben") and policy.projects == ("thesis",)
    assert set(policy.caps) == {
        Cap(amount=Fraction(1, 2), over="query"),
        Cap(amount=Fraction(3, 2), over="analyst", name="ana"),
        Cap(amount=1, over="analyst"),
        Cap(amount=Fraction(3, 2), over="project"),
        Cap(amount=1, per="day"),
        Cap(amount=Fraction(5, 4), per="week"),
        Cap(amount=Fraction(3, 2), per="month"),
        Cap(amount=Fraction(7, 4), per="year"),
    }


def test_without_caps_the_policy_is_as_before() -> None:
    """A codebook that says nothing about them has no caps, so that ledgers made earlier still fit."""
    text = GOOD[: GOOD.index("per_query")] + GOOD[GOOD.index("[tables") :]
    policy = terms_of(Codebook.read(text.replace('projects = ["thesis"]', ""))).policy
    assert policy is not None and policy.caps == () and policy.projects is None


def test_caps_bind(folder: Path) -> None:
    """What one analyst, one project and one question may spend is enforced; the budget has more."""
    with discreet.open(book(folder, GOOD.replace("per_day = 1\n", ""))) as curator:
        with pytest.raises(LedgerError, match="project is not on the dataset's list"):
            curator.ask(COUNT, epsilon=0.5, analyst="ben")
        for i in range(2):
            question = f"{COUNT} WHERE person > {i}"
            curator.ask(question, epsilon=0.5, analyst="ben", project="thesis")
        with pytest.raises(BudgetExceeded):
            curator.ask(f"{COUNT} WHERE person > 3", epsilon=0.25, analyst="ben", project="thesis")
        curator.ask(f"{COUNT} WHERE person > 4", epsilon=0.25, analyst="ana", project="thesis")
        with pytest.raises(BudgetExceeded):  # the week has 1.25
            curator.ask(f"{COUNT} WHERE person > 5", epsilon=0.25, analyst="ana", project="thesis")


def test_a_changed_cap_is_declared(folder: Path) -> None:
    """The ledger refuses a codebook with other caps until they are on record."""
    path = book(folder, GOOD)
    discreet.open(path).close()
    book(folder, GOOD.replace("per_month = 1.5", "per_month = 1.6"))
    with pytest.raises(LedgerError, match="ledger amend"):
        discreet.open(path)
    done = CliRunner().invoke(app, ["ledger", "amend", str(path), "--by", "cora", "--reason", "more time"])
    assert done.exit_code == 0, done.exception
    with discreet.open(path) as curator:
        assert Cap(amount=Fraction(8, 5), per="month") in curator.ledger.policy.caps  # type: ignore[attr-defined]  # a Book


def test_projects_from_the_shell(folder: Path) -> None:
    """A codebook that lists projects can be asked from the shell."""
    path = book(folder, GOOD)
    words = ["ask", str(path), COUNT, "--epsilon", "0.5", "--analyst", "ana"]
    assert isinstance(CliRunner().invoke(app, words).exception, LedgerError)
    with discreet.open(path) as curator:
        fits = [curator.preview(COUNT, epsilon=0.5, analyst="ana", project=project).fits for project in ("", "thesis")]
    assert fits == [False, True]
    done = CliRunner().invoke(app, [*words, "--project", "thesis"])
    assert done.exit_code == 0, done.exception


RULES = [
    (
        "month above",
        GOOD.replace("per_month = 1.5", "per_month = 2.5"),
        "budget.per_month is larger than the whole budget",
    ),
    ("day zero", GOOD.replace("per_day = 1\n", "per_day = 0\n"), "budget.per_day must be above 0 and at most"),
    ("week below", GOOD.replace("1.25", "-1"), "budget.per_week must be above 0"),
    ("year is text", GOOD.replace("per_year = 1.75", 'per_year = "all"'), "budget.per_year must be a number. Give a"),
    ("analyst above", GOOD.replace("ana = 1.5", "ana = 3"), "budget.per_analyst.ana is larger than the whole budget"),
    ("others above", GOOD.replace('"*" = 1 ', '"*" = 3 '), "budget.per_analyst is larger than the whole budget"),
    ("project zero", GOOD.replace("per_project = 1.5", "per_project = 0"), "budget.per_project must be above 0"),
    ("one is text", GOOD.replace("ana = 1.5", 'ana = "x"'), "budget.per_analyst.ana must be a number. Give a number"),
    ("none", GOOD.replace("per_project = 1.5", "per_project = true"), "budget.per_project.* must be a finite number"),
    ("a list", GOOD.replace("per_project = 1.5", "per_project = [1]"), "budget.per_project.* must be a number"),
    (
        "somebody",
        GOOD.replace("{ ana = 1.5", "{ anna = 1.5"),
        "per_analyst.anna is a cap for somebody who is not among analysts. Did you mean 'ana'?",
    ),
    (
        "some project",
        GOOD.replace("per_project = 1.5", "per_project = { this = 1 }"),
        "per_project.this is a cap for somebody who is not among projects",
    ),
    (
        "nobody",
        GOOD.replace('["thesis"]', "[]").replace("per_project = 1.5", "per_project = { this = 1 }"),
        "Add the name to projects.",
    ),
    ("no name", GOOD.replace('["ana", "ben"]', '["ana", "b\\nen"]'), "analysts hold something that is not a name"),
    ("long name", GOOD.replace('"thesis"', f'"{"x" * 201}"'), "projects hold something that is not a name"),
    ("star", GOOD.replace('"ben"', '"*"'), "analysts list '*', which stands for everyone else"),
    (
        "no caps word",
        GOOD.replace("per_month", "per_monht"),
        "budget.per_monht is an unknown word. Did you mean 'per_month'?",
    ),
]


@pytest.mark.parametrize(("text", "rule"), [case[1:] for case in RULES], ids=[case[0] for case in RULES])
def test_caps_that_make_no_sense_are_refused(text: str, rule: str) -> None:
    """Amounts that are none or above the budget, and names that are nobody's."""
    assert rule in wrong(text)


def with_ledger(place: str) -> str:
    return f'ledger = "{place}"\n' + GOOD.replace('projects = ["thesis"]', "")


PASSED = "holds a password, and a codebook is public. Leave it out; PostgreSQL finds it in the environment (PGPASSWORD)"


@pytest.mark.parametrize(
    ("place", "rule"),
    [
        ("postgresql://ana:marker@host/db", PASSED),
        ("postgres://ana:marker@host/db", PASSED),
        ("postgresql://ana:@host/db", PASSED),
        ("postgresql://ana:mar/ker@host/db", PASSED),
        ("postgresql://ana:mar@ker@host/db", PASSED),
        ("postgresql://host/db?password=marker", PASSED),
        ("postgresql://host/db?user=ana&PassWord=marker", PASSED),
        ("postgresql://host/db?pass%77ord=marker", PASSED),
        ("postgresql://host/db?sslpassword=marker", PASSED),
        ("PostgreSQL://host/db", "is not a PostgreSQL address"),
        ("postgresql://host/a b", "is not a PostgreSQL address"),
        ("mysql://host/db", "is neither a local file nor a PostgreSQL address"),
        ("host=db password=marker", "is neither a local file nor a PostgreSQL address"),
        (" ", "is neither a local file nor a PostgreSQL address"),
        ("?", "is still blank"),
    ],
)
def test_places_that_are_no_ledgers(place: str, rule: str) -> None:
    """A password in the file is refused, in whatever form, and not repeated; so is everything that is no place."""
    message = wrong(with_ledger(place))
    assert f"ledger {rule}" in message and "marker" not in message


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://",
        "postgresql://host",
        "postgresql://ana@host:5432/db",
        "postgresql://a@h:1,h:2/db?sslmode=require",
    ],
)
def test_addresses_without_secrets(place: str) -> None:
    """Names and ports are no secrets."""
    assert Codebook.read(with_ledger(place)).ledger == place


def test_the_file_of_a_ledger(folder: Path) -> None:
    """Beside the codebook, or where it says, relative to it."""
    path = book(folder, GOOD)
    assert ledger_path_of(Codebook.load(path)) == folder / "clinic.ledger"
    (folder / "deep").mkdir()
    path = book(folder, with_ledger("deep/other.ledger"))
    with discreet.open(path) as curator:
        curator.ask(COUNT, epsilon=0.5, analyst="ana")
    assert (folder / "deep" / "other.ledger").exists() and not (folder / "clinic.ledger").exists()
    with open_existing_ledger(Codebook.load(path)) as ledger:
        assert len(ledger.history()) == 1


def test_a_ledger_is_not_forgotten_by_a_word(folder: Path) -> None:
    """Naming another place while the old ledger lies beside the codebook would begin with a full budget: refused."""
    path = book(folder, with_ledger("clinic.ledger"))  # the same place, said aloud
    discreet.open(path).close()
    discreet.open(path).close()
    for place in ("other.ledger", "postgresql://nowhere.invalid/db"):
        with pytest.raises(LedgerError, match=r"clinic\.ledger lies beside it: its charges would be forgotten"):
            discreet.open(book(folder, with_ledger(place)))
    assert not (folder / "other.ledger").exists()


def test_schemas() -> None:
    """Each dataset has its own schema, under a name that PostgreSQL takes as it is."""
    names = ["hospital", "Hospital", "old town", "old_town", "old-town", "病院", "x" * 300, "y" * 41, "1", "a" * 40]
    found = [schema_of(name) for name in names]
    assert len(set(found)) == len(names) and all(name.isascii() and len(name) <= 63 for name in found)
    assert found[0] == "discreet_hospital"


@pytest.fixture
def database() -> Server:
    return server()


def test_a_ledger_in_a_database(folder: Path, database: Server) -> None:
    """One word in the codebook, and charges are kept in PostgreSQL: asked twice, opened twice, looked after."""
    text = with_ledger(database.address).replace('"clinic"', f'"clinic {folder.name}"')
    path = book(folder, text)
    with discreet.open(path) as curator:
        first = curator.ask(COUNT, epsilon=0.5, analyst="ana")
    with discreet.open(path) as curator:
        again = curator.ask(COUNT, epsilon=0.5, analyst="ana")
        assert again.replayed and again.rows == first.rows and len(curator.history()) == 1
        with pytest.raises(BudgetExceeded):
            curator.ask(f"{COUNT} WHERE person > 1", epsilon=0.6, analyst="ana")
    assert not list(folder.glob("*.ledger"))
    run = CliRunner().invoke
    for words in (["verify"], ["history"], ["head"], ["export"], ["burndown"]):
        done = run(app, ["ledger", *words, str(path)])
        assert done.exit_code == 0, (words, done.exception)
    book(folder, text.replace("epsilon = 2", "epsilon = 3"))
    with pytest.raises(LedgerError, match="ledger amend"):
        discreet.open(path)
    assert run(app, ["ledger", "amend", str(path), "--by", "cora", "--reason", "more"]).exit_code == 0
    discreet.open(path).close()
    assert "in a database" in str(run(app, ["ledger", "backup", str(path), str(folder / "copy")]).exception)


def test_a_database_without_the_ledger(folder: Path, database: Server) -> None:
    """Looking after a ledger makes none."""
    path = book(folder, with_ledger(database.address).replace('"clinic"', f'"never {folder.name}"'))
    done = CliRunner().invoke(app, ["ledger", "verify", str(path)])
    assert isinstance(done.exception, LedgerError) and "no ledger in this schema" in str(done.exception)


def test_postgres_is_an_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without psycopg the message says what to install; a codebook with a file never asks for it."""

    def missing(name: str, *rest: Any) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("discreet.ledger.postgres.import_module", missing)
    with pytest.raises(LedgerError, match=r"pip install 'discreet\[postgres\]'"):
        discreet.open(book(folder, with_ledger("postgresql://host/db")))
    discreet.open(book(folder, GOOD)).close()
    assert SQLiteLedger.open_existing(folder / "clinic.ledger").dataset == "clinic"
