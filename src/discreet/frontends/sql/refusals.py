"""The reasons why known SQL is refused, and what to write instead.

These tables only make refusals helpful. SQL that is missing here is refused, too: only what ``expression_forms`` and
``select_clauses`` accept by name is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class RefusalReason(NamedTuple):
    """The rule that is broken, the fix, and the word in the text that shows the place."""

    rule: str
    fix: str
    word: str = ""


ONE_SELECT = "A question is one SELECT ... FROM declared tables."

# Statements that are not questions, by their first word.
STATEMENTS: Mapping[str, RefusalReason] = {
    "EXPLAIN": RefusalReason(
        "EXPLAIN is not a question.", "A preview shows the plan, its cost and its error for free."
    ),
    "DESCRIBE": RefusalReason("DESCRIBE is not a question.", "The codebook lists the columns."),
    "SUMMARIZE": RefusalReason("SUMMARIZE is not a question.", "Ask for each statistic by name: SELECT AVG(x) FROM t."),
    "SHOW": RefusalReason("SHOW is not a question.", "The codebook lists the tables."),
    "VALUES": RefusalReason("VALUES is not a question.", ONE_SELECT),
    "TABLE": RefusalReason(
        "TABLE shows single rows, which are private.", "Ask for aggregates: SELECT COUNT(*) FROM t."
    ),
    "PIVOT": RefusalReason("PIVOT is not available.", "Use GROUP BY with all the keys."),
    "UNPIVOT": RefusalReason("UNPIVOT is not available.", ONE_SELECT),
}

_WINDOW_RULE = "Window functions stand over the rows of one unit, in a subquery, or over released rows."
_WINDOW_FIX = (
    "Write SELECT n, RANK() OVER (ORDER BY n DESC) AS r FROM (SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) AS n ...)."
)

# Parts of a SELECT, by the name of the part in the parser's tree.
CLAUSES: Mapping[str, RefusalReason] = {
    "laterals": RefusalReason("LATERAL is not available.", ONE_SELECT, "LATERAL"),
    "into": RefusalReason("SELECT INTO is not available: a question only asks.", "Leave INTO out.", "INTO"),
    "qualify": RefusalReason(
        "QUALIFY stands over the rows of one unit, or over released rows.",
        "Use HAVING, or ORDER BY and LIMIT; or write the question as SELECT WITH DIFFERENTIAL_PRIVACY in FROM, and "
        "QUALIFY outside.",
        "QUALIFY",
    ),
    "windows": RefusalReason(_WINDOW_RULE, _WINDOW_FIX, "WINDOW"),
    "sample": RefusalReason("Sampling is not available.", "Leave it out.", "SAMPLE"),
    "pivots": RefusalReason("PIVOT is not available.", "Use GROUP BY with all the keys.", "PIVOT"),
    "locks": RefusalReason("FOR UPDATE is not available: a question only asks.", "Leave it out.", "FOR"),
    "hint": RefusalReason("Hints are not available.", "Leave the hint out."),
    "exclude": RefusalReason("EXCLUDE is not available.", "Name the outputs one by one.", "EXCLUDE"),
}

_CUT = "Which rows it keeps depends on everybody's rows, so"
# Parts of a SELECT inside a question.
INNER_CLAUSES: Mapping[str, RefusalReason] = {
    **CLAUSES,
    "limit": RefusalReason(
        f"{_CUT} LIMIT is not available inside a question.",
        "Use ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY ...) to keep some rows of each unit.",
        "LIMIT",
    ),
    "offset": RefusalReason(f"{_CUT} OFFSET is not available inside a question.", "Leave it out.", "OFFSET"),
    "sample": RefusalReason(f"{_CUT} sampling is not available inside a question.", "Leave it out.", "SAMPLE"),
}

# Parts of a table in FROM.
TABLE_PARTS: Mapping[str, RefusalReason] = {
    "sample": RefusalReason("Sampling is not available.", "Leave TABLESAMPLE out.", "TABLESAMPLE"),
    "pivots": CLAUSES["pivots"],
}

_NO_SUBQUERY = RefusalReason(
    "A subquery cannot stand for a single value: it would be a number about people that nobody has released.",
    "Ask for it first and write the released number here, or join the subquery in FROM.",
    "SELECT",
)
_NOT_MEASURED = "Available are COUNT, SUM, AVG, MEDIAN and the others that `discreet help sql` lists."
_TOP = "Use COUNT(*) with GROUP BY x, ORDER BY and LIMIT; MODE(x) is the most frequent of declared keys."
_CLOCK = RefusalReason("A question does not read the clock.", "Write the day itself: DATE '2024-01-31'.")
_BITS = RefusalReason("Operations on bits are not available.", "Use arithmetic, AND, OR and NOT.")
_REGEX = RefusalReason("Regular expressions are not available.", "Use LIKE with % and _, contains or starts_with.")
LISTS = RefusalReason(
    "Lists, maps and structs are not available here.",
    "Lists of constants stand in x IN UNNEST([1, 2]), x = ANY([1, 2]) and FROM UNNEST([1, 2]) AS x.",
)
QUANTILES = RefusalReason(
    "A list of quantiles is not available.",
    "Write one for each: QUANTILE(x, 0.25), QUANTILE(x, 0.5). They share the budget well.",
)
_PARAMETER = RefusalReason(
    "There is no value for this parameter.", "Write @name, and give parameters={'name': 1} beside the question."
)
_SORTED = RefusalReason("The order of rows does not matter to an aggregate.", "Leave ORDER BY out of the parentheses.")

# Nodes of the parser's tree, by their class.
NODES: Mapping[str, RefusalReason] = {
    "Star": RefusalReason(
        "SELECT * would show single rows, which are private.", "Ask for aggregates: SELECT COUNT(*)."
    ),
    "Columns": RefusalReason("COLUMNS is not available.", "Name the columns one by one."),
    "Subquery": _NO_SUBQUERY,
    "Select": _NO_SUBQUERY,
    "Union": RefusalReason(
        "UNION of questions needs their answers to be released.",
        "Write SELECT WITH DIFFERENTIAL_PRIVACY in each part: they are charged together, and UNION is free.",
        "UNION",
    ),
    "Lateral": RefusalReason("LATERAL is not available.", "Join on a condition.", "LATERAL"),
    "Unnest": LISTS,
    "Values": RefusalReason("VALUES stands in FROM only.", "Write FROM (VALUES (1), (2)) AS t (x).", "VALUES"),
    "Intersect": RefusalReason("INTERSECT is available in subqueries only.", "Ask two questions.", "INTERSECT"),
    "Except": RefusalReason("EXCEPT is available in subqueries only.", "Ask two questions.", "EXCEPT"),
    "Window": RefusalReason(_WINDOW_RULE, _WINDOW_FIX, "OVER"),
    "IgnoreNulls": RefusalReason("IGNORE NULLS is not available.", "Aggregates pass NULLs over anyway.", "IGNORE"),
    "Interval": RefusalReason(
        "INTERVAL is added to constant dates only.",
        "Write DATE '2024-01-31' + INTERVAL 1 MONTH, or date_diff('day', a, b) <= 30.",
    ),
    "Placeholder": _PARAMETER,
    "Parameter": _PARAMETER,
    "SessionParameter": _PARAMETER,
    "PositionalColumn": RefusalReason("Columns by number are not available.", "Name the column."),
    "GroupConcat": RefusalReason("Joined texts of many rows would show single values.", _NOT_MEASURED),
    "ArrayAgg": RefusalReason("Lists of values would show single rows.", _NOT_MEASURED),
    "AnyValue": RefusalReason("ANY_VALUE would show the value of one row.", _NOT_MEASURED),
    "ArgMax": RefusalReason("ARG_MAX would show the value of one row.", _NOT_MEASURED),
    "ArgMin": RefusalReason("ARG_MIN would show the value of one row.", _NOT_MEASURED),
    "ApproxTopK": RefusalReason("APPROX_TOP_K is not available.", _TOP),
    "ApproxQuantiles": QUANTILES,
    "Skewness": RefusalReason("SKEWNESS is not available.", _NOT_MEASURED),
    "Kurtosis": RefusalReason("KURTOSIS is not available.", _NOT_MEASURED),
    "RegrCount": RefusalReason("REGR_COUNT is not available.", "Use COUNT(*) FILTER (WHERE x + y IS NOT NULL)."),
    "RegrR2": RefusalReason("REGR_R2 is not available.", "Use POWER(CORR(y, x), 2)."),
    "First": RefusalReason("FIRST would show the value of one row.", _NOT_MEASURED),
    "Last": RefusalReason("LAST would show the value of one row.", _NOT_MEASURED),
    "LogicalAnd": RefusalReason(
        "BOOL_AND is not available: one row decides it.", "Use AVG(CASE WHEN c THEN 1 ELSE 0 END)."
    ),
    "LogicalOr": RefusalReason("BOOL_OR is not available: one row decides it.", "Use COUNT(*) with WHERE."),
    "Order": _SORTED,
    "Rand": RefusalReason("A question is not random.", "Leave RANDOM out."),
    "CurrentDate": _CLOCK,
    "CurrentTimestamp": _CLOCK,
    "CurrentTime": _CLOCK,
    "Right": RefusalReason("RIGHT is not available.", "Use ends_with(x, 'end') or x LIKE '%end'."),
    "RegexpLike": _REGEX,
    "RegexpILike": _REGEX,
    "RegexpFullMatch": _REGEX,
    "RegexpExtract": _REGEX,
    "RegexpReplace": _REGEX,
    "SimilarTo": _REGEX,
    "Glob": _REGEX,
    "Escape": RefusalReason("ESCAPE is not available.", "Use contains(x, '%') to look for the sign itself.", "ESCAPE"),
    "ArrayOverlaps": RefusalReason("a && b is not available.", "Write AND between conditions.", "&&"),
    "Any": RefusalReason("ANY is not available.", "Use OR.", "ANY"),
    "All": RefusalReason("ALL is not available.", "Use AND.", "ALL"),
    "Tuple": RefusalReason("Several values in parentheses are not available here.", "Compare the columns one by one."),
    "Collate": RefusalReason("COLLATE is not available.", "Use lower(x).", "COLLATE"),
    "ByteString": RefusalReason("Escaped texts are not available.", "Write a plain text in single quotes."),
    "RawString": RefusalReason("Texts between dollar signs are not available.", "Write a plain text in single quotes."),
    "National": RefusalReason("National texts are not available.", "Write a plain text in single quotes."),
    "HexString": RefusalReason("Hexadecimal values are not available.", "Write a plain number or text."),
    "BitString": RefusalReason("Bit values are not available.", "Write a plain number or text."),
    "TimeToStr": RefusalReason(
        "Formatting dates is not available.", "Use year(d), month(d) or date_trunc('month', d)."
    ),
    "ToChar": RefusalReason(
        "Formatting numbers and dates is not available.", "Use year(d), month(d) or date_trunc('month', d)."
    ),
    "WidthBucket": RefusalReason("WIDTH_BUCKET is not available.", "Use bin(x, 10), with the width of a bin."),
    "Monthname": RefusalReason("Names of months are not available.", "Use month(d)."),
    "Dayname": RefusalReason("Names of days are not available.", "Use dayofweek(d): Sunday is 0."),
    "DayOfWeekIso": RefusalReason("ISODOW is not available.", "Use dayofweek(d): Sunday is 0."),
    "DayOfYear": RefusalReason("The day of the year is not available.", "Use month(d) and day(d)."),
    "Replace": RefusalReason("REPLACE is not available.", "Use CASE WHEN x = 'a' THEN 'b' ELSE x END."),
    "Distinct": RefusalReason(
        "DISTINCT is available in COUNT, SUM, AVG, VARIANCE and STDDEV, and changes nothing in MIN and MAX.",
        "Leave it out.",
        "DISTINCT",
    ),
    "Var": RefusalReason("A bare word cannot stand here.", "Name a column, or write a text in single quotes."),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitwiseLeftShift"), _BITS),
    **dict.fromkeys(("BitwiseRightShift",), _BITS),
    **dict.fromkeys(("Bracket", "Array", "Struct", "Map", "Lambda", "JSONExtract", "Explode", "Unnest"), LISTS),
}

# Functions that the parser does not know, by name.
FUNCTIONS: Mapping[str, RefusalReason] = {
    "now": _CLOCK,
    "get_current_timestamp": _CLOCK,
    "age": RefusalReason("age is not available.", "Use date_diff('year', born, day)."),
    "list": NODES["ArrayAgg"],
    "arbitrary": NODES["AnyValue"],
    "histogram": RefusalReason(
        "HISTOGRAM is not available.", "Use bin(x, 10) AS bin, COUNT(*) with GROUP BY bin(x, 10)."
    ),
    **dict.fromkeys(("date_format", "format_date", "format_timestamp"), NODES["TimeToStr"]),
    **dict.fromkeys(
        ("dateadd", "adddate", "subdate", "date_sub"),
        RefusalReason(
            "Intervals are added to constant dates by + and -.", "Write DATE '2024-01-31' - INTERVAL 30 DAY."
        ),
    ),
    "top_k": NODES["ApproxTopK"],
    "approx_top_count": NODES["ApproxTopK"],
    "product": RefusalReason("PRODUCT is not available: one factor of zero decides it.", "Use EXP(SUM(LN(x)))."),
    "geomean": RefusalReason("GEOMEAN is not available.", "Use EXP(AVG(LN(x))) with bounds: clamp(LN(x), 0, 10)."),
    "mad": RefusalReason("MAD is not available.", "Use STDDEV(x), or QUANTILE(x, 0.75) - QUANTILE(x, 0.25)."),
    "entropy": RefusalReason(
        "ENTROPY is not available.", "Use COUNT(*) with GROUP BY x and compute it from the answer."
    ),
}

# Parts that change the meaning of a node, by the class of the node and the name of the part.
PARTS: Mapping[tuple[str, str], RefusalReason] = {
    ("Lag", "default"): RefusalReason("LAG takes a value and an offset.", "Use COALESCE(LAG(x) OVER (...), 0)."),
    ("Lead", "default"): RefusalReason("LEAD takes a value and an offset.", "Use COALESCE(LEAD(x) OVER (...), 0)."),
    ("Trunc", "decimals"): RefusalReason(
        "TRUNC to some digits is not available.", "Use round(x, -3), or floor(x / 1000) * 1000."
    ),
    ("In", "query"): _NO_SUBQUERY,
    ("In", "field"): RefusalReason(
        "IN needs a list of constants in parentheses.", "Write for example ward IN ('A', 'B')."
    ),
    ("Trim", "position"): RefusalReason("Only TRIM of both ends is available.", "Write TRIM(x)."),
    ("Trim", "expression"): RefusalReason("TRIM takes spaces away and nothing else.", "Write TRIM(x)."),
    ("Between", "symmetric"): RefusalReason(
        "BETWEEN SYMMETRIC is not available.", "Write x BETWEEN low AND high.", "SYMMETRIC"
    ),
    ("Max", "count"): RefusalReason(
        "MAX(x, n) would show the values of n people.", "Use QUANTILE(x, 0.95) and the like."
    ),
    ("Min", "count"): RefusalReason(
        "MIN(x, n) would show the values of n people.", "Use QUANTILE(x, 0.05) and the like."
    ),
    ("Count", "expressions"): RefusalReason("COUNT takes one column.", "Count each column on its own."),
}
