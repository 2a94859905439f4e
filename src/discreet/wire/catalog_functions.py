"""Functions and casts of PostgreSQL that queries of the catalog use, written anew for the database in memory.

Only what is listed here is run. Everything else is refused, so that no query reaches a function that reads something
else than the catalog, or that works for long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.wire.refusals import UNDEFINED_FUNCTION, WireRefused

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

# Nodes of the parser that are functions and that run as they are.
NATIVE_NODES = frozenset({
    "Abs", "All", "And", "Any", "Array", "ArrayAgg", "ArraySize", "ArrayToString", "Case", "Cast", "Coalesce", "Concat",
    "Count", "CurrentDate", "CurrentTimestamp", "Exists", "Explode", "ExplodingGenerateSeries", "GenerateSeries",
    "GroupConcat", "If", "JSONObject", "Left", "Length", "LogicalAnd", "LogicalOr", "Lower", "Max", "Min", "Nullif",
    "Or", "Quarter", "RegexpILike", "RegexpLike", "Replace", "Right", "Round", "RowNumber", "SplitPart", "StrPosition",
    "Substring", "Sum", "Trim", "Unnest", "Upper", "Xor",
})  # fmt: skip
# By name: the function of the database that does it, and how many of the arguments it takes.
_RENAMED: dict[str, tuple[str, int]] = {
    "format_type": ("format_type", 2),
    "obj_description": ("describe_object", 2),
    "col_description": ("describe_column", 2),
    "pg_get_constraintdef": ("write_constraint", 1),
    "to_regclass": ("find_table", 1),
    "to_regtype": ("find_type", 1),
    "to_regnamespace": ("find_schema", 1),
    "array_length": ("count_list", 2),
    "array_upper": ("count_list", 2),
    "array_position": ("list_position", 2),
    "cardinality": ("len", 1),
    "generate_subscripts": ("generate_subscripts", 2),
    "json_build_object": ("json_object", 99),
    "quote_ident": ("give_null", 0),
    "list_position": ("list_position", 2),
    "unnest": ("unnest", 1),
    "strpos": ("strpos", 2),
}
_TRUE = (
    "pg_table_is_visible", "pg_type_is_visible", "pg_function_is_visible", "pg_collation_is_visible",
    "pg_opclass_is_visible", "pg_operator_is_visible", "pg_statistics_obj_is_visible",
)  # fmt: skip
_FALSE = (
    "pg_is_in_recovery", "pg_is_other_temp_schema", "pg_relation_is_publishable", "pg_index_column_has_property",
    "pg_relation_is_updatable", "pg_column_is_updatable", "row_security_active",
)  # fmt: skip
_NULL = (
    "pg_get_expr", "pg_get_indexdef", "pg_get_ruledef", "pg_get_viewdef", "pg_get_triggerdef", "pg_get_partkeydef",
    "pg_get_statisticsobjdef_columns", "pg_get_function_result", "pg_get_function_arguments",
    "pg_get_function_identity_arguments", "pg_get_functiondef", "pg_get_serial_sequence", "shobj_description",
    "inet_server_addr", "inet_server_port", "inet_client_addr", "pg_postmaster_start_time",
    "pg_get_partition_constraintdef", "pg_last_xact_replay_timestamp", "to_regproc", "pg_tablespace_location",
)  # fmt: skip
_ZERO = (
    "pg_relation_size", "pg_table_size", "pg_total_relation_size", "pg_indexes_size", "pg_database_size",
    "pg_my_temp_schema", "pg_stat_get_numscans", "txid_current", "pg_stat_get_live_tuples",
)  # fmt: skip
_CHANGES = ("insert", "update", "delete", "create", "truncate", "trigger", "references", "temp")


def rewrite_function(name: str, arguments: list[Expr], session: Mapping[str, Any]) -> Expr:
    """The expression that stands for a function of PostgreSQL here."""
    from sqlglot import expressions as exp

    known = name.lower()
    if known in session:
        return make_literal(session[known])
    if known in _TRUE or known in _FALSE:
        return exp.Boolean(this=known in _TRUE)
    if known == "pg_partition_ancestors":
        return exp.cast(exp.Null(), "UINTEGER", dialect="duckdb")
    if known in _NULL:
        return exp.cast(exp.Null(), "VARCHAR")
    if known in _ZERO:
        return exp.cast(exp.Literal.number(0), "BIGINT")
    if known.startswith("has_") and known.endswith("_privilege"):
        said = arguments[-1].name.lower() if arguments else ""
        return exp.Boolean(this=not any(word in said for word in _CHANGES))
    if known in ("pg_get_userbyid", "pg_encoding_to_char", "pg_size_pretty"):
        words = {"pg_get_userbyid": "owner", "pg_encoding_to_char": "UTF8", "pg_size_pretty": "0 bytes"}
        return exp.Literal.string(words[known])
    if known in ("quote_ident", "quote_literal", "int2vectorout", "oidvectorout") and arguments:
        return arguments[0]
    if known == "array_lower":
        return exp.Literal.number(1)
    if known in _RENAMED:
        given, most = _RENAMED[known]
        filled = [*arguments, *([exp.Null()] if given in ("describe_object",) and len(arguments) == 1 else [])]
        return exp.Anonymous(this=given, expressions=filled[:most])
    hint = "Tables and columns are in information_schema.tables and information_schema.columns."
    raise WireRefused(UNDEFINED_FUNCTION, f"The function {known[:60]} is not known here.", hint)


def make_literal(value: Any) -> Expr:
    """A value of the session as a constant."""
    from sqlglot import expressions as exp

    if value is None:
        return exp.cast(exp.Null(), "VARCHAR")
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return exp.Literal.number(value)
    if isinstance(value, tuple):
        return exp.Array(expressions=[exp.Literal.string(each) for each in value])
    return exp.Literal.string(str(value))


_PLAIN_CASTS = {
    "oid": "UINTEGER", "xid": "UINTEGER", "name": "VARCHAR", "char": "VARCHAR", "bpchar": "VARCHAR",
    "varchar": "VARCHAR", "text": "VARCHAR", "int": "INTEGER", "int4": "INTEGER", "integer": "INTEGER",
    "int2": "SMALLINT", "smallint": "SMALLINT", "int8": "BIGINT", "bigint": "BIGINT", "bool": "BOOLEAN",
    "boolean": "BOOLEAN", "float4": "FLOAT", "real": "FLOAT", "float8": "DOUBLE", "double precision": "DOUBLE",
    "date": "DATE", "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ", "numeric": "DECIMAL(38, 9)",
    "decimal": "DECIMAL(38, 9)", "text[]": "VARCHAR[]", "name[]": "VARCHAR[]", "varchar[]": "VARCHAR[]",
    "oid[]": "UINTEGER[]", "int[]": "INTEGER[]", "int2[]": "SMALLINT[]", "smallint[]": "SMALLINT[]",
    "int4[]": "INTEGER[]", "bigint[]": "BIGINT[]", "int8[]": "BIGINT[]", "char[]": "VARCHAR[]", "json": "JSON",
    "information_schema.sql_identifier": "VARCHAR", "information_schema.cardinal_number": "INTEGER",
}  # fmt: skip
# Casts that look an object up by its name, or name it by its number.
_LOOKED_UP = {
    "regclass": ("find_table", "name_table"),
    "regtype": ("find_type", "name_type"),
    "regnamespace": ("find_schema", "name_schema"),
}


def rewrite_cast(operand: Expr, kind: str) -> Expr:
    """A cast to a type that is written as PostgreSQL writes it."""
    from sqlglot import expressions as exp

    words = kind.lower().removeprefix("pg_catalog.").replace('"', "")
    bare = words.partition("(")[0].strip()
    if bare in _LOOKED_UP:
        find, name = _LOOKED_UP[bare]
        if not operand.is_string:
            return exp.Anonymous(this=name, expressions=[operand])
        if operand.name.isdecimal():
            return exp.cast(operand, "UINTEGER", dialect="duckdb")
        return exp.Anonymous(this=find, expressions=[operand])
    if bare in ("regproc", "regrole", "regprocedure", "regoper"):
        return exp.cast(exp.Null() if operand.is_string else operand, "VARCHAR")
    if bare in ("int2vector", "oidvector", "anyarray", "any", "unknown"):
        return operand
    if bare.endswith("[]") and operand.is_string and operand.name[:1] == "{":
        items = [item.strip().strip('"') for item in operand.name[1:-1].split(",") if item.strip()]
        operand = exp.Array(expressions=[exp.Literal.string(item) for item in items])
    if bare not in _PLAIN_CASTS:
        raise WireRefused(UNDEFINED_FUNCTION, "A cast to this type is not known here.")
    return exp.Cast(this=operand, to=exp.DataType.build(_PLAIN_CASTS[bare], dialect="duckdb"))
