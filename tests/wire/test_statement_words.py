"""Statements as words: splitting, kinds, WITH DP, SET, COPY, and SELECTs around a question."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.wire.copying import CopyOptions, read_copy
from discreet.wire.projections import AnswerPick, take_projections
from discreet.wire.refusals import WireRefused
from discreet.wire.session_settings import SessionSettings, read_options
from discreet.wire.statement_words import StatementKind, read_assignment, read_stated, split_statements


def test_semicolons_in_quotes_and_comments_do_not_split() -> None:
    text = "SELECT ';' ; -- a;b\n/* ; /* ; */ ; */ SELECT \"a;\" ; ; SELECT $x$;$x$, E'\\';', 'it''s;'"
    found = split_statements(text)
    assert [each.text for each in found] == ["SELECT ';'", 'SELECT "a;"', "SELECT $x$;$x$, E'\\';', 'it''s;'"]
    assert all(text[each.offset :].startswith(each.text) for each in found)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="SELECT 'x\"$;-/*\\\n()eE1,=", max_size=60))
def test_any_text_is_split(text: str) -> None:
    """No text is an error here, and the parts are parts of it."""
    for each in split_statements(text):
        assert text[each.offset :].startswith(each.text)
        assert isinstance(each.kind, StatementKind)
        take_projections(each)


def test_kinds() -> None:
    cases = {
        "select 1": StatementKind.SELECT, "(SELECT 1)": StatementKind.SELECT, "WITH a AS (b)": StatementKind.SELECT,
        "start transaction": StatementKind.BEGIN, "END": StatementKind.COMMIT, "abort": StatementKind.ROLLBACK,
        "UPDATE x SET a = 1": StatementKind.OTHER, "CALL x()": StatementKind.OTHER, '"select" 1': StatementKind.OTHER,
    }  # fmt: skip
    for text, kind in cases.items():
        assert split_statements(text)[0].kind is kind, text


def test_what_stands_before_a_select() -> None:
    text = "  WITH DP(epsilon = 0.1, delta=1e-6) SELECT COUNT(*) FROM visits"
    (statement,) = split_statements(text)
    stated = read_stated(statement)
    assert stated.offer == {"epsilon": "0.1", "delta": "1e-6"}
    assert stated.statement.text == "SELECT COUNT(*) FROM visits" and stated.statement.offset == text.index("SELECT")
    (other,) = split_statements("WITH dp(a) AS (SELECT 1) SELECT a FROM dp")
    assert read_stated(other).offer == {} and read_stated(other).statement is other
    with pytest.raises(WireRefused):
        read_stated(split_statements("WITH DP(epsilon) SELECT 1")[0])


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("SET discreet.epsilon = 0.1", ("discreet.epsilon", "0.1", False)),
        ("SET SESSION a TO 'b c'", ("a", "b c", False)),
        ("SET LOCAL a TO x, y", ("a", "x, y", True)),
        ("SET TIME ZONE 'UTC'", ("TimeZone", "UTC", False)),
        ("SET a TO DEFAULT", ("a", "", False)),
        ("SET discreet.share = 1/50", ("discreet.share", "1/50", False)),
    ],
)
def test_assignments(text: str, read: tuple[str, str, bool]) -> None:
    assert read_assignment(split_statements(text)[0]) == read


def test_options_of_a_copy() -> None:
    inner, options = read_copy(split_statements("COPY (SELECT 1) TO STDOUT WITH CSV HEADER DELIMITER ';'")[0])
    assert (inner.text, inner.offset) == ("SELECT 1", 6)
    assert options == CopyOptions(form="csv", header=True, delimiter=";", null="")
    assert read_copy(split_statements('COPY (SELECT 1) TO STDOUT (FORMAT "binary")')[0])[1].binary
    for text in (
        "COPY visits TO STDOUT",
        "COPY (SELECT 1) TO '/tmp/x'",
        "COPY (SELECT 1) TO PROGRAM 'sh'",
        "COPY x FROM STDIN",
    ):
        with pytest.raises(WireRefused):
            read_copy(split_statements(text)[0])


@pytest.mark.parametrize(
    ("text", "inner", "picked"),
    [
        ("SELECT * FROM (SELECT 1) t", "SELECT 1", AnswerPick(None, None)),
        ('SELECT "a", t.b AS c FROM (SELECT 1) AS "t" LIMIT 5', "SELECT 1", AnswerPick((("a", "a"), ("b", "c")), 5)),
        ("SELECT COUNT(*) FROM (SELECT 1) t", "", None),
        ("SELECT a + 1 FROM (SELECT 1) t", "", None),
        ("SELECT DISTINCT a FROM (SELECT 1) t", "", None),
        ("SELECT a FROM (SELECT 1) t WHERE a > 1", "", None),
        ("SELECT a FROM (SELECT 1) t, visits", "", None),
        ("SELECT a FROM (SELECT 1) t LIMIT 5 OFFSET 2", "", None),
        ("SELECT a FROM visits", "", None),
    ],
)
def test_what_only_picks_from_a_question(text: str, inner: str, picked: AnswerPick | None) -> None:
    """Anything that computes, filters or joins is left to the curator."""
    (statement,) = split_statements(text)
    found, projections = take_projections(statement)
    assert projections == ([] if picked is None else [picked])
    assert found.text == (inner or text)


def test_settings_of_a_session() -> None:
    """A new form of the cost takes the place of the old one; other names and projects are refused."""
    made = SessionSettings("ana", "trial", {"discreet.epsilon": "0.1"})
    assert {word: str(value) for word, value in made.make_offer().items()} == {"epsilon": "0.1"}
    made.set("discreet.error", "n=12")
    assert list(made.make_offer()) == ["error"] and made.show("discreet.epsilon") == ""
    made.reset("discreet.error")
    assert made.show("discreet.epsilon") == "0.1"
    made.set("discreet.project", "trial")
    for name, value in (
        ("discreet.project", "other"), ("discreet.price", "1"), ("discreet.epsilon", "much"), ("discreet.rho", "nan"),
        ("server_version", "9"), ("client_encoding", "LATIN1"), ("is_superuser", "on"), ("x y", "1"), ("a", "x" * 2000),
        ("standard_conforming_strings", "off"),
    ):  # fmt: skip
        with pytest.raises(WireRefused):
            made.set(name, value)
    assert made.set("DATESTYLE", "SQL, DMY") == {"DateStyle": "ISO, DMY"}
    assert read_options(r"-cdiscreet.epsilon=0.1 -c search_path=a\ b") == {
        "discreet.epsilon": "0.1",
        "search_path": "a b",
    }
    with pytest.raises(WireRefused):
        read_options("-d x")
