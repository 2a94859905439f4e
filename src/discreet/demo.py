"""Makes the demo: fictional hospital data, the same on every machine, and a codebook for it.

There are 12,000 patients, their 60,000 visits, 30,000 laboratory results of these visits, and the wards, which are
public. Nobody in the data exists. It looks like real data where that matters for privacy: a few patients come very
often, some values are missing, some are typing errors far outside what is possible, many diagnoses are rare, and some
results belong to no known visit.

The numbers are drawn from a hash of fixed words, so they are repeatable. They are useless as privacy noise, which comes
from ``entropy.py`` alone.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.exact import Integers

PATIENTS, VISITS, LABS = 12_000, 60_000, 30_000
FIRST_VISIT = 1_000_000
MOST_VISITS = 20  # of one patient, as the codebook says
FIRST_DAY, DAYS = dt.date(2024, 1, 1), 366
WARDS = ("Cardiology", "Emergency", "Geriatrics", "Maternity", "Oncology", "Paediatrics", "Psychiatry", "Surgery")
DISTRICTS = ("Bridge End", "Castle", "Fairfield", "Harbour", "Mill Lane", "Northgate", "Old Town", "Riverside")
LETTERS = "ACEFGIJKMNRST"
# For each ward its floor, beds and specialty. Everybody may know them.
PLACES = ((2, 28, "medicine"), (0, 16, "acute"), (1, 34, "medicine"), (3, 22, "women and children"),
          (4, 26, "medicine"), (3, 30, "women and children"), (5, 40, "mental health"), (2, 48, "surgery"))  # fmt: skip
# For each test its minimum, median, 90 % quantile and maximum, in tenths.
TESTS = {
    "CRP": (1, 60, 900, 4500),
    "Creatinine": (300, 780, 1300, 9000),
    "Glucose": (25, 55, 98, 410),
    "Haemoglobin": (450, 1350, 1580, 2000),
    "Potassium": (22, 41, 48, 78),
    "Sodium": (1120, 1400, 1445, 1690),
}

CODEBOOK = """\
# The codebook of a fictional hospital. Everything in this file is public; nothing in it was read from the data.
# Every word is explained by: discreet help codebook     After a change: discreet check hospital.toml
name = "hospital"
description = "Visits to a fictional hospital in 2024."

unit = "patients.patient_id"     # who is protected: everything that one patient has in all tables
neighbours = "add-remove"        # nobody learns whether a patient is in the data at all

[budget]                         # for all questions of all analysts together, for ever
epsilon = 3
delta = 1e-6

[tables.visits]
source = "visits.parquet"        # relative to this file
foreign_keys = { ward = "wards.ward" }
max_rows = 20                    # what a patient has beyond 20 visits counts less; here nobody has more
rows = 60_000                    # public, roughly; used to judge expected errors
units = 12_000

[tables.visits.columns]
visit_id = "integer"
patient_id = "integer"
arrival = { type = "date", bounds = [2024-01-01, 2024-12-31], bins = { width = "day" }, nullable = false }
ward = { type = "text", keys = [
    "Cardiology", "Emergency", "Geriatrics", "Maternity", "Oncology", "Paediatrics", "Psychiatry", "Surgery",
] }
emergency = { type = "boolean", nullable = false }
age = { type = "integer", bounds = [0, 110] }                      # values beyond are typing errors
sex = { type = "text", keys = ["female", "male"], null_key = true, constant_per_unit = true }
length_of_stay = { type = "integer", bounds = [0, 60] }            # days
cost = { type = "real", bounds = [0, 20_000], resolution = 0.01 }  # euros and cents
diagnosis = "text"               # no public list: rare ones stay unnamed

[tables.patients]
source = "patients.parquet"
max_rows = 1
rows = 12_000
units = 12_000

[tables.patients.columns]
patient_id = "integer"
birth_year = { type = "integer", bounds = [1910, 2024], constant_per_unit = true }
sex = { type = "text", keys = ["female", "male"], null_key = true, constant_per_unit = true }
district = { type = "text", constant_per_unit = true, nullable = false, keys = [
    "Bridge End", "Castle", "Fairfield", "Harbour", "Mill Lane", "Northgate", "Old Town", "Riverside",
] }
smoker = { type = "boolean", constant_per_unit = true }

[tables.labs]                    # names no patient: the visit does
source = "labs.parquet"
foreign_keys = { visit_id = "visits.visit_id" }
max_rows = 20
rows = 30_000
units = 12_000

[tables.labs.columns]
lab_id = "integer"
visit_id = "integer"
test = { type = "text", nullable = false, keys = [
    "CRP", "Creatinine", "Glucose", "Haemoglobin", "Potassium", "Sodium",
] }
value = { type = "real", bounds = [0, 500], resolution = 0.1 }

[tables.wards]
public = true                    # its rows belong to nobody, and everyone may know them
source = "wards.parquet"
rows = 8

