"""Questions about units, read part by part or range by range: the integers of one statement, and of the oracle."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb import prepared, unit_parts, unit_pieces, unit_tally, weighed_pairs
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.session import Settings
from discreet.engines.duckdb.weighed_pairs import UnitRows, join
from discreet.engines.engine import Groups
from discreet.engines.memory.engine import MemoryEngine
from discreet.plan.expressions import Column
from discreet.plan.functions import make_call, make_literal
from discreet.plan.relations import Join, JoinKind, Scan
from tests.engines.worlds import (
    AGE,
    CODE,
    COST,
    DAY,
    FLAG,
    NAME,
    SALT,
    UNIT,
    WARD,
    Rows,
    a_world,
    add_conditions,
    catalog,
    frame,
)

STEPS = Measure(counts=Counts.STEPS, argument=COST, resolution=Fraction(1, 100), first=-500, last=500)
MEASURES = (
    Measure(counts=Counts.ROWS),
    Measure(counts=Counts.VALUES, argument=AGE),
    STEPS,
    replace(STEPS, counts=Counts.SQUARES),
    Measure(counts=Counts.STEPS, argument=AGE, first=-3, last=110),
    Measure(counts=Counts.UNITS),
    Measure(counts=Counts.UNITS, argument=COST),
    Measure(counts=Counts.DISTINCT, argument=CODE, max_values=2),
)
BY_GROUP = BoundedPlan(
    source=Scan("t"),
    keys=(WARD, CODE),
    domain=None,
    unit=UNIT,
    measures=MEASURES,
    max_groups=2,
    max_rows_per_group=2,
    weight_bits=16,
)
IN_ALL = replace(BY_GROUP, max_groups=None, max_rows_per_group=None, max_rows=5)
PLANS = {
    "groups and rows": BY_GROUP,
    "rows of groups": replace(BY_GROUP, max_groups=None, measures=MEASURES[:5]),
    "rows": IN_ALL,
    "rows, no units": replace(IN_ALL, measures=MEASURES[:5]),
    "public groups": replace(BY_GROUP, keys=(WARD,), domain=(("A",), ("B",), ("nobody's",), (None,))),
    "no groups": replace(BY_GROUP, keys=(), max_groups=None),
    "many kinds of keys": replace(BY_GROUP, keys=(FLAG, DAY, COST, make_call("length", WARD))),
    "a condition": replace(
        IN_ALL, source=add_conditions(Scan("t"), make_call("equal", WARD, make_literal("B"))), keys=(CODE,)
    ),
    "nobody": replace(IN_ALL, source=add_conditions(Scan("t"), make_call("greater", CODE, make_literal(9)))),
    "nobody, no groups": replace(
        BY_GROUP,
        source=add_conditions(Scan("t"), make_call("greater", CODE, make_literal(9))),
        keys=(),
        max_groups=None,
    ),
}


@contextmanager
def opened(tables: Any, **options: Any) -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine({"t": tables}, catalog(UNIT), threads=2, least_tallied=0, **options)
    try:
        yield engine
    finally:
        engine.close()


def some_rows(seed: int = 11) -> Rows:
    return a_world(seed, unit=UNIT, units=30, most=40).rows


@pytest.fixture
def tallied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of groups of each answer that was tallied."""
    found: list[int] = []
    run = unit_tally.UnitTally.run

    def note(*given: Any) -> Any:
        answer = run(*given)
        found.append(-1 if answer is None else len(answer))
        return answer

    monkeypatch.setattr(unit_tally.UnitTally, "run", note)
    return found


