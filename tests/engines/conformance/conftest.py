"""Every test of this folder that takes an engine runs on all of them; gaps are expected to fail, and must."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engines.conformance.engines import ENGINES, MEMORY, EngineUnderTest, find_gap

FIXTURES: dict[str, list[EngineUnderTest]] = {
    "engine": list(ENGINES),
    # All but the oracle, for comparisons with it.
    "other": [engine for engine in ENGINES if engine is not MEMORY],
    # Those that read tables as they are stored, for plans that look at rows without a unit.
    "stored": [engine for engine in ENGINES if engine is not MEMORY and not engine.prepared],
    # One of those that share their expressions.
    "dialect_engine": [engine for engine in ENGINES if not engine.variant_of],
    # The same without the oracle.
    "sql_engine": [engine for engine in ENGINES if not engine.variant_of and engine is not MEMORY],
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for fixture, engines in FIXTURES.items():
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, engines, ids=[engine.name for engine in engines])


def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        for engine in getattr(getattr(item, "callspec", None), "params", {}).values():
            if isinstance(engine, EngineUnderTest) and engine.missing:
                item.add_marker(pytest.mark.skip(reason=f"{engine.name}: {engine.missing}"))
            elif isinstance(engine, EngineUnderTest):
                reason = find_gap(engine, item.module.__name__.rpartition(".")[2], item.name)
                if reason is not None:
                    item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
