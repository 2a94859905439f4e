"""Tables as analysts see them: what is declared, and never a row."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pyarrow as pa
import pytest

import discreet
from discreet.declared_table import Table
from discreet.errors import UsageError
from tests.worlds.visits import curator

DAY = dt.date(2024, 2, 29)
HOLDER = discreet.curate(
    {"t": pa.table({"day": [DAY], "cost": [1.5], "code": ["<b>"], "n": [1]}), "wards": pa.table({"ward": ["A"]})},
    bounds={"day": (dt.date(2024, 1, 1), dt.date(2024, 12, 31)), "cost": (0.5, 2000)},
    keys={"code": [f"<{i}>" for i in range(9)]},
    not_null=["n"],
    public=["wards"],
    budget=discreet.Budget(epsilon=1),
)


def test_a_table_shows_what_is_declared() -> None:
    """Columns, types, bounds, keys, who is protected, and that aggregates are asked; the curator lists its tables."""
    assert HOLDER.tables == ("t", "wards") and HOLDER.table("T").columns == ["day", "cost", "code", "n"]
    lines = repr(HOLDER.table("t")).splitlines()
    assert lines[0] == "t: private: ask aggregates; protects one row (add-remove)"
    assert [line.split(maxsplit=2) for line in lines[3:]] == [
        ["day", "date", "2024-01-01 to 2024-12-31"],
        ["cost", "real", "0.5 to 2000"],
        ["code", "text", "9 keys: <0>, <1>, <2>, <3>, <4>, <5>, …"],
        ["n", "integer", "never missing"],
    ]
    page = HOLDER.table("t")._repr_html_() or ""
    assert "2024-12-31" in page and "ask aggregates" in page and "&lt;0&gt;" in page and "<0>" not in page
    assert "public; its rows belong to nobody" in repr(HOLDER.table("wards"))


def test_chains_show_what_is_asked() -> None:
    """As the plan, while nothing was asked; a chain that is wrong says so instead of failing."""
    visits = curator().table("visits")
    some = visits.where(discreet.col("age") > 3)
    assert "only some of its rows" in repr(some) and some._repr_html_() is None
    asked = repr(some.group_by("ward").agg(n=discreet.count()))
    assert "for each ward" in asked and "not asked yet" in asked
    assert "no question yet" in repr(visits.group_by("wrad")) and "'ward'" in repr(visits.group_by("wrad"))


@pytest.mark.parametrize(
    "look",
    [
        lambda t: t.head(),
        lambda t: t.head(5),
        lambda t: t.tail(n=3),
        lambda t: t.to_pandas(),
        lambda t: t.collect(),
        lambda t: t.describe(),
        list,
        len,
        lambda t: [*t.where(discreet.col("age") > 3)],
    ],
)
def test_rows_are_not_shown(look: Callable[[Table], object]) -> None:
    """What looks at rows elsewhere says what to ask here; and a table is something."""
    holder = curator()
    with pytest.raises(UsageError, match=r"tells aggregates and never rows.*agg\(n=discreet.count\(\)\)"):
        look(holder.table("visits"))
    assert holder.table("visits") and not holder.history()
