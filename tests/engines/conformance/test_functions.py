"""Every function means what evaluate.py says on every engine, for values that break things, and nothing raises."""

# ruff: noqa: S311  # expressions need seeds, not secrets; statements are our own
from __future__ import annotations

import itertools
import math
import random
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.plan.catalog import DEFAULT_LENGTH, Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Call, Column, Expression, Literal, ReleasedValue, walk
from discreet.plan.functions import FUNCTIONS, make_call, make_literal
from discreet.plan.relations import Scan
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours, Unit
from tests.engines.conformance.engines import EngineUnderTest
from tests.engines.nasty import CONSTANTS, VALUES, calls, columns, signatures
from tests.engines.worlds import ARROW
from tests.plan.test_magnitude import around_powers_of_integers, around_powers_of_reals

# The mathematical library of the platform may round these differently in the last place.
INEXACT = {"exp", "power"}


def values_of(
    engine: EngineUnderTest,
    expressions: Sequence[Expression],
    inputs: Sequence[Column],
    rows: Sequence[Sequence[Value]],
    length: int | None = 10**9,
) -> list[tuple[Value, ...]]:
    """The values of expressions for rows, in order: a question that groups by them gives them back as keys.

    Functions mean the same for texts of any length, so ``length`` lets all of them in.
    """
    number = Column("t", "i", Type.INTEGER)
    kinds = {number.name: number.type, **{column.name: column.type for column in inputs}}
    data = {c.name: pa.array([row[i] for row in rows], ARROW[c.type]) for i, c in enumerate(inputs)}
    table = pa.table({"i": pa.array(range(len(rows)), pa.int64()), **data})
    facts = TableFacts(
        name="t",
        columns={name: (kind, ColumnFacts(max_length=length)) for name, kind in kinds.items()},
        unit=Unit(),
        limits=ContributionLimits(),
    )
    bounded = BoundedPlan(
        source=Scan("t"),
        keys=(number, *expressions),
        domain=None,
        unit=None,
        measures=(Measure(counts=Counts.ROWS),),
    )
    groups = engine.run({"t": table}, Catalog(tables={"t": facts}, neighbours=Neighbours.ADD_REMOVE), bounded)
    assert [key[0] for key in groups.keys] == list(range(len(rows)))
    return [key[1:] for key in groups.keys]


def can_hold(engine: EngineUnderTest, value: Value) -> bool:
    """Whether an engine's texts can hold a value. Where they cannot, questions that name it are refused."""
    return engine.has_nul or not (isinstance(value, str) and "\0" in value)


def can_say(engine: EngineUnderTest, expression: Expression) -> bool:
    return all(can_hold(engine, part.value) for part in walk(expression) if isinstance(part, Literal))


def same(got: Value, wanted: Value, *, exact: bool) -> bool:
    if isinstance(got, float) and isinstance(wanted, float):
        signed = math.copysign(1, got) == math.copysign(1, wanted)
        return signed and (got == wanted or (not exact and math.isclose(got, wanted, rel_tol=1e-15)))
    return type(got) is type(wanted) and got == wanted


@pytest.mark.parametrize("letter", ["a", "é", "🙂"])
def test_texts_longer_than_declared_are_null(letter: str, engine: EngineUnderTest) -> None:
    """Lengths are in code points, whatever a letter is stored as; a text of just the length stays."""
    column = Column("t", "x", Type.TEXT)
    given: list[Value] = [None, "", letter * DEFAULT_LENGTH, letter * (DEFAULT_LENGTH + 1), letter * 100_000]
    found = values_of(engine, [column], [column], [(value,) for value in given], length=None)
    assert found == [(None,), ("",), (letter * DEFAULT_LENGTH,), (None,), (None,)]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_function_means_the_same(name: str, dialect_engine: EngineUnderTest) -> None:
    """Every signature, every nasty value, every nasty constant: equal values, −0.0 told from 0.0, and no error."""
    found: dict[tuple[Type, ...], list[Expression]] = {}
    for expression, kinds in calls(name):
        if can_say(dialect_engine, expression):
            found.setdefault(kinds, []).append(expression)
    for kinds, every in found.items():
        expressions = random.Random(0).sample(every, min(len(every), 60))
        inputs = columns(kinds)
        used = [i for i in range(len(kinds)) if i not in FUNCTIONS[name].constants]
        pools = [VALUES[kinds[i]] if i in used else (None,) for i in range(len(kinds))]
        rows = [row for row in itertools.product(*pools) if all(can_hold(dialect_engine, value) for value in row)]
        if len(used) > 2:  # all pairs are covered by signatures of two; of the triples a sample is enough
            rows = random.Random(0).sample(rows, min(len(rows), 800))
        results = values_of(dialect_engine, expressions, inputs, rows)
        for row, values in zip(rows, results):
            known: dict[Column | ReleasedValue, Value] = dict(zip(inputs, row))
            for asked, got in zip(expressions, values):
                wanted = evaluate(asked, known)
                assert same(got, wanted, exact=name not in INEXACT), (str(asked), row, got, wanted)


