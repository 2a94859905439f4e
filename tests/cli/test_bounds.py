"""``discreet bounds``: previews, bounds, limits, JSON, refusals, and how it looks in a terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from discreet import demo
from tests.cli.commands import Run, on_terminal


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo without bounds of the cost, and with money to spend."""
    path = demo.write(tmp_path_factory.mktemp("demo"))
    text = path.read_text()
    assert "bounds = [0, 20_000], " in text and "epsilon = 3\n" in text
    path.write_text(text.replace("bounds = [0, 20_000], ", "").replace("epsilon = 3\n", "epsilon = 90\n"))
    return path.parent


def test_a_column_from_preview_to_codebook(run: Run, hospital: Path) -> None:
    """The preview is free; the bounds come with a picture and a line that the codebook takes; again is free."""
    code, out, err = run("bounds", hospital, "visits", "cost", "--epsilon", "8", "--preview")
    assert (code, err) == (0, "") and "nothing was charged" in out and "powers of two" in out
    assert json.loads(run("budget", hospital, "--json")[1])["charges"] == []
    code, out, _ = run("bounds", hospital, "visits", "cost", "--epsilon", "8")
    assert code == 0 and "512 to 1024" in out and "█" in out
    (line,) = re.findall(r"^    (bounds = \[0, \d+\])$", out, re.M)
    again = run("bounds", hospital, "visits", "cost", "--epsilon", "8")[1]
    assert "nothing: given before" in again
    assert len(json.loads(run("budget", hospital, "--json")[1])["charges"]) == 1
    text = hospital.read_text()
    hospital.write_text(text.replace('cost = { type = "real",', f'cost = {{ type = "real", {line},'))
    assert run("check", hospital)[0] == 0
    assert run("preview", hospital, "SELECT SUM(cost) AS s FROM visits", "--epsilon", "1")[0] == 0


def test_json_of_each_kind(run: Run, hospital: Path) -> None:
    """The same numbers as plain values."""
    shown = json.loads(run("bounds", hospital, "visits", "cost", "--epsilon", "8", "--preview", "--json")[1])
    assert shown["of"] == "visits.cost" and shown["above"] > 0 and shown["fits"]
    found = json.loads(run("bounds", hospital, "visits", "cost", "--epsilon", "8", "--json")[1])
    assert found["low"] == 0 and found["high"] >= 2**15 and found["codebook"] == f"bounds = [0, {found['high']:.0f}]"
    limits = json.loads(run("bounds", hospital, "visits", "--by", "ward", "--epsilon", "30", "--json")[1])
    assert limits["by"] == ["ward"] and 10 <= limits["max_rows"] <= 25 and 1 <= limits["max_groups"] <= 8
    rows = json.loads(run("bounds", hospital, "visits", "--epsilon", "20", "--share", "0.5", "--json")[1])
    assert rows["max_rows"] < limits["max_rows"] and rows["max_groups"] is None
    assert json.loads(run("bounds", hospital, "visits", "--epsilon", "1", "--preview", "--json")[1])["columns"]


def test_limits_for_the_codebook(run: Run, hospital: Path) -> None:
    """Both ways to limit a unit, ready to be copied."""
    code, out, _ = run("bounds", hospital, "visits", "--by", "ward", "--by", "emergency", "--epsilon", "30")
    assert code == 0 and "by ward, emergency" in out and "For the codebook, either:" in out
    assert re.search(r"^    max_rows = \d+\n  or:\n    max_groups = \d+\n    max_rows_per_group = \d+$", out, re.M)
    code, out, _ = run("bounds", hospital, "visits", "--epsilon", "20")
    assert code == 0 and "For the codebook:\n    max_rows = " in out and "or:" not in out


def test_too_little_offered(run: Run, hospital: Path) -> None:
    """Nothing is seen, and it says what to do; one time in a hundred noise is taken for bounds."""
    code, out, _ = run("bounds", hospital, "visits", "cost", "--epsilon", "0.000001")
    assert code == 0 and ("offer more" in " ".join(out.split()).lower() or "For the codebook" in out)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("visits", "cost"), "Say what it may cost"),
        (("visits", "cost", "--epsilon", "1", "--rho", "1"), "Say what it may cost"),
        (("visits", "cost", "--epsilon", "much"), "must be a number"),
        (("visits", "cost", "--epsilon", "-1"), "above zero"),
        (("visits", "ward", "--epsilon", "1"), "not a number"),
        (("visits", "cst", "--epsilon", "1"), "Did you mean 'cost'?"),
        (("nothing", "--epsilon", "1"), "no declared table"),
        (("visits", "cost", "--by", "ward", "--epsilon", "1"), "leave out the column"),
        (("visits", "--share", "2", "--epsilon", "1"), "share"),
        (("visits", "--by", "wrd", "--epsilon", "1"), "Did you mean 'ward'?"),
    ],
)
def test_refusals_are_free(run: Run, hospital: Path, arguments: tuple[str, ...], told: str) -> None:
    """Each wrong call says what is wrong, with exit code 2, and nothing is charged."""
    code, _, err = run("bounds", hospital, *arguments)
    assert code == 2 and told in " ".join(err.split())
    assert json.loads(run("budget", hospital, "--json")[1])["charges"] == []


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_a_terminal(hospital: Path, width: int) -> None:
    """No line is wider than the terminal, in colour and with progress."""
    for arguments in (("cost", "--preview"), ("cost",), ("--by", "ward")):
        code, seen = on_terminal("bounds", hospital, "visits", *arguments, "--epsilon", "8", width=width)
        assert code == 0 and "\x1b[" in seen
        lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", seen)]
        assert max(map(len, lines)) <= width
