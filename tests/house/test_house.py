"""Tests of the house itself: layers, public names, statements, errors."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import discreet
from discreet import errors
from tests.house.floors import FLOORS, PAGE, write_table

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "discreet"
MODULES = {
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}

FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
# Packages with rooms of their own: for each room inside, the rooms of the same package that it may import.
ROOMS_INSIDE: dict[str, dict[str, set[str]]] = {
    "frontends": {
        "terms": set(),
        "resolve": {"terms"},
        "chain": {"terms", "resolve"},
        "sql": {"terms"},
        "google": {"terms", "resolve", "sql"},
        "outer": {"terms", "resolve", "sql", "google"},
        "read_sql": {"terms", "resolve", "sql", "google", "outer"},
    },
}

# The same inside engines/: the oracle and the SQL that all share know no engine, and blocks are DuckDB's own affair.
ENGINE_FLOORS: list[set[str]] = [
    {"failure", "matching", "private_folder", "proposal", "steps", "tabulation", "unread"},
    {"engine"},
    {"order", "lookups"},
    {"memory", "sql"},
    {"duckdb", "postgres", "spark"},
    {"registry"},
]
ENGINE_FLOOR = {room: number for number, rooms in enumerate(ENGINE_FLOORS) for room in rooms}


def imported(path: Path) -> set[str]:
    """Every discreet module that a file imports, at its top or later, ``TYPE_CHECKING`` included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = members & MODULES.keys()
            found |= modules if len(modules) == len(members) else modules | {node.module or ""}
    return {name for name in found if name in MODULES}


def room(module: str) -> str:
    """The part of the house a module belongs to: its file or package directly under discreet."""
    return module.split(".")[1] if "." in module else ""


def inner_room(module: str) -> str:
    """The room inside its package that a module belongs to; empty for the package itself."""
    return module.split(".")[2] if module.count(".") > 1 else ""


def _goes_down(own: str, target: str) -> bool:
    """Whether an import leads to a lower floor; the package's front door is open to the shell only."""
    return FLOOR[target] < FLOOR[own] if target else own == "cli"


def upward(module: str, targets: set[str]) -> list[str]:
    """Imports that do not point to a lower floor or stay in the same package."""
    own = room(module)
    return [
        f"{module} -> {target}"
        for target in targets
        if own and room(target) != own and not _goes_down(own, room(target))
    ]


def sideways(module: str, targets: set[str]) -> list[str]:
    """Imports inside a package that ``ROOMS_INSIDE`` does not allow."""
    package, own = room(module), inner_room(module)
    if package not in ROOMS_INSIDE or not own:
        return []
    allowed = {own, *ROOMS_INSIDE[package][own]}
    return [
        f"{module} -> {target}" for target in targets if room(target) == package and inner_room(target) not in allowed
    ]


