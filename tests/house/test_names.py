"""Tests of names: one word for one thing, verbs for actions, nouns for values."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "discreet"

# Two classes may share a name only where they are the same idea: the mechanism, and the record that it ran.
SAME_IDEA = {
    name: {"accounting/events.py", f"mechanisms/{module}.py"}
    for name, module in {
        "Laplace": "laplace",
        "Gaussian": "gaussian",
        "RoundedGaussian": "rounded_gaussian",
        "Exponential": "exponential",
        "RandomizedResponse": "randomized_response",
    }.items()
}

# Words that look like participles and are none.
NO_PARTICIPLES = {"ceiling", "reseed", "seed", "stirling", "substring"}
IRREGULAR = re.compile(
    "asked|bought|brought|built|chosen|done|drawn|found|given|gone|held|kept|known|laid|led|left|lost|made|meant|met|"
    "paid|said|seen|sent|shown|sold|spent|stood|taken|there|thought|told|understood|won|written"
)
# A participle before a noun is an adjective (``weighted_mean``), before one of these it is a value again.
PREPOSITIONS = {"apart", "as", "at", "by", "for", "from", "in", "of", "on", "to", "with"}
PARTICIPLE = re.compile(r"\w+(ed|ing)")


def classes_in(tree: ast.Module) -> Iterator[str]:
    """The classes and the type aliases of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_alias(node.annotation):
            yield node.target.id


def _is_alias(annotation: ast.expr) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "TypeAlias"


def find_shared(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Names that more than one class has, without those that are the same idea."""
    homes: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        for name in classes_in(tree):
            homes[name].add(path)
    return {name: paths for name, paths in homes.items() if len(paths) > 1 and SAME_IDEA.get(name) != paths}


def find_participles(path: str, tree: ast.Module) -> list[str]:
    """Functions and methods that are named like a value. Properties are values, so they are left out."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not _is_property(node):
            first, *rest = node.name.strip("_").split("_")
            named = first not in NO_PARTICIPLES and (PARTICIPLE.fullmatch(first) or IRREGULAR.fullmatch(first))
            if named and (not rest or rest[0] in PREPOSITIONS) and not node.name.startswith("__"):
                found.append(f"{path}:{node.name}")
    return found


def _is_property(node: ast.FunctionDef) -> bool:
    names = {getattr(d, "id", getattr(d, "attr", "")) for d in node.decorator_list}
    return bool(names & {"property", "cached_property"})


def parse_all() -> dict[str, ast.Module]:
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


# Public methods that users type keep the name they were published with.
PUBLISHED = {
    "curator.py:answered",
    "remote/remote_curator.py:answered",
    "frontends/chain/builder.py:contributing",
    "frontends/chain/builder.py:having",
    "frontends/chain/builder.py:named",
    "mechanisms/threshold.py:kept_from",
    "mechanisms/weighted_selection.py:kept_from",
}


def test_no_two_classes_share_a_name() -> None:
    """A reader who meets a name knows which class it is."""
    assert find_shared(parse_all()) == {}


def test_functions_that_act_are_verbs() -> None:
    """No function is named by a participle, which would read as a value."""
    found = [name for path, tree in parse_all().items() for name in find_participles(path, tree)]
    assert set(found) == PUBLISHED


def test_the_checks_of_names_can_fail() -> None:
    """Negative control: a shared class, a shared alias and a participle are seen."""
    one, two = ast.parse("class Row: ...\ndef asked(): ..."), ast.parse("Row: TypeAlias = int\ndef _listed(): ...")
    assert find_shared({"one.py": one, "two.py": two}) == {"Row": {"one.py", "two.py"}}
    assert find_participles("one.py", one) + find_participles("two.py", two) == ["one.py:asked", "two.py:_listed"]
    assert find_participles("p.py", ast.parse("@property\ndef spent(): ...")) == []
