"""Opening a curator: from a codebook or from frames, with the ledger that belongs to it."""

from __future__ import annotations

import datetime as dt
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


def test_times_with_bounds_are_grouped_and_summed_like_numbers() -> None:
    """Without a δ, so by public groups alone. Rows beyond the bounds are in no group, and count as the nearer bound."""
    days = [dt.date(2023, 12, 31), *[dt.date(2024, 1, 15)] * 40, *[dt.date(2024, 3, 1)] * 60, dt.date(2025, 7, 1)]
    moments = [None if day.year == 2025 else dt.datetime.combine(day, dt.time(13, 30)) for day in days]
    holder = discreet.curate(
        {"visits": pa.table({"day": days, "at": moments})},
        bounds={"day": (dt.date(2024, 1, 1), dt.date(2024, 3, 31)), "at": (dt.date(2024, 1, 1), dt.date(2024, 4, 1))},
        budget=discreet.Budget(epsilon=10_000),
    )

    def ask(key: str, where: str = "") -> list[tuple[str, int]]:
        rows = holder.ask(f"SELECT {key} AS k, COUNT(*) AS n FROM visits {where} GROUP BY k", epsilon=500).rows.rows
        return [(str(row[0].value).removesuffix(" 00:00:00"), int(str(row[1].value))) for row in rows]

    months = [("2024-01-01", 40), ("2024-02-01", 0), ("2024-03-01", 60)]
    assert ask("bin(day, 'month')") == [*months, ("None", 0)]
    assert ask("date_trunc('month', at)") == [*months, ("2024-04-01", 0), ("None", 1)]
    assert ask("date_trunc('month', at)", "WHERE at < '2024-03-01'")[:2] == months[:2]
    assert ask("year(at)") == [("2024", 100), ("None", 1)]
    assert len(ask("CAST(at AS DATE)")) == 93
    sums = holder.ask("SELECT SUM(date_diff('day', DATE '2024-01-01', day)) AS d FROM visits", epsilon=500)
    assert sums.rows.rows[0][0].value == 0 + 40 * 14 + 60 * 60 + 90


def test_a_frame_without_a_unit_protects_rows() -> None:
    """And a codebook in memory names no file of its own but the dataset's."""
    holder = discreet.curate({"visits": pa.table({"a": [1, 2]})}, budget=discreet.Budget(epsilon=1))
    assert "row" in holder.explain(COUNT, epsilon=0.1)
    assert schema_of("data") == "discreet_data"