def find_cycle(edges: dict[str, set[str]]) -> list[str]:
    """One import cycle, or nothing."""
    done: set[str] = set()

    def visit(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module in done:
            return []
        for target in sorted(edges.get(module, ())):
            if cycle := visit(target, [*trail, module]):
                return cycle
        done.add(module)
        return []

    for module in edges:
        if cycle := visit(module, []):
            return cycle
    return []


def test_every_room_has_a_floor() -> None:
    """A new module or package must be given its place before anything may import it."""
    assert {room(name) for name in MODULES} - {""} == set(FLOOR)


def test_the_page_shows_the_floors_that_are_enforced() -> None:
    """docs/architecture.md has the table that these tests read; another one would be seen."""
    page = PAGE.read_text()
    assert page == write_table(page), "run: python -m tests.house.floors"
    assert page != write_table(page).replace("| `errors` |", "| `mistakes` |")


def test_imports_point_one_way() -> None:
    """No module imports from its own floor or above, not even lazily."""
    assert [edge for name, path in MODULES.items() for edge in upward(name, imported(path))] == []


def test_rooms_inside_a_package_import_one_way() -> None:
    """Each room inside a package has its place, and imports only the rooms that the table allows."""
    for package, rooms in ROOMS_INSIDE.items():
        inside = {inner_room(name) for name in MODULES if room(name) == package} - {""}
        assert inside == set(rooms)
    assert [edge for name, path in MODULES.items() for edge in sideways(name, imported(path))] == []


def test_no_import_cycles() -> None:
    """No two modules need each other."""
    edges = {name: imported(path) - {name} for name, path in MODULES.items()}
    # A package's __init__ names its members; members never import their own package.
    assert find_cycle(edges) == []


def engine_room(module: str) -> str:
    """The part of engines/ a module belongs to; nothing for modules elsewhere and for the package itself."""
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["engines"] and len(parts) > 2 else ""


def upward_in_engines(module: str, targets: set[str]) -> list[str]:
    """Imports between rooms of engines/ that do not point down."""
    own = engine_room(module)
    found = []
    for target in targets:
        there = engine_room(target)
        up = own and there and there != own and ENGINE_FLOOR[there] >= ENGINE_FLOOR[own]
        found += [f"{module} -> {target}"] if up else []
    return found


def test_every_room_of_engines_has_a_floor() -> None:
    assert {engine_room(name) for name in MODULES} - {""} == set(ENGINE_FLOOR)


def test_engines_are_built_in_layers() -> None:
    """The oracle and the shared SQL know nothing of DuckDB or of each other."""
    assert [edge for name, path in MODULES.items() for edge in upward_in_engines(name, imported(path))] == []


@pytest.mark.parametrize(
    ("module", "target"),
    [
        ("sql.statement", "duckdb.unit_ranges"),
        ("sql.relations", "duckdb.prepared"),
        ("sql.spreads", "duckdb.session"),
        ("memory.engine", "duckdb.sources"),
        ("memory.engine", "sql.layers"),
        ("duckdb.engine", "registry"),
    ],
)
def test_edges_that_were_cut_stay_cut(module: str, target: str) -> None:
    """Negative control: each of these would be seen."""
    edge = (f"discreet.engines.{module}", f"discreet.engines.{target}")
    assert upward_in_engines(edge[0], {edge[1]}) == [" -> ".join(edge)]


def test_the_layer_checks_can_fail() -> None:
    """Negative control: an upward edge, an edge between rooms of one package, and a cycle are seen."""
    assert upward("discreet.exact", {"discreet.mechanisms"}) == ["discreet.exact -> discreet.mechanisms"]
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    wrong, right = "discreet.frontends.resolve.scope", "discreet.frontends.terms.syntax"
    assert sideways("discreet.frontends.sql.reader", {wrong, right}) == [f"discreet.frontends.sql.reader -> {wrong}"]


def public_packages() -> list[str]:
    return [
        "discreet",
        "discreet.accounting",
        "discreet.local",
        "discreet.audit",
        "discreet.mechanisms",
        "discreet.samplers",
    ]


@pytest.mark.parametrize("name", public_packages())
def test_public_names_exist_and_are_documented(name: str) -> None:
    """What a package lists in __all__ is there, sorted, and says what it is."""
    module = importlib.import_module(name)
    assert list(module.__all__) == sorted(module.__all__)
    for public in module.__all__:
        assert (getattr(module, public).__doc__ or "").strip(), f"{name}.{public} has no docstring"


def test_top_level_surface_is_deliberate() -> None:
    """The names a user types at the top; changing them is a decision, made here."""
    values = ["Budget", "DiscreetError", "Loss", "Neighbours", "Unit", "ln"]
    verbs = ["col", "count", "count_units", "curate", "lit", "mean", "open", "stddev", "sum", "variance", "when"]
    verbs += ["correlation", "count_distinct", "covariance", "intercept", "max", "median", "min", "mode", "quantile"]
    verbs += ["connect", "publish", "slope", "standard_error", "weighted_mean"]
    assert sorted(discreet.__all__) == sorted(values + verbs)


def mechanism_classes() -> list[type]:
    mechanisms = importlib.import_module("discreet.mechanisms")
    return [value for name in mechanisms.__all__ if isinstance(value := getattr(mechanisms, name), type)]


@pytest.mark.parametrize("kind", mechanism_classes(), ids=lambda kind: kind.__name__)
def test_every_mechanism_states_its_privacy(kind: type) -> None:
    """A mechanism's docstring has a Privacy section that names neighbours, a reason and a reference."""
    text = (kind.__doc__ or "").partition("Privacy:")[2]
    assert text, f"{kind.__name__} has no Privacy: section"
    assert re.search(r"add-remove|replace|neighbour", text), f"{kind.__name__} names no neighbouring relation"
    assert re.search(r"Why:|because|Reason", text), f"{kind.__name__} gives no reason"
    assert re.search(r"Reference", text) and re.search(r"\b(19|20)\d\d\b", text), f"{kind.__name__} cites nothing"


def error_classes() -> list[type[errors.DiscreetError]]:
    return [v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, errors.DiscreetError)]


def test_every_error_is_drawn_and_has_a_page() -> None:
    """The tree in errors.py names every class, and docs/errors.md has a section for every code."""
    page = (ROOT / "docs" / "errors.md").read_text()
    codes = [kind.code for kind in error_classes()]
    assert len(set(codes)) == len(codes)
    for kind in error_classes():
        assert kind.__name__ in (errors.__doc__ or "")
        assert f"## {kind.code}\n" in page


def test_every_module_says_what_it_is_for() -> None:
    """Each module opens with a docstring."""
    assert [name for name, path in MODULES.items() if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_all_modules_import() -> None:
    """Nothing in the package is broken at import, including modules that load late."""
    found = [info.name for info in pkgutil.walk_packages(discreet.__path__, "discreet.")]
    assert {importlib.import_module(name).__name__ for name in found} == set(found) and len(found) > 100


# One idea for each module. What grows beyond this holds a second one.
MOST_LINES = 500


def test_no_module_is_long() -> None:
    """Every module can be read in one sitting."""
    long = {
        module: count for module, path in MODULES.items() if (count := len(path.read_text().splitlines())) > MOST_LINES
    }
    assert not long
