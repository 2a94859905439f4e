"""Lengths: no text is longer than its fact, for random expressions and texts; what could be too long is refused."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.bounding import facts as facts_module
from discreet.bounding import lengths
from discreet.bounding.bound import bound
from discreet.bounding.facts import facts_of
from discreet.bounding.lengths import LENGTHS, MAX_ROW
from discreet.bounding.stability import find_relation_facts
from discreet.engines.memory.relations import RelationReader
from discreet.errors import InternalError, UsageError
from discreet.plan.catalog import DEFAULT_LENGTH, Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column, Expression, ReleasedValue
from discreet.plan.functions import FUNCTIONS, make_call, make_literal
from discreet.plan.nodes import Aggregate, Question
from discreet.plan.relations import (
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
    Window,
)
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type, Value
from discreet.privacy import Budget, Neighbours, Unit

I, X, B = Type.INTEGER, Type.TEXT, Type.BOOLEAN
DECLARED: dict[str, tuple[Type, ColumnFacts]] = {
    "pid": (I, ColumnFacts()),
    "short": (X, ColumnFacts(max_length=3)),
    "long": (X, ColumnFacts(max_length=9, keys=("a", "b"))),
    "free": (X, ColumnFacts()),
    "well": (B, ColumnFacts()),
    "day": (Type.DATE, ColumnFacts()),
}
TABLE = TableFacts(name="t", columns=DECLARED, unit=Unit("pid"), limits=ContributionLimits(max_rows=3))
CATALOG = Catalog(tables={"t": TABLE}, neighbours=Neighbours.ADD_REMOVE)
C = {name: TABLE.find_column(name) for name in DECLARED}
SCAN = Scan("t")

# Letters that change their number of bytes or code points when their case changes, spaces, and plain ones.
LETTERS = st.sampled_from("aZ ßİﬁŉΐ🙂\U0010ffffé")
TEXTS = {"short": st.text(LETTERS, max_size=3), "long": st.text(LETTERS, max_size=9), "free": st.text(LETTERS)}
LEAVES: st.SearchStrategy[Expression] = st.sampled_from(
    [*C.values(), *(make_literal(value) for value in ("", "xyz", "ŉŉ", 7, True, None))]
)


@st.composite
def calls(draw: st.DrawFn, inner: st.SearchStrategy[Expression]) -> Expression:
    """A call that type-checks, of a function that may yield a text."""
    name = draw(st.sampled_from(sorted({*LENGTHS, "equal", "is_null"})))
    given = draw(st.lists(inner, min_size=1, max_size=3))
    if name == "substring":
        given = [given[0], *(make_literal(draw(st.integers(-1, 6))) for _ in range(2))]
    try:
        return make_call(name, *given)
    except UsageError:
        return draw(inner)


expressions = st.recursive(LEAVES, calls, max_leaves=8)


def rows() -> st.SearchStrategy[dict[Column | ReleasedValue, Value]]:
    """Rows that keep the declared lengths."""
    kinds: dict[str, st.SearchStrategy[Value]] = {
        "pid": st.integers(-(2**63), 2**63 - 1),
        "well": st.booleans(),
        "day": st.dates(),
        **TEXTS,
    }
    return st.fixed_dictionaries({C[name]: kind | st.none() for name, kind in kinds.items()})


def keeps(value: Value, length: int | None) -> bool:
    return not isinstance(value, str) or (length is not None and len(value) <= length)


@settings(deadline=None, max_examples=1500)
@given(expressions, rows())
def test_no_text_is_longer_than_its_fact(expression: Expression, row: dict[Column | ReleasedValue, Value]) -> None:
    assert keeps(evaluate(expression, row), facts_of(expression, CATALOG).max_length)


# Lengths that are too small for the samples below.
WRONG = {"concat": 9, "substring": 4, "lower": 8, "case": 2, "coalesce": 2, "to_text": 19}
SAMPLES = {
    "concat": make_call("concat", C["long"], C["short"]),
    "substring": make_call("substring", C["long"], make_literal(2), make_literal(5)),
    "lower": make_call("lower", C["long"]),
    "case": make_call("case", make_call("is_null", C["pid"]), C["short"], C["long"]),
    "coalesce": make_call("coalesce", C["long"], C["short"]),
    "to_text": make_call("to_text", C["pid"]),
}
FULL: dict[Column | ReleasedValue, Value] = {C["pid"]: -(2**63), C["long"]: "🙂" * 9, C["short"]: "ßßß"}


@pytest.mark.parametrize("function", sorted(WRONG))
def test_a_wrong_rule_would_be_seen(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: full values reach the true length, and exceed one that is too small."""
    value, row = SAMPLES[function], dict(FULL)
    row |= {C["pid"]: None} if function == "case" else {}
    row |= {C["long"]: None} if function == "coalesce" else {}
    assert keeps(evaluate(value, row), facts_of(value, CATALOG).max_length)
    monkeypatch.setattr(lengths, "LENGTHS", {**LENGTHS, function: lambda *_: WRONG[function]})
    assert not keeps(evaluate(value, row), facts_of(value, CATALOG).max_length)


