"""What any SQL engine shares holds no words of one engine: those are primitives of its dialect."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from discreet.engines.duckdb.dialect import DuckDBDialect
from discreet.engines.sql.dialect import Dialect

ROOT = Path(__file__).resolve().parents[3] / "src" / "discreet" / "engines" / "sql"

# Words that only DuckDB knows, or that mean something else on another engine.
OWN_WORDS = re.compile(
    r"HUGEINT|UBIGINT|BIGINT|DOUBLE|VARCHAR|\bTRY\b|TRY_CAST|\bCAST\(|::|//|%|\$|QUALIFY|\b(SEMI|ANTI) JOIN\b|REPLACE|"
    r"MATERIALIZED|\bLIKE\b|IS NOT DISTINCT|\browid\b|"
    r"\b(hash|sum|any_value|isfinite|quantile_disc|regexp_\w+|epoch_us|date_part|date_trunc|date_diff|pow|log2|trunc|sign|"
    r"round|floor|ceil|sqrt|ln|exp|trim|length|lower|upper|substring|starts_with|ends_with|contains)\("
)


def texts_of(source: str) -> list[str]:
    """Every text that a module could write into a statement: all strings but docstrings."""
    tree = ast.parse(source)
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
    documented = {id(node.body[0].value) for node in ast.walk(tree)
                  if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    strings = [n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr | ast.Constant) and id(n) not in documented]
    return [ast.unparse(node) for node in strings if isinstance(node, ast.JoinedStr) or isinstance(node.value, str)]


def foreign(source: str) -> list[str]:
    return [text for text in texts_of(source) if OWN_WORDS.search(_without_calls(text))]


def _without_calls(text: str) -> str:
    """A text without the Python expressions inside its braces, which may call primitives by similar names."""
    while (shorter := re.sub(r"\{[^{}]*\}", "…", text)) != text:
        text = shorter
    return text


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.py")), ids=lambda path: path.stem)
def test_no_words_of_one_engine(path: Path) -> None:
    assert foreign(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    ["CAST({x} AS HUGEINT)", "{a} // {b}", "TRY({a} + {b})", "hash({x})", "SELECT 1 QUALIFY {x} <= 1", "$t0",
     "a SEMI JOIN b", "SELECT * REPLACE (1 AS a)", "r AS NOT MATERIALIZED (SELECT 1)", "any_value({x})",
     "isfinite({x})", "sum({x})", "{a} % {b}", "lower({x})", "GROUP BY rowid", "epoch_us({x})",
     "regexp_full_match({x}, 'a')", "{x}::INTEGER"],
)  # fmt: skip
def test_words_of_one_engine_are_seen(text: str) -> None:
    """Negative control: each is found in a statement, and not where it is only spoken about."""
    assert foreign(f"def write(x, a, b):\n    return f{text!r}\n") != []
    assert foreign(f'"""About {text.replace(chr(39), "")}."""\n') == []


def primitives() -> list[str]:
    return [name for name, _ in inspect.getmembers(Dialect, inspect.isfunction) if not name.startswith("_")]


@pytest.mark.parametrize("name", primitives())
def test_every_primitive_says_what_it_means(name: str) -> None:
    """Each has a meaning in words, and DuckDB's dialect takes the very same arguments."""
    assert len((getattr(Dialect, name).__doc__ or "").split()) > 4
    ours, theirs = (inspect.signature(getattr(kind, name)) for kind in (Dialect, DuckDBDialect))
    assert list(ours.parameters) == list(theirs.parameters)


def test_no_primitive_is_left_over() -> None:
    """Every primitive is used by what SQL engines share, or by the engine itself."""
    written = "\n".join(path.read_text() for path in ROOT.parent.rglob("*.py") if path.stem != "dialect")
    assert [name for name in primitives() if not re.search(rf"\.{name}\b", written)] == []
