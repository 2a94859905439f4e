"""Gaps of engines: refused before a charge, wherever in a question they stand, and printed in the docs."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from discreet.bounding.bound import bound_all
from discreet.engines.postgres.engine import GAPS as POSTGRES_GAPS
from discreet.engines.spark.engine import GAPS as SPARK_GAPS
from discreet.errors import UsageError
from discreet.frontends import read_sql
from discreet.plan.gaps import GAPS, Gap
from tests.worlds.tables import HOSPITAL

ROOT = Path(__file__).resolve().parents[2]
LACKING = replace(HOSPITAL, gaps=frozenset({Gap.NUL}))
PLACES = {
    "a condition": "SELECT COUNT(*) AS n FROM visits WHERE note = 'a{}b'",
    "a key": "SELECT coalesce(ward, '{}') AS w, COUNT(*) AS n FROM visits GROUP BY w",
    "an aggregate": "SELECT COUNT(CASE WHEN note = '{}' THEN 1 END) AS n FROM visits",
    "a subquery": "SELECT COUNT(*) AS n FROM (SELECT patient_id, note || '{}' AS x FROM visits) AS t",
    "rows": "SELECT COUNT(*) AS n FROM visits v JOIN (VALUES ('{}')) AS w(ward) ON v.ward = w.ward",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_gap_is_refused_wherever_it_stands(place: str) -> None:
    """With the gap it is refused, without it and without the character it is not. SQL itself never has it."""
    right = read_sql.read(PLACES[place].format("zz"), LACKING)
    wrong = put_nul(right)
    assert wrong != right
    with pytest.raises(UsageError, match=r"U\+0000.*Nothing was charged"):
        bound_all(wrong, LACKING)
    bound_all(wrong, HOSPITAL)
    bound_all(right, LACKING)


def put_nul(part: Any) -> Any:
    """A plan with the character in all texts that name it."""
    if isinstance(part, str) and not isinstance(part, StrEnum):
        return part.replace("zz", "\0")
    if isinstance(part, tuple):
        return tuple(map(put_nul, part))
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{own.name: put_nul(getattr(part, own.name)) for own in fields(part)})
    return part


def test_the_docs_print_the_gaps_of_every_engine() -> None:
    """One line for each gap of each engine, in the words of the table."""
    text = (ROOT / "docs" / "engines.md").read_text()
    printed = text.partition("<!-- gaps -->\n")[2].partition("<!-- /gaps -->")[0].strip().splitlines()[2:]
    engines = {"postgres": POSTGRES_GAPS, "spark": SPARK_GAPS}
    own = [(name, gap) for name, gaps in engines.items() for gap in Gap if gap in gaps]
    wanted = [f"| {name} | {GAPS[gap].what} | {GAPS[gap].why} | {GAPS[gap].fix} |" for name, gap in own]
    assert printed == wanted


def frame(call: str, rows: str) -> str:
    window = f"{call} OVER (PARTITION BY patient_id ORDER BY cost ROWS BETWEEN {rows})"
    return f"SELECT COUNT(*) AS n FROM (SELECT patient_id, {window} AS x FROM visits) AS t WHERE x > 1"


@pytest.mark.parametrize("call", ["MIN(cost)", "SUM(cost)"])
def test_narrow_frames_and_those_that_only_grow_are_asked(call: str) -> None:
    lacking = replace(HOSPITAL, gaps=frozenset(Gap))
    for rows in (
        *("31 PRECEDING AND CURRENT ROW", "16 PRECEDING AND 15 FOLLOWING"),
        *("UNBOUNDED PRECEDING AND CURRENT ROW", "UNBOUNDED PRECEDING AND 5000 FOLLOWING"),
    ):
        assert bound_all(read_sql.read(frame(call, rows), lacking), lacking)


@pytest.mark.parametrize(
    "rows",
    [
        *("32 PRECEDING AND CURRENT ROW", "16 PRECEDING AND 16 FOLLOWING"),
        *("CURRENT ROW AND UNBOUNDED FOLLOWING", "3 FOLLOWING AND 35 FOLLOWING"),
    ],
)
def test_work_that_grows_with_the_square_of_a_persons_rows_is_refused(rows: str) -> None:
    """Where an engine looks at the whole frame again for each row. PostgreSQL does so for extremes, Spark for all."""
    for call, gap in (("MIN(cost)", Gap.WIDE_EXTREMES), ("MAX(age)", Gap.WIDE_EXTREMES), ("SUM(cost)", Gap.WIDE_SUMS)):
        lacking, other = (replace(HOSPITAL, gaps=gaps) for gaps in (frozenset({gap}), frozenset(Gap) - {gap}))
        question = read_sql.read(frame(call, rows), HOSPITAL)
        with pytest.raises(UsageError, match=r"looked at again.*UNBOUNDED PRECEDING.*Nothing was charged"):
            bound_all(question, lacking)
        assert bound_all(question, other)


def add_up(calls: int, value: str = "cost") -> str:
    """A sum of sums."""
    return value + " + 1" * calls


INSIDE = f"SELECT COUNT(*) AS n FROM (SELECT patient_id, {add_up(30)} AS x FROM visits) AS t WHERE"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        *[tuple(f"SELECT COUNT(*) AS n FROM visits WHERE {add_up(calls)} > 1" for calls in (39, 40))],
        *[tuple(f"SELECT SUM(clamp({add_up(calls)}, 0, 9)) AS n FROM visits" for calls in (39, 40))],
        *[tuple(f"{INSIDE} {add_up(calls, 'x')} > 1" for calls in (9, 10))],
        *[tuple(f"{INSIDE} ln(x {more}) > 1" for more in ("+ 1", "+ 1 + 1 + 1"))],
    ],
)
def test_calls_that_nest_too_deep_are_refused(right: str, wrong: str) -> None:
    """A comparison is one of them; a subquery counts with what is asked of it; a logarithm counts as seven."""
    lacking = replace(HOSPITAL, gaps=frozenset({Gap.DEEP}))
    assert bound_all(read_sql.read(right, HOSPITAL), lacking)
    question = read_sql.read(wrong, HOSPITAL)
    assert bound_all(question, HOSPITAL)
    with pytest.raises(UsageError, match=r"nested more than 40 deep.*Nest fewer calls\. Nothing was charged"):
        bound_all(question, lacking)
