"""The Arrow type of each plan type, for tables that go to an engine or to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.plan.types import Type


def load_arrow_types() -> Mapping[Type, Any]:
    """The Arrow type of each plan type."""
    import pyarrow as pa

    return {
        Type.BOOLEAN: pa.bool_(),
        Type.INTEGER: pa.int64(),
        Type.REAL: pa.float64(),
        Type.TEXT: pa.string(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
    }
