"""The public facts of a dataset, from what a server tells of it. Names, types and keys are whole; none is data."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.draw_record import from_plain
from discreet.exact import decimal
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, Link, TableFacts
from discreet.plan.times import to_days
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit


def read_catalog(document: Mapping[str, Any]) -> Catalog:
    """The catalog that ``GET datasets/{name}`` describes."""
    unit = Unit(document["unit"])
    tables = (_read_table(each, unit) for each in document["tables"])
    return Catalog(tables={table.name: table for table in tables}, neighbours=Neighbours(document["neighbours"]))


def _read_table(described: Mapping[str, Any], unit: Unit) -> TableFacts:
    reached = described["reaches_unit_by"]
    return TableFacts(
        name=described["name"],
        columns={column["name"]: _read_column(column) for column in described["columns"]},
        unit=unit,
        limits=ContributionLimits(**described["limits"]),
        public=described["public"],
        owner=described["owner"],
        link=None if reached is None else _read_link(reached),
        keys=tuple(map(_read_link, described["foreign_keys"])),
        size=described["size"],
    )


def _read_link(described: Mapping[str, Any]) -> Link:
    return Link(tuple(described["columns"]), described["parent"], tuple(described["keys"]))


def _read_column(described: Mapping[str, Any]) -> tuple[Type, ColumnFacts]:
    kind = Type(described["type"])
    facts: dict[str, Any] = {name: value for name, value in described.items() if name not in ("name", "type")}
    for end in ("low", "high"):
        if end in facts:
            facts[end] = _read_end(facts[end], kind)
    if "resolution" in facts:
        facts["resolution"] = _read_number(facts["resolution"])
    if "keys" in facts:
        facts["keys"] = tuple(from_plain(key, kind) for key in facts["keys"])
    return kind, ColumnFacts(**facts)


def _read_end(value: Any, kind: Type) -> Fraction:
    if not kind.is_time:
        return _read_number(value)
    when: Any = from_plain(value, kind)
    return to_days(when)


def _read_number(value: float) -> Fraction:
    return Fraction(value) if isinstance(value, int) else decimal(value)
