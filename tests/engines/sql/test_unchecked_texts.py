"""Keys of rows that are cut before they are grouped: texts that are too long are one group, that of NULL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb import engine as duckdb_engine
from discreet.engines.duckdb import stored_tables
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.scanning import StoredColumn
from discreet.engines.engine import Groups
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.sql.group_rows import make_groups
from discreet.engines.sql.statement import UncheckedText
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit
from tests.engines.worlds import SALT

LONGEST = 4
# At the limit and beyond it, in letters of one to four bytes, with marks and joined signs; blanks and a NUL at the end.
TEXTS = [None, "", "abcd", "abcde", "abcdef", "abc ", "abcd ", "éééé", "ééééé", "e\u0301e\u0301", "e\u0301e\u0301e",
         "😀😀😀😀", "😀😀😀😀😀", "👩\u200d👩\u200d👧", "abc\0", "abcd\0", "abcd" * 100_000]  # fmt: skip
ONE, TWO = (Column("t", name, Type.TEXT) for name in "ab")
X = Column("t", "x", Type.REAL)
MEASURES = (
    Measure(counts=Counts.ROWS),
    Measure(counts=Counts.VALUES, argument=TWO),
    Measure(counts=Counts.STEPS, argument=X, first=-2, last=5),
    Measure(counts=Counts.SQUARES, argument=X, first=-2, last=5),
)
PLANS = [
    BoundedPlan(source=Scan("t"), keys=keys, domain=domain, unit=None, measures=MEASURES)
    for keys, domain in (
        ((ONE,), None),
        ((ONE, TWO), None),
        ((TWO, X), None),
        ((ONE,), (("abcd",), ("abcde",), ("",), ("none",))),
    )
]


def find_disagreements(folder: Path) -> int:
    """The plans for which DuckDB's integers, of a frame or of a file, are not the oracle's."""
    rows = [(one, two, float(i % 7 - 2)) for i, (one, two) in enumerate((o, t) for o in TEXTS for t in TEXTS)]
    table = pa.table(dict(zip("abx", map(list, zip(*rows)))))
    parquet.write_table(table, folder / "t.parquet")
    columns = {c.name: (c.type, ColumnFacts(max_length=LONGEST)) for c in (ONE, TWO, X)}
    facts = TableFacts(name="t", columns=columns, unit=Unit(None), limits=ContributionLimits())
    catalog = Catalog(tables={"t": facts}, neighbours=Neighbours.ADD_REMOVE)
    oracle = MemoryEngine({"t": table}, catalog)
    engines = [DuckDBEngine({"t": source}, catalog) for source in (table, folder / "t.parquet")]
    runs = [(engine.run(plan, salt=SALT), oracle.run(plan, salt=SALT)) for engine in engines for plan in PLANS]
    for engine in engines:
        engine.close()
    return sum(ours != theirs for ours, theirs in runs)


def test_integers_are_the_oracles(tmp_path: Path) -> None:
    assert find_disagreements(tmp_path) == 0


def test_texts_that_are_cut_to_a_shorter_key_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: cut to what is allowed, a text that is too long would be counted as another one."""

    def cut(stored: StoredColumn, declared: Type, max_length: int | None) -> UncheckedText | None:
        short = max_length is not None and declared is Type.TEXT
        return UncheckedText(f'substring("{stored.name}", 1, {max_length})', lambda key: key) if short else None

    monkeypatch.setattr(stored_tables, "write_unchecked_text", cut)
    assert find_disagreements(tmp_path) == 2 * len(PLANS)


@pytest.mark.parametrize(
    "domain", [None, (("abcd",), (None,)), (("abcd",),)], ids=["of the data", "with NULL", "public"]
)
def test_one_person_s_long_texts_come_back_as_one_row(
    domain: tuple[tuple[str | None], ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of them there are: DuckDB adds them up, and nothing that is read grows with them."""
    read: list[int] = []

    def count(found: Iterable[tuple[Any, ...]], bounded: BoundedPlan) -> Groups:
        rows = list(found)
        read.append(len(rows))
        return make_groups(rows, bounded)

    monkeypatch.setattr(duckdb_engine, "make_groups", count)
    facts = TableFacts(
        name="t",
        columns={"a": (Type.TEXT, ColumnFacts(max_length=LONGEST))},
        unit=Unit(None),
        limits=ContributionLimits(),
    )
    catalog = Catalog(tables={"t": facts}, neighbours=Neighbours.ADD_REMOVE)
    for many in (0, 1, 500):
        table = pa.table({"a": ["abcd", None, *(f"too long {i}" for i in range(many))]})
        engine = DuckDBEngine({"t": table}, catalog)
        engine.run(replace(PLANS[0], domain=domain, measures=MEASURES[:1]), salt=SALT)
        engine.close()
    assert read == [2 if domain != (("abcd",),) else 1] * 3
