"""Fan-out: no unit has more rows than the facts say, and a question that could multiply rows too often is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import discreet
from discreet.bounding.fan_out import LINEAR, ONE_ROW, FanOut, bound_rows, choose_cap
from discreet.bounding.stability import find_relation_facts
from discreet.bounding.truncation import cap_joins
from discreet.engines.memory.relations import RelationReader
from discreet.errors import QuestionError, UsageError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import make_call, make_literal
from discreet.plan.relations import (
    Capped,
    Distinct,
    Feature,
    FeatureCall,
    Join,
    JoinKind,
    PerUnit,
    Projection,
    Relation,
    Scan,
    Union,
    Values,
    Where,
    walk_relations,
)
from discreet.plan.types import Type, Value
from discreet.privacy import Budget, Neighbours, Unit

I, R = Type.INTEGER, Type.REAL
COLUMNS = {"pid": (I, ColumnFacts()), "k": (I, ColumnFacts())}
TABLE = TableFacts(name="t", columns=COLUMNS, unit=Unit("pid"), limits=ContributionLimits(max_rows=3))
WARDS = TableFacts(
    name="wards",
    columns={"k": (I, ColumnFacts(unique=True)), "name": (I, ColumnFacts())},
    unit=Unit("pid"),
    limits=ContributionLimits(),
    public=True,
)
CATALOG = Catalog(
    tables={"t": TABLE, "wards": WARDS},
    neighbours=Neighbours.ADD_REMOVE,
    count_public=lambda _, columns: 5 if columns else 7,
)
SCAN = Scan("t")
PID, K = TABLE.find_column("pid"), TABLE.find_column("k")


def listed(name: str, *keys: Value) -> Values:
    return Values(name, (("v", I),), tuple((key,) for key in keys))


def on_list(source: Relation, values: Values, key: Expression = K, kind: JoinKind = JoinKind.INNER) -> Join:
    return Join(source, values, kind, ((key, Column(values.name, "v", I)),))


def rows_of(relation: Relation) -> FanOut:
    return find_relation_facts(relation, CATALOG).rows


def times(number: int, *caps: int) -> FanOut:
    return FanOut(((number, caps),))


def test_each_node_as_worked_out_by_hand() -> None:
    """The table of rules, line by line. The declared limit of the table is 3 rows."""
    three = listed("v", 1, 1, 1, 2, 2, None, None, None, None)
    grouped = PerUnit(SCAN, "g", (("pid", PID),), ())
    assert rows_of(SCAN) == rows_of(Where(SCAN, make_call("is_null", K))) == rows_of(Distinct(SCAN)) == LINEAR
    assert rows_of(grouped) == ONE_ROW
    assert rows_of(PerUnit(SCAN, "g", (("pid", PID), ("k", K)), ())) == LINEAR
    assert rows_of(Capped(SCAN, (PID,), 8)) == bound_rows(8) and rows_of(Capped(SCAN, (PID, K), 8)) == LINEAR
    assert rows_of(Capped(grouped, (Column("g", "pid", I),), 8)) == ONE_ROW
    assert rows_of(on_list(SCAN, three)) == times(3, 3)  # NULLs match nothing
    assert rows_of(on_list(Capped(SCAN, (PID,), 8), three, kind=JoinKind.LEFT)) == bound_rows(24)
    assert rows_of(on_list(SCAN, three, kind=JoinKind.SEMI)) == rows_of(on_list(SCAN, listed("v"))) == LINEAR
    assert rows_of(Join(SCAN, three, JoinKind.INNER, ())) == times(9, 3)
    assert rows_of(Join(three, SCAN, JoinKind.RIGHT, ((Column("v", "v", I), K),))) == times(3, 3)
    assert rows_of(Join(SCAN, Scan("wards"), JoinKind.INNER, ())) == times(7, 3)
    ward, named = Column("wards", "k", I), Column("wards", "name", I)
    assert rows_of(Join(Scan("wards"), SCAN, JoinKind.INNER, ((named, K),))) == times(5, 3)
    assert rows_of(Join(Scan("wards"), SCAN, JoinKind.INNER, ((ward, K),))) == LINEAR  # declared unique
    parity = make_call("modulo", Column("v", "v", I), make_literal(2))
    assert rows_of(Join(SCAN, listed("v", 1, 3, 5, 2), JoinKind.INNER, ((K, parity),))) == times(3, 3)
    shown = Projection(Where(three, make_call("is_null", Column("v", "v", I))), "p", (("w", Column("v", "v", I)),))
    assert rows_of(Join(SCAN, shown, JoinKind.INNER, ((K, Column("p", "w", I)),))) == times(3, 3)
    own = Projection(grouped, "p", (("pid", Column("g", "pid", I)),))
    rest = Projection(SCAN, "q", (("pid", PID),))
    assert rows_of(Union("u", (own, own))) == bound_rows(2)
    assert rows_of(Union("u", (own, rest))) == LINEAR
    for kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI):
        assert rows_of(Join(SCAN, own, kind, ((PID, Column("p", "pid", I)),))) == LINEAR, kind
    again = Scan("t", "t 2")
    on = ((PID, Column("t 2", "pid", I)),)
    assert rows_of(Join(SCAN, again, JoinKind.INNER, on)) == rows_of(Join(SCAN, again, JoinKind.LEFT, on))
    assert rows_of(Join(SCAN, again, JoinKind.LEFT, on)) == times(1, 3, 3)
    assert rows_of(Join(SCAN, again, JoinKind.FULL, on)) == FanOut(((1, (3,)), (1, (3, 3))))
    assert rows_of(Join(SCAN, again, JoinKind.SEMI, on)) == LINEAR


def test_a_row_meets_one_group_of_its_keys() -> None:
    """Groups that are joined on all of their keys multiply nothing; on fewer keys, or on changed ones, they may."""
    groups = PerUnit(SCAN, "g", (("pid", PID), ("k", K)), (("n", FeatureCall(Feature.COUNT, None, I)),))
    unit, key = (PID, Column("g", "pid", I)), (K, Column("g", "k", I))
    for kind in (JoinKind.LEFT, JoinKind.INNER):
        joined = Join(SCAN, groups, kind, (unit, key))
        assert rows_of(joined) == LINEAR and find_relation_facts(joined, CATALOG).limits == TABLE.limits
    halved = (K, make_call("quotient", Column("g", "k", I), make_literal(2)))
    for pairs in ((unit,), (unit, halved)):
        assert not rows_of(Join(SCAN, groups, JoinKind.LEFT, pairs)).linear


def test_the_cap_is_the_largest_that_fits() -> None:
    assert choose_cap([times(1, 3, 3)], 10_000) == 100
    assert choose_cap([times(1, 3, 3), times(10, 1, 1, 1), bound_rows(5)], 10_000) == 10
    assert choose_cap([times(1, 2_000, 3)], 10_000) == 5  # the declared limit of one side leaves less for the other
    assert choose_cap([LINEAR, ONE_ROW], 10_000) == 10_000


def test_keys_are_equal_where_the_join_says_so() -> None:
    """Two integers beyond 2^53 are one double, and so two rows of one key."""
    real = make_call("to_real", K)
    values = listed("v", 2**53, 2**53 + 1)
    assert rows_of(on_list(SCAN, values)) == LINEAR
    assert rows_of(Join(SCAN, values, JoinKind.INNER, ((real, make_call("to_real", Column("v", "v", I))),))) == times(
        2, 3
    )


@st.composite
def relations(draw: st.DrawFn) -> Relation:
    """Joins with public rows and with the table itself, unions and groups, one after the other."""
    relation: Relation = SCAN
    pid, key = PID, K
    for i in range(draw(st.integers(1, 4))):
        match draw(st.sampled_from(["list", "union", "group", "again", "again"])):
            case "list":
                values = listed(f"v{i}", *draw(st.lists(st.sampled_from([0, 1, 2, None]), max_size=4)))
                kind = draw(st.sampled_from([JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI]))
                relation = on_list(relation, values, key, kind)
            case "again":
                other = Scan("t", f"t{i}")
                pairs = ((pid, Column(f"t{i}", "pid", I)), (key, Column(f"t{i}", "k", I)))
                kind = draw(st.sampled_from([JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI]))
                relation = Join(relation, other, kind, pairs[: draw(st.integers(1, 2))])
            case "union":
                parts = tuple(Projection(relation, f"u{i} {j}", (("pid", pid), ("k", key))) for j in range(2))
                relation = Union(f"u{i}", parts)
                pid, key = Column(f"u{i}", "pid", I), Column(f"u{i}", "k", I)
            case _:
                keys = (("pid", pid),) if draw(st.booleans()) else (("pid", pid), ("k", key))
                relation = PerUnit(relation, f"g{i}", keys, ())
                pid, key = Column(f"g{i}", "pid", I), Column(f"g{i}", keys[-1][0], I)
    return relation


STORED = st.lists(st.fixed_dictionaries({"pid": st.integers(1, 2), "k": st.integers(0, 2) | st.none()}), max_size=9)
FEW = replace(CATALOG, max_joined_rows=40)


def find_excess(relation: Relation, stored: Sequence[dict[str, Value]], limit: int) -> list[Relation]:
    """The relations in which a unit has more rows in the oracle than the claim of ``fan_out`` allows."""
    wrong = []
    below = Counter(row["pid"] for row in stored)
    for node in walk_relations(relation):
        facts = find_relation_facts(node, FEW)
        if not facts.private:
            continue
        unit = facts.units[0]
        found = Counter(evaluate(unit, row) for row in RelationReader({"t": stored}, FEW, b"salt").read(node).rows)
        scans = sum(isinstance(part, Scan) for part in walk_relations(node))
        most = facts.rows.most
        for who, n in found.items():
            allowed = limit + scans * below[who] if most is None else min(most, limit)
            wrong += [node] if n > allowed else []
    return wrong


def read_capped(relation: Relation) -> Relation:
    try:
        return cap_joins(relation, FEW)
    except UsageError:
        assume(False)  # refused: nothing is run
        raise


@settings(deadline=None, max_examples=300)
@given(relations(), STORED)
def test_no_unit_has_more_rows_than_the_limit(relation: Relation, stored: list[dict[str, Value]]) -> None:
    capped = read_capped(relation)
    assert not find_excess(capped, stored, FEW.max_joined_rows)
    assert not any(find_relation_facts(node, FEW).rows.open for node in walk_relations(capped))


def test_a_wrong_limit_would_be_seen() -> None:
    """Negative control: half of the claim is too little, and without caps the claim is broken."""
    again = Join(SCAN, Scan("t", "t 2"), JoinKind.INNER, ((PID, Column("t 2", "pid", I)),))
    stored: list[dict[str, Value]] = [{"pid": 1, "k": i} for i in range(9)]
    capped = cap_joins(again, FEW)
    assert not find_excess(capped, stored, 40) and find_excess(capped, stored, 20)
    assert len(RelationReader({"t": stored}, FEW, b"salt").read(again).rows) == 81
    assert len(RelationReader({"t": stored}, FEW, b"salt").read(capped).rows) == 36


def test_the_limit_itself_is_allowed_and_one_more_is_not() -> None:
    hundred = [listed(name, *[1] * 50) for name in ("a", "b")]
    allowed = on_list(on_list(SCAN, hundred[0]), hundred[1])
    assert rows_of(allowed).count(1) == 7_500 and rows_of(allowed).count(4) == 10_000
    with pytest.raises(QuestionError, match=r"15,000 rows of one unit; at most 10,000.*Nothing was charged"):
        rows_of(on_list(allowed, listed("c", 1, 1)))
    parts = tuple(Projection(allowed, f"p{i}", (("pid", PID),)) for i in range(2))
    with pytest.raises(QuestionError, match="at most 10,000"):
        rows_of(Union("u", parts))


# The attack: one person's row, multiplied until the engine runs out of memory for that person only.

PEOPLE = pa.table({"pid": [16, 17, 18], "age": [30, 40, 50], "cost": [1.0, 2.0, 3.0]})
MULTIPLIED = """
SELECT COUNT(*) AS n FROM (
    SELECT p.pid, MEDIAN(p.cost) AS m FROM people p
    JOIN big a ON CASE WHEN p.pid = 17 AND p.age > 35 THEN 1 ELSE 0 END = a.k
    JOIN big b ON a.k = b.k JOIN big c ON b.k = c.k GROUP BY p.pid) t
WHERE m > 0
"""


def hospital() -> discreet.Curator:
    return discreet.curate(
        {"people": PEOPLE},
        unit="pid",
        max_rows=1,
        budget=Budget(epsilon=1),
        bounds={"age": (0, 110), "cost": (0, 10)},
    )


def test_the_attack_by_fan_out_is_refused_and_free() -> None:
    """Issue 13, second row: an exact age by whether the engine fails. Refused when read, whoever is in the data."""
    holder = hospital()
    with pytest.raises(UsageError, match=r"(?s)at most 10,000.*Nothing was charged"):
        holder.ask(MULTIPLIED, epsilon=0.001, public={"big": pa.table({"k": [1] * 1_000})})
    assert not holder.history()
    assert holder.ask(MULTIPLIED, epsilon=0.001, public={"big": pa.table({"k": [1] * 10})})


def test_the_attack_would_multiply_without_the_limit() -> None:
    """Negative control: the limit, and nothing else, refuses it."""
    holder = hospital()
    holder._statements.catalog = replace(holder.catalog, max_joined_rows=10**12)
    assert holder.preview(MULTIPLIED, epsilon=0.001, public={"big": pa.table({"k": [1] * 1_000})})
