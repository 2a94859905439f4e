"""The GoogleSQL form: what options and bounds become, where refusals point, and that no text crashes the reader."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from discreet.errors import DiscreetError, QuestionError
from discreet.frontends import read_sql
from discreet.frontends.google import functions, privacy_clause
from discreet.frontends.google.clause_options import MAX_LIMIT, NAMES
from discreet.frontends.sql.expression_forms import FORMS
from discreet.plan.catalog import ContributionLimits
from discreet.plan.nodes import Aggregate, Question
from discreet.plan.statistics.definitions import Statistic
from tests.fixtures.cases import cases
from tests.worlds.tables import CATALOG, HOSPITAL

WITH = "SELECT WITH DIFFERENTIAL_PRIVACY "


def bounds(question: Question) -> list[tuple[int, int] | None]:
    """The bounds of all aggregates, which must be whole numbers."""
    found = [aggregate.bounds for aggregate in question.aggregates]
    return [None if ends is None else (int(ends[0]), int(ends[1])) for ends in found]


def aggregates(text: str) -> tuple[Aggregate, ...]:
    return read_sql.read(f"{WITH}{text} FROM visits", CATALOG).aggregates


@pytest.mark.parametrize(
    ("options", "offer"),
    [
        ("", {}),
        ("OPTIONS()", {}),
        ("OPTIONS(epsilon=1.09, delta=1e-5)", {"epsilon": Fraction(109, 100), "delta": Fraction(1, 100_000)}),
        ("options ( EPSILON = .1 )", {"epsilon": Fraction(1, 10)}),
        ("OPTIONS(delta=0, epsilon=+3)", {"epsilon": Fraction(3), "delta": Fraction(0)}),
        ("OPTIONS(max_groups_contributed=3)", {}),
        ("OPTIONS(epsilon=1/3 + .5)", {"epsilon": Fraction(5, 6)}),
        ("OPTIONS(epsilon=CAST(2 AS FLOAT64) * -(1 - 2), delta=1/1e6)", {"epsilon": 2, "delta": Fraction(1, 10**6)}),
    ],
)
def test_offers_are_exact(options: str, offer: dict[str, Fraction]) -> None:
    """The offer holds epsilon and delta as they are written, and nothing else."""
    asked = read_sql.read_with_offer(f"{WITH}{options} COUNT(*) FROM visits", CATALOG)
    assert dict(asked.offer) == offer


def test_plain_sql_offers_nothing() -> None:
    """Plain SQL has no offer, also where it mentions the clause in a text or a comment."""
    for text in (
        "SELECT COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE note = 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=9)'",
        "SELECT COUNT(*) FROM visits -- SELECT WITH DIFFERENTIAL_PRIVACY",
    ):
        asked = read_sql.read_with_offer(text, CATALOG)
        assert asked.offer == {} and asked.question.limits is None


def test_options_become_part_of_the_question() -> None:
    """Limits and the least number of units are in the plan; the unit is only checked."""
    text = (
        WITH + "OPTIONS(max_groups_contributed=2, min_privacy_units_per_group=7, privacy_unit_column=`patient_id`, "
        "group_selection_strategy=LAPLACE_THRESHOLD) note, COUNT(*) FROM visits GROUP BY note"
    )
    question = read_sql.read(text, CATALOG)
    assert question.limits == ContributionLimits(max_groups=2) and question.min_units == 7
    rows = read_sql.read(f"{WITH}OPTIONS(max_rows_contributed={MAX_LIMIT}) COUNT(*) FROM visits", CATALOG)
    assert rows.limits == ContributionLimits(max_rows=MAX_LIMIT)


def test_null_sets_no_limit_and_lifts_none() -> None:
    """NULL is what the codebook says, and never a way around its limits."""
    for option in ("max_groups_contributed", "max_rows_contributed", "min_privacy_units_per_group"):
        question = read_sql.read(f"{WITH}OPTIONS({option}=NULL) ward, COUNT(*) FROM visits GROUP BY ward", CATALOG)
        assert question == read_sql.read(f"{WITH}ward, COUNT(*) FROM visits GROUP BY ward", CATALOG)
    both = read_sql.read(
        f"{WITH}OPTIONS(max_groups_contributed=NULL, max_rows_contributed=2) COUNT(*) FROM visits", CATALOG
    )
    assert both.limits == ContributionLimits(max_rows=2)


def test_reports_ask_for_nothing_more() -> None:
    """report_format changes no plan: the interval and the receipt are the report."""
    text = "SUM(cost{}, contribution_bounds_per_group => (0, 100)) AS s, COUNT(*{}) AS n"
    said = text.format(", report_format => 'json'", ', report_format => "PROTO"')
    assert aggregates(said) == aggregates(text.format("", ""))


@pytest.mark.parametrize("number", ["1 +", "(1", "1 1", "- ", "CAST(1 AS INT64)", "1 - (2", "'1'", "x", "1/0", "1e400"])
def test_what_is_no_number_is_refused(number: str) -> None:
    """Arithmetic that is torn, divides by zero, or reads something."""
    with pytest.raises(QuestionError, match=r"number|divided|not closed"):
        read_sql.read(f"{WITH}OPTIONS(epsilon={number}) COUNT(*) FROM visits", CATALOG)


def test_a_number_is_short() -> None:
    with pytest.raises(QuestionError, match="50 words"):
        read_sql.read(f"{WITH}OPTIONS(epsilon={'1e300*' * 100}1) COUNT(*) FROM visits", CATALOG)


def test_the_same_question_in_plain_sql() -> None:
    """Without limits, the form is only another way to write the question."""
    same = [
        ("COUNT(*) AS n", "COUNT(*) AS n"),
        ("AVG(cost, contribution_bounds_per_group => (0, 100)) AS n", "AVG(clamp(cost, 0, 100)) AS n"),
        ("AVG(cost, contribution_bounds_per_row => (0.5, 100)) AS n", "AVG(clamp(cost, 0.5, 100)) AS n"),
        ("SUM(cost, contribution_bounds_per_row => (-1, 100)) AS n", "SUM(clamp(cost, -1, 100)) AS n"),
        ("PERCENTILE_CONT(age, .9, contribution_bounds_per_row => (0, 9)) AS n", "QUANTILE(clamp(age, 0, 9), .9) AS n"),
        ("COUNTIF(ward = \"A\") AS n", "COUNT_IF(ward = 'A') AS n"),
        ("SUM(IFNULL(cost, 0)) AS n", "SUM(COALESCE(cost, 0)) AS n"),
        ("COUNT(SUBSTR(note, 1, 3)) AS n", "COUNT(SUBSTRING(note, 1, 3)) AS n"),
        ("COUNT(DATETIME_DIFF(seen, day, DAY)) AS n", "COUNT(date_diff('day', day, seen)) AS n"),
        ("COUNT(TIMESTAMP_TRUNC(seen, HOUR)) AS n", "COUNT(date_trunc('hour', seen)) AS n"),
        ("COUNT(EXTRACT(ISOWEEK FROM day)) AS n", "COUNT(week(day)) AS n"),
        ("COUNT(EXTRACT(DAYOFWEEK FROM day)) AS n", "COUNT(dayofweek(day) + 1) AS n"),
    ]  # fmt: skip  # pairs, side by side
    for google, plain in same:
        assert read_sql.read(f"{WITH}{google} FROM visits", CATALOG) == read_sql.read(
            f"SELECT {plain} FROM visits", CATALOG
        )


@pytest.mark.parametrize("word", ["SUM", "COUNT"])
def test_bounds_per_group(word: str) -> None:
    """Bounds per group of sums and counts are kept as they are written."""
    (found,) = aggregates(f"{word}(cost, contribution_bounds_per_group => (-1.5, 2e2))")
    assert found.bounds == (Fraction(-3, 2), Fraction(200))
    (other,) = aggregates(f"{word}(cost)")
    assert other.bounds is None and found != other


def test_bounds_belong_to_their_own_call() -> None:
    """Of equal aggregates with different bounds each keeps its own; nested calls do not take them."""
    text = (
        "SUM(cost, contribution_bounds_per_group => (0, 1)) + SUM(cost, contribution_bounds_per_group => (0, 2)) "
        "+ SUM(cost) + ABS(SUM(ABS(cost), contribution_bounds_per_group => (0, 3)))"
    )
    assert bounds(read_sql.read(f"{WITH}{text} FROM visits", CATALOG)) == [(0, 1), (0, 2), None, (0, 3)]


def test_bounds_in_having_and_order() -> None:
    """Bounds are read wherever an aggregate stands."""
    text = (
        WITH + "ward FROM visits GROUP BY ward HAVING COUNT(*, contribution_bounds_per_group => (0, 5)) > 3 "
        "ORDER BY SUM(age, contribution_bounds_per_group => (0, 6))"
    )
    assert bounds(read_sql.read(text, CATALOG)) == [(0, 5), (0, 6)]


def test_texts_and_quoted_names_are_no_signs() -> None:
    """What stands in quotes is never read as a part of the clause or of bounds."""
    text = WITH + 'COUNTIF(note = "=>" OR note IN ("(", ")", ",", "SELECT")) AS `options` FROM visits'
    (found,) = read_sql.read(text, CATALOG).aggregates
    assert str(found) == "count(case(or(equal(note, '=>'), in(note, '(', ')', ',', 'SELECT')), 1, NULL))"
    bounded = WITH + 'COUNTIF(note = "(") + SUM(age, contribution_bounds_per_group => (0, 1)) AS n FROM visits'
    assert bounds(read_sql.read(bounded, CATALOG)) == [None, (0, 1)]


def test_nulls_come_last() -> None:
    """ORDER BY is accepted as it is pasted, and NULLs come first only where that is said in so many words."""
    text = WITH + "ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n, ward DESC"
    assert [sort.descending for sort in read_sql.read(text, CATALOG).order] == [False, True]
    assert [sort.nulls_first for sort in read_sql.read(f"{text} NULLS FIRST", CATALOG).order] == [False, True]


def test_bounds_with_a_constant_count() -> None:
    """COUNT(1, ...) counts rows within bounds."""
    assert aggregates("COUNT(1, contribution_bounds_per_group => (0, 5))") == (
        Aggregate(Statistic.COUNT, bounds=(Fraction(0), Fraction(5))),
    )


def test_subqueries_have_no_clause_and_no_bounds() -> None:
    """Inside one unit nothing is bounded and no noise is added; the clause stands outside."""
    inner = (
        "(SELECT patient_id, SUM(cost, contribution_bounds_per_group => (0, 1)) AS s FROM visits GROUP BY patient_id)"
    )
    with pytest.raises(QuestionError, match="Bounds belong to an aggregate of SELECT WITH DIFFERENTIAL_PRIVACY"):
        read_sql.read(f"{WITH}AVG(s) FROM {inner}", HOSPITAL)
    with pytest.raises(QuestionError, match="group of every single patient_id"):
        read_sql.read(f"SELECT AVG(s) FROM ({WITH}patient_id, SUM(cost) AS s FROM visits GROUP BY 1)", HOSPITAL)


def test_two_clauses_and_torn_numbers() -> None:
    """No SELECT with the clause reads what another one releases, and a number is one word."""
    with pytest.raises(QuestionError, match="reads what another one releases"):
        read_sql.read(f"{WITH}COUNT(*) FROM ({WITH}ward FROM visits)", HOSPITAL)
    with pytest.raises(QuestionError, match="takes a number"):
        read_sql.read(f"{WITH}OPTIONS(epsilon=. 5) COUNT(*) FROM visits", CATALOG)


def test_refusals_point_into_the_whole_text() -> None:
    """The clause is taken out, and every place is still that of the original text."""
    text = (
        WITH + "\n  OPTIONS(epsilon=1)\n  SUM(cost, contribution_bounds_per_group => (0, 1)),\n  AVG(agee) FROM visits"
    )
    with pytest.raises(QuestionError) as caught:
        read_sql.read(text, CATALOG)
    assert (caught.value.line, caught.value.column) == (4, 7)
    assert caught.value.excerpt.splitlines()[0].strip() == "AVG(agee) FROM visits"


def test_functions_are_forms_of_the_parser() -> None:
    """Every class named here exists, and the option names are few and known."""
    from sqlglot import exp

    for name, form in functions.FUNCTIONS.items():
        assert isinstance(getattr(exp, name, None), type), name
        assert set(form.parts) <= {*getattr(exp, name).arg_types, "this", "expressions"}, name
    assert set(functions.FUNCTIONS) & set(FORMS)
    assert len(NAMES) == 7


def test_not_a_text() -> None:
    """What is no text is refused as in plain SQL."""
    assert not privacy_clause.mentions_clause(None)
    with pytest.raises(QuestionError, match="text"):
        read_sql.read_with_offer(None, CATALOG)  # type: ignore[arg-type]  # on purpose


# Whatever the text, the outcome is a question or a refusal of ours.

SEEDS = [case.question for case in cases() if case.file == "google"]
ODD = """
    SELECT WITH DIFFERENTIAL_PRIVACY ANONYMIZATION OPTIONS ( ) , = => - + . * ; ( ) ( ) epsilon delta kappa NULL 1 0
    max_groups_contributed max_rows_contributed min_privacy_units_per_group privacy_unit_column patient_id visits ward
    group_selection_strategy PUBLIC_GROUPS LAPLACE_THRESHOLD contribution_bounds_per_group contribution_bounds_per_row
    COUNT SUM AVG VAR_POP PERCENTILE_CONT DISTINCT FROM WHERE GROUP BY ROLLUP HAVING ORDER AS n ` " ' # -- /* */ [ ] ?
    CAST AS INT64 FLOAT64 DATE_TRUNC MONTH WEEK ISOWEEK EXTRACT DATE_DIFF DAY IF CASE WHEN THEN END UNNEST STRUCT \\
    1e-5 .5 1e400 cost @x ${}
"""
WORDS = ODD.split()


@pytest.mark.parametrize("seed", range(4))
def test_random_text_never_crashes(seed: int) -> None:
    """Random words behind the clause, and mutated statements, are accepted or refused, and nothing else."""
    source = random.Random(seed)  # noqa: S311  # random texts, not noise
    accepted = 0
    for _ in range(500):
        if source.random() < 0.4:
            text = WITH + " ".join(source.choice(WORDS) for _ in range(source.randint(0, 25)))
        else:
            words = source.choice(SEEDS).replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")
            for _ in range(source.choice((0, 1, 1, 2, 3))):
                at = source.randrange(len(words))
                words[at : at + source.randint(0, 2)] = source.sample(WORDS, source.randint(0, 2))
            text = " ".join(words)
        try:
            asked = read_sql.read_with_offer(text, CATALOG)
            assert set(asked.offer) <= {"epsilon", "delta"}
            accepted += 1
        except DiscreetError as error:
            if not str(error).endswith("Nothing was charged."):
                pytest.fail(f"{text!r}: {error}")
    assert accepted > 10
