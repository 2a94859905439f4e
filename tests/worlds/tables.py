"""The fictional tables that the questions of these tests are about."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, Link, TableFacts
from discreet.plan.relations import Values
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
    limits=ContributionLimits(max_rows=20),
)
ANSWERS = TableFacts(
    name="Answers",
    columns={"Income": (Type.REAL, ColumnFacts()), "City name": (Type.TEXT, ColumnFacts())},
    unit=Unit(),
    limits=ContributionLimits(max_rows=1),
)
CATALOG = Catalog(tables={"visits": VISITS, "Answers": ANSWERS}, neighbours=Neighbours.ADD_REMOVE)

# Several tables about the same patients: some name the patient, some reach one by a foreign key, some are public.
STAYS = replace(
    VISITS,
    columns={**VISITS.columns, "visit_id": (Type.INTEGER, ColumnFacts(unique=True, nullable=False))},
    keys=(Link(("ward",), "wards", ("ward",)),),
)
PATIENTS = TableFacts(
    name="patients",
    columns={
        "patient_id": (Type.INTEGER, ColumnFacts(unique=True)),
        "born": (Type.INTEGER, ColumnFacts(low=Fraction(1900), high=Fraction(2030))),
        "sex": (Type.TEXT, ColumnFacts(keys=("f", "m"), constant=True)),
        "ward": (Type.TEXT, ColumnFacts(keys=("A", "B", "C"))),
        "referred_by": (Type.INTEGER, ColumnFacts()),
        "town": (Type.TEXT, ColumnFacts(frequency=5)),
    },
    unit=Unit("patient_id"),
    limits=ContributionLimits(max_rows=1),
    keys=(Link(("referred_by",), "patients", ("patient_id",)), Link(("ward",), "wards", ("ward",))),
)
LABS = TableFacts(
    name="labs",
    columns={
        "visit_id": (Type.INTEGER, ColumnFacts()),
        "test": (Type.TEXT, ColumnFacts(keys=("blood", "urine"))),
        "result": (Type.REAL, ColumnFacts(low=Fraction(0), high=Fraction(100))),
    },
    unit=Unit("patient_id"),
    limits=ContributionLimits(max_rows=40),
    link=Link(("visit_id",), "visits", ("visit_id",)),
    keys=(Link(("visit_id",), "visits", ("visit_id",)),),
)
# A key of two columns, and a table that reaches the patient by both together.
TREATMENTS = TableFacts(
    name="treatments",
    columns={
        "patient_id": (Type.INTEGER, ColumnFacts()),
        "clinic": (Type.TEXT, ColumnFacts(keys=("x", "y"))),
        "number": (Type.INTEGER, ColumnFacts()),
        "hours": (Type.INTEGER, ColumnFacts(low=Fraction(0), high=Fraction(24))),
    },
    unit=Unit("patient_id"),
    limits=ContributionLimits(max_rows=10),
)
DOSE_KEY = Link(("clinic", "treatment"), "treatments", ("clinic", "number"))
DOSES = TableFacts(
    name="doses",
    columns={
        "clinic": (Type.TEXT, ColumnFacts(keys=("x", "y"))),
        "treatment": (Type.INTEGER, ColumnFacts()),
        "drug": (Type.TEXT, ColumnFacts(keys=("a", "b"))),
        "amount": (Type.REAL, ColumnFacts(low=Fraction(0), high=Fraction(100))),
    },
    unit=Unit("patient_id"),
    limits=ContributionLimits(max_rows=30),
    link=DOSE_KEY,
    keys=(DOSE_KEY,),
)
WORKERS = TableFacts(
    name="workers",
    columns={
        "person": (Type.INTEGER, ColumnFacts()),
        "firm": (Type.TEXT, ColumnFacts(frequency=3)),
        "town": (Type.TEXT, ColumnFacts(frequency=4)),
        "wage": (Type.REAL, ColumnFacts(low=Fraction(0), high=Fraction(500))),
    },
    unit=Unit("patient_id"),
    limits=ContributionLimits(max_groups=2, max_rows_per_group=3),
    owner="person",
)
WARDS = TableFacts(
    name="wards",
    columns={
        "ward": (Type.TEXT, ColumnFacts(unique=True, nullable=False, keys=("A", "B", "C"))),
        "floor": (Type.INTEGER, ColumnFacts(keys=(1, 2), nullable=False)),
        "beds": (Type.INTEGER, ColumnFacts(low=Fraction(0), high=Fraction(80))),
        "city": (Type.TEXT, ColumnFacts()),
    },
    unit=Unit("patient_id"),
    limits=ContributionLimits(),
    public=True,
)
REGIONS = TableFacts(
    name="regions",
    columns={"town": (Type.TEXT, ColumnFacts()), "region": (Type.TEXT, ColumnFacts(keys=("north", "south")))},
    unit=Unit("patient_id"),
    limits=ContributionLimits(),
    public=True,
)
HOSPITAL = Catalog(
    tables={table.name: table for table in (STAYS, PATIENTS, LABS, TREATMENTS, DOSES, WORKERS, WARDS, REGIONS)},
    neighbours=Neighbours.ADD_REMOVE,
    max_joined_rows=10**100,  # what joins mean does not depend on it
    count_public=lambda *_: 3,
)
# The same with rows as units.
CITIES = TableFacts(
    name="cities",
    columns={
        "City name": (Type.TEXT, ColumnFacts(unique=True)),
        "country": (Type.TEXT, ColumnFacts(keys=("X", "Y"))),
        "twin": (Type.TEXT, ColumnFacts()),
    },
    unit=Unit(),
    limits=ContributionLimits(),
    public=True,
)
SURVEY = Catalog(
    tables={"Answers": ANSWERS, "cities": CITIES},
    neighbours=Neighbours.ADD_REMOVE,
    count_public=lambda *_: 3,
)
# Public rows that a question brings.
PUBLIC = {
    "prices": Values("prices", (("test", Type.TEXT), ("price", Type.REAL)), (("blood", 12.5), ("urine", 7.0))),
}


def world(file: str) -> tuple[Catalog, dict[str, Values]]:
    """The tables that a file of fixtures is about, and the public rows beside them."""
    if file.startswith("rows_"):
        return SURVEY, {}
    return (HOSPITAL, PUBLIC) if file in SEVERAL or file.startswith(("computed", "public_keys")) else (CATALOG, {})


SEVERAL = frozenset(
    {"joins", "subqueries", "features", "windows", "public", "memberships", "refused_joins", "refused_subqueries"}
    | {"lists", "sets", "keyed_groups", "conditional_memberships", "left_conditions", "frames", "joint_keys"}
)
