"""Computations over released answers: one charge for what is inside, nothing for the rest, and nothing private near."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import discreet
from discreet import Budget
from discreet.accounting.account import compose
from discreet.answer import Answer
from discreet.answer_rows import Cell, make_rows
from discreet.curator import Curator
from discreet.errors import BudgetExceeded, DiscreetError, ParameterError, QuestionError, UsageError
from discreet.frontends import read_sql
from discreet.frontends.outer.row_counts import MAX_ROWS, count_rows
from discreet.plan.relations import Values
from discreet.plan.types import Type
from discreet.post_processing import check_computation, compute, count_groups
from tests.worlds.visits import VISITS

DP = "SELECT WITH DIFFERENTIAL_PRIVACY"
WARDS = pa.table({"ward": ["A", "B", "C", "D"], "floor": [1, 1, 2, None], "beds": [10, 20, 30, 5]})
BY_WARD = f"{DP} ward, COUNT(*) AS n FROM visits GROUP BY ward"
SHARES = f"WITH r AS ({BY_WARD}) SELECT ward, n, n / (SELECT SUM(n) FROM r) AS share FROM r ORDER BY ward"


def curator(budget: Budget | None = None, **changes: Any) -> Curator:
    said: dict[str, Any] = {
        "unit": "patient",
        "public": ["wards"],
        "max_groups": 3,
        "max_rows_per_group": 5,
        "bounds": {"age": (0, 110)},
        "keys": {"ward": ["A", "B", "C"]},
        "budget": budget or Budget(epsilon=20, delta=1e-6),
    }
    return discreet.curate({"visits": VISITS, "wards": WARDS}, **(said | changes))


# What is computed


STATEMENTS = [
    SHARES,
    f"SELECT * FROM ({BY_WARD}) WHERE n > 600",
    f"{BY_WARD} UNION ALL {DP} 'all' AS ward, COUNT(*) AS n FROM visits",
    f"({BY_WARD}) EXCEPT DISTINCT ({BY_WARD} HAVING n > 600)",
    f"SELECT floor, SUM(n) AS n, COUNT(*) AS k FROM ({BY_WARD}) r JOIN wards USING (ward) GROUP BY floor",
    f"SELECT w.ward, r.n FROM wards w LEFT JOIN ({BY_WARD}) r ON r.ward = w.ward",
    f"SELECT MAX(n) - MIN(n) AS spread, MEDIAN(n) AS middle, STDDEV(n) AS sd FROM ({BY_WARD})",
    f"SELECT ward, RANK() OVER (ORDER BY n DESC) AS place FROM ({BY_WARD})",
    f"SELECT ward, SUM(n) OVER (ORDER BY ward ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM ({BY_WARD})",
    f"SELECT ward FROM wards WHERE ward NOT IN (SELECT ward FROM ({BY_WARD}) WHERE n > 600) ORDER BY ward DESC LIMIT 2",
    f"SELECT CASE WHEN n > 600 THEN 'large' ELSE 'small' END AS size, COUNT(*) AS k FROM ({BY_WARD}) GROUP BY 1",
    f"SELECT DISTINCT floor FROM ({BY_WARD}) r, wards w WHERE r.ward = w.ward",
    f"SELECT a.ward, b.ward AS other, a.n - b.n AS d FROM ({BY_WARD}) a JOIN ({BY_WARD}) b ON a.ward < b.ward",
    f"WITH g AS (SELECT * FROM visits WHERE age > 20), r AS ({DP} ward, COUNT(*) AS n FROM g GROUP BY ward), "
    "s AS (SELECT MAX(n) AS most FROM r) SELECT r.ward, r.n / s.most AS part FROM r CROSS JOIN s",
    "SELECT floor, COUNT(*) AS k, AVG(beds) AS b FROM wards GROUP BY floor ORDER BY floor NULLS FIRST",
    "SELECT w.ward, v.ward AS next FROM wards w JOIN wards v ON w.beds < v.beds",
    "SELECT ward, beds / (SELECT SUM(beds) FROM wards) AS share FROM wards",
]  # fmt: skip  # one statement after the other


def plain(text: str) -> list[tuple[Any, ...]]:
    """What DuckDB says to the same words, without the clause."""
    connection = duckdb.connect()
    for name, table in (("visits", VISITS), ("wards", WARDS)):
        connection.register(name, table)
    words = re.sub(r"WITH DIFFERENTIAL_PRIVACY( OPTIONS\([^)]*\))?", "", text)
    words = words.replace("INTERSECT DISTINCT", "INTERSECT").replace("EXCEPT DISTINCT", "EXCEPT")
    # NULL is a group of its own there, and no key of the codebook here.
    return connection.execute(
        words.replace("FROM visits", "FROM (SELECT * FROM visits WHERE ward IS NOT NULL) v")
    ).fetchall()


def exact_answer(asked: Answer, text: str) -> Answer:
    """An answer with exact numbers in place of noisy ones."""
    connection = duckdb.connect()
    connection.register("visits", VISITS)
    rows = connection.execute(text).fetchall()
    cells = tuple(tuple(Cell(value, value, value) for value in row) for row in rows)
    table = asked.rows
    return replace(asked, rows=make_rows(table.names, table.types, table.measured, cells))


def comparable(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows), key=repr)


def inner_sql(question: str) -> str:
    """SQL for the few questions that stand inside of these statements."""
    where = "ward IS NOT NULL" + (" AND age > 20" if "greater(age, 20)" in question else "")
    if "for each ward" not in question:
        return f"SELECT 'all', COUNT(*) FROM visits WHERE {where}"  # a constant
    having = " HAVING COUNT(*) > 600" if "having" in question else ""
    return f"SELECT ward, COUNT(*) FROM visits WHERE {where} GROUP BY ward{having} ORDER BY ward"


@pytest.mark.parametrize("text", STATEMENTS)
def test_without_noise_it_is_plain_sql(text: str) -> None:
    """With exact numbers in place of noisy ones, a statement says what DuckDB says to all of its words."""
    from discreet.plan.show import show

    holder = curator()
    found = read_sql.read_statement(text, holder.catalog)
    assert isinstance(found, read_sql.ReleasedComputation)
    asked = holder.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    answers = [exact_answer(asked, inner_sql(show(each.question))) for each in found.questions]
    rows = compute(found, answers, holder._engine.read_public)  # where public tables are
    assert comparable([[cell.value for cell in row] for row in rows.rows]) == comparable(plain(text))


def test_intervals_are_those_of_the_numbers() -> None:
    """A column that is shown as it is has its interval; what is computed has none."""
    answer = curator().ask(SHARES, epsilon=1)
    assert answer.rows.measured == (False, True, False)
    for ward, n, share in answer.rows.rows:
        assert n.low < n.value < n.high  # type: ignore[operator]  # counts
        assert ward.low is None and share.low is None
    assert answer.table.column_names == ["ward", "n", "n_low", "n_high", "share"]


def test_intervals_through_names_and_unions() -> None:
    """Renamed, joined, nested and united numbers keep theirs; sums, groups and DISTINCT do not."""
    holder = curator()
    kept = [
        f"SELECT m FROM (SELECT n AS m FROM ({BY_WARD}) x) y",
        f"SELECT * FROM ({BY_WARD}) r LEFT JOIN wards USING (ward)",
        f"{BY_WARD} UNION ALL {DP} 'all' AS ward, COUNT(*) AS n FROM visits",
        f"WITH r (w, k) AS ({BY_WARD}) SELECT k FROM r",
    ]
    lost = [
        f"SELECT SUM(n) AS n FROM ({BY_WARD})",
        f"SELECT DISTINCT n FROM ({BY_WARD})",
        f"SELECT n FROM ({BY_WARD}) GROUP BY n",
        f"SELECT n + 1 AS n FROM ({BY_WARD})",
        f"{BY_WARD} UNION DISTINCT {DP} 'all' AS ward, COUNT(*) AS n FROM visits",
    ]
    for text in kept[:3]:
        assert any(holder.ask(text, epsilon=1).rows.measured), text
    for text in (*lost, kept[3]):
        assert not any(holder.ask(text, epsilon=1).rows.measured), text


# What it costs


@pytest.mark.parametrize("budget", [Budget(epsilon=20), Budget(epsilon=20, delta=1e-6), Budget(rho=5), Budget(mu=5)])
def test_one_charge_for_what_is_inside(budget: Budget) -> None:
    """The charge has the events of the questions inside, all of them and once; asking again is free and the same."""
    holder = curator(budget)
    text = f"{BY_WARD} UNION ALL {DP} 'old' AS ward, COUNT(*) AS n FROM visits WHERE age > 65"
    answer = holder.ask(text, share=0.1)
    (entry,) = holder.history()
    found = read_sql.read_statement(text, holder.catalog)
    assert isinstance(found, read_sql.ReleasedComputation) and len(found.questions) == 2
    preview = curator(budget).preview(text, share=0.1)
    assert preview.loss == entry.charge.loss == compose(entry.charge.events).loss == answer.spent
    again = holder.ask(text, share=0.1)
    assert again.replayed and again.table.equals(answer.table)
    other = holder.ask(f"SELECT SUM(n) AS s FROM ({text})", share=0.1)
    assert other.replayed and other.rows.rows[0][0].value == sum(row[1].value for row in answer.rows.rows)  # type: ignore[misc]  # counts
    assert len(holder.history()) == 1


@pytest.mark.parametrize("budget", [Budget(epsilon=20), Budget(epsilon=20, delta=1e-6)])
def test_each_keeps_what_it_states(budget: Budget) -> None:
    """Two stated ε: each question by itself is private within its own, and both are in one charge."""
    holder = curator(budget)
    text = (
        f"SELECT a.n, b.n AS old FROM ({DP} OPTIONS(epsilon=1/2) COUNT(*) AS n FROM visits) a, "
        f"({DP} OPTIONS(epsilon=1/4) COUNT(*) AS n FROM visits WHERE age > 65) b"
    )
    answer = holder.ask(text)
    (entry,) = holder.history()
    delta = float(budget.slack())
    alone = [compose([event]).loss.epsilon(delta) for event in entry.charge.events]
    assert [e <= limit for e, limit in zip(alone, (0.5, 0.25))] == [True, True]
    assert [e > limit * 0.9 for e, limit in zip(alone, (0.5, 0.25))] == [True, True]
    assert entry.charge.loss.epsilon(delta) <= 0.75
    assert holder.ask(text).replayed
    assert len(answer.receipt["mechanisms"]) == 2 and len(answer.receipt["released"]) == 2
    with pytest.raises(ParameterError, match="said twice"):
        holder.ask(text, epsilon=1)
    with pytest.raises(ParameterError, match="in each, or in none"):
        holder.ask(text.replace(" OPTIONS(epsilon=1/4)", ""))


def test_equal_questions_are_one_release() -> None:
    """Two equal SELECTs, or a WITH that is used twice, are drawn once."""
    holder = curator()
    text = f"SELECT a.n - b.n AS d FROM ({BY_WARD}) a JOIN ({BY_WARD}) b USING (ward)"
    answer = holder.ask(text, epsilon=1)
    assert [row[0].value for row in answer.rows.rows] == [0, 0, 0]
    assert holder.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1).replayed


def test_what_does_not_fit_is_not_charged() -> None:
    """Each of two offers fits and both together do not: nothing is charged."""
    holder = curator(Budget(epsilon=1))
    text = (
        f"SELECT a.n FROM ({DP} OPTIONS(epsilon=0.6) COUNT(*) AS n FROM visits) a, "
        f"({DP} OPTIONS(epsilon=0.6) COUNT(*) AS n FROM visits WHERE age > 65) b"
    )
    assert not holder.preview(text).fits
    with pytest.raises(BudgetExceeded):
        holder.ask(text)
    assert not holder.history()


def test_public_tables_are_free() -> None:
    """Answered exactly, also where nothing is left; no charge, no record, and no offer is needed."""
    holder = curator(Budget(epsilon=1))
    holder.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    answer = holder.ask("SELECT floor, SUM(beds) AS beds FROM wards GROUP BY floor ORDER BY floor")
    assert [[cell.value for cell in row] for row in answer.rows.rows] == [[1, 30], [2, 30], [None, 5]]
    assert answer.spent.epsilon() == 0 and answer.receipt["cost"] == "nothing"
    assert "nothing: only public tables" in str(holder.preview("SELECT COUNT(*) AS n FROM wards"))
    assert "free" in holder.explain("SELECT COUNT(*) AS n FROM wards")
    assert len(holder.history()) == 1


def test_rows_that_are_brought_are_free() -> None:
    """An answer given before, computed with in SQL."""
    holder = curator()
    sizes = holder.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    answer = holder.ask("SELECT s.ward, s.n / w.beds AS per_bed FROM s JOIN wards w USING (ward)", public={"s": sizes})
    assert len(answer) == 3 and len(holder.history()) == 1


# What is refused before a charge, and what fails after one


def test_wrong_words_are_found_before_the_charge() -> None:
    """Names, types, functions and groups outside are checked over empty tables."""
    holder = curator()
    for outer in (
        "m",
        "n + ward",
        "SUM(n), ward",
        "LN(ward)",
    ):
        with pytest.raises(QuestionError, match="Nothing was charged"):
            holder.ask(f"SELECT {outer} FROM ({BY_WARD})", epsilon=1)
    with pytest.raises(QuestionError, match="Nothing was charged"):
        holder.ask(f"{BY_WARD} UNION ALL {DP} COUNT(*) FROM visits", epsilon=1)
    assert not holder.history()


def test_a_failure_keeps_what_was_released() -> None:
    """Where numbers overflow only after the release, the questions are on record, and a mended statement is free."""
    holder = curator()
    with pytest.raises(UsageError, match="on record"):
        holder.ask(f"SELECT n * 9000000000000000000 AS x FROM ({BY_WARD})", epsilon=1)
    assert len(holder.history()) == 1
    assert holder.ask(f"SELECT n * 2 AS x FROM ({BY_WARD})", epsilon=1).replayed


def test_pairs_of_everything_are_refused() -> None:
    """A chain of cross joins is seen to explode before anything is charged or run."""
    holder = curator()
    chain = ", ".join(f"t{i + 1} AS (SELECT a.ward FROM t{i} a, t{i} b)" for i in range(40))
    for text in (
        f"WITH t0 AS ({BY_WARD}), {chain} SELECT COUNT(*) FROM t40",
        f"WITH t0 AS (SELECT ward FROM wards), {chain} SELECT COUNT(*) FROM t40",
        "SELECT COUNT(*) FROM " + ", ".join(f"wards w{i}" for i in range(12)),
        "SELECT ward FROM wards WHERE beds > " + "(SELECT COUNT(*) FROM wards WHERE beds > " * 11 + "0" + ")" * 11,
    ):
        with pytest.raises(QuestionError, match=f"more than {MAX_ROWS:,} rows"):
            holder.ask(text, epsilon=1)
    assert not holder.history()


def test_groups_from_data_are_counted_after_they_are_named() -> None:
    """Their number is not public before, so the work is bounded once more after the release."""
    holder = curator()
    found = read_sql.read_statement(f"SELECT a.town FROM ({DP} town FROM visits GROUP BY town) a", holder.catalog)
    assert isinstance(found, read_sql.ReleasedComputation)
    assert count_groups(found.questions[0].question, holder.catalog) is None
    check_computation(found, holder._engine.read_public, [None])  # where public tables are
    many = make_rows(("town",), (Type.TEXT,), (False,), ((Cell("x", None, None),),) * (MAX_ROWS + 1))
    asked = holder.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    with pytest.raises(UsageError, match="on record"):
        compute(found, [replace(asked, rows=many)], holder._engine.read_public)


@pytest.mark.parametrize("seed", range(3))
def test_the_work_is_bounded(seed: int) -> None:
    """No query of a random statement has more rows than its rules say (sizes are exact for inner queries)."""
    source = random.Random(seed)  # noqa: S311  # random statements, not noise
    holder = curator()
    for _ in range(40):
        parts = [
            source.choice(
                [
                    "wards",
                    "(SELECT ward FROM wards LIMIT 2)",
                    "(SELECT 1 AS ward FROM wards UNION ALL SELECT 2 FROM wards)",
                ]
            )
            for _ in range(3)
        ]
        text = "SELECT 1 AS x FROM " + ", ".join(f"{part} t{i}" for i, part in enumerate(parts))
        found = read_sql.read_statement(text, holder.catalog)
        assert isinstance(found, read_sql.ReleasedComputation)
        rows = compute(found, [], holder._engine.read_public).rows
        assert len(rows) <= count_rows(found.rules, {"public0": 4})


def test_nothing_private_is_near() -> None:
    """What stands outside is computed from the released rows alone: equal releases, equal answers."""
    found = read_sql.read_statement(SHARES, curator().catalog)
    assert isinstance(found, read_sql.ReleasedComputation)
    seen: list[str] = []

    def read_public(table: str) -> Values:
        seen.append(table)
        raise AssertionError

    asked = curator().ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    first, second = (compute(found, [asked], read_public) for _ in range(2))
    assert first == second and not seen
    for table in ("visits", "main.visits", "released1", "main.released0", "duckdb_tables"):
        with pytest.raises(QuestionError):
            curator().ask(f"SELECT * FROM ({BY_WARD}), {table}", epsilon=1)


def test_bounds_are_bought_inside() -> None:
    """A single question inside takes bounds="auto", as it does alone."""
    holder = curator(bounds={})
    answer = holder.ask(f"SELECT s / 2 AS half FROM ({DP} SUM(age) AS s FROM visits)", epsilon=5, bounds="auto")
    assert len(answer) == 1 and len(holder.history()) == 2


def test_curves_are_for_questions() -> None:
    with pytest.raises(ParameterError, match="single question"):
        curator().preview(SHARES, curve=True)


def test_unknown_analysts_compute_nothing() -> None:
    """The codebook's list of analysts holds for public tables, too."""
    holder = curator()
    holder._analysts = frozenset({"ana"})  # as a codebook says it
    with pytest.raises(UsageError, match="analyst"):
        holder.ask("SELECT COUNT(*) FROM wards")
    assert len(holder.ask("SELECT COUNT(*) FROM wards", analyst="ana")) == 1


