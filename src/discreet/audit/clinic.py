"""A fictional clinic of six tables, and the questions about it that are audited: joins, features, groupings, choices.

Patients and visits name the person, under different names. Labs reach it through their visit, whose number is not
always unique, and notes through their lab. Workers share towns with patients. Wards are public, one of them listed
twice. Some rows belong to nobody and some refer to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.audit.neighbours import AuditRow
from discreet.audit.questions import CuratorLine
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, Link, TableFacts
from discreet.plan.types import Type
from discreet.privacy import Budget, Neighbours, Unit

WARDS = ("A", "B", "C")
ANY = ColumnFacts()
COST = ColumnFacts(low=Fraction(0), high=Fraction(500), resolution=Fraction(1))
AGE = ColumnFacts(low=Fraction(0), high=Fraction(110))
TABLES: Mapping[str, Mapping[str, tuple[Type, ColumnFacts]]] = {
    "patients": {
        "person": (Type.INTEGER, ANY),
        "sex": (Type.TEXT, ColumnFacts(keys=("f", "m"))),
        "age": (Type.INTEGER, AGE),
        "town": (Type.TEXT, ColumnFacts(frequency=3)),
    },
    "visits": {
        "visitor": (Type.INTEGER, ANY),
        "visit": (Type.INTEGER, ANY),
        "ward": (Type.TEXT, ColumnFacts(keys=WARDS)),
        "doctor": (Type.TEXT, ANY),
        "cost": (Type.REAL, COST),
        "day": (Type.INTEGER, ANY),
    },
    "labs": {
        "lab": (Type.INTEGER, ANY),
        "visit": (Type.INTEGER, ANY),
        "test": (Type.TEXT, ColumnFacts(keys=("blood", "urine"))),
        "value": (Type.REAL, COST),
    },
    "notes": {"lab": (Type.INTEGER, ANY), "words": (Type.INTEGER, AGE)},
    "workers": {
        "person": (Type.INTEGER, ANY),
        "town": (Type.TEXT, ColumnFacts(frequency=2)),
        "wage": (Type.REAL, COST),
    },
    "wards": {"ward": (Type.TEXT, ANY), "floor": (Type.INTEGER, ColumnFacts(keys=(1, 2)))},
}
OWNERS = {"visits": "visitor"}
LINKS = {"labs": Link(("visit",), "visits", ("visit",)), "notes": Link(("lab",), "labs", ("lab",))}
KEYS = {"visits": (Link(("visitor",), "patients", ("person",)),)}

JOINS = (
    "SELECT p.sex, COUNT(*) AS n, AVG(p.age) AS age FROM visits v JOIN patients p ON v.visitor = p.person "
    "GROUP BY p.sex",
    "SELECT l.test, COUNT(*) AS n, SUM(v.cost) AS cost FROM labs l JOIN visits v ON l.visit = v.visit GROUP BY l.test",
    "SELECT COUNT(*) AS n, SUM(words) AS words FROM notes",
    "SELECT w.floor, COUNT(*) AS n FROM visits v LEFT JOIN wards w ON v.ward = w.ward GROUP BY w.floor",
    "SELECT COUNT(p.age) AS n, SUM(v.cost) AS cost FROM patients p FULL JOIN visits v ON p.person = v.visitor",
    "SELECT COUNT(*) AS n FROM patients p WHERE NOT EXISTS "
    "(SELECT 1 FROM workers w WHERE w.person = p.person AND w.town = p.town)",
    "SELECT COUNT(*) AS n, SUM(clamp(w.wage, 0, 50)) AS wage FROM workers w JOIN patients p ON w.town = p.town",
)
FEATURES = (
    "SELECT COUNT(*) AS people, AVG(clamp(n, 0, 9)) AS n FROM (SELECT visitor, COUNT(*) AS n, MAX(cost) AS most "
    "FROM visits GROUP BY visitor HAVING COUNT(*) > 1) AS t WHERE most > 3",
    "SELECT ward, COUNT(*) AS n, SUM(cost) AS cost FROM (SELECT * FROM visits QUALIFY "
    "ROW_NUMBER() OVER (PARTITION BY visitor ORDER BY day) = 1) AS firsts GROUP BY ward",
    "SELECT SUM(clamp(nth, 0, 40)) AS nth FROM (SELECT visitor, "
    "ROW_NUMBER() OVER (PARTITION BY visitor ORDER BY day) AS nth FROM visits) AS t",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT person, town FROM patients UNION ALL "
    "SELECT person, town FROM workers) AS t WHERE town = 'North'",
)
CHOICES = (
    "SELECT ward, MEDIAN(cost) AS middle, QUANTILE(cost, 0.9) AS high FROM visits GROUP BY ward",
    "SELECT MODE(v.ward) AS ward, MAX(p.age) AS oldest FROM visits v JOIN patients p ON v.visitor = p.person",
    "SELECT COUNT(DISTINCT doctor) AS doctors, COUNT(DISTINCT ward) AS wards FROM visits",
)
GROUPINGS = (
    "SELECT ward, sex, COUNT(*) AS n FROM visits JOIN patients ON visitor = person "
    "GROUP BY GROUPING SETS ((ward, sex), (ward), ())",
)
PRIVATE_KEYS = (
    "SELECT doctor, COUNT(*) AS n FROM visits GROUP BY doctor",
    "SELECT p.town, MEDIAN(l.value) AS value FROM labs l JOIN patients p ON l.person = p.person GROUP BY p.town",
    "SELECT doctor, COUNT(DISTINCT visitor) AS n FROM visits GROUP BY doctor",
    "SELECT DISTINCT doctor FROM visits",
)
GOOGLE = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_groups_contributed=2, privacy_unit_column=visitor) ward, "
    "SUM(cost, contribution_bounds_per_group => (0, 200)) AS cost, "
    "COUNT(*, contribution_bounds_per_group => (0, 5)) AS n FROM visits GROUP BY ward",
)
LEAST_UNITS = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=60, delta=1e-3, max_groups_contributed=2, "
    "min_privacy_units_per_group=2, privacy_unit_column=visitor) doctor, "
    "COUNT(*, contribution_bounds_per_group => (0, 5)) AS n FROM visits GROUP BY doctor",
)
PUBLIC_KEYS = (*JOINS, *FEATURES, *CHOICES, *GROUPINGS)


def make_rows() -> dict[str, list[AuditRow]]:
    """A few people with many rows, and many with few."""
    people = [100 + i for i in range(14)]
    visits: list[AuditRow] = [
        {
            "visitor": None if i % 19 == 18 else people[i % 14 if i % 3 else i % 4],
            "visit": None if i % 23 == 22 else i - i % 9 // 8,  # some numbers are given twice, to different people
            "ward": (*WARDS, None, "D")[i % 5 if i % 4 else 0],
            "doctor": f"dr {i % 6}",
            "cost": (None, 1e9, -4.0)[i % 3] if i % 11 == 0 else i * 7.3 % 480,
            "day": i * 5 % 13,
        }
        for i in range(45)
    ]
    labs: list[AuditRow] = [
        {"lab": i - i % 7 // 6, "visit": (i * 3 % 50) if i % 10 else None, "test": ("blood", "urine", None)[i % 3],
         "value": i * 9.5}
        for i in range(40)
    ]  # fmt: skip  # one row
    return {
        "patients": [
            {"person": p, "sex": ("f", "m", None)[i % 3], "age": i * 9, "town": ("North", "South", "East")[i % 3]}
            for i, p in enumerate([*people[:11], people[0]])
        ],
        "visits": visits,
        "labs": labs,
        "notes": [{"lab": i * 2 % 45, "words": i} for i in range(20)],
        "workers": [
            {"person": people[i % 9], "town": ("North", "West", None)[i % 3], "wage": 7.0 * i} for i in range(16)
        ],
        "wards": [{"ward": w, "floor": f} for w, f in (("A", 1), ("B", 2), ("B", 1), ("C", 2), (None, 1))],
    }


def make_catalog(limits: ContributionLimits, neighbours: Neighbours) -> Catalog:
    """What is declared of the clinic."""
    facts = {
        name: TableFacts(
            name=name,
            columns=columns,
            unit=Unit("person"),
            limits=limits,
            public=name == "wards",
            owner=OWNERS.get(name),
            link=LINKS.get(name),
            keys=(*KEYS.get(name, ()), *((LINKS[name],) if name in LINKS else ())),
        )
        for name, columns in TABLES.items()
    }
    return Catalog(tables=facts, neighbours=neighbours)


def make_lines() -> list[tuple[str, CuratorLine, tuple[str, ...]]]:
    """Limits, neighbours and budgets, with the questions to ask there."""
    groups, total = ContributionLimits(max_groups=2, max_rows_per_group=3), ContributionLimits(max_rows=4)
    approx, pure = Budget(epsilon=3, delta=1e-6), Budget(epsilon=3)
    add, replace = Neighbours.ADD_REMOVE, Neighbours.REPLACE
    offer: dict[str, Any] = {"epsilon": 1}
    # A price at which a few people are enough for a key to be named, so that what follows is audited as well.
    rich, plenty = Budget(epsilon=200, delta=0.01), {"epsilon": 60}
    by_weights = {"rho": 10, "delta": 0.001}
    settings: list[tuple[str, ContributionLimits, Neighbours, Budget, dict[str, Any], tuple[str, ...]]] = [
        ("clinic, groups", groups, add, approx, offer, PUBLIC_KEYS),
        ("clinic, bounded sums", groups, add, approx, {}, GOOGLE),
        ("clinic, private keys", groups, add, rich, by_weights, PRIVATE_KEYS),
        ("clinic, least units", groups, add, rich, {}, LEAST_UNITS),
        ("clinic, rows, replaced", total, replace, approx, offer, PUBLIC_KEYS),
        ("clinic, private keys, replaced", total, replace, rich, plenty, PRIVATE_KEYS),
        ("clinic, rows, pure", total, add, pure, offer, PUBLIC_KEYS),
        ("clinic, groups, replaced", groups, replace, Budget(rho=0.5), {"rho": 0.1}, PUBLIC_KEYS),
    ]
    return [
        (name, CuratorLine(catalog=make_catalog(limits, relation), budget=budget, offer=paid), asked)
        for name, limits, relation, budget, paid, asked in settings
    ]