def test_lengths_are_as_worked_out_by_hand() -> None:
    """The numbers of the table, one by one."""
    wanted = {"concat": 12, "substring": 5, "lower": 9, "case": 9, "coalesce": 9, "to_text": 20}
    assert {name: facts_of(value, CATALOG).max_length for name, value in SAMPLES.items()} == wanted
    assert facts_of(make_call("to_text", C["well"]), CATALOG).max_length == 5
    assert facts_of(make_call("to_text", C["day"]), CATALOG).max_length == 10
    beyond = make_call("substring", C["short"], make_literal(4), make_literal(5))
    assert facts_of(beyond, CATALOG).max_length == 0
    assert facts_of(make_call("null_if", C["long"], C["short"]), CATALOG).max_length == 9
    assert TABLE.columns["free"][1].max_length == DEFAULT_LENGTH and TABLE.columns["pid"][1].max_length is None


def test_every_function_that_yields_a_text_has_a_rule() -> None:
    """Of all functions and all types of up to three arguments; a text without a rule is a mistake of ours."""
    kinds = [types for n in (1, 2, 3) for types in product(Type, repeat=n)]
    texts = {name for name, function in FUNCTIONS.items() if any(function.yields(types) is X for types in kinds)}
    assert texts == set(LENGTHS)


def test_a_function_without_a_rule_is_not_taken_for_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "LENGTHS", {})
    with pytest.raises(InternalError):
        facts_of(SAMPLES["lower"], CATALOG)


def test_lengths_are_not_taken_from_keys() -> None:
    """Values outside the keys are computed before their rows are dropped."""
    assert facts_of(make_call("concat", C["long"], C["long"]), CATALOG).max_length == 18


def longer(times: int, of: Expression | None = None) -> Expression:
    return make_call("concat", *([of or C["free"]] * times))


