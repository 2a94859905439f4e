"""A stock notebook: cells run by a real kernel, which has no ipywidgets."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

import discreet

# The codes with which a kernel colours its tracebacks.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def run_notebook(notebook: Any, folder: Path, *, allow_errors: bool = False) -> list[list[dict[str, Any]]]:
    """Run a notebook in a folder, with this discreet; the outputs of each of its cells of code."""
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        allow_errors=allow_errors,
        coalesce_streams=True,  # what is printed is one text, however it arrives
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(Path(discreet.__file__).parents[1])})
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def run_cells(cells: Sequence[str], folder: Path) -> list[str]:
    """Run cells of code one after the other; what each shows as text, or its traceback."""
    blank: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    written = [{**blank, "source": cell} for cell in cells]
    document = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": written}
    notebook = nbformat.reads(json.dumps(document), as_version=4)  # type: ignore[no-untyped-call]  # nbformat has no types
    return ["\n".join(map(_show, outputs)) for outputs in run_notebook(notebook, folder, allow_errors=True)]


def _show(output: dict[str, Any]) -> str:
    match output["output_type"]:
        case "stream":
            return str(output["text"])
        case "error":
            return _COLOUR.sub("", "\n".join(output["traceback"]))
        case _:
            return str(output["data"].get("text/plain", ""))
