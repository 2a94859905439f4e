"""Times with zones and numbers at the edge of what doubles hold: from the words to the answer."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import discreet
from discreet.curator import Curator
from discreet.engines.memory.relations import to_declared_type
from discreet.errors import DiscreetError
from discreet.plan.types import Type

LATE = dt.datetime(2024, 1, 1, 23, 30, tzinfo=dt.UTC)
TIMES = pa.table({"p": [1, 2, 3], "t": pa.array([LATE] * 3, pa.timestamp("us", "Asia/Tokyo"))})


def make_curator(frame: pa.Table, **declared: object) -> Curator:
    return discreet.curate({"x": frame}, unit="p", max_rows=1, budget=discreet.Budget(epsilon=1000), **declared)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "words"), [("timestamp", "TIMESTAMP '2024-01-01 23:30:00'"), ("date", "DATE '2024-01-01'")]
)
def test_times_with_a_zone_are_those_of_utc(monkeypatch: pytest.MonkeyPatch, kind: str, words: str) -> None:
    """Whatever the zone of the column and of the computer; in Tokyo it is the next day. The oracle reads them alike."""
    monkeypatch.setenv("TZ", "America/New_York")
    curator = make_curator(TIMES, types={"t": kind})
    answer = curator.ask(f"SELECT COUNT(*) AS n FROM x WHERE t = {words}", epsilon=100)
    assert answer.table["n"].to_pylist() == [3]
    stored = TIMES["t"][0].as_py()
    assert stored.utcoffset() == dt.timedelta(hours=9)
    expected = LATE.replace(tzinfo=None) if kind == "timestamp" else LATE.date()
    assert to_declared_type(stored, Type(kind)) == expected


def test_times_with_a_zone_in_public_frames_are_those_of_utc() -> None:
    answer = make_curator(TIMES).ask(
        "SELECT COUNT(*) AS n FROM x WHERE t IN (SELECT t FROM days)", epsilon=100, public={"days": TIMES.slice(0, 1)}
    )
    assert answer.table["n"].to_pylist() == [3]


def test_bins_that_overflow_are_refused_and_cost_nothing() -> None:
    curator = make_curator(pa.table({"p": [1, 2], "x": [1.0, 2.0]}))
    table, far = curator.table("x"), discreet.lit(1e300).bin(1e-300)
    for question in (table.agg(s=discreet.sum(far)), table.group_by(b=far).agg(n=discreet.count())):
        with pytest.raises(DiscreetError, match="Nothing was charged"):
            question.ask(epsilon=1)
    with pytest.raises(DiscreetError, match="Nothing was charged"):
        curator.ask("SELECT SUM(bin(1e300, 1e-300)) AS s FROM x", epsilon=1)
    assert not curator.history()
