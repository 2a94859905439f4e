"""Several tables: lab values reach their patient by a foreign key, wards are public.

Run it with ``python examples/several_tables.py``. All people in it are fictional.
"""

from __future__ import annotations

import pyarrow as pa

import discreet

VISITS = pa.table(
    {
        "visit_id": range(2000),
        "patient_id": [i % 700 for i in range(2000)],
        "ward": [("A", "B", "C")[i % 3] for i in range(2000)],
    }
)
LABS = pa.table({"visit_id": [i % 2000 for i in range(5000)], "value": [(i * 31) % 200 / 10 for i in range(5000)]})
WARDS = pa.table({"ward": ["A", "B", "C"], "floor": [1, 1, 2]})

BY_FLOOR = """
SELECT w.floor, COUNT(*) AS n, AVG(l.value) AS value
FROM labs l JOIN visits v ON l.visit_id = v.visit_id JOIN wards w ON v.ward = w.ward
GROUP BY w.floor
"""
PER_PATIENT = """
SELECT AVG(visits) AS visits
FROM (SELECT patient_id, COUNT(*) AS visits FROM visits GROUP BY patient_id) AS each_patient
"""


def main() -> None:
    """Join along the foreign key, compute with features of a patient, and see a join that is refused."""
    curator = discreet.curate(
        {"visits": VISITS, "labs": LABS, "wards": WARDS},
        unit="patient_id",
        foreign_keys={"labs.visit_id": "visits.visit_id"},
        public=["wards"],
        unique=["wards.ward"],
        max_rows=20,
        bounds={"labs.value": (0, 20)},
        keys={"wards.floor": [1, 2]},
        budget=discreet.Budget(epsilon=5, delta=1e-6),
    )
    print(curator.ask(BY_FLOOR, epsilon=2))
    print()
    print(curator.ask(PER_PATIENT, epsilon=1))
    try:
        curator.ask("SELECT COUNT(*) AS n FROM labs l JOIN visits v ON l.value = v.visit_id", epsilon=1)
    except discreet.DiscreetError as refusal:
        print("\nA join in which patients would meet is refused:\n" + str(refusal))


if __name__ == "__main__":
    main()
