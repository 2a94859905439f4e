"""The README's Python runs as it stands, against the demo's own data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from discreet import curate, demo

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_python_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block, in order, in one namespace, in a folder with the demo's codebook."""
    demo.write(tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"frame": demo.make_tables()["visits"]}
    assert len(BLOCKS) >= 3
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102  # our own page
    assert callable(curate)
    answer = names["answer"]
    assert answer.table.column_names[:3] == ["ward", "n", "n_low"]  # type: ignore[attr-defined]  # an Answer
