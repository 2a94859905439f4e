"""Questions in cells: previewed in a line, asked for what is offered, and refused in a few words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from discreet.answer import Answer
from discreet.errors import UsageError
from discreet.magic import run_cell
from discreet.preview import Preview
from tests.worlds.kernel import run_cells
from tests.worlds.visits import BY_WARD, curator

GOOGLE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7) ward, COUNT(*) AS n FROM visits GROUP BY ward"


def test_a_cell_is_previewed_and_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """With one line above the answer; the answer is kept under a name, and the offer is exact."""
    names: dict[str, Any] = {"holder": curator()}
    answer = run_cell("--share 1/10 --level 0.9 --as wards", BY_WARD, names)
    assert isinstance(answer, Answer) and names["wards"] is answer and answer.receipt["level"] == "90%"
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("n ± ") and "age ± " in line and "cost 1/10 of the budget" in line
    assert len(names["holder"].history()) == 1
    other = run_cell("holder --error n=60 --error age=9 --group-size 500", BY_WARD, names)
    assert isinstance(other, Answer) and other.replayed  # it follows from the draw before


@pytest.mark.parametrize("line", ["", "--preview --epsilon 1", "--level 0.9 --as later"])
def test_without_an_offer_nothing_is_charged(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The preview is the result; it says how to ask where nothing was offered."""
    names: dict[str, Any] = {"holder": curator(), "_": curator()}
    shown = run_cell(line, BY_WARD, names)
    assert isinstance(shown, Preview) and not names["holder"].history()
    assert ("To ask, offer something" in capsys.readouterr().out) == ("--epsilon" not in line)
    assert names.get("later", shown) is shown


def test_a_text_may_state_its_own_offer() -> None:
    """As GoogleSQL does: that is an offer, and another one beside it is refused."""
    names: dict[str, Any] = {"holder": curator()}
    assert isinstance(run_cell("", GOOGLE, names), Answer)
    with pytest.raises(UsageError, match="said twice"):
        run_cell("--epsilon 1", GOOGLE, names)


@pytest.mark.parametrize(
    ("line", "names", "words"),
    [
        ("--share x", {"a": curator()}, "must be a number such as 0.1 or 1/10"),
        ("--share 1/0", {"a": curator()}, "must be a number"),
        ("--shar 1", {"a": curator()}, "unrecognized arguments: --shar"),
        ("--error 5", {"a": curator()}, "must name a column: n=12"),
        ("b --share 1", {"a": curator(), "b": 3}, "'b' is no curator here. Curators: a"),
        ("b", {}, "there is none yet"),
        ("", {}, "has no curator. Make one"),
        ("", {"a": curator(), "b": curator()}, r"several curators \(a, b\). Name one"),
    ],
)
def test_wrong_words_are_refused(line: str, names: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        run_cell(line, BY_WARD, names)
    assert str(refused.value).endswith("Nothing was charged.")


CELLS = [
    """
import discreet, pyarrow as pa
visits = pa.table({"ward": ["A", "B"] * 500, "age": [30] * 1000})
holder = discreet.curate({"visits": visits}, keys={"ward": ["A", "B"]}, budget=discreet.Budget(epsilon=9))
""",
    "%load_ext discreet",
    "%%discreet --share 1/3 --as wards\nSELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "wards['ward']",
    "%%discreet --share 2\nSELECT COUNT(*) AS n FROM visits",
    "def look():\n    return holder.table('visits').head()\nlook()",
]


def test_cells_in_a_stock_notebook(tmp_path: Path) -> None:
    """The magic is there after %load_ext, and refusals show the caller's lines and no line of discreet."""
    _, loaded, asked, kept, refused, head = run_cells(CELLS, tmp_path)
    assert loaded == "" and "n ± " in asked and "noise 95%" in asked and kept == "['A', 'B']"
    assert refused.startswith("UsageError: share is 2, more than the whole budget") and "Traceback" not in refused
    assert head.splitlines()[0] == "line 3: look()" and "head()" in head.splitlines()[1]
    assert "UsageError: Rows of 'visits' cannot be shown" in head and "src/discreet" not in head
