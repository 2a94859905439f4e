"""Equal questions give equal plans: SQL and the chain, and the many ways to write the same SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

from discreet.frontends import read_sql
from discreet.frontends.chain.aggregates import (
    correlation,
    count,
    count_distinct,
    count_units,
    covariance,
    intercept,
    max_,
    mean,
    median,
    min_,
    mode,
    quantile,
    slope,
    stddev,
    sum_,
    variance,
    weighted_mean,
)
from discreet.frontends.chain.builder import TableBuilder
from discreet.frontends.chain.operands import col, lit, when
from tests.worlds.tables import CATALOG

VISITS = TableBuilder(CATALOG, "visits")
ANSWERS = TableBuilder(CATALOG, "answers")
AGE, COST, WARD, NOTE, DAY, SEEN, SMOKER = map(col, ("age", "cost", "ward", "note", "day", "seen", "smoker"))

MOMENT = dt.datetime.fromisoformat("2024-01-02 03:04:05")

PAIRS: list[tuple[str, Callable[[], TableBuilder]]] = [
    ("SELECT COUNT(*) AS n FROM visits", lambda: VISITS.agg(n=count())),
    ("SELECT COUNT(*) FROM visits", lambda: VISITS.agg(count())),
    (
        "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward",
        lambda: VISITS.group_by("ward").agg(n=count(), age=mean("age")),
    ),
    (
        "SELECT ward, bin(age, 10), COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY ward, bin(age, 10)",
        lambda: VISITS.where(AGE > 30).group_by("ward", AGE.bin(10)).agg(n=count()),
    ),
    (
        "SELECT bin(age, 10) AS decade, COUNT(*) AS n FROM visits GROUP BY decade",
        lambda: VISITS.group_by(decade=AGE.bin(10)).agg(n=count()),
    ),
    (
        "SELECT SUM(cost) / COUNT(*) AS share FROM visits",
        lambda: VISITS.agg(share=sum_("cost") / count()),
    ),
    ("SELECT COUNT(DISTINCT patient_id) AS people FROM visits", lambda: VISITS.agg(people=count_units())),
    (
        "SELECT VAR_POP(cost) AS v, STDDEV_POP(cost) AS s FROM visits",
        lambda: VISITS.agg(v=variance("cost"), s=stddev("cost")),
    ),
    (
        "SELECT VARIANCE(cost) AS v, STDDEV(cost) AS s FROM visits",
        lambda: VISITS.agg(v=variance("cost", sample=True), s=stddev("cost", sample=True)),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE age BETWEEN 30 AND 40 AND ward IN ('A', 'B')",
        lambda: VISITS.where(AGE.between(30, 40), WARD.is_in(["A", "B"])).agg(n=count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE age < 3 OR NOT smoker",
        lambda: VISITS.where((AGE < 3) | ~SMOKER).agg(n=count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE note IS NULL AND cost IS NOT NULL",
        lambda: VISITS.where(NOTE.is_null() & ~COST.is_null()).agg(n=count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE note LIKE 'a%' AND note ILIKE '%b'",
        lambda: VISITS.where(NOTE.like("a%")).where(NOTE.ilike("%b")).agg(n=count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE day >= '2024-01-01' AND seen < TIMESTAMP '2024-01-02 03:04:05'",
        lambda: VISITS.where(col("day") >= dt.date(2024, 1, 1), col("seen") < MOMENT).agg(n=count()),
    ),
    (
        "SELECT year(day) AS y, date_trunc('month', seen) AS m, COUNT(*) AS n FROM visits GROUP BY y, m",
        lambda: VISITS.group_by(y=DAY.part("year"), m=SEEN.date_trunc("month")).agg(n=count()),
    ),
    (
        "SELECT AVG(date_diff('day', day, seen)) AS d FROM visits",
        lambda: VISITS.agg(d=mean(DAY.date_diff("day", SEEN))),
    ),
    (
        "SELECT CASE WHEN age < 18 THEN 'young' WHEN age < 65 THEN 'middle' ELSE 'old' END AS stage, COUNT(*) AS n "
        "FROM visits GROUP BY stage",
        lambda: VISITS.group_by(
            stage=when(AGE < 18).then("young").when(AGE < 65).then("middle").otherwise("old")
        ).agg(n=count()),
    ),
    (
        "SELECT SUM(CASE WHEN smoker THEN cost END) AS s FROM visits",
        lambda: VISITS.agg(s=sum_(when(SMOKER).then(COST))),
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 10 ORDER BY n DESC, ward LIMIT 5 OFFSET 2",
        lambda: VISITS.group_by("ward")
        .agg(n=count())
        .having(col("n") > 10)
        .order_by(col("n").desc(), "ward")
        .limit(5, offset=2),
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY SUM(cost)",
        lambda: VISITS.group_by("ward").agg(n=count()).order_by(sum_("cost")),
    ),
    (
        "SELECT ROUND(AVG(cost), 1) AS c, SUM(clamp(cost, 0, 100)) AS s FROM visits",
        lambda: VISITS.agg(c=mean("cost").round(1), s=sum_(COST.clamp(0, 100))),
    ),
    (
        "SELECT SUM((age + 1) * 2 - cost / 3) AS s, SUM(-age) AS t, SUM(age % 7) AS u, SUM(cost ** 2) AS v FROM visits",
        lambda: VISITS.agg(s=sum_((AGE + 1) * 2 - COST / 3), t=sum_(-AGE), u=sum_(AGE % 7), v=sum_(COST**2)),
    ),
    (
        "SELECT SUM(1 + age) AS a, SUM(1 - age) AS b, SUM(2 * age) AS c, SUM(1 / cost) AS d FROM visits",
        lambda: VISITS.agg(a=sum_(1 + AGE), b=sum_(1 - AGE), c=sum_(2 * AGE), d=sum_(1 / COST)),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE lower(trim(note)) = 'x' AND length(upper(ward)) > 3",
        lambda: VISITS.where(NOTE.trim().lower() == "x", WARD.upper().length() > 3).agg(n=count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE starts_with(note, 'a') "
        "AND ends_with(note, 'b') AND contains(note, ward)",
        lambda: VISITS.where(NOTE.starts_with("a") & NOTE.ends_with("b") & NOTE.contains(WARD)).agg(n=count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE note || '-' || ward = 'x' AND substring(note, 2, 3) <> 'y'",
        lambda: VISITS.where(NOTE.concat("-", WARD) == "x", NOTE.substring(2, 3) != "y").agg(n=count()),
    ),
    (
        "SELECT SUM(CAST(note AS BIGINT)) AS a, COUNT(age::VARCHAR) AS b, COUNT(CAST(seen AS DATE)) AS c FROM visits",
        lambda: VISITS.agg(a=sum_(NOTE.cast("integer")), b=count(AGE.cast("text")), c=count(SEEN.cast("date"))),
    ),
    (
        "SELECT SUM(COALESCE(cost, 0)) AS a, COUNT(NULLIF(ward, 'A')) AS b, SUM(ABS(FLOOR(cost) - 1)) AS c FROM visits",
        lambda: VISITS.agg(a=sum_(COST.coalesce(0)), b=count(WARD.null_if("A")), c=sum_(abs(COST.floor() - 1))),
    ),
    (
        "SELECT 1 AS one, COUNT(\"City name\") AS n FROM Answers WHERE \"Income\" <= 1e3",
        lambda: ANSWERS.where(col("income") <= 1000.0).agg(one=lit(1), n=count("city name")),
    ),
    (
        "SELECT MEDIAN(age) AS m, QUANTILE(cost, 0.25) AS q, MIN(age) AS a, MAX(age) AS b FROM visits",
        lambda: VISITS.agg(m=median("age"), q=quantile("cost", 0.25), a=min_("age"), b=max_("age")),
    ),
    (
        "SELECT MIN(age), MAX(cost), MEDIAN(cost) FROM visits",
        lambda: VISITS.agg(min_("age"), max_("cost"), median(COST)),
    ),
    (
        "SELECT COUNT(DISTINCT note) AS d, MODE(ward) AS m FROM visits",
        lambda: VISITS.agg(d=count_distinct("note"), m=mode("ward")),
    ),
    (
        "SELECT COUNT(DISTINCT patient_id) FILTER (WHERE age > 65) AS old FROM visits",
        lambda: VISITS.agg(old=count_units().filter(AGE > 65)),
    ),
    (
        "SELECT MEDIAN(cost) FILTER (WHERE smoker) AS m, COUNT(*) FILTER (WHERE smoker) AS n FROM visits",
        lambda: VISITS.agg(m=median("cost").filter(SMOKER), n=count().filter(SMOKER)),
    ),
    (
        "SELECT COVAR_POP(age, cost) AS a, COVAR_SAMP(age, cost) AS b, CORR(age, cost) AS c FROM visits",
        lambda: VISITS.agg(
            a=covariance("age", "cost"), b=covariance("age", "cost", sample=True), c=correlation("age", "cost")
        ),
    ),
    (
        "SELECT REGR_SLOPE(cost, age) AS a, REGR_INTERCEPT(cost, age) AS b, WEIGHTED_AVG(cost, age) AS c FROM visits",
        lambda: VISITS.agg(a=slope("cost", "age"), b=intercept("cost", "age"), c=weighted_mean("cost", "age")),
    ),
    (
        "SELECT ward, smoker, AVG(age) AS a FROM visits GROUP BY ROLLUP(ward, smoker)",
        lambda: VISITS.rollup("ward", "smoker").agg(a=mean("age")),
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM visits WHERE smoker AND TRUE GROUP BY ward",
        lambda: VISITS.where(SMOKER, lit(True)).group_by("ward").agg(n=count()),
    ),
]  # fmt: skip  # pairs, side by side


@pytest.mark.parametrize(("text", "chain"), PAIRS, ids=lambda part: part[:70] if isinstance(part, str) else "")
def test_sql_and_chain_agree(text: str, chain: Callable[[], TableBuilder]) -> None:
    """The SQL and the chain are one plan."""
    assert chain().question == read_sql.read(text, CATALOG)


def test_there_are_enough_pairs() -> None:
    """At least 25 pairs, all of them different questions."""
    plans = {read_sql.read(text, CATALOG) for text, _ in PAIRS}
    assert len(PAIRS) == len(plans) >= 25


SAME = [
    (
        "SELECT ward AS w, COUNT(*) AS n FROM visits WHERE age >= 30 AND age <= 40 GROUP BY ward ORDER BY n DESC",
        "select WARD w, count(*) n from VISITS where age between 30 and 40 group by 1 order by 2 desc",
        "SELECT v.ward AS w, COUNT(1) AS n FROM visits v WHERE 30 <= v.age AND v.age <= 40 "
        "GROUP BY w ORDER BY COUNT(*) DESC",
        'SELECT "Ward" "w", COUNT(*) "n"\nFROM "Visits" -- comment\n'
        "WHERE (age >= 30) AND ((age <= 40)) GROUP BY ALL ORDER BY n DESC;",
        "FROM visits SELECT w: ward, n: COUNT(*) WHERE NOT age < 30 AND NOT (age > 40) "
        "GROUP BY w, 1 ORDER BY n DESC NULLS LAST",
        "SELECT ward AS w, COUNT(*) AS n FROM visits WHERE age >= 30 AND (age >= 30 AND age <= 40) "
        "GROUP BY ward ORDER BY n DESC",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE day <> DATE '2024-01-01' AND ward IN ('A') AND cost > 1440",
        "SELECT COUNT(*) AS n FROM visits WHERE day != '2024-01-01' AND ward IN ('A') AND cost > 24 * 60",
        "SELECT COUNT(*) AS n FROM visits WHERE NOT (day = '2024-01-01'::DATE) AND ward IN ('A') AND 1440 < cost",
        "SELECT COUNT(*) AS n FROM visits WHERE '2024-01-01' <> day AND NOT ward NOT IN ('A') AND cost > +1440",
    ),
    (
        "SELECT EXTRACT(year FROM day) AS y, COUNT(*) AS n FROM visits GROUP BY y",
        "SELECT year(day) AS y, COUNT(*) AS n FROM visits GROUP BY year(day)",
        "SELECT date_part('year', day) AS y, COUNT(*) AS n FROM visits GROUP BY EXTRACT('year' FROM day)",
    ),
    (
        "SELECT SUM(cost) AS s, SUM(cost) / COUNT(*) AS m FROM visits HAVING COUNT(*) > 3",
        "SELECT SUM(cost) AS s, s / COUNT(*) AS m FROM visits HAVING 3 < COUNT(*)",
    ),
    (
        "SELECT SUM(CASE WHEN smoker THEN 1 ELSE 0 END) AS s FROM visits",
        "SELECT SUM(IF(smoker, 1, 0)) AS s FROM visits",
    ),
    (
        "SELECT COUNT(CASE WHEN age > 3 THEN 1 END) AS s FROM visits",
        "SELECT COUNT(*) FILTER (WHERE age > 3) AS s FROM visits",
        "SELECT COUNT_IF(age > 3) AS s FROM visits",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE note LIKE '%a%'",
        "SELECT COUNT(*) AS n FROM visits WHERE note LIKE '%%a%%%'",
    ),
    (
        "SELECT QUANTILE(cost, 0.25) AS q FROM visits",
        "SELECT QUANTILE_CONT(cost, .25) AS q FROM visits",
        "SELECT PERCENTILE_DISC(25e-2) WITHIN GROUP (ORDER BY cost) AS q FROM visits",
        "SELECT PERCENTILE_CONT(0.750) WITHIN GROUP (ORDER BY cost DESC) AS q FROM visits",
        "SELECT WITH DIFFERENTIAL_PRIVACY PERCENTILE_CONT(cost, 0.25) AS q FROM visits",
    ),
    (
        "SELECT MIN(age) AS a, MEDIAN(age) AS b FROM visits",
        "SELECT QUANTILE(age, 0.01) AS a, QUANTILE(age, 0.5) AS b FROM visits",
    ),
    (
        "SELECT COUNT(DISTINCT patient_id) FILTER (WHERE smoker) AS n FROM visits",
        "SELECT COUNT(DISTINCT CASE WHEN smoker THEN patient_id END) AS n FROM visits",
        "SELECT COUNT(DISTINCT IF(smoker, patient_id, NULL)) AS n FROM visits",
    ),
    (
        "SELECT ward, smoker, COUNT(*) AS n FROM visits GROUP BY ROLLUP(ward, smoker)",
        "SELECT ward, smoker, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((1, 2), (ward), (), (ward))",
        "SELECT WITH DIFFERENTIAL_PRIVACY ward, smoker, COUNT(*) AS n FROM `visits` GROUP BY ROLLUP(ward, smoker)",
    ),
]  # fmt: skip  # groups of equal questions


@pytest.mark.parametrize("group", SAME, ids=lambda group: group[0][:60])
def test_ways_to_write_the_same(group: tuple[str, ...]) -> None:
    """Case, aliases, ordinals, order of sides, comments and parentheses do not matter."""
    first, *others = (read_sql.read(text, CATALOG) for text in group)
    for text, other in zip(group[1:], others):
        assert other == first, text


def test_different_questions_differ() -> None:
    """Negative control: a change of a number, a key, an order or a filter is another plan."""
    base = "SELECT ward, COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY ward ORDER BY n LIMIT 5"
    changes = [("30", "31"), ("> 30", ">= 30"), ("ORDER BY n", "ORDER BY n DESC"), ("LIMIT 5", "LIMIT 6")]
    changes += [
        ("COUNT(*)", "COUNT(age)"),
        ("WHERE age > 30", ""),
        ("LIMIT 5", ""),
        (" AS n", " AS n, COUNT(age) AS m"),
    ]
    plans = {read_sql.read(base, CATALOG), *(read_sql.read(base.replace(old, new), CATALOG) for old, new in changes)}
    assert len(plans) == len(changes) + 1
