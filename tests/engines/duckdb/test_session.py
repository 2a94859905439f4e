"""Long runs: progress is told, the keyboard interrupts, memory is bounded."""

from __future__ import annotations

import signal
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.session import Session, Settings
from discreet.engines.duckdb.sources import Frame
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit
from tests.engines.worlds import SALT
from tests.worlds.kernel import run_cells

WHO, WARD, COST = Column("t", "who", Type.INTEGER), Column("t", "ward", Type.INTEGER), Column("t", "cost", Type.REAL)
FOREVER = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 3"


def small_session(tmp_path: Path) -> Session:
    return Session(
        Settings(threads=2, memory_limit="200MB", temp_directory=tmp_path / "spill"), [Frame(pa.table({"a": [1]}))]
    )


def big_engine(rows: int, **settings: Any) -> tuple[DuckDBEngine, BoundedPlan]:
    import numpy as np

    rng = np.random.default_rng(1)
    table = pa.table(
        {"who": rng.integers(0, rows // 10, rows), "ward": rng.integers(0, 20, rows), "cost": rng.random(rows)}
    )
    columns = {c.name: (c.type, ColumnFacts()) for c in (WHO, WARD, COST)}
    facts = TableFacts(name="t", columns=columns, unit=Unit("who"), limits=ContributionLimits())
    catalog = Catalog(tables={"t": facts}, neighbours=Neighbours.ADD_REMOVE)
    measures = (
        Measure(counts=Counts.UNITS),
        Measure(counts=Counts.STEPS, argument=COST, resolution=Fraction(1, 100), first=0, last=100),
    )
    bounded = BoundedPlan(
        source=Scan("t"),
        keys=(WARD,),
        domain=None,
        unit=WHO,
        measures=measures,
        max_groups=3,
        max_rows_per_group=2,
    )
    return DuckDBEngine({"t": table}, catalog, **settings), bounded


@pytest.mark.usefixtures("interruptible")
def test_the_keyboard_interrupts(tmp_path: Path) -> None:
    """An interrupt stops a statement that would run for hours, and stays an interrupt."""
    threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt), small_session(tmp_path) as session:
        session.run(FOREVER)


def test_one_failing_job_ends_the_others(tmp_path: Path) -> None:
    def forever(cursor: object) -> None:
        cursor.execute(FOREVER).fetchall()  # type: ignore[attr-defined]  # a DuckDB cursor

    def fails(cursor: object) -> None:
        raise ArithmeticError

    with pytest.raises(ArithmeticError), small_session(tmp_path) as session:
        list(session.run_with_cursors([fails, forever]))


def test_progress_is_a_share_between_0_and_1() -> None:
    """The watcher of a question hears shares of the work, and 1 at the end."""
    engine, bounded = big_engine(300_000)
    heard: list[float] = []
    engine.run(bounded, salt=SALT, watch=heard.append)
    assert heard and all(0 <= share <= 1 for share in heard) and heard[-1] == 1
    engine.close()


IN_A_NOTEBOOK = """
import importlib.util, discreet, pyarrow as pa
curator = discreet.curate({"visits": pa.table({"age": [1] * 100})}, budget=discreet.Budget(epsilon=1000))
heard = []
answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1000, watch=heard.append)
print("widgets", importlib.util.find_spec("ipywidgets"), "rows", answer.rows.rows[0][0].value, "heard", heard[-1])
"""


def test_a_stock_notebook_without_widgets_runs_questions(tmp_path: Path) -> None:
    """There DuckDB refuses every setting of its progress bar. Only the end of a question is heard."""
    (shown,) = run_cells([IN_A_NOTEBOOK], tmp_path)
    assert shown.startswith("widgets None rows 100 heard 1.0"), shown


def test_another_refusal_of_a_setting_is_no_matter_of_widgets(tmp_path: Path) -> None:
    """Negative control: settings that cannot be made are an error, but for that one cause."""
    session = small_session(tmp_path)
    with pytest.raises(duckdb.InvalidInputException, match="locked"):
        session._turn_on_progress()
    session.close()


@pytest.mark.long
def test_a_question_larger_than_memory_goes_through_the_disk(tmp_path: Path) -> None:
    """Five million rows under a limit that cannot hold them sorted: the same answer as with plenty of memory."""
    plenty, bounded = big_engine(5_000_000, memory_limit="4GB")
    tight, _ = big_engine(5_000_000, memory_limit="120MB", temp_directory=str(tmp_path))
    assert tight.run(bounded, salt=SALT) == plenty.run(bounded, salt=SALT)
