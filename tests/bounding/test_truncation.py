"""Truncation below joins: where caps are put, what goes below them, and the two attacks that they close."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.bounding import truncation
from discreet.bounding.bound import bound
from discreet.bounding.stability import find_relation_facts
from discreet.bounding.truncation import cap_joins
from discreet.engines.memory.relations import RelationReader
from discreet.errors import InternalError, QuestionError, UnitLost
from discreet.frontends import read_sql
from discreet.plan.catalog import ContributionLimits
from discreet.plan.expressions import Column
from discreet.plan.relations import Capped, Join, JoinKind, Relation, Scan, Where, walk_relations
from discreet.plan.types import Type
from discreet.privacy import Budget

I = Type.INTEGER


def clinic(rows: int = 20, **more: Any) -> discreet.Curator:
    visits = {"visit": [*range(60)], "pid": [i % 3 for i in range(60)], "cost": [i % 7 for i in range(60)]}
    labs = {"pid": [i % 3 for i in range(30)], "visit_id": [*range(30)], "x": [i % 5 for i in range(30)]}
    people = {"pid": [0, 1, 2], "age": [30, 40, 50]}
    holder = discreet.curate(
        {"visits": pa.table(visits), "labs": pa.table(labs), "people": pa.table(people)},
        unit="pid",
        max_rows=rows,
        budget=Budget(epsilon=10),
        bounds={"cost": (0, 10), "x": (0, 5), "age": (0, 110)},
        **more,
    )
    tables = dict(holder.catalog.tables)
    tables["people"] = replace(tables["people"], limits=ContributionLimits(max_rows=1))
    holder._statements.catalog = replace(holder.catalog, tables=tables)
    return holder


def read(text: str, holder: discreet.Curator | None = None) -> Relation:
    catalog = (holder or clinic()).catalog
    return bound(read_sql.read(text, catalog), catalog).bounded.source


def caps_of(relation: Relation) -> list[tuple[tuple[str, ...], int]]:
    found = [node for node in walk_relations(relation) if isinstance(node, Capped)]
    return [(tuple(f"{e.table}.{e.name}" for e in c.by if isinstance(e, Column)), c.rows) for c in found]


def test_where_caps_are_put() -> None:
    """A plan that multiplies nothing gets none; a parent is capped by its key; the rest by the unit."""
    alone = "SELECT COUNT(*) FROM visits v"
    assert caps_of(read(alone)) == []
    features = f"{alone} JOIN (SELECT pid, MAX(x) AS m FROM labs GROUP BY pid) l ON v.pid = l.pid"
    assert caps_of(read(features)) == []
    assert caps_of(read(f"{alone} WHERE pid IN (SELECT pid FROM labs)")) == []
    assert caps_of(read(f"{alone} JOIN (VALUES (1), (2)) t (k) ON v.cost = t.k")) == []
    assert caps_of(read(f"{alone} JOIN (VALUES (1), (1)) t (k) ON v.cost = t.k")) == [(("visits.pid",), 5_000)]
    assert caps_of(read(f"{alone} JOIN people p ON v.pid = p.pid")) == [(("people.pid",), 1)]
    assert caps_of(read(f"{alone} JOIN labs l ON v.pid = l.pid")) == [(("visits.pid",), 100), (("labs.pid",), 100)]
    keyed = clinic(foreign_keys={"labs.visit_id": "visits.visit"})
    along = "SELECT COUNT(*) FROM labs l JOIN visits v ON l.visit_id = v.visit"
    assert caps_of(read(along, keyed)) == [(("visits.pid", "visits.visit"), 1)]
    chain = f"{along} JOIN people p ON v.pid = p.pid"
    assert caps_of(read(chain, keyed)) == [(("visits.pid", "visits.visit"), 1), (("people.pid",), 1)]
    apart = "SELECT COUNT(*) FROM visits v JOIN people p ON v.pid = p.pid JOIN labs l ON l.visit_id = v.visit"
    assert caps_of(read(apart, keyed)) == [(("visits.pid", "visits.visit"), 1), (("people.pid",), 1)]


def test_a_cap_by_key_goes_below_a_join_with_one_row_of_each_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of each key remains either way, whoever repeats, and the same keys; of the repeated rows, one or another.

    The controls: without a cap on people, and without one on visits, keys come out twice.
    """
    keyed = clinic(foreign_keys={"labs.visit_id": "visits.visit"})
    along = "people p JOIN visits v ON v.pid = p.pid JOIN labs l ON l.visit_id = v.visit"
    text = f"SELECT COUNT(*) FROM {along} WHERE age > 31"
    visits: list[dict[str, Any]] = [{"visit": i // 2, "pid": i % 4, "cost": i % 3} for i in range(40)] * 2
    people: list[dict[str, Any]] = [{"pid": i % 5, "age": 30 + i} for i in range(10)] + [{"pid": None, "age": 40}]

    def list_keys(side: Relation) -> list[Any]:
        stored: dict[str, list[dict[str, Any]]] = {"visits": visits, "people": people}
        rows = RelationReader(stored, keyed.catalog, b"salt").read(side).rows
        return sorted((row[Column("visits", "pid", I)], row[Column("visits", "visit", I)]) for row in rows)

    joined = read(text, keyed)
    assert isinstance(joined, Join) and isinstance(joined.left, Join)
    low, one, two = joined.left, joined.left.left, joined.left.right
    assert isinstance(one, Capped) and isinstance(two, Capped)
    assert (caps_of(one), caps_of(two)) == ([(("people.pid",), 1)], [(("visits.pid", "visits.visit"), 1)])
    monkeypatch.setattr(truncation, "_lower", lambda *_: None)
    above = read(text, keyed)
    assert isinstance(above, Join) and isinstance(above.left, Capped) and isinstance(above.left.source, Join)
    found = list_keys(low)
    assert found == list_keys(above.left) and len(found) == len(set(found)) > 10
    for bare in (replace(low, left=one.source), replace(low, right=two.source)):
        assert len(list_keys(bare)) > len(set(list_keys(bare)))


def test_other_caps_stay_above_the_join() -> None:
    """The key of a side that the other may multiply, a key of both sides, a join that keeps rows, and a look-up."""
    one, two = Column("people", "pid", I), Column("visits", "pid", I)
    age, visit = Column("people", "age", I), Column("visits", "visit", I)
    people, visits = Capped(Scan("people"), (one,), 1), Scan("visits")
    joined = Join(people, visits, JoinKind.INNER, ((one, two),))
    capped = Capped(visits, (two, visit), 1)
    assert truncation._lower(joined, (one, visit)) == replace(joined, right=capped)
    turned = Join(visits, people, JoinKind.INNER, ((two, one),))
    assert truncation._lower(turned, (one, visit)) == replace(turned, left=capped)
    for side, by in (
        (replace(joined, left=Scan("people")), (one, visit)),
        (replace(joined, left=replace(people, rows=2)), (one, visit)),
        (replace(joined, left=replace(people, by=(one, age))), (one, visit)),
        (joined, (one, visit, age)),
        (joined, (visit,)),
        (replace(joined, kind=JoinKind.LEFT), (one, visit)),
        (replace(joined, single=True), (one, visit)),
        (replace(joined, on=((one, two), (age, visit))), (one, visit)),
        (replace(joined, right=joined), (one, visit)),
        (visits, (two, visit)),
    ):
        assert truncation._lower(side, by) is None


def test_conditions_on_one_side_go_below_the_cap() -> None:
    source = read("SELECT COUNT(*) FROM visits v JOIN labs l ON v.pid = l.pid WHERE cost > 3 AND x < 2 AND x < cost")
    assert isinstance(source, Where) and isinstance(source.source, Join)
    for side in (source.source.left, source.source.right):
        assert isinstance(side, Capped) and isinstance(side.source, Where) and isinstance(side.source.source, Scan)
    outer = read("SELECT COUNT(*) FROM visits v LEFT JOIN labs l ON v.pid = l.pid WHERE v.cost > 3 AND l.x < 2")
    assert isinstance(outer, Where) and isinstance(outer.source, Join)
    right = outer.source.right
    assert isinstance(right, Capped) and isinstance(right.source, Scan)  # a condition there would keep other rows


def test_capping_again_changes_nothing() -> None:
    catalog = clinic().catalog
    source = read("SELECT COUNT(*) FROM visits v JOIN labs l ON v.pid = l.pid WHERE v.cost > 3")
    assert cap_joins(source, catalog) == source


def test_both_sides_of_a_self_join_keep_the_same_rows() -> None:
    """All pairs of the kept rows, so as many as the cap squared, of which a cap's number are a row with itself."""
    catalog = replace(clinic().catalog, max_joined_rows=400)
    source = read("SELECT COUNT(*) FROM visits a JOIN visits b ON a.pid = b.pid")
    assert isinstance(source, Join)
    source = replace(source, left=Capped(Scan("visits"), (Column("visits", "pid", I),), 7))
    right = Capped(Scan("visits", "visits 2"), (Column("visits 2", "pid", I),), 7)
    source = replace(source, right=right)
    stored = [{"visit": i, "pid": i % 3, "cost": i % 7} for i in range(60)]
    rows = RelationReader({"visits": stored}, catalog, b"salt").read(source).rows
    same = [r for r in rows if r[Column("visits", "visit", I)] == r[Column("visits 2", "visit", I)]]
    assert len(rows) == 3 * 49 and len(same) == 3 * 7


def test_a_cap_that_does_not_keep_units_apart_is_refused() -> None:
    catalog = clinic().catalog
    for by in ((), (Column("visits", "cost", I),), (Column("visits", "cost", I), Column("visits", "pid", I))):
        with pytest.raises(UnitLost, match="does not keep units apart"):
            find_relation_facts(Capped(Scan("visits"), by, 3), catalog)


# The attacks of issue 13.

SEVEN = "SELECT COUNT(*) AS n FROM visits a " + " ".join(f"JOIN visits v{i} ON a.pid = v{i}.pid" for i in range(7))


def test_twenty_rows_joined_with_themselves_seven_times_are_refused() -> None:
    """20 to the power of 8 rows of one person. The place is the join that is one too many."""
    holder = clinic()
    with pytest.raises(QuestionError, match=r"160,000 rows of one unit; at most 10,000") as raised:
        holder.ask(SEVEN, epsilon=0.001)
    assert raised.value.line == 1 and raised.value.column == SEVEN.index("visits v2") + 1
    assert not holder.history()


def test_all_pairs_of_one_persons_rows_are_bounded() -> None:
    """A person with very many rows in two tables makes no more pairs than the limit, on every engine that runs it."""
    source = read("SELECT COUNT(*) FROM visits v JOIN labs l ON v.pid = l.pid")
    catalog = clinic().catalog
    visits = [{"visit": i, "pid": 0, "cost": 1} for i in range(300)]
    labs = [{"pid": 0, "visit_id": i, "x": 1} for i in range(300)]
    found = RelationReader({"visits": visits, "labs": labs}, catalog, b"salt").read(source)
    assert len(found.rows) == catalog.max_joined_rows


PAIRED = "SELECT COUNT(*) AS n FROM visits v JOIN labs l ON v.pid = l.pid"


def test_without_the_limit_both_attacks_would_go_through() -> None:
    """Negative control: the pairs are all there without caps, and the seven joins are accepted with a larger limit."""
    catalog = clinic().catalog
    bare = read(PAIRED)
    assert isinstance(bare, Join) and isinstance(bare.left, Capped) and isinstance(bare.right, Capped)
    bare = replace(bare, left=bare.left.source, right=bare.right.source)
    visits = [{"visit": i, "pid": 0, "cost": 1} for i in range(300)]
    labs = [{"pid": 0, "visit_id": i, "x": 1} for i in range(300)]
    found = RelationReader({"visits": visits, "labs": labs}, catalog, b"salt").read(bare)
    assert len(found.rows) == 300**2 > catalog.max_joined_rows
    loose = replace(catalog, max_joined_rows=20**8)
    bound(read_sql.read(SEVEN, loose), loose)


@pytest.mark.parametrize("mistake", ["no caps", "caps that are too wide"])
def test_a_plan_that_leaves_a_join_open_is_never_run(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If truncation forgot a join, or let one row too many through, the plan is refused, and nothing is charged."""
    holder = clinic()
    asked: list[object] = []
    monkeypatch.setattr(holder._engine, "run", lambda *given, **_: asked.append(given))
    if mistake == "no caps":
        monkeypatch.setattr(truncation._Truncation, "_cap", lambda self, side, cap, facts: side)  # noqa: ARG005
    else:
        monkeypatch.setattr(truncation, "choose_cap", lambda *_: 101)
    with pytest.raises((InternalError, QuestionError), match=r"were not truncated|at most 10,000"):
        holder.ask(PAIRED, epsilon=0.1)
    assert not asked and not holder.history()