# Whatever the text, the outcome is an answer or a refusal of ours.

WORDS = [
    "(",
    ")",
    ",",
    "*",
    ".",
    "=",
    "<",
    "+",
    "-",
    "/",
    "||",
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "ORDER",
    "HAVING",
    "UNION",
    "ALL",
    "EXCEPT",
    "JOIN",
    "LEFT",
    "ON",
    "USING",
    "AS",
    "WITH",
    "r",
    "wards",
    "ward",
    "n",
    "beds",
    "floor",
    "COUNT(*)",
    "SUM(n)",
    "MAX(beds)",
    "RANK()",
    "OVER",
    "()",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "NULL",
    "1",
    "'x'",
    "DISTINCT",
    "LIMIT",
    "IN",
    "EXISTS",
    "NOT",
    "random()",
    "now()",
    "read_csv('x')",
    "unnest([1])",
    "CAST(n",
    "AS",
    "JSON)",
    "visits",
    "main.visits",
    "QUALIFY",
    "LATERAL",
    "VALUES",
    "(1)",
    "INTO",
]


@pytest.mark.parametrize("seed", range(4))
def test_random_statements_never_crash(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311  # random texts, not noise
    holder = curator()
    seeds = [re.sub(r"([(),*])", r" \1 ", text).split() for text in STATEMENTS]
    computed = 0
    for _ in range(120):
        words = list(source.choice(seeds))
        for _ in range(source.choice((0, 1, 1, 2, 3))):
            at = source.randrange(len(words))
            words[at : at + source.randint(0, 2)] = source.sample(WORDS, source.randint(0, 2))
        try:
            found = read_sql.read_statement(" ".join(words), holder.catalog)
            if isinstance(found, read_sql.ReleasedComputation):
                check_computation(found, holder._engine.read_public)
                computed += 1
        except DiscreetError as error:
            if not str(error).endswith("Nothing was charged."):
                pytest.fail(f"{words}: {error}")
    assert computed > 10
