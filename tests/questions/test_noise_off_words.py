"""Noise-off equality for lists, sets, rounded keys, logarithms and the like: the words mean what DuckDB says."""

from __future__ import annotations

import pytest

from discreet.engines.engine import Engine
from tests.questions.test_noise_off import comparable
from tests.questions.test_noise_off_breadth import engine, plain, without_noise

__all__ = ["engine"]  # the fixture

QUESTIONS = [
    # functions
    "SELECT SUM(LOG10(cost + 1)) AS a, SUM(LOG2(cost + 1)) AS b, SUM(LN(cost + 1)) AS c FROM visits",
    "SELECT SUM(SIN(days)) AS a, SUM(COS(days)) AS b, SUM(ATAN2(days, cost)) AS c FROM visits",
    "SELECT SUM(DEGREES(ATAN(days))) AS d, SUM(ASIN(days / 20)) AS e FROM visits",
    "SELECT days // 5 AS k, COUNT(*) AS n FROM visits GROUP BY k",
    "SELECT floor(days / 5) * 5 AS k, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY k",
    "SELECT ceil(cost / 100) AS k, COUNT(*) AS n FROM visits GROUP BY k",
    "SELECT round(cost, -2) AS k, COUNT(*) AS n FROM visits GROUP BY k",
    "SELECT SUM(position('o' IN test)) AS s, COUNT(*) FILTER (WHERE strpos(test, 'l') > 0) AS n FROM labs",
    # lists
    "SELECT COUNT(*) AS n FROM visits WHERE days = ANY([1, 2, 3])",
    "SELECT COUNT(*) AS n FROM visits WHERE ward = ANY(['A', 'B']) AND NOT list_contains([3, 4], days)",
    "SELECT k, COUNT(*) AS n FROM visits JOIN UNNEST(['A', 'B']) AS t (k) ON ward = k GROUP BY k",
    "SELECT COUNT(*) AS n FROM visits JOIN generate_series(1, 9, 2) AS t (x) ON days = x",
    # sets
    "SELECT COUNT(*) FROM (SELECT patient_id FROM visits INTERSECT SELECT patient_id FROM patients WHERE smoker) AS t",
    "SELECT COUNT(*) AS n FROM (SELECT patient_id FROM patients EXCEPT SELECT patient_id FROM visits) AS t",
    "SELECT ward, COUNT(*) AS n FROM (SELECT patient_id, ward FROM visits EXCEPT SELECT patient_id, ward FROM visits "
    "WHERE days > 10) AS t GROUP BY ward",
    "SELECT COUNT(*) AS n FROM (SELECT patient_id, ward, days FROM visits WHERE cost > 100 INTERSECT "
    "SELECT patient_id, ward, days FROM visits WHERE cost IS NULL OR days IS NULL OR days > 3) AS t",
    # EXISTS and IN anywhere in a condition
    "SELECT COUNT(*) AS n FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id "
    "AND w.ward <> v.ward)",
    "SELECT COUNT(*) AS n FROM visits v WHERE NOT EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id "
    "AND w.days > v.days AND w.cost > 500)",
    "SELECT ward, COUNT(*) AS n FROM visits v WHERE days > 15 OR patient_id IN (SELECT patient_id FROM patients "
    "WHERE smoker) GROUP BY ward",
    "SELECT COUNT(*) AS n FROM visits v WHERE ward IN (SELECT ward FROM wards WHERE floor = 2) OR "
    "NOT EXISTS (SELECT 1 FROM labs l WHERE l.visit_id = v.visit_id AND l.value <= v.cost)",
    "SELECT COUNT(*) AS n FROM visits v WHERE NOT (days > 5 AND EXISTS (SELECT 1 FROM wards w WHERE w.ward = v.ward "
    "AND w.floor < v.days))",
    # groups by a key that says whose rows these are
    "SELECT AVG(n) AS a, COUNT(*) AS k FROM (SELECT visit_id, COUNT(*) AS n FROM labs GROUP BY visit_id) AS t",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT visit_id FROM labs WHERE value > 50) AS t",
    "SELECT SUM(value) AS s FROM (SELECT value, ROW_NUMBER() OVER (PARTITION BY visit_id ORDER BY value, test) AS r "
    "FROM labs) AS t WHERE r = 1",
    "SELECT v.ward, SUM(t.n) AS s FROM visits v JOIN (SELECT visit_id, COUNT(*) AS n FROM labs GROUP BY visit_id) AS t "
    "ON t.visit_id = v.visit_id GROUP BY v.ward",
    # conditions on one side of a LEFT JOIN
    "SELECT COUNT(*) AS n, COUNT(v.visit_id) AS m FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id "
    "AND p.born < 1960 AND v.days > 5",
    "SELECT w.kind, COUNT(*) AS n FROM visits v LEFT JOIN wards w ON v.ward = w.ward AND v.days > 5 GROUP BY w.kind",
    # frames of windows
    "SELECT COUNT(*) AS n FROM (SELECT SUM(days) OVER (PARTITION BY patient_id ORDER BY visit_id ROWS BETWEEN 2 "
    "PRECEDING AND CURRENT ROW) AS s FROM visits) AS t WHERE s > 20",
    "SELECT COUNT(*) AS n FROM (SELECT AVG(cost) OVER (PARTITION BY patient_id ORDER BY visit_id DESC ROWS BETWEEN 1 "
    "FOLLOWING AND 3 FOLLOWING) AS a, COUNT(days) OVER (PARTITION BY patient_id ORDER BY visit_id ROWS 1 PRECEDING) "
    "AS c, MAX(days) OVER (PARTITION BY patient_id ORDER BY visit_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) "
    "AS m FROM visits) AS t WHERE a > 300 AND c = 2 AND m < 18",
    "SELECT MIN(DISTINCT days) AS a FROM visits WHERE days = 7",
    "SELECT SUM(DISTINCT days) AS a, AVG(DISTINCT days) AS b, COUNT(DISTINCT days) AS n, SUM(days) AS c FROM visits",
    "SELECT ward, SUM(DISTINCT days) AS a, VAR_POP(DISTINCT days) AS b FROM visits GROUP BY ward",
    "SELECT STDDEV(DISTINCT days) AS a, SUM(DISTINCT days) FILTER (WHERE ward = 'A') AS b FROM visits",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_without_noise_equal_plain_sql(question: str, engine: Engine) -> None:
    """The same words mean the same thing."""
    ours, theirs = comparable(without_noise(question, engine)), comparable(plain(question))
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs):
        for a, b in zip(mine, other):
            assert a == (pytest.approx(b, abs=1e-4, rel=1e-6) if isinstance(b, float) else b)
