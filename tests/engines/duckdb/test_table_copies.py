"""A text that is not UTF-8 is NULL, alone, in frames and in Parquet files: no question fails because of it."""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb import table_copies
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.sources import Csv
from discreet.engines.memory.engine import MemoryEngine
from discreet.errors import EngineFailure
from discreet.plan.arrow import mend_texts
from discreet.plan.expressions import Column
from discreet.plan.functions import make_call, make_literal
from discreet.plan.relations import Scan, Where
from discreet.plan.types import Type
from tests.engines.duckdb.test_sources import catalog_of
from tests.engines.worlds import SALT

KINDS = {"who": Type.INTEGER, "note": Type.TEXT, "at": Type.TIMESTAMP}
NOTE = Column("visits", "note", Type.TEXT)
BYTES = [b"n1", b"\xff\xfe", "ä".encode(), None, b"n1", b"\xed\xa0\x80", b""]
MENDED = ["n1", None, "ä", None, "n1", None, ""]


def texts(kind: pa.DataType) -> pa.Array:
    """The bytes in an Arrow column that calls them text."""
    if pa.types.is_dictionary(kind):
        codes = [None if value is None else BYTES.index(value) for value in BYTES]
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), texts(pa.string()).fill_null(""))
    if pa.types.is_string_view(kind):
        return pa.Array.from_buffers(kind, len(BYTES), pa.array(BYTES, pa.binary_view()).buffers())
    return pa.array(BYTES, pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()).view(kind)


def table_of(kind: pa.DataType) -> pa.Table:
    notes = texts(kind)
    times = pa.array([None, *range(1, len(notes))], pa.timestamp("us", tz="UTC"))
    return pa.table({"who": range(len(notes)), "note": notes, "at": times})


TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


def ask(engine: Any, *, upper: bool = False) -> int:
    """How many rows have the note n1."""
    wanted = make_call("upper", NOTE) if upper else NOTE
    same = make_call("equal", wanted, make_literal("N1" if upper else "n1"))
    bounded = BoundedPlan(
        source=Where(Scan("visits"), same), keys=(), domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),)
    )
    return int(engine.run(bounded, salt=SALT).values[0][0])


@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_frames_are_mended(kind: pa.DataType) -> None:
    """Bad texts are NULL and all others stay; a good table stays the same object."""
    table = table_of(kind)
    with pytest.raises(pa.ArrowInvalid):  # negative control: Arrow itself would have taken it
        table.validate(full=True)
    mended = mend_texts(table)
    mended.validate(full=True)
    assert mended["note"].to_pylist() == MENDED and mended["who"].equals(table["who"])
    assert mend_texts(mended) is mended
    for engine in (
        DuckDBEngine({"visits": table}, catalog_of(KINDS)),
        MemoryEngine({"visits": table}, catalog_of(KINDS)),
    ):
        assert ask(engine) == 2 and ask(engine, upper=True) == 2


@pytest.mark.parametrize("kind", TEXTS, ids=str)
@pytest.mark.parametrize("prepared", [False, True])
def test_parquet_is_mended_when_it_fails(
    kind: pa.DataType, prepared: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The same answer with and without the bad rows, also from several files; they are copied once."""
    table = table_of(kind)
    for i, part in enumerate((table, table.slice(0, 1))):
        pq.write_table(part, tmp_path / f"v{i}.parquet")
    with pytest.raises(duckdb.InvalidInputException):  # negative control
        duckdb.connect().execute(f"SELECT count(*) FROM '{tmp_path}/v0.parquet' WHERE note = 'n1'").fetchall()
    engine = DuckDBEngine({"visits": tmp_path / "v?.parquet"}, catalog_of(KINDS, unit="who"), temp_directory=tmp_path)
    with caplog.at_level(logging.WARNING, logger="discreet.curator"):
        if prepared:
            engine.prepare("visits")
        assert ask(engine) == 3 and ask(engine, upper=True) == 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert caplog.records[0].getMessage().startswith("2 texts of the column note")
    (copy,) = tmp_path.glob("discreet-*/copy-*")
    assert copy.stat().st_mode & 0o777 == 0o600
    engine.close()


def test_good_parquet_is_not_copied(tmp_path: Path) -> None:
    pq.write_table(pa.table({"who": [1, 2], "note": ["n1", "ü"], "at": [None, None]}), tmp_path / "v.parquet")
    engine = DuckDBEngine({"visits": tmp_path / "v.parquet"}, catalog_of(KINDS), temp_directory=tmp_path)
    assert ask(engine) == 1 and not list(tmp_path.glob("discreet-*/copy-*"))
    engine.close()


def test_half_a_copy_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that fails, as on a full disk, leaves nothing behind, and the next question makes it anew."""
    (tmp_path / "v.csv").write_text("who,note,at\n1,n1,\n")
    engine = DuckDBEngine({"visits": tmp_path / "v.csv"}, catalog_of(KINDS), temp_directory=tmp_path)

    def fail(source: Csv, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "full", source.paths[0])

    with monkeypatch.context() as broken:
        broken.setattr(table_copies, "write_lines", fail)
        with pytest.raises(EngineFailure):
            ask(engine)
    assert not list(tmp_path.glob("discreet-*/copy-*"))
    assert ask(engine) == 1
    engine.close()