def test_every_function_in_a_few_questions(dialect_engine: EngineUnderTest) -> None:
    """One call of every signature of every function, many in one question: for engines that take long for each."""
    rng, chosen, inputs = random.Random(11), list[Expression](), dict[Column, None]()
    for name in sorted(FUNCTIONS.keys() - INEXACT):
        found: dict[tuple[Type, ...], list[Call]] = {}
        for call, kinds in calls(name):
            if can_say(dialect_engine, call):
                found.setdefault(kinds, []).append(call)
        for kinds, every in found.items():
            call = rng.choice(every)
            own = {column: Column("t", f"{column.name}_{column.type}", column.type) for column in columns(kinds)}
            inputs |= dict.fromkeys(own[part] for part in call.arguments if isinstance(part, Column))
            arguments = tuple(own[part] if isinstance(part, Column) else part for part in call.arguments)
            chosen.append(replace(call, arguments=arguments))
    pools = [[value for value in VALUES[column.type] if can_hold(dialect_engine, value)] for column in inputs]
    rows = [tuple(rng.choice(pool) for pool in pools) for _ in range(40)]
    for start in range(0, len(chosen), 40):
        part = chosen[start : start + 40]
        for row, values in zip(rows, values_of(dialect_engine, part, list(inputs), rows)):
            known: dict[Column | ReleasedValue, Value] = dict(zip(inputs, row))
            for asked, got in zip(part, values):
                assert same(got, evaluate(asked, known), exact=True), (str(asked), row, got)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_constants_fold_to_the_same(name: str, dialect_engine: EngineUnderTest) -> None:
    """Calls of constants alone, which engines compute while they plan: equal values of the declared type, no error."""
    rng = random.Random(name)
    found = []
    for expression, kinds in [*calls(name)] * 4:
        known = {column: Literal(rng.choice(VALUES[column.type]), column.type) for column in columns(kinds)}
        arguments = tuple(known.get(a, a) if isinstance(a, Column) else a for a in expression.arguments)
        found.append(replace(expression, arguments=arguments))
    found = [expression for expression in found if can_say(dialect_engine, expression)]
    chosen = rng.sample(found, min(len(found), 150))
    one = Column("t", "c0", Type.INTEGER)
    ((*values,),) = values_of(dialect_engine, chosen, (one,), [(1,)])
    for asked, got in zip(chosen, values):
        wanted = evaluate(asked, {})
        assert same(got, wanted, exact=name not in INEXACT), (str(asked), got, wanted)


def a_tree(rng: random.Random, kind: Type, depth: int) -> Expression:
    """A random expression of a type, over one column of each type and literals."""
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.7:
            return Column("t", f"c_{kind}", kind)
        return Literal(rng.choice(CONSTANTS[kind]), kind)
    while True:
        name = rng.choice(sorted(FUNCTIONS))
        function = FUNCTIONS[name]
        fitting = [kinds for kinds in signatures(name) if function.yields(kinds) is kind]
        if not fitting:
            continue
        arguments: list[Expression] = []
        for position, wanted in enumerate(rng.choice(fitting)):
            if position not in function.constants:
                arguments.append(a_tree(rng, wanted, depth - 1))
            elif function.words:
                arguments.append(Literal(rng.choice(function.words), Type.TEXT))
            else:
                arguments.append(Literal(rng.choice(CONSTANTS[wanted]), wanted))
        return make_call(name, *arguments)


@pytest.mark.parametrize("seed", range(6))
def test_random_expressions_mean_the_same(seed: int, dialect_engine: EngineUnderTest) -> None:
    """Functions of functions, a few deep, over rows of nasty values: equal values or NULL on both sides, no error."""
    rng = random.Random(seed)
    inputs = tuple(Column("t", f"c_{kind}", kind) for kind in Type)
    rows = [tuple(rng.choice(VALUES[kind]) for kind in Type) for _ in range(120)]
    rows = [row for row in rows if all(can_hold(dialect_engine, value) for value in row)]
    trees = [tree for _ in range(40) if _exact(tree := a_tree(rng, rng.choice(list(Type)), 4))]
    trees = [tree for tree in trees if can_say(dialect_engine, tree)]
    assert len(trees) > 15
    for row, values in zip(rows, values_of(dialect_engine, trees, inputs, rows)):
        known: dict[Column | ReleasedValue, Value] = dict(zip(inputs, row))
        for tree, got in zip(trees, values):
            wanted = evaluate(tree, known)
            assert same(got, wanted, exact=True), (str(tree), row, got, wanted)


def _exact(tree: Expression) -> bool:
    return not any(isinstance(part, Call) and part.function in INEXACT for part in walk(tree))


def test_deep_expressions_stay_small(stored: EngineUnderTest) -> None:
    """The text of a question grows with its size; with two to its depth it could not even be written."""
    column = Column("t", "c0", Type.REAL)
    tree: Expression = column
    for _ in range(stored.deepest // 2):
        tree = make_call("divide", make_call("add", tree, make_literal(1.0)), make_literal(2.0))
    ((got,),) = values_of(stored, [tree], (column,), [(3.0,)])
    assert got == evaluate(tree, {column: 3.0})


def test_letters_change_case_alike(dialect_engine: EngineUnderTest) -> None:
    """Every letter of Unicode, one by one: the simple mapping, so lengths never change."""
    letters = [chr(i) for i in range(1, 0x1E944) if unicodedata.category(chr(i)) not in ("Cs", "Cn", "Co")]
    column = Column("t", "c0", Type.TEXT)
    both = [make_call("lower", column), make_call("upper", column)]
    wrong = [
        letter
        for letter, values in zip(
            letters, values_of(dialect_engine, both, (column,), [(letter,) for letter in letters])
        )
        if values != tuple(evaluate(change, {column: letter}) for change in both)
    ]
    assert wrong == []


@pytest.mark.parametrize("kind", [Type.INTEGER, Type.REAL])
def test_magnitudes_are_exact_beside_every_power_of_two(kind: Type, dialect_engine: EngineUnderTest) -> None:
    """The tree of comparisons gives the very same buckets, and a positive zero."""
    column = Column("t", "n", kind)
    asked = make_call("magnitude", column)
    numbers = [*(around_powers_of_integers() if kind is Type.INTEGER else around_powers_of_reals()), None]
    for number, (got,) in zip(numbers, values_of(dialect_engine, [asked], (column,), [(n,) for n in numbers])):
        assert same(got, evaluate(asked, {column: number}), exact=True), number