def test_too_long_a_text_is_refused_before_it_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its keys are public, and planning would compute all its values."""
    long = make_literal("x" * 2_000)
    value = make_call("concat", C["long"], long, long, long)

    def never(*_: object) -> None:
        raise AssertionError("Something was evaluated.")

    monkeypatch.setattr(facts_module, "evaluate", never)
    with pytest.raises(UsageError, match=r"6,009 characters; at most 4,096.*Nothing was charged"):
        facts_of(value, CATALOG)
    with pytest.raises(AssertionError, match="evaluated"):
        facts_of(make_call("concat", C["long"], long), CATALOG)


CONDITION = make_call("is_null", longer(5))
TOO_LONG: list[Relation] = [
    Where(SCAN, CONDITION),
    Projection(SCAN, "p", (("pid", C["pid"]), ("x", longer(5)))),
    PerUnit(SCAN, "g", (("pid", C["pid"]), ("x", longer(5))), ()),
    PerUnit(SCAN, "g", (("pid", C["pid"]),), (("x", FeatureCall(Feature.MAX, longer(5), X)),)),
    Window(SCAN, "w", (C["pid"],), ((longer(5), False),), (("n", FeatureCall(Feature.ROW_NUMBER, None, I)),)),
    Join(SCAN, Values("v", (("a", X),), (("a",),)), JoinKind.INNER, ((longer(5), Column("v", "a", X)),)),
    Join(SCAN, Values("v", (("a", X),), (("a",),)), JoinKind.ANTI, ((longer(5), Column("v", "a", X)),)),
    Join(SCAN, Values("v", (("a", X),), (("a" * 4_097,),)), JoinKind.INNER, ((C["free"], Column("v", "a", X)),)),
]


@pytest.mark.parametrize("relation", TOO_LONG, ids=lambda relation: type(relation).__name__)
def test_every_node_is_checked(relation: Relation) -> None:
    """Conditions and joins too, whose values no column ever holds."""
    with pytest.raises(UsageError, match="at most 4,096"):
        find_relation_facts(relation, CATALOG)


def test_keys_and_arguments_of_a_question_are_checked() -> None:
    """The last row is a row as every other one."""
    count, values = Aggregate(Statistic.COUNT), Aggregate(Statistic.COUNT, longer(5))
    for question in (
        Question(source=SCAN, keys=(longer(5),), aggregates=(count,)),
        Question(source=SCAN, aggregates=(values,)),
    ):
        with pytest.raises(UsageError, match="at most 4,096"):
            bound(question, CATALOG)


def copies(source: Relation, column: Column, number: int, name: str) -> Projection:
    return Projection(source, name, (("pid", C["pid"]), *((f"x{i}", column) for i in range(number))))


def test_the_texts_of_a_row_are_bounded_together() -> None:
    """Copies of a column, several expressions, and what nodes add one after the other; equal expressions once."""
    room = MAX_ROW + find_relation_facts(SCAN, CATALOG).stored_text
    most = room // DEFAULT_LENGTH
    find_relation_facts(copies(SCAN, C["free"], most, "p"), CATALOG)
    with pytest.raises(UsageError, match=r"together; at most 16,384"):
        find_relation_facts(copies(SCAN, C["free"], most + 1, "p"), CATALOG)
    lowered = make_call("lower", C["free"])
    same = make_call("or", *[make_call("equal", lowered, make_literal(str(i))) for i in range(50)])
    find_relation_facts(Where(SCAN, same), CATALOG)
    parts = [make_call("substring", C["free"], make_literal(1), make_literal(900 + i)) for i in range(20)]
    differ = make_call("or", *[make_call("is_null", part) for part in parts])
    with pytest.raises(UsageError, match="together"):
        find_relation_facts(Where(SCAN, differ), CATALOG)
    relation: Relation = SCAN
    for i in range(20):
        lag = (("lag", FeatureCall(Feature.LAG, C["free"], X)),)
        relation = Window(relation, f"w{i}", (C["pid"],), (), lag)
    with pytest.raises(UsageError, match="together"):
        find_relation_facts(relation, CATALOG)


def test_a_wide_table_can_be_read_whole() -> None:
    """What the tables hold themselves is no growth, through subqueries too."""
    columns = {"pid": (I, ColumnFacts()), **{f"c{i}": (X, ColumnFacts()) for i in range(40)}}
    wide = TableFacts(name="t", columns=columns, unit=Unit("pid"), limits=ContributionLimits(max_rows=1))
    catalog = Catalog(tables={"t": wide}, neighbours=Neighbours.ADD_REMOVE)
    relation: Relation = SCAN
    for i in range(4):
        own = find_relation_facts(relation, catalog).columns
        relation = Projection(relation, f"p{i}", tuple((column.name, column) for column in own))
    assert find_relation_facts(relation, catalog).stored_text == 40 * DEFAULT_LENGTH


def nodes(data: st.DataObject) -> Relation:
    """A node of each kind above a column of text that a random expression gives."""
    value = data.draw(expressions.filter(lambda e: e.type is X))
    derived = Projection(SCAN, "p", (("pid", C["pid"]), ("x", value)))
    pid, x = Column("p", "pid", I), Column("p", "x", X)
    maximum, lag = FeatureCall(Feature.MAX, x, X), FeatureCall(Feature.LAG, x, X)
    plain = Projection(SCAN, "q", (("pid", C["pid"]), ("x", C["short"])))
    choices: list[Relation] = [
        PerUnit(derived, "g", (("pid", pid), ("k", x)), (("m", maximum),)),
        Window(derived, "w", (pid,), (), (("m", lag),)),
        Distinct(derived),
        Union("u", (plain, derived)),
        Join(SCAN, derived, JoinKind.LEFT, ((C["pid"], pid),)),
    ]
    return data.draw(st.sampled_from(choices))


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_relations_keep_lengths(data: st.DataObject) -> None:
    """In the oracle, no row of a relation has a longer text than the facts of its column say."""
    stored = [{c.name: v for c, v in row.items()} for row in data.draw(st.lists(rows(), max_size=3))]
    stored = [{**row, "pid": 1} for row in stored]
    relation = nodes(data)
    known = find_relation_facts(relation, CATALOG)
    for row in RelationReader({"t": stored}, CATALOG, b"salt").read(relation).rows:
        assert all(keeps(value, known.columns[column].max_length) for column, value in row.items())  # type: ignore[index]


# The attack: one person's text, multiplied until the engine runs out of memory for that person only.

PEOPLE = pa.table({"pid": [16, 17, 18], "age": [30, 40, 50], "note": ["a", "b" * 1_001, "c"]})


def hospital() -> discreet.Curator:
    return discreet.curate(
        {"people": PEOPLE}, unit="pid", max_rows=1, budget=Budget(epsilon=1), bounds={"age": (0, 110)}
    )


def grown(levels: int, times: int) -> str:
    """A count over texts that are multiplied at each level."""
    text = (
        "SELECT pid, CASE WHEN pid = 17 AND age > 35 THEN CAST(pid AS VARCHAR) || 'xxx' ELSE '' END AS x0 FROM people"
    )
    for level in range(levels):
        many = "||".join([f"x{level}"] * times)
        text = f"SELECT pid, MAX({many}) AS x{level + 1} FROM ({text}) AS t{level} GROUP BY pid"
    return f"SELECT COUNT(*) AS n FROM ({text}) AS t WHERE x{levels} <> 'y'"


def test_the_attack_by_growing_texts_is_refused_and_free() -> None:
    """Issue 13, first row: an exact age by whether the engine fails. Refused when read, whoever is in the data."""
    holder = hospital()
    with pytest.raises(UsageError, match=r"at most 4,096.*Nothing was charged"):
        holder.ask(grown(levels=4, times=33), epsilon=0.001)
    with pytest.raises(UsageError, match=r"at most 4,096"):
        holder.preview(grown(levels=4, times=33), epsilon=0.001)
    assert not holder.history()
    assert holder.ask(grown(levels=1, times=33), epsilon=0.001)


def test_the_attack_on_planning_is_refused() -> None:
    """The same growth over constants, whose values planning would compute for public keys."""
    text = "SELECT pid, '" + "x" * 100 + "' AS x0 FROM people"
    for level in range(6):
        many = "||".join([f"x{level}"] * 30)
        text = f"SELECT pid, {many} AS x{level + 1} FROM ({text}) AS t{level}"
    with pytest.raises(UsageError, match="at most 4,096"):
        hospital().ask(f"SELECT x6, COUNT(*) AS n FROM ({text}) AS t GROUP BY x6", epsilon=0.001)
