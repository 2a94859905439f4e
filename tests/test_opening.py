"""Opening a curator: from a codebook or from frames, with the ledger that belongs to it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.codebook import Codebook
from discreet.errors import LedgerError, UsageError
from discreet.ledger.memory import MemoryLedger
from discreet.ledger.sqlite import SQLiteLedger
from discreet.opening import ledger_path_of, open_existing_ledger, schema_of, terms_of
from tests.worlds.visits import curator

COUNT = "SELECT COUNT(*) AS n FROM visits"


def test_a_codebook_opens_with_its_ledger_beside_it(hospital: Path) -> None:
    """The file is made at once, kept, and found again; what was spent stays spent."""
    with discreet.open(hospital) as holder:
        holder.ask(COUNT, epsilon=0.5)
        left = holder.remaining
    assert hospital.with_suffix(".ledger").exists()
    with discreet.open(str(hospital)) as holder:
        assert holder.remaining == left and holder.ask(COUNT, epsilon=0.5).replayed
    with open_existing_ledger(Codebook.load(hospital)) as ledger:
        assert isinstance(ledger, SQLiteLedger) and len(ledger.history()) == 1


@pytest.mark.parametrize("wrong", [{"age": pa.array([True])}, {"agee": pa.array([1])}, None])
def test_sources_are_checked_before_a_charge(hospital: Path, wrong: dict[str, pa.Array] | None) -> None:
    """A table that is not as declared is told when it is asked: nothing is charged, and other tables can be asked."""
    path = hospital.parent / "visits.parquet"
    if wrong is None:
        path.write_bytes(b"not parquet")
    else:
        table = pq.read_table(path).slice(0, 1).drop_columns(["age"])
        for name, values in wrong.items():
            table = table.append_column(name, values)
        pq.write_table(table, path)
    with discreet.open(hospital) as opened:
        whole = opened.ledger.remaining
        assert opened.preview("SELECT COUNT(*) AS n FROM visits", epsilon=1).fits
        with pytest.raises(UsageError, match="Nothing was charged"):
            opened.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        assert opened.ledger.remaining == whole and not opened.history()
        assert opened.ask("SELECT COUNT(*) AS n FROM patients", epsilon=1)


def test_frames_have_a_ledger_in_memory() -> None:
    """It ends with the process, and two curators do not share it."""
    one, other = curator(), curator()
    assert isinstance(one._ledger, MemoryLedger)
    one.ask(COUNT, epsilon=1)
    assert len(one.history()) == 1 and not other.history()


def test_the_terms_are_those_of_the_codebook(hospital: Path) -> None:
    """Dataset, budget, unit and neighbours reach the ledger as they are written."""
    book = Codebook.load(hospital)
    terms = terms_of(book)
    assert (terms.dataset, terms.budget, terms.unit, terms.neighbours) == (
        book.name,
        book.budget,
        book.unit,
        book.neighbours,
    )


def test_a_ledger_in_a_database_is_no_file(hospital: Path) -> None:
    """Asking for its path is refused with the way out."""
    hospital.write_text('ledger = "postgresql://host/db"\n' + hospital.read_text())
    with pytest.raises(LedgerError, match="in a database, not in a file"):
        ledger_path_of(Codebook.load(hospital))


def test_a_frame_without_a_unit_protects_rows() -> None:
    """And a codebook in memory names no file of its own but the dataset's."""
    holder = discreet.curate({"visits": pa.table({"a": [1, 2]})}, budget=discreet.Budget(epsilon=1))
    assert "row" in holder.explain(COUNT, epsilon=0.1)
    assert schema_of("data") == "discreet_data"
