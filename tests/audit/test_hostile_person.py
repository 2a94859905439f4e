"""A sample of the adversary in the audit. The rest of it, with planted leaks, is in the suite of all engines."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pytest

from discreet.audit import clinic, hostile_person
from discreet.audit.dataset_neighbours import Dataset
from discreet.audit.findings import Verdict
from discreet.audit.hostile_person import BYTES, HostileCheck, make_hostile_persons
from discreet.audit.questions import make_small_engine
from discreet.audit.source_forms import WRITTEN_FORMS, write_sources
from discreet.engines.engine import Engine
from discreet.errors import UsageError
from discreet.plan.catalog import Catalog, ContributionLimits
from discreet.plan.source_kinds import SourceKind
from discreet.privacy import Budget, Neighbours

CATALOG = clinic.make_catalog(ContributionLimits(max_rows=3), Neighbours.ADD_REMOVE)


def test_the_audit_holds() -> None:
    """Every form of source, in the order in which the audit tells them; two of them, to be quick."""
    found = list(islice(hostile_person.check_hostile_persons(quick=True), 2))
    assert [finding.verdict for finding in found] == [Verdict.HOLDS] * 2, found


def test_an_engine_that_cannot_read_some_bytes_is_caught() -> None:
    """Negative control: Parquet read as plain DuckDB reads it."""

    def open_plainly(sources: Mapping[str, Any], catalog: Catalog) -> Engine:
        for source in sources.values():
            if isinstance(source, Path) and source.suffix == ".parquet":
                with duckdb.connect() as connection:
                    try:
                        connection.execute(f"SELECT * FROM '{source}'").fetchall()
                    except (duckdb.Error, UnicodeDecodeError):
                        raise UsageError("A file cannot be read.") from None
        return make_small_engine(sources, catalog)

    check = HostileCheck(
        catalog=CATALOG,
        dataset=clinic.make_rows(),
        questions=hostile_person.QUESTIONS[:1],
        budget=Budget(epsilon=3, delta=1e-6),
        offer={"epsilon": 1},
        form=SourceKind.PARQUET,
        make=open_plainly,
    )
    persons = [p for p in make_hostile_persons(check.dataset, CATALOG) if p.what == "bytes that are no text"]
    ((where, tell),) = check.find_tells(persons)
    assert where.startswith("bytes that are no text") and tell == "kind differs: answer / refusal"


@pytest.mark.parametrize("form", WRITTEN_FORMS)
def test_every_form_has_what_it_can_hold(form: SourceKind, tmp_path: Path) -> None:
    """Rows as they are, broken bytes and far days included; a DuckDB file alone takes no broken text."""
    rows: Dataset = {**clinic.make_rows(), "workers": [{"person": 1, "town": BYTES[0], "wage": 1.5}, {"person": None}]}
    sources = write_sources(form, rows, CATALOG, tmp_path)
    match form:
        case SourceKind.FRAME:
            assert sources["workers"]["town"].cast("binary").to_pylist() == [b"\xff", None]
        case SourceKind.PARQUET:
            with duckdb.connect() as connection:
                (count,) = (
                    connection.execute(f"SELECT count(*) FROM '{sources['workers']}'").fetchone() or ()
                )  # our own file
            assert count == 2
        case SourceKind.CSV:
            assert sources["workers"].read_bytes() == b"person,town,wage\n1,\xff,1.5\n,,\n"
        case SourceKind.DUCKDB:
            with duckdb.connect(str(sources["workers"])) as connection:
                assert connection.execute("FROM workers").fetchall() == [(1, None, 1.5), (None, None, None)]


def test_a_form_that_needs_a_server_is_not_written(tmp_path: Path) -> None:
    """Rows for a database are loaded by its owner; the audit says so."""
    by_others = {*SourceKind} - {*WRITTEN_FORMS}
    assert by_others == {SourceKind.POSTGRES, SourceKind.SPARK}
    for kind in by_others:
        with pytest.raises(UsageError, match="Load them"):
            write_sources(kind, clinic.make_rows(), CATALOG, tmp_path)
