"""Types proposed from values: those that people would choose, and one odd row changes none of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from discreet.codebook.data_files import inspect
from discreet.engines.proposal import TypeProposal
from discreet.engines.registry import count_unread, propose_types
from discreet.plan.csv_form import CsvEncoding, DateOrder
from discreet.plan.types import Type

# Values that repeat, and the type of their column.
COLUMNS = {
    "3750.0|12|NA|": Type.INTEGER,
    "1|0|1|0": Type.INTEGER,
    "1.5|2|3e4|-0.25": Type.REAL,
    "yes|no|Y|n": Type.BOOLEAN,
    "TRUE|FALSE|true|": Type.BOOLEAN,
    "2013-01-01|2013-12-31|2013/2/3|": Type.DATE,
    "2013-01-01 05:00:00|2013-01-01T10:00:00Z|2013-01-01 10:00|2013-01-01T05:00:00.123456789+02:00": Type.TIMESTAMP,
    "01234|02345|94110|10001": Type.TEXT,
    "a|b|1|2": Type.TEXT,
    "|||": Type.TEXT,
    "NA|null|-|": Type.TEXT,
}
NAMES = [f"c{i}" for i in range(len(COLUMNS))]


def lines_of(columns: Sequence[str], rows: int = 400) -> list[str]:
    cells = [values.split("|") for values in columns]
    return [";".join(values[i % len(values)] for values in cells) for i in range(rows)]


def propose(path: Path, lines: Sequence[str], names: Sequence[str], encoding: str = "utf-8") -> TypeProposal:
    path.write_text("\n".join([";".join(names), *lines]) + "\n", encoding=encoding)
    return propose_types(inspect(str(path)).sources["v"], "v")


def test_types_that_people_would_choose(tmp_path: Path) -> None:
    found = propose(tmp_path / "v.csv", lines_of(list(COLUMNS)), NAMES)
    assert list(found.types.values()) == list(COLUMNS.values())
    assert (found.form.decimal, found.form.thousands, found.form.dates) == (".", "", DateOrder.YMD)


@pytest.mark.parametrize(
    "odd", ["x", "1.5", "yes", "2013-01-01", "1,5", "1.234,5", "31.12.2013", "0007", "\udcff", '"']
)
def test_one_odd_row_changes_no_proposal(odd: str, tmp_path: Path) -> None:
    """Neighbours: what is proposed becomes public, so one row among thousands must not show in it."""
    lines = lines_of(list(COLUMNS), 2000)
    wanted = propose(tmp_path / "v.csv", lines, NAMES)
    path = tmp_path / "v.csv"
    extra = ";".join([odd] * len(NAMES)).encode("utf-8", "surrogateescape")
    path.write_bytes("\n".join([";".join(NAMES), *lines]).encode() + b"\n" + extra + b"\n")
    assert propose_types(inspect(str(path)).sources["v"], "v") == wanted


def test_numbers_as_written_elsewhere(tmp_path: Path) -> None:
    for cells, decimal, thousands in (
        ("1,5|2,25|-3,0|7", ",", ""),
        ("1.234,5|2,5|1.000.000,0|7", ",", "."),
        ("1 234,5|2,5|1 000 000,0|7", ",", " "),
        ("1'234.5|2.5|1'000'000.0|7", ".", "'"),
        ("1,234.5|2.5|1,000,000.0|7", ".", ","),
        ("1.5|2.5|1000000.0|7", ".", ""),
    ):
        found = propose(tmp_path / "v.csv", lines_of([cells, "1|2|3|4"]), ["x", "n"])
        assert found.types == {"x": Type.REAL, "n": Type.INTEGER}, cells
        assert (found.form.decimal, found.form.thousands) == (decimal, thousands)


def test_dates_as_written_elsewhere(tmp_path: Path) -> None:
    """The order is that in which all dates are dates; where both are possible nothing is guessed."""
    for cells, order, kind, doubtful in (
        ("31.12.2020|1.2.2021", DateOrder.DMY, Type.DATE, ()),
        ("12/31/2020|1/2/2021", DateOrder.MDY, Type.DATE, ()),
        ("31.12.2020 10:00|1.2.2021 11:30", DateOrder.DMY, Type.TIMESTAMP, ()),
        ("1.2.2021|3.4.2021", DateOrder.YMD, Type.TEXT, ("x",)),
    ):
        found = propose(tmp_path / "v.csv", lines_of([cells, "2020-01-31|2020-02-01"]), ["x", "iso"])
        assert found.types["iso"] is Type.DATE  # a year in front is read in every order
        assert (found.form.dates, found.types["x"], found.doubtful) == (order, kind, doubtful)


def test_latin_1_is_seen_in_the_rows(tmp_path: Path) -> None:
    """Also under a header in plain letters; a few lines that are not UTF-8 do not make a file Latin-1."""
    found = propose(tmp_path / "v.csv", ["1;é", "2;x"] * 50, ["n", "name"], "latin-1")
    assert found.form.encoding is CsvEncoding.LATIN1
    (tmp_path / "v.csv").write_bytes(b"n;name\n" + "1;é\n".encode() * 50 + b"2;\xe9\n" * 20)
    assert propose_types(inspect(str(tmp_path / "v.csv")).sources["v"], "v").form.encoding is CsvEncoding.UTF8


def test_what_would_be_lost_is_told_with_an_example(tmp_path: Path) -> None:
    """Exact numbers for the owner, by column; words for missing values are told apart."""
    lines = [*lines_of(["3750.0|12|NA|", "a|b|c|d"]), "n.d.;x", "old;y"]
    found = propose(tmp_path / "v.csv", lines, ["age", "ward"])
    data = inspect(str(tmp_path / "v.csv")).propose("v", found.form, found.types)
    report = count_unread(data.sources["v"], "v", found.types, {}, "age")
    assert [(u.column, u.reason, u.count, u.example, u.meant) for u in report.unread] == [
        ("age", "no integer", 2, "n.d.", False),
        ("age", "written as missing", 100, "NA", True),
        (None, "rows without a age", 202, None, False),
    ]


def test_thousands_of_columns(tmp_path: Path) -> None:
    """A wide file of texts: looked at, declared and asked without special care."""
    names = [f"c{i}" for i in range(1000)]
    found = propose(tmp_path / "v.csv", [";".join(["x"] * 999 + ["7"])] * 5, names)
    assert set(found.types.values()) == {Type.TEXT, Type.INTEGER} and found.types["c999"] is Type.INTEGER
