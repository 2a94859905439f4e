"""Schemas before names, as in hospital.visits and hospital.visits.age.

A dataset is one schema, whatever other systems call it. So a question may write any name before its tables and columns,
as long as it is one name: two of them would be two schemas, and one of them is not this dataset. A name with a schema
is always that of a declared table, and never that of a WITH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.frontends.sql.places import Places
from discreet.frontends.terms.positions import refusal

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


def check_schemas(tree: Expr, places: Places) -> None:
    """Refuse a question that names two schemas or two databases."""
    seen: dict[str, str] = {}
    for node in tree.walk():
        if type(node).__name__ not in {"Table", "Column"}:
            continue
        for part in ("db", "catalog"):
            name = node.args.get(part)
            if name is None:
                continue
            if isinstance(name, str):  # two points with nothing between them
                raise refusal(places.of(node), "A schema stands before a name and has none itself.", "Leave it out.")
            said = str(name.name)
            first = seen.setdefault(part, said)
            if said.lower() != first.lower():
                rule = f"The question names two schemas, {first!r} and {said!r}, and a dataset is one."
                raise refusal(places.of(name), rule, "Leave the schema out: the codebook lists the tables.")


def has_schema(table: Expr) -> bool:
    """Whether a table is written with a schema before its name."""
    return table.args.get("db") is not None