[tables.wards.columns]
ward = { type = "text", unique = true, nullable = false, keys = [
    "Cardiology", "Emergency", "Geriatrics", "Maternity", "Oncology", "Paediatrics", "Psychiatry", "Surgery",
] }
floor = { type = "integer", bounds = [0, 5], nullable = false, keys = [0, 1, 2, 3, 4, 5] }
beds = { type = "integer", bounds = [0, 60], nullable = false }
specialty = { type = "text", nullable = false, keys = [
    "acute", "medicine", "mental health", "surgery", "women and children",
] }
"""


def write(folder: Path) -> Path:
    """Write the demo's files into a folder and return the path of the codebook. Files that exist are kept."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    codebook = folder / "hospital.toml"
    files = {name: folder / f"{name}.parquet" for name in ("patients", "visits", "labs", "wards")}
    if not all(file.exists() for file in files.values()):
        for name, table in make_tables().items():
            pq.write_table(table, files[name])
    if not codebook.exists():
        codebook.write_text(CODEBOOK, encoding="utf-8")
    return codebook


def make_tables() -> dict[str, Any]:
    """The patients, the visits, the laboratory results and the wards, as Arrow tables."""
    import pyarrow as pa

    patients = _make_patients()
    made = {"patients": patients, "visits": _make_visits(patients), "labs": _make_labs(), "wards": _make_wards()}
    return {name: pa.table(_to_arrays(columns)) for name, columns in made.items()}


def _draw_whole(word: str, count: int) -> Integers:
    """Whole numbers below 2^30 from a hash of a word."""
    raw = hashlib.shake_256(f"fictional hospital: {word}".encode()).digest(4 * count)
    return (np.frombuffer(raw, dtype="<u4") >> 2).astype(np.int64)


def _draw_flags(word: str, count: int, share: float) -> npt.NDArray[np.bool_]:
    """True for about this share of places."""
    return _draw_whole(word, count) < int(share * 2**30)


def _draw_shaped(word: str, count: int, shares: list[int], values: list[int]) -> Integers:
    """Whole numbers with given quantiles: ``values`` at the ``shares`` (of 1000), with straight lines between them.

    The arithmetic is in integers, so that every machine gets the same numbers.
    """
    place = 1000 * _draw_whole(word, count)
    edges, levels = np.array(shares, dtype=np.int64) << 30, np.array(values, dtype=np.int64)
    at = np.searchsorted(edges[1:-1], place, side="right")
    drawn: Integers = levels[at] + (place - edges[at]) * np.diff(levels)[at] // np.diff(edges)[at]
    return drawn


def _draw_places(word: str, count: int, weights: list[int]) -> Integers:
    """Places in a list, chosen with these weights."""
    edges = np.cumsum(np.array(weights, dtype=np.int64))
    places: Integers = np.searchsorted(edges, _draw_whole(word, count) * edges[-1] >> 30, side="right").astype(np.int64)
    return places


def _make_patients() -> dict[str, Any]:
    count = PATIENTS
    return {
        "patient_id": 100_000 + 7 * np.arange(count),
        "birth_year": 2024 - _draw_shaped("birth", count, [0, 150, 400, 750, 970, 1000], [0, 12, 38, 67, 88, 104]),
        "sex": _pick(["female", "male", None], _draw_places("sex", count, [51, 47, 2])),
        "district": _pick([*DISTRICTS], _draw_places("district", count, [5, 9, 14, 7, 21, 16, 18, 10])),
        "smoker": _pick([True, False, None], _draw_places("smoker", count, [17, 71, 12])),
    }


def _make_visits(patients: dict[str, Any]) -> dict[str, Any]:
    owner = _draw_owners()
    age = 2024 - patients["birth_year"][owner]
    ward = _draw_wards(owner, age, patients["sex"][owner])
    stay = _draw_shaped("stay", VISITS, [0, 350, 700, 930, 995, 1000], [0, 1, 4, 14, 45, 320])
    return {
        "visit_id": FIRST_VISIT + np.arange(VISITS),
        "patient_id": patients["patient_id"][owner],
        "arrival": np.datetime64(FIRST_DAY) + (_draw_whole("arrival", VISITS) * DAYS >> 30).astype("timedelta64[D]"),
        "ward": _pick([*WARDS, None], np.where(_draw_flags("lost ward", VISITS, 0.004), len(WARDS), ward)),
        "emergency": (ward == WARDS.index("Emergency")) | (_draw_flags("urgent", VISITS, 0.18)),
        "age": _mistype(age),
        "sex": patients["sex"][owner],
        "length_of_stay": _pick([None, *range(400)], np.where(_draw_flags("lost stay", VISITS, 0.02), 0, stay + 1)),
        "cost": _draw_costs(stay),
        "diagnosis": _draw_diagnoses(ward),
    }


