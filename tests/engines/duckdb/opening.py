"""The DuckDB engine over the random worlds of one table."""

from __future__ import annotations

from typing import Any

from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.plan.expressions import Expression
from tests.engines.worlds import Rows, catalog, frame


def engine_for(rows: Rows, unit: Expression | None, **settings: Any) -> DuckDBEngine:
    return DuckDBEngine({"t": frame(rows)}, catalog(unit), threads=2, **settings)
