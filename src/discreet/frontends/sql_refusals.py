"""SQL that is known and refused: why, and what to write instead.

Nothing is accepted because it is missing here: what ``sql_expressions.py`` and ``sql.py`` do not accept by name is
refused anyway. These tables only make the refusals helpful.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Reason(NamedTuple):
    """Why something is refused, the fix, and the word in the text that shows where."""

    rule: str
    fix: str
    word: str = ""


ONE_SELECT = "A question is one SELECT ... FROM declared tables."

# The first word of statements that are not questions.
STATEMENTS: Mapping[str, Reason] = {
    "EXPLAIN": Reason("EXPLAIN is not a question.", "A preview shows the plan, its cost and its error for free."),
    "DESCRIBE": Reason("DESCRIBE is not a question.", "The codebook lists the columns."),
    "SUMMARIZE": Reason("SUMMARIZE is not a question.", "Ask for each statistic by name: SELECT AVG(x) FROM t."),
    "SHOW": Reason("SHOW is not a question.", "The codebook lists the tables."),
    "VALUES": Reason("VALUES is not a question.", ONE_SELECT),
    "TABLE": Reason("TABLE shows single rows, which are private.", "Ask for aggregates: SELECT COUNT(*) FROM t."),
    "PIVOT": Reason("PIVOT is not available.", "Use GROUP BY with all the keys."),
    "UNPIVOT": Reason("UNPIVOT is not available.", ONE_SELECT),
    "(": Reason("A question does not begin with a parenthesis.", "Write SELECT ... without parentheses around it."),
}

# Parts of a SELECT, by the name of the part in the parser's tree.
CLAUSES: Mapping[str, Reason] = {
    "laterals": Reason("LATERAL is not available.", ONE_SELECT, "LATERAL"),
    "distinct": Reason(
        "SELECT DISTINCT is available in subqueries only.", "Use GROUP BY with an aggregate.", "DISTINCT"
    ),
    "into": Reason("SELECT INTO is not available: a question only asks.", "Leave INTO out.", "INTO"),
    "qualify": Reason("QUALIFY is available in subqueries only.", "Use HAVING.", "QUALIFY"),
    "windows": Reason("Window functions are available in subqueries only.", "Use GROUP BY.", "WINDOW"),
    "sample": Reason("Sampling is not available.", "Leave it out.", "SAMPLE"),
    "pivots": Reason("PIVOT is not available.", "Use GROUP BY with all the keys.", "PIVOT"),
    "locks": Reason("FOR UPDATE is not available: a question only asks.", "Leave it out.", "FOR"),
    "hint": Reason("Hints are not available.", "Leave the hint out."),
    "exclude": Reason("EXCLUDE is not available.", "Name the outputs one by one.", "EXCLUDE"),
}

_CUT = "Which rows it keeps depends on everybody's rows, so"
# Parts of a SELECT inside a question, where they differ.
INNER_CLAUSES: Mapping[str, Reason] = {
    **CLAUSES,
    "limit": Reason(
        f"{_CUT} LIMIT is not available inside a question.",
        "Use ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY ...) to keep some rows of each unit.",
        "LIMIT",
    ),
    "offset": Reason(f"{_CUT} OFFSET is not available inside a question.", "Leave it out.", "OFFSET"),
    "sample": Reason(f"{_CUT} sampling is not available inside a question.", "Leave it out.", "SAMPLE"),
}

# Parts of a table in FROM.
TABLE_PARTS: Mapping[str, Reason] = {
    "db": Reason("A table has no schema here.", "Write its declared name alone."),
    "catalog": Reason("A table has no database or schema here.", "Write its declared name alone."),
    "sample": Reason("Sampling is not available.", "Leave TABLESAMPLE out.", "TABLESAMPLE"),
    "pivots": CLAUSES["pivots"],
}

_NO_SUBQUERY = Reason(
    "A subquery cannot stand for a single value: it would be a number about people that nobody has released.",
    "Ask for it first and write the released number here, or join the subquery in FROM.",
    "SELECT",
)
_NOT_MEASURED = "Available are COUNT, SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE, MIN, MAX, MODE and CORR."
_TOP = "Use COUNT(*) with GROUP BY x, ORDER BY and LIMIT; MODE(x) is the most frequent of declared keys."
_TOTALS = "A key that is NULL marks the rows of the total over it."
_CLOCK = Reason("A question does not read the clock.", "Write the day itself: DATE '2024-01-31'.")
_BITS = Reason("Operations on bits are not available.", "Use arithmetic, AND, OR and NOT.")
_REGEX = Reason("Regular expressions are not available.", "Use LIKE with % and _, contains or starts_with.")
LISTS = Reason("Lists, maps and structs are not available.", "Use plain columns and values.")
QUANTILES = Reason(
    "A list of quantiles is not available.",
    "Write one for each: QUANTILE(x, 0.25), QUANTILE(x, 0.5). They share the budget well.",
)
_PARAMETER = Reason("Parameters are not available.", "Write the value itself into the question.")
_SORTED = Reason("The order of rows does not matter to an aggregate.", "Leave ORDER BY out of the parentheses.")

# Nodes of the parser's tree, by their class.
NODES: Mapping[str, Reason] = {
    "Star": Reason("SELECT * would show single rows, which are private.", "Ask for aggregates: SELECT COUNT(*)."),
    "Columns": Reason("COLUMNS is not available.", "Name the columns one by one."),
    "Subquery": _NO_SUBQUERY,
    "Select": _NO_SUBQUERY,
    "Union": Reason("UNION is available in subqueries only.", "Ask two questions.", "UNION"),
    "Lateral": Reason("LATERAL is not available.", "Join on a condition.", "LATERAL"),
    "Unnest": LISTS,
    "Values": Reason("VALUES stands in FROM only.", "Write FROM (VALUES (1), (2)) AS t (x).", "VALUES"),
    "Intersect": Reason("INTERSECT is not available.", ONE_SELECT, "INTERSECT"),
    "Except": Reason("EXCEPT is not available.", ONE_SELECT, "EXCEPT"),
    "Window": Reason(
        "Window functions are available in subqueries only.", "Leave OVER (...) out and use GROUP BY.", "OVER"
    ),
    "IgnoreNulls": Reason("IGNORE NULLS is not available.", "Aggregates pass NULLs over anyway.", "IGNORE"),
    "Interval": Reason("INTERVAL is not available.", "Use date_diff('day', a, b) or a date: DATE '2024-01-31'."),
    "Placeholder": _PARAMETER,
    "Parameter": _PARAMETER,
    "SessionParameter": _PARAMETER,
    "PositionalColumn": Reason("Columns by number are not available.", "Name the column."),
    "GroupConcat": Reason("Joined texts of many rows would show single values.", _NOT_MEASURED),
    "ArrayAgg": Reason("Lists of values would show single rows.", _NOT_MEASURED),
    "AnyValue": Reason("ANY_VALUE would show the value of one row.", _NOT_MEASURED),
    "ArgMax": Reason("ARG_MAX would show the value of one row.", _NOT_MEASURED),
    "ArgMin": Reason("ARG_MIN would show the value of one row.", _NOT_MEASURED),
    "ApproxTopK": Reason("APPROX_TOP_K is not available.", _TOP),
    "ApproxQuantiles": QUANTILES,
    "Grouping": Reason("GROUPING is not available.", _TOTALS),
    "GroupingId": Reason("GROUPING_ID is not available.", _TOTALS),
    "Skewness": Reason("SKEWNESS is not available.", _NOT_MEASURED),
    "Kurtosis": Reason("KURTOSIS is not available.", _NOT_MEASURED),
    "RegrCount": Reason("REGR_COUNT is not available.", "Use COUNT(*) FILTER (WHERE x + y IS NOT NULL)."),
    "RegrR2": Reason("REGR_R2 is not available.", "Use POWER(CORR(y, x), 2)."),
    "First": Reason("FIRST would show the value of one row.", _NOT_MEASURED),
    "Last": Reason("LAST would show the value of one row.", _NOT_MEASURED),
    "LogicalAnd": Reason("BOOL_AND is not available: one row decides it.", "Use AVG(CASE WHEN c THEN 1 ELSE 0 END)."),
    "LogicalOr": Reason("BOOL_OR is not available: one row decides it.", "Use COUNT(*) with WHERE."),
    "Order": _SORTED,
    "Rand": Reason("A question is not random.", "Leave RANDOM out."),
    "CurrentDate": _CLOCK,
    "CurrentTimestamp": _CLOCK,
    "CurrentTime": _CLOCK,
    "Log": Reason("LOG is not available, as its base differs between systems.", "Use LN(x) / LN(10) or LN(x) / LN(2)."),
    "IntDiv": Reason("a // b is not available.", "Use FLOOR(a / b)."),
    "Right": Reason("RIGHT is not available.", "Use ends_with(x, 'end') or x LIKE '%end'."),
    "RegexpLike": _REGEX,
    "RegexpILike": _REGEX,
    "RegexpFullMatch": _REGEX,
    "RegexpExtract": _REGEX,
    "RegexpReplace": _REGEX,
    "SimilarTo": _REGEX,
    "Glob": _REGEX,
    "Escape": Reason("ESCAPE is not available.", "Use contains(x, '%') to look for the sign itself.", "ESCAPE"),
    "Any": Reason("ANY is not available.", "Use OR.", "ANY"),
    "All": Reason("ALL is not available.", "Use AND.", "ALL"),
    "Tuple": Reason("Several values in parentheses are not available here.", "Compare the columns one by one."),
    "Collate": Reason("COLLATE is not available.", "Use lower(x).", "COLLATE"),
    "ByteString": Reason("Escaped texts are not available.", "Write a plain text in single quotes."),
    "RawString": Reason("Texts between dollar signs are not available.", "Write a plain text in single quotes."),
    "National": Reason("National texts are not available.", "Write a plain text in single quotes."),
    "HexString": Reason("Hexadecimal values are not available.", "Write a plain number or text."),
    "BitString": Reason("Bit values are not available.", "Write a plain number or text."),
    "TimeToStr": Reason("Formatting dates is not available.", "Use year(d), month(d) or date_trunc('month', d)."),
    "Monthname": Reason("Names of months are not available.", "Use month(d)."),
    "Dayname": Reason("Names of days are not available.", "Use dayofweek(d): Sunday is 0."),
    "DayOfWeekIso": Reason("ISODOW is not available.", "Use dayofweek(d): Sunday is 0."),
    "DayOfYear": Reason("The day of the year is not available.", "Use month(d) and day(d)."),
    "Replace": Reason("REPLACE is not available.", "Use CASE WHEN x = 'a' THEN 'b' ELSE x END."),
    "Distinct": Reason(
        "DISTINCT is available in COUNT(DISTINCT x) only: elsewhere one person's value would stand for many.",
        "Leave it out.",
        "DISTINCT",
    ),
    "Var": Reason("A bare word cannot stand here.", "Name a column, or write a text in single quotes."),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitwiseLeftShift"), _BITS),
    **dict.fromkeys(("BitwiseRightShift",), _BITS),
    **dict.fromkeys(("Bracket", "Array", "Struct", "Map", "Lambda", "JSONExtract", "Explode", "Unnest"), LISTS),
}

# Functions that the parser does not know, by name.
FUNCTIONS: Mapping[str, Reason] = {
    "now": _CLOCK,
    "get_current_timestamp": _CLOCK,
    "age": Reason("age is not available.", "Use date_diff('year', born, day)."),
    "list": NODES["ArrayAgg"],
    "arbitrary": NODES["AnyValue"],
    "histogram": Reason("HISTOGRAM is not available.", "Use bin(x, 10) AS bin, COUNT(*) with GROUP BY bin(x, 10)."),
    "top_k": NODES["ApproxTopK"],
    "approx_top_count": NODES["ApproxTopK"],
    "product": Reason("PRODUCT is not available: one factor of zero decides it.", "Use EXP(SUM(LN(x)))."),
    "geomean": Reason("GEOMEAN is not available.", "Use EXP(AVG(LN(x))) with bounds: clamp(LN(x), 0, 10)."),
    "mad": Reason("MAD is not available.", "Use STDDEV(x), or QUANTILE(x, 0.75) - QUANTILE(x, 0.25)."),
    "entropy": Reason("ENTROPY is not available.", "Use COUNT(*) with GROUP BY x and compute it from the answer."),
}

# Parts of nodes that make them something else, by the class and the name of the part.
PARTS: Mapping[tuple[str, str], Reason] = {
    ("Window", "spec"): Reason(
        "Frames such as ROWS BETWEEN are not available.",
        "Leave the frame out: with ORDER BY, a sum runs from the first row of the part to this one.",
        "BETWEEN",
    ),
    ("Lag", "default"): Reason("LAG takes a value and an offset.", "Use COALESCE(LAG(x) OVER (...), 0)."),
    ("Lead", "default"): Reason("LEAD takes a value and an offset.", "Use COALESCE(LEAD(x) OVER (...), 0)."),
    ("In", "query"): _NO_SUBQUERY,
    ("In", "field"): Reason("IN needs a list of constants in parentheses.", "Write for example ward IN ('A', 'B')."),
    ("Trim", "position"): Reason("Only TRIM of both ends is available.", "Write TRIM(x)."),
    ("Trim", "expression"): Reason("TRIM takes spaces away and nothing else.", "Write TRIM(x)."),
    ("Between", "symmetric"): Reason(
        "BETWEEN SYMMETRIC is not available.", "Write x BETWEEN low AND high.", "SYMMETRIC"
    ),
    ("Max", "count"): Reason("MAX(x, n) would show the values of n people.", "Use QUANTILE(x, 0.95) and the like."),
    ("Min", "count"): Reason("MIN(x, n) would show the values of n people.", "Use QUANTILE(x, 0.05) and the like."),
    ("Count", "expressions"): Reason("COUNT takes one column.", "Count each column on its own."),
    ("Column", "db"): Reason("A column has no schema here.", "Write table.column, or the column alone."),
}
