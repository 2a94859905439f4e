"""Fan-out: no unit has more rows than the facts say, and a question that could multiply rows too often is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.bounding import fan_out
from discreet.bounding.fan_out import MAX_FAN, ONE_ROW, UNREAD, FanOut
from discreet.bounding.stability import find_relation_facts
from discreet.engines.memory.relations import RelationReader
from discreet.errors import UsageError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import make_call, make_literal
from discreet.plan.relations import (
    Distinct,
    Join,
    JoinKind,
    PerUnit,
    Projection,
    Relation,
    Scan,
    Union,
    Values,
    Where,
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
CATALOG = Catalog(tables={"t": TABLE, "wards": WARDS}, neighbours=Neighbours.ADD_REMOVE)
SCAN = Scan("t")
PID, K = TABLE.find_column("pid"), TABLE.find_column("k")


def listed(name: str, *keys: Value) -> Values:
    return Values(name, (("v", I),), tuple((key,) for key in keys))


def on_list(source: Relation, values: Values, key: Expression = K, kind: JoinKind = JoinKind.INNER) -> Join:
    return Join(source, values, kind, ((key, Column(values.name, "v", I)),))


def rows_of(relation: Relation) -> FanOut:
    return find_relation_facts(relation, CATALOG).rows


def test_each_node_as_worked_out_by_hand() -> None:
    """The table of rules, line by line."""
    three = listed("v", 1, 1, 1, 2, 2, None, None, None, None)
    grouped = PerUnit(SCAN, "g", (("pid", PID),), ())
    assert rows_of(SCAN) == rows_of(Where(SCAN, make_call("is_null", K))) == rows_of(Distinct(SCAN)) == FanOut()
    assert rows_of(grouped) == ONE_ROW
    assert rows_of(PerUnit(SCAN, "g", (("pid", PID), ("k", K)), ())) == FanOut()
    assert rows_of(on_list(SCAN, three)) == FanOut(fan=3)  # NULLs match nothing
    assert rows_of(on_list(SCAN, three, kind=JoinKind.LEFT)) == FanOut(fan=3)
    assert rows_of(on_list(SCAN, three, kind=JoinKind.SEMI)) == rows_of(on_list(SCAN, listed("v"))) == FanOut()
    assert rows_of(Join(SCAN, three, JoinKind.INNER, ())) == FanOut(fan=9)
    assert rows_of(Join(three, SCAN, JoinKind.RIGHT, ((Column("v", "v", I), K),))) == FanOut(fan=3)
    assert rows_of(Join(SCAN, Scan("wards"), JoinKind.INNER, ())).fan == UNREAD
    ward, named = Column("wards", "k", I), Column("wards", "name", I)
    assert rows_of(Join(Scan("wards"), SCAN, JoinKind.INNER, ((named, K),))).fan == UNREAD
    assert rows_of(Join(Scan("wards"), SCAN, JoinKind.INNER, ((ward, K),))).fan == 1  # declared unique
    parity = make_call("modulo", Column("v", "v", I), make_literal(2))
    assert rows_of(Join(SCAN, listed("v", 1, 3, 5, 2), JoinKind.INNER, ((K, parity),))).fan == 3
    shown = Projection(Where(three, make_call("is_null", Column("v", "v", I))), "p", (("w", Column("v", "v", I)),))
    assert rows_of(Join(SCAN, shown, JoinKind.INNER, ((K, Column("p", "w", I)),))).fan == 3
    own = Projection(grouped, "p", (("pid", Column("g", "pid", I)),))
    rest = Projection(SCAN, "q", (("pid", PID),))
    assert rows_of(Union("u", (own, own))) == FanOut(most=2, fan=2)
    assert rows_of(Union("u", (own, rest))) == FanOut(fan=2)
    for kind, wanted in ((JoinKind.INNER, 1), (JoinKind.LEFT, 2), (JoinKind.FULL, 3), (JoinKind.ANTI, 1)):
        paired = Join(SCAN, own, kind, ((PID, Column("p", "pid", I)),))
        assert rows_of(paired) == FanOut(fan=wanted), kind


def test_keys_are_equal_where_the_join_says_so() -> None:
    """Two integers beyond 2^53 are one double, and so two rows of one key."""
    real = make_call("to_real", K)
    values = listed("v", 2**53, 2**53 + 1)
    assert rows_of(on_list(SCAN, values)).fan == 1
    assert rows_of(Join(SCAN, values, JoinKind.INNER, ((real, make_call("to_real", Column("v", "v", I))),))).fan == 2


@st.composite
def relations(draw: st.DrawFn) -> Relation:
    """Joins with public rows, unions and groups over one table, one after the other."""
    relation: Relation = SCAN
    pid, key = PID, K
    for i in range(draw(st.integers(1, 3))):
        match draw(st.sampled_from(["list", "union", "group"])):
            case "list":
                values = listed(f"v{i}", *draw(st.lists(st.sampled_from([0, 1, 2, None]), max_size=4)))
                kind = draw(st.sampled_from([JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI]))
                relation = on_list(relation, values, key, kind)
            case "union":
                parts = tuple(Projection(relation, f"u{i} {j}", (("pid", pid), ("k", key))) for j in range(2))
                relation = Union(f"u{i}", parts)
                pid, key = Column(f"u{i}", "pid", I), Column(f"u{i}", "k", I)
            case _:
                keys = (("pid", pid),) if draw(st.booleans()) else (("pid", pid), ("k", key))
                relation = PerUnit(relation, f"g{i}", keys, ())
                pid, key = Column(f"g{i}", "pid", I), Column(f"g{i}", keys[-1][0], I)
    return relation


def exceeds(relation: Relation, stored: Sequence[dict[str, Value]], claim: FanOut) -> bool:
    """Whether a unit has more rows in the oracle than is claimed."""
    unit = find_relation_facts(relation, CATALOG).units[0]
    found = Counter(evaluate(unit, row) for row in RelationReader({"t": stored}, CATALOG, b"").read(relation).rows)
    below = Counter(row["pid"] for row in stored)
    return any(n > (claim.fan * below[who] if claim.most is None else claim.most) for who, n in found.items())


STORED = st.lists(st.fixed_dictionaries({"pid": st.integers(1, 2), "k": st.integers(0, 2) | st.none()}), max_size=6)


@settings(deadline=None, max_examples=400)
@given(relations(), STORED)
def test_no_unit_has_more_rows_than_its_facts_say(relation: Relation, stored: list[dict[str, Value]]) -> None:
    assert not exceeds(relation, stored, rows_of(relation))


def test_a_wrong_count_would_be_seen() -> None:
    """Negative control: one row less than is claimed is too few."""
    relation = on_list(on_list(SCAN, listed("v", 1, 1)), listed("w", 1, 1, 2))
    stored: list[dict[str, Value]] = [{"pid": 1, "k": 1}, {"pid": 1, "k": 1}]
    assert rows_of(relation) == FanOut(fan=4)
    assert not exceeds(relation, stored, FanOut(fan=4)) and exceeds(relation, stored, FanOut(fan=3))
    assert exceeds(relation, stored, FanOut(most=7))


def test_the_limit_itself_is_allowed_and_one_more_is_not() -> None:
    hundred = [listed(name, *[1] * 100) for name in ("a", "b")]
    allowed = on_list(on_list(SCAN, hundred[0]), hundred[1])
    assert rows_of(allowed).fan == MAX_FAN
    with pytest.raises(UsageError, match=r"20,000 rows of one; at most 10,000.*Nothing was charged"):
        rows_of(on_list(allowed, listed("c", 1, 1)))
    parts = tuple(Projection(allowed, f"p{i}", (("pid", PID),)) for i in range(2))
    with pytest.raises(UsageError, match="at most 10,000"):
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
    with pytest.raises(UsageError, match=r"at most 10,000.*Nothing was charged"):
        holder.ask(MULTIPLIED, epsilon=0.001, public={"big": pa.table({"k": [1] * 1_000})})
    assert not holder.history()
    assert holder.ask(MULTIPLIED, epsilon=0.001, public={"big": pa.table({"k": [1] * 10})})


def test_the_attack_would_multiply_without_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the limit, and nothing else, refuses it."""
    monkeypatch.setattr(fan_out, "MAX_FAN", 10**12)
    assert hospital().preview(MULTIPLIED, epsilon=0.001, public={"big": pa.table({"k": [1] * 1_000})})
