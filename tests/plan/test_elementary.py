"""Logarithms and angles: near the truth, exact where they should be, total, and the same on every engine."""

# ruff: noqa: S311  # arguments need seeds, not secrets
from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import duckdb
import pytest

from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.sql.elementary import write_elementary
from discreet.plan import elementary
from discreet.plan.elementary import ELEMENTARY, LARGEST_ANGLE, SMALLEST_REAL, FloatOperations, compute
from discreet.plan.types import LARGEST_REAL

TRUTH: dict[str, Callable[..., float]] = {
    "ln": math.log, "log2": math.log2, "log10": math.log10, "sin": math.sin, "cos": math.cos, "tan": math.tan,
    "asin": math.asin, "acos": math.acos, "atan": math.atan, "atan2": math.atan2,
}  # fmt: skip  # one table


def some_arguments(name: str, count: int) -> list[tuple[float, ...]]:
    """Arguments all over the domain, beside its ends, and where functions cancel."""
    rng = random.Random(name)
    function = ELEMENTARY[name]
    found: list[tuple[float, ...]] = []
    for _ in range(count):
        if function.high == 1.0:
            x = rng.choice((-1, 1)) * rng.choice((1 - 10 ** rng.uniform(-16, 0), 10 ** rng.uniform(-12, 0)))
        elif function.high == LARGEST_ANGLE:
            x = rng.choice(
                (10 ** rng.uniform(-9, 5.7) * rng.choice((-1, 1)), rng.randint(-300_000, 300_000) * math.pi / 2)
            )
        elif function.low == SMALLEST_REAL:
            near_one = 1 + rng.uniform(-0.9, 0.9) * 10 ** rng.uniform(-16, 0)
            x = rng.choice((math.ldexp(1 + rng.random(), rng.randint(-1070, 1022)), near_one))
        else:
            x = rng.choice((-1, 1)) * 10 ** rng.uniform(-30, 30)
        found.append((x, rng.uniform(-5, 5)) if name == "atan2" else (x,))
    return found


@pytest.mark.parametrize("name", ELEMENTARY)
def test_values_are_near_the_truth(name: str) -> None:
    """Within 3 units in the last place of the platform's own function, which errs by one itself."""
    worst = 0.0
    for arguments in some_arguments(name, 4000):
        got, wanted = compute(name, *arguments), TRUTH[name](*arguments)
        assert got is not None
        if name == "atan2" and abs(wanted) < 2.0**-60:  # counts as 0 by definition
            continue
        worst = max(worst, abs(got - wanted) / math.ulp(wanted))
    assert worst <= 3


def test_whole_logarithms_are_whole() -> None:
    assert all(compute("log10", float(f"1e{n}")) == n for n in range(-300, 309))
    assert all(compute("log2", math.ldexp(1.0, n)) == n for n in range(-1074, 1024))


@pytest.mark.parametrize("error", [-1e-12, 1e-12])
def test_a_rough_guess_of_the_exponent_is_put_right(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine whose binary logarithm is a quotient of rounded ones: the same bits, beside every power of two."""
    powers = [math.ldexp(1.0, n) for n in range(-1074, 1024)]
    numbers = [*powers, *(math.nextafter(x, 0) for x in powers[1:]), *(math.nextafter(x, math.inf) for x in powers)]
    wanted = [compute(name, x) for x in numbers for name in ("ln", "log2", "log10")]
    monkeypatch.setattr(FloatOperations, "guess_log2", lambda _, x: math.log2(x) * (1 + error))
    assert [compute(name, x) for x in numbers for name in ("ln", "log2", "log10")] == wanted


def test_a_wrong_constant_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a logarithm of 2 that is off in its 45th bit."""
    high, low = elementary.LN_2
    monkeypatch.setattr(elementary, "LN_2", (high, low * (1 + 2.0**-4)))
    assert compute("ln", 1e300) != pytest.approx(math.log(1e300), rel=1e-15, abs=0)


@pytest.mark.parametrize("name", [name for name in ELEMENTARY if name != "atan2"])
def test_outside_of_the_domain_there_is_nothing(name: str) -> None:
    low, high = ELEMENTARY[name].low, ELEMENTARY[name].high
    assert compute(name, low) is not None and compute(name, high) is not None
    for beyond in (math.nextafter(low, -math.inf), math.nextafter(high, math.inf)):
        assert not math.isfinite(beyond) or compute(name, beyond) is None


def test_angles_of_points() -> None:
    """All quadrants and all axes; the point itself, and ratios that would overflow or underflow."""
    assert compute("atan2", 0.0, 0.0) == 0.0
    for y in (-1.0, 0.0, 1.0, LARGEST_REAL, -LARGEST_REAL, 1e-300):
        for x in (-1.0, 0.0, 1.0, LARGEST_REAL, SMALLEST_REAL, -1e-300):
            assert compute("atan2", y, x) == pytest.approx(math.atan2(y, x), abs=1e-15)


@pytest.mark.parametrize("name", ELEMENTARY)
def test_duckdb_computes_the_same_bits(name: str) -> None:
    """The same operations in SQL: every value is the very same double, and NULL outside of the domain."""
    arguments = some_arguments(name, 1500)
    ends = [0.0, 1.0, -1.0, 0.5, SMALLEST_REAL, -SMALLEST_REAL, LARGEST_REAL, -LARGEST_REAL, LARGEST_ANGLE, 2.0**20]
    arguments += [(x, y) for x in ends for y in ends] if name == "atan2" else [(x,) for x in ends]
    layers: list[list[str]] = []

    def add_column(sql: str, level: int) -> tuple[str, int]:
        while len(layers) <= level:
            layers.append([])
        column = f"e{sum(map(len, layers))}"
        layers[level].append(f"{sql} AS {column}")
        return column, level + 1

    sql, level = write_elementary(name, [("x", 0), ("y", 0)][: len(arguments[0])], DIALECT, add_column)
    answer, _ = add_column(sql, level)
    query = "SELECT * FROM given"
    for layer in layers:
        query = f"SELECT *, {', '.join(layer)} FROM ({query})"
    connection = duckdb.connect()
    connection.execute("CREATE TABLE given (i INTEGER, x DOUBLE, y DOUBLE)")
    connection.executemany(
        "INSERT INTO given VALUES (?, ?, ?)", [(i, *a, *(0.0,) * (2 - len(a))) for i, a in enumerate(arguments)]
    )
    rows = connection.execute(f"SELECT {answer} FROM ({query}) ORDER BY i").fetchall()
    assert [row[0] for row in rows] == [compute(name, *a) for a in arguments]


def test_the_parts_of_constants_are_exact() -> None:
    """Two parts of ln 2 and three of π/2 give many more bits than one double has."""
    assert sum(map(Fraction, elementary.LN_2)) == pytest.approx(
        Fraction("0.693147180559945309417232121458176568"), abs=1e-28
    )
    half = Fraction("1.570796326794896619231321691639751442098584699687552910487")
    assert abs(sum(map(Fraction, elementary.HALF_PI)) - half) < Fraction(1, 10**35)
    tangents = [math.tan(high) for high, _ in elementary.ANGLES]
    assert tangents == pytest.approx([0, 0.25, 0.5, 0.75, 1], abs=1e-15)
