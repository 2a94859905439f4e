"""Gaps of engines: refused before a charge, wherever in a question they stand, and printed in the docs."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from discreet.bounding.bound import bound_all
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
    engines = {"postgres": frozenset(Gap), "spark": SPARK_GAPS}
    own = [(name, gap) for name, gaps in engines.items() for gap in Gap if gap in gaps]
    wanted = [f"| {name} | {GAPS[gap].what} | {GAPS[gap].why} | {GAPS[gap].fix} |" for name, gap in own]
    assert printed == wanted
    source = (ROOT / "src" / "discreet" / "engines" / "postgres" / "engine.py").read_text()
    assert "gaps=frozenset(Gap)" in source
