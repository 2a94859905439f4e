"""The lectures as notebooks, made from the pages: python -m website.notebooks.

Text becomes cells of text, a session becomes cells of code with what it shows. A cell ends where the page shows
something, because a notebook shows the last value of a cell only.
"""

from __future__ import annotations

import doctest
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from discreet.lectures import Lecture, list_lectures
from website.navigation import ROOT

FOLDER = ROOT / "examples" / "lectures"
"""Where the notebooks are."""

_PART = re.compile(r"```pycon\n(?P<code>.*?)\n```|<!-- picture: (?P<picture>.+?) -->", re.S)
_LINK = re.compile(r"\]\((?!https?:)([\w./-]+)\.md(#[\w-]*)?\)")
_SHOW = """from IPython.display import Image
from discreet.pictures import encode_figure

Image(encode_figure(figure, "png"))"""


def make_notebook(lecture: Lecture) -> dict[str, Any]:
    """A notebook of one lecture, with the texts that its code shows; pictures appear when it is run."""
    cells: list[dict[str, Any]] = []
    place = 0
    text = lecture.text
    for part in _PART.finditer(text):
        cells += _write_text(text[place : part.start()])
        cells += [_write_code(_SHOW)] if part["code"] is None else _write_session(part["code"])
        place = part.end()
    cells += _write_text(text[place:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}


def write_notebook(lecture: Lecture) -> str:
    """The notebook as the text of its file."""
    return json.dumps(make_notebook(lecture), ensure_ascii=False, indent=1) + "\n"


def write_list() -> str:
    """The page that lists the notebooks."""
    rows = (f"| [{each.name}.ipynb]({each.name}.ipynb) | {each.about} |" for each in list_lectures())
    made = "Made from [the pages](../../docs/lectures/README.md) by `python -m website.notebooks`."
    head = f"# The lectures as notebooks\n\n{made} A test runs all of them in a stock kernel.\n"
    return "\n".join([head, "| | |", "|---|---|", *rows, ""])


def _write_text(text: str) -> Iterator[dict[str, Any]]:
    linked = _LINK.sub(lambda link: _point(link[1], link[2] or ""), text).strip()
    if linked:
        yield {"cell_type": "markdown", "metadata": {}, "source": linked}


def _point(name: str, anchor: str) -> str:
    """A link of a page, from where the notebooks are: to another notebook, or to a page."""
    if "/" not in name and name != "README":
        return f"]({name}.ipynb)"
    return f"](../../docs/lectures/{name}.md{anchor})".replace("lectures/../", "")


def _write_session(session: str) -> Iterator[dict[str, Any]]:
    lines: list[str] = []
    for example in doctest.DocTestParser().get_examples(f"{session}\n"):
        lines.append(example.source.rstrip("\n"))
        if example.want or example.exc_msg is not None:
            yield _write_code("\n".join(lines), example)
            lines = []
    if lines:
        yield _write_code("\n".join(lines))


def _write_code(source: str, example: doctest.Example | None = None) -> dict[str, Any]:
    shown: list[Mapping[str, Any]] = []
    metadata: dict[str, Any] = {}
    if example is not None and example.exc_msg is not None:
        name, _, message = example.exc_msg.strip().partition(": ")
        name = name.rpartition(".")[2]
        shown = [{"output_type": "error", "ename": name, "evalue": message, "traceback": [f"{name}: {message}"]}]
        metadata = {"tags": ["raises-exception"]}  # a run goes on after it
    elif example is not None:
        shown = [{"output_type": "stream", "name": "stdout", "text": example.want}]
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata,
        "outputs": shown,
        "source": source,
    }


def write_all(folder: Path = FOLDER) -> None:
    """Write all notebooks and their list; notebooks of lectures that are gone are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.ipynb"):
        old.unlink()
    for lecture in list_lectures():
        (folder / f"{lecture.name}.ipynb").write_text(write_notebook(lecture), encoding="utf-8")
    (folder / "README.md").write_text(write_list(), encoding="utf-8")


if __name__ == "__main__":
    write_all()
