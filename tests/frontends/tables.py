"""The fictional tables that the questions of these tests are about."""

from __future__ import annotations

from fractions import Fraction

from discreet.plan.catalog import Catalog, ColumnFacts, Limits, TableFacts
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit

VISITS = TableFacts(
    name="visits",
    columns={
        "patient_id": (Type.INTEGER, ColumnFacts()),
        "ward": (Type.TEXT, ColumnFacts(keys=("A", "B", "C"))),
        "age": (Type.INTEGER, ColumnFacts(low=Fraction(0), high=Fraction(110))),
        "cost": (Type.REAL, ColumnFacts(low=Fraction(0), high=Fraction(10_000))),
        "day": (Type.DATE, ColumnFacts()),
        "seen": (Type.TIMESTAMP, ColumnFacts()),
        "smoker": (Type.BOOLEAN, ColumnFacts()),
        "note": (Type.TEXT, ColumnFacts()),
    },
    unit=Unit("patient_id"),
    limits=Limits(max_rows=20),
)
ANSWERS = TableFacts(
    name="Answers",
    columns={"Income": (Type.REAL, ColumnFacts()), "City name": (Type.TEXT, ColumnFacts())},
    unit=Unit(),
    limits=Limits(max_rows=1),
)
CATALOG = Catalog(tables={"visits": VISITS, "Answers": ANSWERS}, neighbours=Neighbours.ADD_REMOVE)
