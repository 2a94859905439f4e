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


ONE_SELECT = "A question is one SELECT ... FROM one table."

# The first word of statements that are not questions.
STATEMENTS: Mapping[str, Reason] = {
    "WITH": Reason("WITH is not available.", "Ask one SELECT of one declared table."),
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
    "with_": Reason("WITH is not available.", "Ask one SELECT of one declared table.", "WITH"),
    "joins": Reason("Joins are not available.", "Ask one declared table at a time.", "JOIN"),
    "laterals": Reason("LATERAL is not available.", ONE_SELECT, "LATERAL"),
    "distinct": Reason("SELECT DISTINCT is not available.", "Use GROUP BY with an aggregate.", "DISTINCT"),
    "into": Reason("SELECT INTO is not available: a question only asks.", "Leave INTO out.", "INTO"),
    "qualify": Reason("QUALIFY is not available, as there are no window functions.", "Use HAVING.", "QUALIFY"),
    "windows": Reason("Window functions are not available.", "Use GROUP BY.", "WINDOW"),
    "sample": Reason("Sampling is not available.", "Leave it out.", "SAMPLE"),
    "pivots": Reason("PIVOT is not available.", "Use GROUP BY with all the keys.", "PIVOT"),
    "locks": Reason("FOR UPDATE is not available: a question only asks.", "Leave it out.", "FOR"),
    "hint": Reason("Hints are not available.", "Leave the hint out."),
    "exclude": Reason("EXCLUDE is not available.", "Name the outputs one by one.", "EXCLUDE"),
}

# Parts of a table in FROM.
TABLE_PARTS: Mapping[str, Reason] = {
    "db": Reason("A table has no schema here.", "Write its declared name alone."),
    "catalog": Reason("A table has no database or schema here.", "Write its declared name alone."),
    "sample": Reason("Sampling is not available.", "Leave TABLESAMPLE out.", "TABLESAMPLE"),
    "joins": CLAUSES["joins"],
    "pivots": CLAUSES["pivots"],
}

_NO_SUBQUERY = Reason("Subqueries are not available.", ONE_SELECT, "SELECT")
_NOT_MEASURED = "Available are COUNT, SUM, AVG, VARIANCE and STDDEV."
_CLOCK = Reason("A question does not read the clock.", "Write the day itself: DATE '2024-01-31'.")
_BITS = Reason("Operations on bits are not available.", "Use arithmetic, AND, OR and NOT.")
_REGEX = Reason("Regular expressions are not available.", "Use LIKE with % and _, contains or starts_with.")
LISTS = Reason("Lists, maps and structs are not available.", "Use plain columns and values.")
_PARAMETER = Reason("Parameters are not available.", "Write the value itself into the question.")
_SORTED = Reason("The order of rows does not matter to an aggregate.", "Leave ORDER BY out of the parentheses.")

# Nodes of the parser's tree, by their class.
NODES: Mapping[str, Reason] = {
    "Star": Reason("SELECT * would show single rows, which are private.", "Ask for aggregates: SELECT COUNT(*)."),
    "Columns": Reason("COLUMNS is not available.", "Name the columns one by one."),
    "Subquery": _NO_SUBQUERY,
    "Select": _NO_SUBQUERY,
    "Union": Reason("UNION is not available.", ONE_SELECT, "UNION"),
    "Intersect": Reason("INTERSECT is not available.", ONE_SELECT, "INTERSECT"),
    "Except": Reason("EXCEPT is not available.", ONE_SELECT, "EXCEPT"),
    "Exists": Reason("EXISTS is not available.", ONE_SELECT, "EXISTS"),
    "Window": Reason("Window functions are not available.", "Leave OVER (...) out and use GROUP BY.", "OVER"),
    "WithinGroup": Reason("WITHIN GROUP is not available.", _NOT_MEASURED, "WITHIN"),
    "IgnoreNulls": Reason("IGNORE NULLS is not available.", "Aggregates pass NULLs over anyway.", "IGNORE"),
    "Rollup": Reason("ROLLUP is not available.", "Ask once for each grouping.", "ROLLUP"),
    "Cube": Reason("CUBE is not available.", "Ask once for each grouping.", "CUBE"),
    "GroupingSets": Reason("GROUPING SETS is not available.", "Ask once for each grouping.", "GROUPING SETS"),
    "Interval": Reason("INTERVAL is not available.", "Use date_diff('day', a, b) or a date: DATE '2024-01-31'."),
    "Placeholder": _PARAMETER,
    "Parameter": _PARAMETER,
    "SessionParameter": _PARAMETER,
    "PositionalColumn": Reason("Columns by number are not available.", "Name the column."),
    "Max": Reason("MAX is not available: it is the value of one person.", _NOT_MEASURED),
    "Min": Reason("MIN is not available: it is the value of one person.", _NOT_MEASURED),
    "Median": Reason("MEDIAN is not available in a question.", _NOT_MEASURED),
    "PercentileCont": Reason("Quantiles are not available in a question.", _NOT_MEASURED),
    "PercentileDisc": Reason("Quantiles are not available in a question.", _NOT_MEASURED),
    "GroupConcat": Reason("Joined texts of many rows would show single values.", _NOT_MEASURED),
    "ArrayAgg": Reason("Lists of values would show single rows.", _NOT_MEASURED),
    "AnyValue": Reason("ANY_VALUE would show the value of one row.", _NOT_MEASURED),
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
    "Distinct": Reason("DISTINCT is available in COUNT(DISTINCT unit) only.", "Leave it out.", "DISTINCT"),
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
    "mode": Reason("MODE is not available in a question.", "Use COUNT(*) with GROUP BY."),
    "quantile": NODES["PercentileCont"],
    "reservoir_quantile": NODES["PercentileCont"],
    "approx_quantile": NODES["PercentileCont"],
    "approx_count_distinct": NODES["Distinct"],
}

# Parts of nodes that make them something else, by the class and the name of the part.
PARTS: Mapping[tuple[str, str], Reason] = {
    ("In", "query"): _NO_SUBQUERY,
    ("In", "field"): Reason("IN needs a list of constants in parentheses.", "Write for example ward IN ('A', 'B')."),
    ("Trim", "position"): Reason("Only TRIM of both ends is available.", "Write TRIM(x)."),
    ("Trim", "expression"): Reason("TRIM takes spaces away and nothing else.", "Write TRIM(x)."),
    ("Between", "symmetric"): Reason(
        "BETWEEN SYMMETRIC is not available.", "Write x BETWEEN low AND high.", "SYMMETRIC"
    ),
    ("Count", "expressions"): Reason("COUNT takes one column.", "Count each column on its own."),
    ("Column", "db"): Reason("A column has no schema here.", "Write table.column, or the column alone."),
}
