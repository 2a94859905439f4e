"""The errors of discreet, in two ways that have to agree.

*Drawn*: the plan that a preview chooses, its exact integers from the engine, and many draws of its noise through
``release.draw`` and ``finish.finish``, the code that every answer goes through. Only the number of groups is changed:
each group is drawn many times over. A fixed seed.

*Asked*: a few questions from end to end, each with a curator, and so a budget, of its own. Their noise comes from the
operating system and cannot be seeded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.equal_privacy import data
from benchmarks.equal_privacy.figures import Figure

import discreet
from discreet import Budget
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.entropy import SeededForTestsOnly
from discreet.finish import finish
from discreet.release import Plan, draw

PURE, APPROXIMATE = "ε = 1", "(1, 1e-6)"
BUDGETS = {PURE: Budget(epsilon=1), APPROXIMATE: Budget(epsilon=1, delta=1e-6)}
SEED = 14
SALT = b"sixteen bytes ok"
# Errors that are drawn for a row. A choice from cells takes longer than noise.
DRAWS, CHOICES, NAMINGS = 50_000, 5_000, 100
# At a level this high no interval is simulated, which would be most of the work. The noise does not depend on it.
LEVEL = 0.999999

Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Measured:
    """One row of the table: the error of many draws of the plan, where there is one plan, and of whole questions."""

    drawn: Figure | None
    asked: Figure

    @property
    def best(self) -> Figure:
        return self.asked if self.drawn is None else self.drawn

    @property
    def disagreement(self) -> float:
        """How many standard errors apart the two are; that of few questions follows from that of many draws."""
        if self.drawn is None:
            return 0.0
        scatter = self.drawn.scatter * math.sqrt(1 + self.drawn.draws / self.asked.draws)
        return abs(self.drawn.value - self.asked.value) / scatter


@dataclass(frozen=True)
class Task:
    """A question that spends a whole budget. ``find_errors`` gets the columns of any number of answers in a row."""

    table: Columns
    budget: str
    sql: str
    find_errors: Callable[[Columns], np.ndarray]
    facts: Mapping[str, Any] = field(default_factory=dict)
    offer: Mapping[str, Any] = field(default_factory=lambda: {"epsilon": 1})
    draws: int = DRAWS

    def measure(self, questions: int) -> Measured:
        return Measured(self.draw_errors(), self.ask_errors(questions))

    def draw_errors(self) -> Figure:
        with curate(self.table, BUDGETS[self.budget], **self.facts) as curator:
            plan = curator.preview(self.sql, level=LEVEL, **self.offer).plan
            return Figure.of_errors(self.find_errors(draw_columns(plan, self.table, curator, self.draws)))

    def ask_errors(self, questions: int) -> Figure:
        return Figure.of_errors(np.concatenate([np.ravel(self.find_errors(self.ask())) for _ in range(questions)]))

    def ask(self) -> Columns:
        with curate(self.table, BUDGETS[self.budget], **self.facts) as curator:
            answer = curator.ask(self.sql, **self.offer)
            return {name: np.array(answer.table[name].to_pylist()) for name in answer.table.column_names}


def draw_columns(plan: Plan, table: Columns, curator: discreet.curator.Curator, draws: int) -> Columns:
    """What the plan would release, in as many copies of its public groups as make so many errors.

    A group that is in the domain several times is drawn several times, from the same exact integers. The noise was
    calibrated before, for the domain as it is.
    """
    (release,) = plan.releases
    bounded = release.bounded
    domain = bounded.bounded.domain or ()
    engine = DuckDBEngine({"t": pa.table(dict(table))}, curator.catalog)
    exact = engine.run(bounded.bounded, salt=SALT)
    engine.close()
    copies = domain * math.ceil(draws / len(domain))
    many = replace(release, bounded=replace(bounded, bounded=replace(bounded.bounded, domain=copies)))
    rows = finish(Plan((many,)), [draw(many, exact, source=SeededForTestsOnly(SEED))])
    return {name: np.array([row[i].value for row in rows.rows]) for i, name in enumerate(rows.names)}


def measure(folder: Path, repeats: int, wanted: str = "") -> Iterator[tuple[str, Measured]]:
    """Each row of the table, and our root-mean-square error there (or, for keys, how many are named)."""
    for row, job in list_rows(folder, repeats).items():
        if wanted in row:
            yield row, job()


def list_rows(folder: Path, repeats: int) -> dict[str, Callable[[], Measured]]:
    """The rows, and how to measure each."""
    rows: dict[str, Callable[[], Measured]] = {}
    for budget in BUDGETS:
        for groups in data.GROUPS:
            questions = max(1, repeats * 100 // groups)
            rows[f"count by {groups} groups, {budget}"] = partial(
                count_groups(folder, groups, budget).measure, questions
            )
        for name in ("count", "sum"):
            rows[f"visits: {name}, {budget}"] = partial(sum_visits(folder, name, budget).measure, 4 * repeats)
        for call, truth in STATISTICS.items():
            rows[f"{call}, {budget}"] = partial(summarise_values(folder, call, truth, budget).measure, repeats)
        for title, shares in QUANTILES.items():
            rows[f"{title}, ranks, {budget}"] = partial(choose_ranks(folder, shares, budget).measure, repeats)
    rows[f"COUNT(DISTINCT v), {PURE}"] = partial(count_distinct(folder).measure, 10 * repeats)
    for several in data.KEYS_OF_A_UNIT:
        rows[f"keys named, {several} of a unit, {APPROXIMATE}"] = partial(name_keys, folder, several, repeats)
    for k in (1, 2, 5, 10, 50):
        rows[f"each of {k} counts, {APPROXIMATE}"] = partial(ask_shares, folder, k)
    for name in ("lognormal10000", "lognormal1000", "delays", "uniform"):
        rows[f"sum, bounds unknown: {name}"] = partial(sum_unbounded, folder, name, 20 * repeats)
    return rows


STATISTICS: Mapping[str, Callable[[np.ndarray], float]] = {
    "AVG": lambda x: float(np.mean(x)),
    "VAR_SAMP": lambda x: float(np.var(x, ddof=1)),
}
QUANTILES = {"median": (0.5,), "three quantiles": (0.25, 0.5, 0.75)}


def curate(table: Columns, budget: Budget, **facts: Any) -> discreet.curator.Curator:
    return discreet.curate({"t": pa.table(dict(table))}, budget=budget, **facts)


def compare_with(true: np.ndarray, column: str) -> Callable[[Columns], np.ndarray]:
    """The errors of one column, for answers about the same groups in the same order."""
    return lambda answer: answer[column].reshape(-1, len(true)).astype(float) - true


def count_groups(folder: Path, groups: int, budget: str) -> Task:
    table = data.read_table(folder / f"groups{groups}.csv")
    sql = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
    return Task(table, budget, sql, compare_with(np.full(groups, 20), "n"), {"keys": {"g": range(groups)}})


def sum_visits(folder: Path, name: str, budget: str) -> Task:
    """Count and sum in one question, at user level: 5 groups, 3 rows in each; the error of one of them."""
    table = data.read_table(folder / "visits.csv")
    sql = "SELECT g, COUNT(*) AS count, SUM(v) AS sum FROM t GROUP BY g"
    facts = {
        "unit": "unit",
        "max_groups": data.VISIT_GROUPS,
        "max_rows_per_group": data.PER_GROUP,
        "keys": {"g": range(data.MANY_GROUPS)},
        "bounds": {"v": (0, data.VALUE_HIGH)},
    }
    weights = table["v"] if name == "sum" else None
    true = np.bincount(table["g"], weights=weights, minlength=data.MANY_GROUPS)
    return Task(table, budget, sql, compare_with(true, name), facts)


def summarise_values(folder: Path, call: str, truth: Callable[[np.ndarray], float], budget: str) -> Task:
    """A statistic of 1,000 values in [0, 100], at row level."""
    table = data.read_table(folder / "values.csv")
    true = np.array([truth(values) for values in table["x"].reshape(data.VALUE_GROUPS, -1)])
    facts = {"keys": {"g": range(data.VALUE_GROUPS)}, "bounds": {"x": (0, 100)}}
    sql = f"SELECT g, {call}(x) AS a FROM t GROUP BY g"  # noqa: S608  # a constant of this file
    return Task(table, budget, sql, compare_with(true, "a"), facts)


def choose_ranks(folder: Path, shares: Sequence[float], budget: str) -> Task:
    """How many ranks a quantile of 1,000 values is off."""
    table = data.read_table(folder / "values.csv")
    values = np.sort(table["x"].reshape(data.VALUE_GROUPS, -1))
    facts = {"keys": {"g": range(data.VALUE_GROUPS)}, "bounds": {"x": (0, 100)}, "resolution": {"x": 0.01}}
    calls = ", ".join(f"QUANTILE(x, {share}) AS q{i}" for i, share in enumerate(shares))
    sql = f"SELECT g, {calls} FROM t GROUP BY g"  # noqa: S608  # a constant of this file

    def errors(answer: Columns) -> np.ndarray:
        return np.array(
            [
                np.searchsorted(row, chosen) - share * len(row)
                for i, share in enumerate(shares)
                for row, chosen in zip(itertools.cycle(values), answer[f"q{i}"].astype(float))
            ]
        )

    return Task(table, budget, sql, errors, facts, draws=CHOICES)


def count_distinct(folder: Path) -> Task:
    table = data.read_table(folder / "distinct.csv")
    true = np.array([len(np.unique(table["v"]))])
    facts = {"unit": "unit", "max_rows": data.DISTINCT_ROWS, "max_values": {"v": 1}}
    return Task(table, PURE, "SELECT COUNT(DISTINCT v) AS n FROM t", compare_with(true, "n"), facts)


# What names most keys: pure noise with the whole δ for the bar where a unit has one key; where it has several, Gaussian
# noise, which needs most of δ for itself: a fifth is kept for bars. A preview tells from how many units keys are named.
KEY_OFFERS: Mapping[int, Mapping[str, Any]] = {
    1: {"epsilon": 1, "delta": 1e-6},
    5: {"epsilon": 1, "delta": 2e-7},
    20: {"epsilon": 1, "delta": 2e-7},
}


def name_keys(folder: Path, several: int, repeats: int) -> Measured:
    """How many keys are named together with their counts, on average."""
    table = data.read_table(folder / f"keys{several}.csv")
    facts = {"unit": "unit", "max_groups": several, "max_rows_per_group": 1}
    sql, source = "SELECT k, COUNT(*) AS n FROM t GROUP BY k", SeededForTestsOnly(SEED)
    offer = KEY_OFFERS[several]
    task = Task(table, APPROXIMATE, sql, lambda answer: answer["k"], facts, offer)
    with curate(table, BUDGETS[APPROXIMATE], **facts) as curator:
        (release,) = curator.preview(sql, **offer).plan.releases
        engine = DuckDBEngine({"t": pa.table(dict(table))}, curator.catalog)
        exact = engine.run(release.bounded.bounded, salt=SALT)
        engine.close()
    drawn = [len(draw(release, exact, source=source).keys) for _ in range(NAMINGS)]
    return Measured(Figure.of_counts(drawn), Figure.of_counts([len(task.ask()["k"]) for _ in range(repeats)]))


def ask_shares(folder: Path, k: int) -> Measured:
    """Counts by 100 groups, asked one after the other for a k-th of the budget each."""
    table = data.read_table(folder / "groups100.csv")
    find_errors = compare_with(np.full(100, 20), "n")
    drawn, asked = [], []
    with curate(table, BUDGETS[APPROXIMATE], keys={"g": range(100)}) as curator:
        for i in range(k):
            sql = f"SELECT g, COUNT(*) AS n FROM t WHERE id > -{i + 1} GROUP BY g"  # noqa: S608  # a number
            plan = curator.preview(sql, epsilon=Fraction(1, k), level=LEVEL).plan
            drawn.append(find_errors(draw_columns(plan, table, curator, DRAWS // k)))
            answer = curator.ask(sql, epsilon=Fraction(1, k))
            asked.append(find_errors({"n": np.array(answer.table["n"].to_pylist())}))
    return Measured(Figure.of_errors(np.concatenate(drawn)), Figure.of_errors(asked))


def sum_unbounded(folder: Path, name: str, questions: int) -> Measured:
    """Bounds are bought before the sum, differently each time, so that only whole questions tell the error."""
    table = data.read_table(folder / f"{name}.csv")
    true = float(table["x"].sum())

    def error() -> float:
        with curate(table, BUDGETS[PURE]) as curator:
            answer = curator.ask("SELECT SUM(x) AS s FROM t", epsilon=1, bounds="auto")
            return float(answer.table["s"][0].as_py()) - true

    return Measured(None, Figure.of_errors([error() for _ in range(questions)]))
