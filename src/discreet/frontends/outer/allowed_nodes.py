"""The SQL that may stand outside of SELECT WITH DIFFERENTIAL_PRIVACY, by the classes of the parser's tree.

What is not listed is refused. All of it is a function of the rows that it is given: nothing here reads a file, a
setting, the clock or a random number, makes rows out of numbers, or makes texts longer than their parts together.
"""

from __future__ import annotations

from collections.abc import Mapping

QUERIES = frozenset({"Select", "Union", "Intersect", "Except", "Subquery", "Values", "Table", "With", "CTE"})
CLAUSES = frozenset(
    {
        "From", "Join", "Where", "Group", "Having", "Qualify", "Order", "Ordered", "Limit", "Offset", "Distinct",
        "TableAlias", "Alias", "Tuple", "Star", "Column", "Identifier", "Rollup", "Cube", "GroupingSets",
    }
)  # fmt: skip  # lists of words
VALUES = frozenset(
    {
        "Literal", "Null", "Boolean", "Paren", "Neg", "Not", "And", "Or", "EQ", "NEQ", "LT", "LTE", "GT", "GTE", "Is",
        "NullSafeEQ", "NullSafeNEQ", "In", "Between", "Like", "ILike", "Case", "If", "Coalesce", "Nullif", "Add", "Sub",
        "Mul", "Div", "Mod", "DPipe", "Exists", "Cast", "TryCast", "DataType", "Var", "SafeDivide",
    }
)  # fmt: skip
FUNCTIONS = frozenset(
    {
        "Abs", "Sign", "Floor", "Ceil", "Round", "Sqrt", "Ln", "Exp", "Pow", "Least", "Greatest", "Lower", "Upper",
        "Trim", "Length", "Substring", "StartsWith", "EndsWith", "Contains", "Extract", "Year", "Month", "Day",
        "Quarter", "DateTrunc", "TimestampTrunc", "DateDiff",
    }
)  # fmt: skip
AGGREGATES = frozenset(
    {
        "Count", "CountIf", "Sum", "Avg", "Min", "Max", "Median", "Mode", "Stddev", "StddevPop", "StddevSamp",
        "Variance", "VariancePop", "Corr", "CovarPop", "CovarSamp", "Quantile", "PercentileCont", "PercentileDisc",
        "WithinGroup", "Filter", "AnyValue", "ArgMax", "ArgMin", "LogicalAnd", "LogicalOr", "Grouping",
    }
)  # fmt: skip
WINDOWS = frozenset(
    {
        "Window", "WindowSpec", "RowNumber", "Rank", "DenseRank", "PercentRank", "CumeDist", "Ntile", "Lag", "Lead",
        "FirstValue", "LastValue", "NthValue",
    }
)  # fmt: skip
NODES = QUERIES | CLAUSES | VALUES | FUNCTIONS | AGGREGATES | WINDOWS

# The types of a CAST, by the parser's names.
TYPES = frozenset({"BOOLEAN", "INT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL", "TEXT", "VARCHAR", "DATE", "TIMESTAMP"})

# The parts that nodes may have, where a part that is no node would change what they do.
PARTS: Mapping[str, frozenset[str]] = {
    "Select": frozenset(
        {
            "expressions", "from_", "joins", "where", "group", "having", "qualify", "order", "limit", "offset", "with_",
            "distinct",
        }
    ),
    "Table": frozenset({"this", "db", "catalog", "alias", "joins"}),
    "Join": frozenset({"this", "side", "kind", "on", "using", "method"}),
    "With": frozenset({"expressions"}),
    "Subquery": frozenset({"this", "alias", "joins", "order", "limit", "offset", "with_"}),
    "Distinct": frozenset({"expressions"}),
    "Limit": frozenset({"expression"}),
}  # fmt: skip

# Kinds of joins that pair rows by their values. ASOF and POSITIONAL depend on more than that.
JOIN_WORDS = frozenset({"", "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "SEMI", "ANTI", "NATURAL"})
