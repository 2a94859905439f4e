"""Every test of this folder that takes an engine runs on all of them; gaps are expected to fail, and must."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engines.conformance.engines import ENGINES, MEMORY, SPARK, EngineUnderTest, find_gap, list_names

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


# Of a test with more cases than this, an engine that takes long for each has only a share in short runs.
FEW_CASES = 3


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    _mark_cases(items)
    for item in items:
        for engine in getattr(getattr(item, "callspec", None), "params", {}).values():
            if isinstance(engine, EngineUnderTest) and engine.missing:
                item.add_marker(pytest.mark.skip(reason=f"{engine.name}: {engine.missing}"))
            elif isinstance(engine, EngineUnderTest):
                reason = find_gap(engine, _name_module(item), item.name)
                if reason is not None:
                    item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def _name_module(item: Any) -> str:
    return str(item.module.__name__.rpartition(".")[2])


def _mark_cases(items: list[Any]) -> None:
    """Mark what asks Spark, and all but every n-th case of a test with many, where an engine says so."""
    cases: dict[tuple[Any, str], list[Any]] = {}
    for item in items:
        for engine in getattr(getattr(item, "callspec", None), "params", {}).values():
            if not isinstance(engine, EngineUnderTest):
                continue
            if engine is SPARK:
                item.add_marker(pytest.mark.spark)
            if engine.short_share > 1:
                cases.setdefault((item.module, item.originalname), []).append((item, engine))
            if engine.left_to_long_runs.intersection(list_names(engine, _name_module(item), item.name)):
                item.add_marker(pytest.mark.long)
    for found in cases.values():
        for number, (item, engine) in enumerate(found if len(found) > FEW_CASES else ()):
            if number % engine.short_share:
                item.add_marker(pytest.mark.long)
