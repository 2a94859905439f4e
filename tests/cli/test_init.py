"""`discreet init` on real-looking files: leave is asked, types are proposed, and asking again keeps what was edited."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from discreet.codebook import Codebook
from tests.cli.commands import Run, on_terminal

SAID = ["--unit", "person", "--max-rows", "9", "--epsilon", "1"]


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """As pandas writes a frame with its index, under a long name."""
    rows = [f"{i},{i % 50},{i % 7}.0,{'yes' if i % 2 else 'no'},2024-01-0{i % 9 + 1}" for i in range(100)]
    path = tmp_path / "laboratory_values.csv"
    path.write_text("\n".join([",person,value,fasting,day", *rows, "100,Marker,1,no,2024-01-01"]) + "\n")
    return path


def test_types_and_what_would_be_lost(run: Run, lab: Path) -> None:
    """The example is for the owner's eyes; the codebook has no value, and the next command is one that works."""
    code, out, _ = run("init", lab, "--types", *SAID)
    text = lab.with_suffix(".toml").read_text()
    assert code == 0 and "laboratory_values.person: 1 no integer, such as 'Marker'" in out
    assert "Marker" not in text and re.search(r"^# column_1 = ", text, re.MULTILINE)
    columns = Codebook.read(text).catalog().tables["laboratory_values"].columns
    assert {name: str(kind) for name, (kind, _) in columns.items()} == {
        "person": "integer", "value": "integer", "fasting": "boolean", "day": "date",
    }  # fmt: skip
    command = out.rstrip().rpartition("Next: discreet ")[2]
    assert run(*command.split())[0] == 0
    shown = json.loads(run("init", lab, "--types", *SAID, "--json")[1])
    assert shown["unread"][0]["example"] == "Marker" and shown["added"] == []


def test_no_value_is_read_without_leave(run: Run, lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: with leave, the reader of values is called."""
    calls: list[object] = []
    monkeypatch.setattr("discreet.engines.registry.propose_types", lambda *given: calls.append(given))
    assert run("init", lab, *SAID)[0] == 0 and run("init", lab, "--no-types", "--yes")[0] == 0 and calls == []
    with pytest.raises(AttributeError):
        run("init", lab, "--types", *SAID)
    assert len(calls) == 1


def test_leave_is_asked_on_a_terminal(lab: Path) -> None:
    for typed, kind in (("n\nperson\n9\n1\n\n", "text"), ("y\nperson\n9\n1\n\n", "integer")):
        lab.with_suffix(".toml").unlink(missing_ok=True)
        code, seen = on_terminal("init", lab, typed=typed, width=60)
        assert code == 0 and "May the values of laboratory_values be read" in " ".join(seen.split()), seen
        columns = Codebook.load(lab.with_suffix(".toml")).catalog().tables["laboratory_values"].columns
        assert columns["value"][0] == kind


@pytest.mark.parametrize("width", [60, 80])
def test_sentences_fit_the_width(run: Run, lab: Path, width: int) -> None:
    """Commands stay on one line, so that they can be copied."""
    for options in ([], ["--types"], ["--types", *SAID]):
        _, out, _ = run("init", lab, "--yes", *options, width=width)
        lines = out.splitlines()
        assert all(len(line) <= width or "discreet " in line for line in lines)
        assert lines[-1].startswith("Next: discreet ")


def test_asking_again_keeps_what_was_edited(run: Run, lab: Path) -> None:
    """First the header, then an edit, then types and answers, then a new column in the data."""
    book = lab.with_suffix(".toml")
    run("init", lab, "--yes")
    book.write_text(
        re.sub("^value = .*$", 'value = { type = "integer", bounds = [0, 6] }', book.read_text(), flags=re.M)
    )
    code, out, _ = run("init", lab, "--types", *SAID)
    out = " ".join(out.split())
    assert code == 0 and "filled in unit, epsilon, max_rows; wrote the types of person, fasting, day." in out
    assert "bounds = [0, 6]" in book.read_text()
    lab.write_text(lab.read_text().replace("day\n", "day,diagnosis\n", 1))
    code, out, _ = run("init", lab, "--epsilon", "7")
    out = " ".join(out.split())
    assert "laboratory_values.diagnosis (as a comment)" in out and "not taken, because it was edited: epsilon" in out
    assert "diagnosis" not in Codebook.load(book).catalog().tables["laboratory_values"].columns


def test_parts_of_one_table(run: Run, tmp_path: Path) -> None:
    """Files that a shell has listed one by one are seen to be one table; a pattern gives it its name."""
    for part in ("01", "02"):
        (tmp_path / f"trips-{part}.csv").write_text("person|minutes\n1|2\n")
    files = [tmp_path / f"trips-{part}.csv" for part in ("01", "02")]
    _, out, _ = run("init", *files, "--yes", "--out", tmp_path / "x.toml")
    pattern = str(tmp_path / "trips-*.csv")
    assert f"discreet init '{pattern}'" in out
    assert run("init", pattern, *SAID, "--types", "--yes")[0] == 0
    assert set(Codebook.load(tmp_path / "trips.toml").sources) == {"trips"}
    code, out, _ = run("ask", tmp_path / "trips.toml", "SELECT COUNT(*) AS n FROM trips", "--epsilon", "0.5")
    assert code == 0


@pytest.mark.parametrize(
    ("path", "command"),
    [("https://example.org/a.csv", "curl -L -o a.csv"), ("s3://b/a.csv", "aws s3 cp"), ("a.xlsx", "read_excel"),
     ("a.jsonl", "discreet import a.jsonl --out a.parquet"), ("a.sqlite", "discreet import a.sqlite --table NAME")],
)  # fmt: skip
def test_other_files_are_refused_with_the_command(run: Run, path: str, command: str) -> None:
    code, _, err = run("init", path, "--yes")
    assert code == 2 and command in " ".join(err.split())
    if "://" in path:
        code, _, err = run("import", path, "--out", "a.parquet")
        assert code == 2 and command in " ".join(err.split())
