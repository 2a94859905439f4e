"""The lectures as notebooks: what the pages say, and they run in a stock kernel."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from website.notebooks import FOLDER, make_notebook, write_list, write_notebook

from discreet.lectures import Lecture, list_lectures
from tests.worlds.kernel import run_notebook

LECTURES = list_lectures()


def flatten(text: str) -> str:
    """A text without space and colours: a notebook breaks long values on lines of its own."""
    return re.sub(r"\s|\x1b\[[0-9;]*m", "", text)


def tell(outputs: list[dict[str, Any]]) -> str:
    """What a cell shows: printed lines and the last value; of an error its message."""
    texts = []
    for output in outputs:
        match output["output_type"]:
            case "stream":
                texts.append(output["text"] if output["name"] == "stdout" else "")
            case "error":
                texts.append(f"{output['ename']}: {output['evalue']}")
            case _:
                texts.append("a picture" if "image/png" in output["data"] else output["data"]["text/plain"])
    return flatten("".join(texts))


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_a_notebook_is_what_its_page_says(lecture: Lecture) -> None:
    """If not: python -m website.notebooks."""
    assert (FOLDER / f"{lecture.name}.ipynb").read_text() == write_notebook(lecture)


def test_links_of_notebooks_lead_somewhere() -> None:
    """To notebooks and pages that exist; the list has all of them."""
    assert (FOLDER / "README.md").read_text() == write_list()
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {lecture.name for lecture in LECTURES}
    for lecture in LECTURES:
        texts = " ".join(cell["source"] for cell in make_notebook(lecture)["cells"] if cell["cell_type"] == "markdown")
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", texts):
            assert (FOLDER / target).resolve().is_file(), (lecture.name, target)


def test_all_notebooks_run(tmp_path: Path) -> None:
    """One stock kernel runs all of them, one after the other with no names left, and shows what the pages show."""
    blank: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": "%reset -f",
    }
    cells = [cell for lecture in LECTURES for cell in [blank, *make_notebook(lecture)["cells"]]]
    stored = [tell(cell["outputs"]) for cell in cells if cell["cell_type"] == "code"]
    document = json.dumps({**make_notebook(LECTURES[0]), "cells": cells})
    shown = run_notebook(nbformat.reads(document, as_version=4), tmp_path)  # type: ignore[no-untyped-call]  # nbformat has no types
    pictures = 0
    for text, outputs, cell in zip(stored, shown, [cell for cell in cells if cell["cell_type"] == "code"], strict=True):
        seen = tell(outputs)
        pictures += seen == "apicture"
        assert text == seen or (not text and seen in ("", "apicture")), cell["source"]
    assert pictures == sum(lecture.text.count("<!-- picture") for lecture in LECTURES)


def test_cells_end_where_something_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: two values need two cells, an error does not end the run, and another page is another file."""
    error = "Traceback (most recent call last):\n    ...\nZeroDivisionError: division by zero"
    text = f"# T\n\n```pycon\n>>> a = 1\n>>> a\n1\n>>> b = 2\n>>> 1 / 0\n{error}\n\n```\n"
    monkeypatch.setattr(Lecture, "text", property(lambda _: text))
    cells = make_notebook(LECTURES[0])["cells"]
    assert [cell["source"] for cell in cells] == ["# T", "a = 1\na", "b = 2\n1 / 0"]
    assert cells[2]["metadata"] == {"tags": ["raises-exception"]} and tell(cells[1]["outputs"]) == "1"
