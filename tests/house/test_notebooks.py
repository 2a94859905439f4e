"""The notebooks in examples/ run in a stock kernel, and show what a run shows.

python -m tests.house.test_notebooks      runs them and writes what they show
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.worlds.kernel import run_notebook

FOLDER = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

# What noise changes: numbers, and the space and the lines that are as wide as they are.
_NUMBER, _SPACE = re.compile(r"-?[0-9][0-9,.]*"), re.compile(r"[\s─]+")


def load(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # nbformat has no types


def outline(outputs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The kinds of what a cell shows, and their texts without numbers. A library's own remarks are left out."""
    found = []
    for output in outputs:
        if output["output_type"] == "stream" and output["name"] == "stdout":
            found.append(("text", drop_noise(output["text"])))
        for kind, value in sorted(output.get("data", {}).items()):
            found.append((kind, drop_noise(value) if kind == "text/plain" else ""))
    return found


def drop_noise(text: str) -> str:
    """A text without its numbers and without space."""
    return _SPACE.sub("", _NUMBER.sub("#", text))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_run_and_show_what_they_store(path: Path, tmp_path: Path) -> None:
    """In a stock kernel, to the end. Stored outputs differ from new ones in what noise changes and in nothing else."""
    cells = [cell for cell in load(path).cells if cell.cell_type == "code"]
    stored = [outline(cell.outputs) for cell in cells]
    drawn = ["image/png" in dict(shown) for shown in stored]
    assert drawn == [".plot(" in cell.source for cell in cells] and any("text/html" in dict(shown) for shown in stored)
    assert [outline(outputs) for outputs in run_notebook(load(path), tmp_path)] == stored


def test_notebooks_are_listed() -> None:
    """Every notebook has a line on the page, and holds nothing of one machine."""
    page = (FOLDER / "README.md").read_text()
    assert NOTEBOOKS and all(f"[{path.name}]({path.name})" in page for path in NOTEBOOKS)
    assert not any(re.search(r"/(home|root|tmp|Users)/", path.read_text()) for path in NOTEBOOKS)


def test_an_outline_tells_outputs_apart() -> None:
    """Negative control: other words are another outline, other numbers are not."""
    texts = ("n  12 [1, 3]", "n 7 [-4, 33]", "m  12")
    one, two, other = ([{"output_type": "stream", "name": "stdout", "text": text}] for text in texts)
    assert outline(one) == outline(two) != outline(other)


if __name__ == "__main__":
    for each in NOTEBOOKS:
        made = load(each)
        run_notebook(made, FOLDER)
        for cell in made.cells:
            cell.metadata = {}
        made.metadata = {"kernelspec": made.metadata["kernelspec"], "language_info": {"name": "python"}}
        nbformat.write(made, each)  # type: ignore[no-untyped-call]  # nbformat has no types
