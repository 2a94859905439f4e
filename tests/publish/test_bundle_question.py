"""Tests of questions to a bundle: what is promised holds, and the rest is called a model."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from discreet.entropy import SeededForTestsOnly
from discreet.errors import UsageError
from discreet.plan.expressions import Column
from discreet.plan.types import Type
from discreet.publish.allocation import allocate
from discreet.publish.bundle import Bundle
from discreet.publish.bundle_question import BundleAnswer, answer_question
from discreet.publish.columns import PublishedColumn
from discreet.publish.measurements import Measurements, measure
from discreet.publish.publication import publish
from discreet.publish.synthetic_table import SyntheticTable
from discreet.publish.workload import Workload
from tests.publish.cubes import make_tables
from tests.publish.releases import make_plan, open_clinic


def make_column(name: str, kind: Type, values: tuple[str, ...] | None = None, fine: int = 0) -> PublishedColumn:
    starts = tuple(range(fine))
    column = Column("release", name, kind)
    return PublishedColumn(
        name=name, kind=kind, expression=column, nullable=True, values=values, fine=fine, starts=starts
    )


# Cells: NULL, other, A, B for wards; NULL, other, f, m for sexes; NULL, 0 to 3 for floors.
COLUMNS = (
    make_column("ward", Type.TEXT, ("A", "B")),
    make_column("sex", Type.TEXT, ("f", "m")),
    make_column("floor", Type.INTEGER, fine=4),
)
WORKLOAD = Workload.of_ways((4, 4, 5), 2, one_way_weight=10)
CUBE = np.random.default_rng(2).integers(0, 300, WORKLOAD.sizes)
LEVEL = Fraction(19, 20)


def draw(seed: int) -> Measurements:
    return measure(make_tables(CUBE, WORKLOAD), allocate(WORKLOAD, Fraction(1, 9)), source=SeededForTestsOnly(seed))


def ask(sql: str, seed: int = 0) -> BundleAnswer:
    rows = SyntheticTable(pa.table({"ward": ["A", "B"], "sex": ["f", "m"], "floor": [1, 2]}))
    return answer_question(sql, draw(seed), COLUMNS, LEVEL, rows)


PROMISED = {
    "SELECT COUNT(*) AS n FROM release": CUBE.sum(),
    "SELECT COUNT(*) AS n FROM release WHERE ward = 'A'": CUBE[2].sum(),
    "SELECT COUNT(*) AS n FROM release WHERE ward IN ('A', 'B') AND sex = 'f'": CUBE[2:, 2].sum(),
    "SELECT COUNT(*) AS n FROM release WHERE floor >= 2 AND sex = 'm'": CUBE[:, 3, 3:].sum(),
    "SELECT COUNT(*) AS n FROM release WHERE floor IS NULL": CUBE[:, :, 0].sum(),
}


@pytest.mark.parametrize("sql", PROMISED)
def test_promised_intervals_cover(sql: str) -> None:
    """93 to 97% over 200 draws would be too narrow for so few: six standard errors of 95%."""
    covered = []
    for seed in range(200):
        answer = ask(sql, seed)
        (row,) = answer.rows.to_pylist()
        assert answer.promised
        assert row["n_low"] <= row["n"] <= row["n_high"]
        covered.append(row["n_low"] <= PROMISED[sql] <= row["n_high"])
    assert np.mean(covered) >= 0.95 - 6 * 0.0155


def test_all_promised_intervals_together_cover_93_to_97_percent() -> None:
    """Control: intervals of half the width, as if the noise were half as large, are far from it."""
    covered, halved = [], []
    for seed in range(600):
        for place, row in enumerate(
            ask("SELECT ward, COUNT(*) AS n FROM release GROUP BY ward", seed).rows.to_pylist()
        ):
            if row["ward"] is not None:
                off = abs(CUBE[2 + place, :, :].sum() - (row["n_low"] + row["n_high"]) / 2)
                width = (row["n_high"] - row["n_low"]) / 2
                covered.append(off <= width)
                halved.append(off <= width / 2)
    assert 0.93 <= np.mean(covered) <= 0.97
    assert np.mean(halved) < 0.75


def test_groups_are_the_listed_ones() -> None:
    rows = ask("SELECT ward, COUNT(*) AS n FROM release GROUP BY ward").rows.to_pylist()
    assert [row["ward"] for row in rows] == ["A", "B", None]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM release WHERE ward <> 'A'",  # other wards count too, and cannot be told
        "SELECT COUNT(*) AS n FROM release WHERE ward = 'Q'",  # one of the others
        "SELECT COUNT(*) AS n FROM release WHERE ward = 'A' AND sex = 'f' AND floor = 1",  # no table has all three
        "SELECT AVG(floor) AS a FROM release",
        "SELECT ward, COUNT(*) AS n FROM release GROUP BY ward ORDER BY n DESC LIMIT 1",
        "SELECT ward, floor, row_number() OVER (ORDER BY floor) AS r FROM release",
    ],
)
def test_what_cannot_be_promised_is_a_model(sql: str) -> None:
    answer = ask(sql)
    assert not answer.promised
    assert "model only" in repr(answer)


def test_a_model_sees_nothing_but_the_rows(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    for sql in (f"SELECT * FROM read_csv('{tmp_path}/secret.csv')", "COPY release TO 'x.csv'", "SELECT * FROM visits"):
        with pytest.raises(UsageError):
            ask(sql)


def test_without_rows_only_promises_can_be_asked() -> None:
    with pytest.raises(UsageError, match="no rows to ask"):
        answer_question("SELECT AVG(floor) AS a FROM release", draw(0), COLUMNS, LEVEL, None)


def test_bins_are_not_promised(tmp_path: Path) -> None:
    """A bin of ages does not say who is above 33, but a whole column can be left out of the condition."""
    publish(make_plan(), curator=open_clinic(), out=tmp_path / "b")
    bundle = Bundle.load(tmp_path / "b")
    assert not bundle.ask("SELECT COUNT(*) AS n FROM release WHERE age > 33").promised
    assert bundle.ask("SELECT COUNT(*) AS n FROM release WHERE ward = 'A'").promised
    few = bundle.synthetic.filter(ward="A", sex="f")
    assert 0 < len(few) < len(bundle.synthetic)