def _make_labs() -> dict[str, Any]:
    """Results of visits. For some the visit is missing, and some name a visit that does not exist."""
    visit = FIRST_VISIT + (_draw_whole("sample", LABS) * VISITS >> 30)
    visits: Any = np.where(_draw_flags("wrong visit", LABS, 0.006), visit + 7 * VISITS, visit).astype(object)
    visits[_draw_flags("lost visit", LABS, 0.011)] = None
    test = _draw_places("test", LABS, [16, 19, 18, 20, 14, 13])
    drawn = np.array([_draw_shaped(f"{name} value", LABS, [0, 500, 900, 1000], list(at)) for name, at in TESTS.items()])
    tenths = drawn[test, np.arange(LABS)]
    values = (np.where(_draw_flags("slipped value", LABS, 0.0008), 100 * tenths, tenths) / 10).astype(object)
    values[_draw_flags("lost value", LABS, 0.02)] = None
    return {
        "lab_id": 1 + np.arange(LABS),
        "visit_id": visits,
        "test": _pick([*TESTS], test),
        "value": values,
    }


def _make_wards() -> dict[str, Any]:
    floors, beds, specialties = zip(*PLACES)
    return {
        "ward": np.array(WARDS, dtype=object),
        "floor": np.array(floors, dtype=np.int64),
        "beds": np.array(beds, dtype=np.int64),
        "specialty": np.array(specialties, dtype=object),
    }


def _draw_owners() -> Integers:
    """The patient of each visit. Every patient has one visit at least, and a few have all that the codebook allows."""
    more = _draw_shaped("often", PATIENTS, [0, 500, 900, 990, 1000], [0, 3, 11, 18, MOST_VISITS])
    again = np.repeat(np.arange(PATIENTS), np.minimum(more, MOST_VISITS - 1))
    again = again[np.argsort(_draw_whole("again", again.size), kind="stable")]
    owner = np.concatenate([np.arange(PATIENTS), again[: VISITS - PATIENTS]])
    shuffled: Integers = owner[np.argsort(_draw_whole("order", VISITS), kind="stable")]
    return shuffled


def _draw_wards(owner: Integers, age: Integers, sex: Any) -> Integers:
    """The ward of each visit. Most patients return to one ward; some wards are for children, mothers or old people."""
    usual = _draw_places("usual ward", PATIENTS, [17, 24, 9, 6, 10, 9, 7, 18])[owner]
    ward = np.where(
        _draw_flags("other ward", VISITS, 0.3), _draw_places("ward", VISITS, [12, 30, 5, 5, 6, 8, 6, 20]), usual
    )
    index = WARDS.index
    surgery = index("Surgery")
    ward = np.where((ward == index("Geriatrics")) & (age < 60), surgery, ward)
    ward = np.where((ward == index("Maternity")) & ((sex != "female") | (age < 16) | (age > 50)), surgery, ward)
    ward = np.where((ward == index("Paediatrics")) & (age > 17), surgery, ward)
    return np.where((age < 12) & (ward == surgery), index("Paediatrics"), ward)


def _mistype(age: Integers) -> Any:
    """Ages as people type them: some are missing and some are impossible."""
    typed = np.where(
        _draw_flags("unknown age", VISITS, 0.001), 999, np.where(_draw_flags("slip", VISITS, 0.0005), -1, age)
    )
    return _pick([None, *range(-1, 1000)], np.where(_draw_flags("lost age", VISITS, 0.015), 0, typed + 2))


def _draw_costs(stay: Integers) -> Any:
    """Costs in euros. Longer stays cost more, some costs are missing, and a few have a wrong decimal point."""
    cents = _draw_shaped("cost", VISITS, [0, 500, 900, 990, 1000], [40_00, 310_00, 900_00, 4_000_00, 15_000_00])
    cents += stay * _draw_shaped("daily", VISITS, [0, 500, 1000], [120_00, 260_00, 700_00])
    cents = np.where(_draw_flags("slipped", VISITS, 0.0004), 1000 * cents, cents)
    costs = (cents / 100).astype(object)
    costs[_draw_flags("lost cost", VISITS, 0.03)] = None
    return costs


def _draw_diagnoses(ward: Integers) -> Any:
    """Codes such as I-12 with a long tail, so that many are rare."""
    rank = _draw_shaped("diagnosis", VISITS, [0, 300, 500, 700, 900, 990, 1000], [0, 1, 3, 12, 40, 150, 400])
    letter = np.where(_draw_flags("letter", VISITS, 0.8), ward, _draw_places("any letter", VISITS, [1] * len(LETTERS)))
    codes = [f"{LETTERS[first]}-{number:02d}" for first, number in zip(letter.tolist(), rank.tolist())]
    return np.array(codes, dtype=object)


def _pick(values: list[Any], places: Integers) -> Any:
    return np.array(values, dtype=object)[places]


def _to_arrays(columns: dict[str, Any]) -> dict[str, Any]:
    import pyarrow as pa

    return {name: pa.array(values.tolist() if values.dtype.kind == "O" else values) for name, values in columns.items()}
