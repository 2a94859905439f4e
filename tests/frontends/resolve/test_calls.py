"""Constants are computed exactly and rounded once, as SQL's decimals are."""

from __future__ import annotations

import random
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest

from discreet import Budget
from discreet.bounding.bound import bound
from discreet.codebook import Codebook
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.memory.engine import MemoryEngine
from discreet.errors import UsageError
from discreet.frontends import read_sql
from discreet.frontends.resolve.calls import make
from discreet.plan.expressions import Expression, Literal
from discreet.plan.functions import make_literal
from discreet.plan.types import Type

DISCOUNTS = pa.table({"d": [n / 100 for n in range(11)]})
CATALOG = Codebook.from_frames({"t": DISCOUNTS}, budget=Budget(epsilon=1)).catalog()


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("d BETWEEN 0.06 - 0.01 AND 0.06 + 0.01", 3),
        ("d = 0.06 + 0.01", 1),
        ("d = 0.1 * 0.1 * 10 * 0.1", 1),
        ("d = 1 / 3 * 3 * 0.01", 1),
        ("d = -(0.01 - 0.04)", 1),
    ],
)
def test_constants_mean_the_decimals_that_are_written(condition: str, kept: int) -> None:
    """The discounts of TPC-H's Q6: doubles would lose the edge 0.07, because 0.06 + 0.01 is below it."""
    bounded = bound(read_sql.read(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", CATALOG), CATALOG).bounded
    for engine in (MemoryEngine({"t": DISCOUNTS}, CATALOG), DuckDBEngine({"t": DISCOUNTS}, CATALOG)):
        assert engine.run(bounded, salt=b"0" * 16).values == ((kept,),)
        engine.close()
    (plain,) = duckdb.connect().execute(f"SELECT COUNT(*) FROM DISCOUNTS WHERE {condition}").fetchall()
    assert plain == (kept,)


def test_constants_equal_those_of_duckdb() -> None:
    """Sums, differences and products of decimals are what DuckDB's DECIMAL gives, as a double."""
    rng = random.Random(5)  # noqa: S311  # repeatable constants, no secrets
    session = duckdb.connect()
    rounded = 0
    for _ in range(300):
        numbers = [Fraction(rng.randrange(-999, 999), 100) for _ in range(4)]
        words = [rng.choice([("add", "+"), ("subtract", "-"), ("multiply", "*")]) for _ in range(3)]
        found: Expression = make_literal(float(numbers[0]))
        text, plain = f"{float(numbers[0]):.2f}", float(numbers[0])
        for (name, sign), number in zip(words, numbers[1:]):
            found = make(name, (found, make_literal(float(number))), None)
            text = f"({text} {sign} ({float(number):.2f}))"
            plain = {"+": plain + float(number), "-": plain - float(number), "*": plain * float(number)}[sign]
        assert isinstance(found, Literal)
        (wanted,) = session.execute(f"SELECT CAST({text} AS DOUBLE)").fetchall()[0]
        assert found.value == wanted
        rounded += plain != wanted
    assert rounded > 30, "doubles would have been right, too: this test shows nothing"


def test_constants_without_a_value_are_refused() -> None:
    """Division by zero, 64 bits, and doubles have ends; a long way round through fractions has one, too."""
    for name, left, right in [("divide", 1, 0), ("add", 2**63 - 1, 1), ("multiply", 1e308, 10.0), ("divide", 1, 0.0)]:
        with pytest.raises(UsageError, match="has no value"):
            make(name, (make_literal(left), make_literal(right)), None)
    with pytest.raises(UsageError, match="has no value"):
        _multiply([make_literal(1e-300)] * 60)
    missing = make("add", (make_literal(1), Literal(None, Type.INTEGER)), None)
    assert isinstance(missing, Literal) and missing.value is None


def _multiply(constants: list[Literal]) -> Expression:
    found: Expression = constants[0]
    for constant in constants[1:]:
        found = make("multiply", (found, constant), None)
    return found