@pytest.mark.parametrize("is_prepared", [False, True], ids=["parts", "ranges"])
@pytest.mark.parametrize("name", PLANS)
def test_parts_change_nothing(
    name: str, is_prepared: bool, tallied: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts and ranges of a few rows, which no unit may be cut by; the oracle says what is right."""
    for module, constant, size in ((prepared, "RANGE_ROWS", 50), (unit_parts, "FEW_ROWS", 9)):
        monkeypatch.setattr(module, constant, size)
    monkeypatch.setattr(unit_pieces, "SLICE_ROWS", 16)
    monkeypatch.setattr(unit_tally, "FEW_GROUPS", 0)
    rows, bounded = some_rows(), PLANS[name]
    wanted = MemoryEngine({"t": rows}, catalog(UNIT)).run(uncounted(bounded), salt=SALT)
    with opened(frame(rows)) as engine:
        if is_prepared:
            engine.prepare("t")
        found = engine.run(uncounted(bounded), salt=SALT)
        again = engine.run(bounded, salt=SALT)
    with opened(frame(rows)) as plain:
        plain._least_tallied = 10**9
        assert plain.run(bounded, salt=SALT) == again
    assert found == wanted
    # A prepared table has its units in order, so counts of their rows need no parts.
    assert bool(tallied) is not (is_prepared and name == "rows, no units")


def uncounted(bounded: BoundedPlan) -> BoundedPlan:
    """The question without distinct values, of which the oracle takes others."""
    return replace(bounded, measures=tuple(m for m in bounded.measures if not m.matched))


def many_rows(hostile: int, keys: int = 1) -> pa.Table:
    """A thousand people with ten rows in ten groups each, and one with very many."""
    owners = np.concatenate((np.arange(10_000) % 1000, np.full(hostile, 1000)))
    codes = np.concatenate((np.arange(10_000) // 1000, np.arange(hostile) % keys))
    columns = {column.name: pa.nulls(len(owners), kind) for column, kind in zip((NAME, WARD), (pa.string(),) * 2)}
    columns |= {column.name: pa.nulls(len(owners), pa.int64()) for column in (AGE,)}
    columns |= {"flag": pa.nulls(len(owners), pa.bool_()), "day": pa.nulls(len(owners), pa.date32())}
    columns |= {"when": pa.nulls(len(owners), pa.timestamp("us")), "cost": pa.array(np.full(len(owners), 2.5))}
    return pa.table(columns | {"unit": owners, "code": codes})


BY_CODE = replace(BY_GROUP, keys=(CODE,), measures=MEASURES[:3])


@pytest.mark.parametrize("is_prepared", [False, True], ids=["parts", "ranges"])
def test_one_person_with_most_of_all_rows(
    is_prepared: bool, tallied: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that no part can hold are gathered to pairs; parts that memory cannot hold lie in files meanwhile."""
    for module, constant, size in (
        (unit_parts, "BLOCK_ROWS", 4096),
        (unit_pieces, "BLOCK_ROWS", 4096),
        (unit_parts, "MOST_PAIRS", 10_000),
    ):
        monkeypatch.setattr(module, constant, size)
    monkeypatch.setattr(Settings, "count_bytes", lambda _: 300_000)
    answers = []
    for least in (0, 10**9):
        with opened(many_rows(50_000, keys=500)) as engine:
            engine._least_tallied = least
            if is_prepared:
                engine.prepare("t")
            answers.append(engine.run(BY_CODE, salt=SALT))
    assert answers[0] == answers[1] and tallied == [500]


def test_too_many_groups_are_left_to_one_statement(tallied: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody hears of it: the answer is the same."""
    table, wanted = many_rows(30, keys=30), list[Groups]()
    for most in (2**20, 29):
        monkeypatch.setattr(unit_tally, "MOST_GROUPS", most)
        with opened(table) as engine:
            wanted.append(engine.run(BY_CODE, salt=SALT))
    assert wanted[0] == wanted[1] and tallied == [30, -1]


@pytest.mark.parametrize(
    "bounded",
    [
        replace(BY_CODE, unit=None, max_groups=None, max_rows_per_group=None, weight_bits=0),
        replace(BY_CODE, unit=NAME),
        replace(BY_CODE, measures=(*BY_CODE.measures, Measure(counts=Counts.NAMED))),
        replace(BY_CODE, measures=(Measure(counts=Counts.STEPS, argument=COST, partial=(0, 9)),)),
        replace(BY_CODE, measures=(Measure(counts=Counts.STEPS, argument=AGE, last=2**45),)),
        replace(BY_CODE, max_rows_per_group=2**50),
        replace(BY_CODE, measures=MEASURES[-1:]),
    ],
    ids=["rows", "a text", "chosen groups", "bounded sums", "large sums", "no limit", "nothing to weigh"],
)
def test_other_questions_are_left_to_one_statement(bounded: BoundedPlan, tallied: list[int]) -> None:
    unit = bounded.unit if isinstance(bounded.unit, Column) else None
    with opened(frame(some_rows())) as engine:
        engine._catalog = catalog(unit)
        engine.run(bounded, salt=SALT)
    assert not tallied


def test_few_rows_are_left_to_one_statement(tallied: list[int]) -> None:
    """By default; so a small question takes no longer than before."""
    with opened(frame(some_rows())) as engine:
        engine._least_tallied = unit_tally.LEAST_ROWS
        engine.run(BY_CODE, salt=SALT)
    assert not tallied


@pytest.mark.parametrize("is_prepared", [False, True], ids=["parts", "ranges"])
def test_few_public_groups_of_a_prepared_table_are_left_to_duckdb(is_prepared: bool, tallied: list[int]) -> None:
    """Its units lie together, and their pairs are few."""
    with opened(frame(some_rows())) as engine:
        if is_prepared:
            engine.prepare("t")
        engine.run(PLANS["public groups"], salt=SALT)
    assert bool(tallied) is not is_prepared


@pytest.mark.parametrize("is_prepared", [False, True], ids=["parts", "ranges"])
def test_progress_goes_forward(is_prepared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "RANGE_ROWS", 50)
    shares: list[float] = []
    with opened(frame(some_rows())) as engine:
        if is_prepared:
            engine.prepare("t")
        engine.run(uncounted(BY_GROUP), salt=SALT, watch=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0


def test_statements_do_not_depend_on_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent to DuckDB is the same for everybody's rows and for nobody's."""
    sent: list[str] = []
    write = unit_tally.UnitTally._write_rows

    def note(*given: Any) -> str:
        sent.append(write(*given))
        return sent[-1]

    monkeypatch.setattr(unit_tally.UnitTally, "_write_rows", note)
    for rows in (some_rows(), some_rows()[:1]):
        with opened(frame(rows)) as engine:
            engine.run(BY_GROUP, salt=SALT)
    assert len({re.sub(r'"frame [0-9]+"', "", query) for query in sent}) == 1  # frames are numbered as they come


def test_files_are_gone_behind_the_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    store = unit_parts.UnitParts._store

    def note(self: unit_parts.UnitParts) -> None:
        store(self)
        made.extend(self._folder.iterdir())

    monkeypatch.setattr(unit_parts.UnitParts, "_store", note)
    monkeypatch.setattr(Settings, "count_bytes", lambda _: 1000)
    with opened(many_rows(9), temp_directory=tmp_path) as engine:
        engine.run(BY_CODE, salt=SALT)
        assert made and not any(path.exists() for path in made)


def join_tables(kind: JoinKind = JoinKind.INNER) -> BoundedPlan:
    """The table joined to itself on its unit, where the keys are those of the other side."""
    other = Scan("t", "o")
    ward, code = (Column("o", column.name, column.type) for column in (WARD, CODE))
    joined = Join(Scan("t"), other, kind, ((UNIT, Column("o", UNIT.name, UNIT.type)),))
    return replace(BY_GROUP, source=joined, keys=(ward, code), measures=MEASURES[:6])


JOINS = {
    "keys of one table": (join_tables(), True),
    "keys of both": (replace(join_tables(), keys=(WARD, Column("o", CODE.name, CODE.type))), False),
    "public keys of both": (
        replace(join_tables(), keys=(FLAG, Column("o", CODE.name, CODE.type)), domain=((True, 1), (None, 2))),
        True,
    ),
    "no keys": (replace(join_tables(), keys=(), max_groups=None), True),
    "rows that meet nothing": (join_tables(JoinKind.LEFT), False),
    "a condition": (
        replace(join_tables(), source=add_conditions(join_tables().source, make_call("is_null", AGE))),
        False,
    ),
}


@pytest.mark.parametrize("name", JOINS)
def test_joins(name: str, tallied: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_parts, "FEW_ROWS", 9)
    (bounded, is_tallied), rows = JOINS[name], some_rows(13)
    with opened(frame(rows)) as engine:
        found = engine.run(bounded, salt=SALT)
        assert bool(tallied) is is_tallied
        engine._least_tallied = 10**9
        assert engine.run(bounded, salt=SALT) == found
    assert MemoryEngine({"t": rows}, catalog(UNIT)).run(bounded, salt=SALT) == found


def list_rows(pieces: Iterable[UnitRows]) -> list[tuple[int, ...]]:
    return sorted(row for piece in pieces for row in zip(*(array.tolist() for array in piece.arrays)))


@pytest.mark.parametrize("falls", [0, 3])
@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_a_range_have_whole_units(seed: int, falls: int) -> None:
    """Blocks of rows by unit in any order, units that go on in other blocks, one of them for several.

    A block may go on elsewhere in its middle, as where a thread of DuckDB does.
    """
    rng = np.random.default_rng(seed)
    units = np.sort(rng.choice(rng.integers(-(2**63), 2**63, 12), 200, p=rng.dirichlet(np.full(12, 0.3))))
    rows = UnitRows(units, rng.integers(0, 5, 200), (np.arange(200),))
    ends = [0, *sorted(rng.integers(0, 201, 9).tolist()), 200]
    runs = [rows.pick(slice(start, end)) for start, end in pairwise(ends)]
    rng.shuffle(runs)
    blocks = [join(runs[at : at + falls + 1]) for at in range(0, len(runs), falls + 1)]
    pieces = list(unit_pieces.cut_between_units(blocks))
    found = [set(piece.units.tolist()) for piece in pieces]
    assert list_rows(pieces) == list_rows([rows]) and sum(map(len, found)) == len(set().union(*found))
    assert len(pieces) <= len({int(run.units[0]) for run in runs if len(run)})
    assert falls or len(pieces) == len({int(block.units[0]) for block in blocks if len(block)})


@pytest.mark.parametrize("mixed", [1, 2])
def test_rows_without_an_order_are_one_piece(mixed: int) -> None:
    """Many falls in one block, which the order of the others cannot make up for, or in all of them."""
    rng = np.random.default_rng(mixed)
    units = np.sort(rng.integers(0, 50, 200))
    rows = UnitRows(units, rng.integers(0, 5, 200), (np.arange(200),))
    blocks = [rows.pick(rng.permutation(200)) for _ in range(mixed)] + [rows]
    assert [len(piece) for piece in unit_pieces.cut_between_units(blocks)] == [200 * (mixed + 1)]


def test_many_falls_in_one_of_many_blocks() -> None:
    """As many as are followed, all of them in one block: each is, to the last."""
    rng = np.random.default_rng(4)
    units = np.sort(rng.integers(0, 50, 400))
    rows = UnitRows(units, rng.integers(0, 5, 400), (np.arange(400),))
    mixed = rows.pick(rng.permutation(400)[:30])
    pieces = list(unit_pieces.cut_between_units([mixed, *(rows.pick(slice(at, at + 50)) for at in range(0, 400, 50))]))
    found = [set(piece.units.tolist()) for piece in pieces]
    assert len(pieces) > 8 and sum(map(len, found)) == len(set().union(*found))


def test_a_range_and_one_person_in_every_group_are_weighed_at_once() -> None:
    """Otherwise one person with very many rows would decide whether a question fails."""
    assert prepared.RANGE_ROWS + weighed_pairs.MOST_GROUPS <= weighed_pairs.MOST_PAIRS
