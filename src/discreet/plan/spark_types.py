"""The types of Spark, and what they are in a plan. Texts with a collation have no plan type."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.plan.types import Type

_SPARK: Mapping[str, Type] = {
    "boolean": Type.BOOLEAN,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Type.INTEGER),
    **dict.fromkeys(("float", "double"), Type.REAL),
    "string": Type.TEXT,
    "date": Type.DATE,
    **dict.fromkeys(("timestamp", "timestamp_ntz"), Type.TIMESTAMP),
}


def type_of_spark(kind: str) -> Type | None:
    """The plan type of a Spark type, by its simple name. Decimals without places are integers.

    >>> type_of_spark("decimal(18,3)"), type_of_spark("decimal(20,0)"), type_of_spark("string collate UTF8_LCASE")
    (<Type.REAL: 'real'>, <Type.INTEGER: 'integer'>, None)
    """
    if kind.startswith("decimal("):
        return Type.INTEGER if kind.endswith(",0)") else Type.REAL
    return _SPARK.get(kind)
