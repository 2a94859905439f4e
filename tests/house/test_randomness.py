"""Noise has one source: nothing in the package uses another, or a seed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.house.test_house import MODULES


def code_without_strings(path: Path) -> str:
    """The names and attributes used in a file, without its comments and strings."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.append(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Import):
            names += [f"import {alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"import {node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Name):
            names.append(node.id)
    return "\n".join(names)


UNSAFE = re.compile(
    r"^(import random|import random\..*|import numpy\.random.*|np\.random|numpy\.random|import secrets.*)$", re.M
)


def test_no_other_randomness() -> None:
    """Noise comes from entropy.py alone: nothing in src uses random, numpy.random or secrets."""
    assert [name for name, path in MODULES.items() if UNSAFE.search(code_without_strings(path))] == []


def test_the_randomness_check_can_fail(tmp_path: Path) -> None:
    """Negative control: each forbidden form is seen."""
    for line in (
        "import random",
        "from numpy import random",
        "import numpy as np\nnp.random.laplace()",
        "import secrets",
    ):
        (tmp_path / "bad.py").write_text(line)
        assert UNSAFE.search(code_without_strings(tmp_path / "bad.py")), line


def test_seeded_source_is_used_by_nobody_in_src() -> None:
    """The seedable source is defined in entropy.py and named nowhere else in the package."""
    users = [name for name, path in MODULES.items() if "SeededForTestsOnly" in code_without_strings(path)]
    assert [name for name in users if name != "discreet.entropy"] == []


def test_simulated_bits_never_become_noise() -> None:
    """The source that follows from released values is named where answers are finished, and nowhere else."""
    users = [name for name, path in MODULES.items() if "SimulationSource" in code_without_strings(path)]
    assert set(users) - {"discreet.entropy"} == {"discreet.answer_record"}
    text = MODULES["discreet.answer_record"].read_text()
    assert text.count("_make_simulation(") == text.count("source=_make_simulation(") + 1, "only finish takes it"
    finished = text.count("finish(plan, drawn, source=_make_simulation(drawn, plan))")
    assert finished == text.count("source=_make_simulation(")
