"""A first question: frames in memory, a preview that is free, an answer that is charged once.

Run it with ``python examples/first_question.py``. The visits are fictional.
"""

from __future__ import annotations

import pyarrow as pa

import discreet

VISITS = pa.table(
    {
        "patient_id": [i % 900 for i in range(3000)],
        "ward": [("Surgery", "Emergency", "Maternity")[i % 7 % 3] for i in range(3000)],
        "age": [(37 * (i % 900)) % 95 for i in range(3000)],
    }
)
QUESTION = "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward"


def main() -> None:
    """Declare, preview, ask, ask again."""
    curator = discreet.curate(
        {"visits": VISITS},
        unit="patient_id",  # all rows of one patient are protected together
        max_groups=3,
        max_rows_per_group=4,  # more rows of one patient do not count
        bounds={"age": (0, 110)},
        keys={"ward": ["Surgery", "Emergency", "Maternity"]},  # public, so no ward can give a patient away
        budget=discreet.Budget(epsilon=3, delta=1e-6),
    )
    print(curator.preview(QUESTION, epsilon=1))
    print()
    print(curator.ask(QUESTION, epsilon=1))
    print()
    again = curator.ask(QUESTION, epsilon=1)
    print("The same question again is free:", again.replayed)
    try:
        curator.ask("SELECT age FROM visits", epsilon=1)
    except discreet.DiscreetError as refusal:
        print("\nA question about one patient is refused:\n" + str(refusal))


if __name__ == "__main__":
    main()
