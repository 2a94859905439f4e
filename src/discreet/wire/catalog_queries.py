"""Tells queries of the catalog from questions, and writes the former anew for the database in memory.

A SELECT belongs to the catalog if it names tables of the catalog alone, or none at all, or if it wants no rows of any
table (``LIMIT 0``): then it is about names and types. What names declared tables is a question for the curator. A
mixture is refused: rows of the catalog are public, but what they would be joined with is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from discreet.late_dataclass import dataclass
from discreet.wire.catalog_functions import NATIVE_NODES, make_literal, rewrite_cast, rewrite_function
from discreet.wire.catalog_schema import INFORMATION_SCHEMA, PG_CATALOG
from discreet.wire.refusals import FEATURE_NOT_SUPPORTED, UNDEFINED_FUNCTION, UNDEFINED_TABLE, WireRefused

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

MOST_CHARACTERS = 30_000
_OWN_CLAUSES = ("DIFFERENTIAL_PRIVACY", "ANONYMIZATION")
# Tables that depend on who asks; the session gives their rows.
SESSION_TABLES = {
    "pg_settings": ("name", "setting", "unit", "category", "short_desc", "extra_desc", "context", "vartype", "source",
                    "min_val", "max_val", "enumvals", "boot_val", "reset_val", "sourcefile", "sourceline",
                    "pending_restart"),
    "pg_roles": ("oid", "rolname", "rolsuper", "rolinherit", "rolcreaterole", "rolcreatedb", "rolcanlogin",
                 "rolreplication", "rolconnlimit", "rolvaliduntil", "rolbypassrls", "rolconfig"),
    "pg_user": ("usename", "usesysid", "usecreatedb", "usesuper", "userepl", "usebypassrls", "valuntil", "useconfig"),
}  # fmt: skip
_SCHEMAS = ("pg_catalog", "information_schema")


class SelectAim(Enum):
    """What a SELECT is about."""

    CATALOG = auto()
    QUESTION = auto()


@dataclass(frozen=True, slots=True)
class CatalogContext:
    """Who asks the catalog: values of functions such as current_user, and rows of the tables of the session."""

    functions: Mapping[str, Any]
    tables: Mapping[str, tuple[tuple[Any, ...], ...]]
    change: Callable[[str, str], object]
    """Changes a setting, for set_config."""


def find_aim(text: str, declared: set[str]) -> tuple[SelectAim, Expr | None]:
    """What a SELECT is about, and its tree where it is a query of the catalog."""
    if len(text) > MOST_CHARACTERS or any(word in text.upper() for word in _OWN_CLAUSES):
        return SelectAim.QUESTION, None
    tree = _parse(text)
    if tree is None:
        return SelectAim.QUESTION, None
    catalog, others = _count_tables(tree, declared)
    if others and _wants_nothing(tree) and all(name in declared for name in others):
        return SelectAim.CATALOG, tree
    if catalog and others:
        rule = "Tables of the catalog cannot be joined with declared ones."
        raise WireRefused(FEATURE_NOT_SUPPORTED, rule, "Ask them one after the other.")
    return (SelectAim.QUESTION, None) if others else (SelectAim.CATALOG, tree)


def _parse(text: str) -> Expr | None:
    """The tree of a SELECT in PostgreSQL's words; None where the reader of questions has to say what is wrong."""
    from sqlglot import parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(text, read="postgres")
    except (SqlglotError, RecursionError, ValueError, IndexError, TypeError, AttributeError):
        return None
    return tree if type(tree).__name__ in ("Select", "Union", "Values", "Subquery", "Except", "Intersect") else None


def _count_tables(tree: Expr, declared: set[str]) -> tuple[set[str], set[str]]:
    """The names of tables of the catalog, and those of all others, without those of WITH."""
    catalog: set[str] = set()
    others: set[str] = set()
    named = _list_with_names(tree)
    for node in tree.walk():
        if type(node).__name__ != "Table" or type(node.this).__name__ != "Identifier":
            continue
        name, schema = str(node.name).lower(), node.text("db").lower()
        if schema in _SCHEMAS or (not schema and name not in declared and _is_catalog_name(name)):
            catalog.add(name)
        elif schema or name not in named:
            others.add(name)
    return catalog, others


def _is_catalog_name(name: str) -> bool:
    return name in PG_CATALOG or name in SESSION_TABLES or name.startswith("pg_")


def _list_with_names(tree: Expr) -> set[str]:
    return {str(node.alias).lower() for node in tree.walk() if type(node).__name__ == "CTE"}


def _wants_nothing(tree: Expr) -> bool:
    limit = tree.args.get("limit")
    return limit is not None and limit.expression is not None and limit.expression.sql() == "0"


def write_query(tree: Expr, context: CatalogContext) -> str:
    """The query of the catalog for the database in memory."""
    from sqlglot.errors import SqlglotError

    try:
        return _write_anew(tree, context)
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        rule = "This query of the catalog is more than is answered here."
        raise WireRefused(FEATURE_NOT_SUPPORTED, rule) from None


def _write_anew(tree: Expr, context: CatalogContext) -> str:
    if (empty := _write_empty(tree)) is not None:
        return empty
    _name_outputs(tree)
    named = _list_with_names(tree)
    pending = [node for node in tree.walk() if type(node).__name__ == "Table"]
    for node in pending:
        _rewrite_table(node, context, named)
    for node in reversed(list(tree.walk())):  # what is inside of a node comes before it
        made = _rewrite_node(node, context)
        if made is not node:
            node.replace(made)
    for node in tree.walk():
        _check_node(node)
    return str(tree.sql(dialect="duckdb"))


def _write_empty(tree: Expr) -> str | None:
    """The columns of a query of indexes that PostgreSQL spreads out; there are no indexes, so it has no rows."""
    spread = any(type(node).__name__ == "Anonymous" and node.name == "_pg_expandarray" for node in tree.walk())
    if not spread:
        return None
    names = (str(name).replace('"', '""') for name in getattr(tree, "named_selects", ()))
    columns = ", ".join(f'NULL::VARCHAR AS "{name}"' for name in names)
    return f"SELECT {columns} WHERE false"  # names of columns, without quotes inside


def _name_outputs(tree: Expr) -> None:
    """Give every output the name that PostgreSQL gives it: that of its column or function, else ?column?."""
    from sqlglot import expressions as exp

    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    outputs = tree.expressions if isinstance(tree, exp.Select) else []
    for output in list(outputs):
        if not isinstance(output, exp.Alias | exp.Star) and not isinstance(getattr(output, "this", None), exp.Star):
            output.replace(exp.Alias(this=output.copy(), alias=exp.to_identifier(_find_name(output), quoted=True)))


def _find_name(output: Expr) -> str:
    from sqlglot import expressions as exp

    while isinstance(output, exp.Paren | exp.Cast | exp.Collate):
        output = output.this
    if isinstance(output, exp.Dot):
        output = output.expression
    if isinstance(output, exp.Column | exp.Anonymous | exp.Identifier):
        return str(output.name) or "?column?"
    if isinstance(output, exp.Func) and not isinstance(output, exp.Connector):
        named = {**_SESSION_NODES, "GroupConcat": "string_agg"}
        return named.get(type(output).__name__, output.sql_name().lower())
    return "?column?"


def bind_values(tree: Expr, values: Mapping[str, Any]) -> None:
    """Put the values of parameters in their places, as constants."""
    for node in list(tree.walk()):
        if type(node).__name__ == "Parameter" and node.name in values:
            node.replace(make_literal(values[node.name]))


def _rewrite_table(node: Expr, context: CatalogContext, named: set[str]) -> None:
    from sqlglot import expressions as exp

    if not isinstance(node.this, exp.Identifier):
        node.set("db", None)
        made = _FUNCTION_TABLES.get(node.this.name.lower())
        if made is not None:
            alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier("f"))
            node.replace(exp.Subquery(this=exp.select(*made), alias=alias))
        return
    name, schema = str(node.name).lower(), node.text("db").lower()
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
    if not schema and name in named:
        return
    if name in SESSION_TABLES and schema != "information_schema":
        rows = [exp.Tuple(expressions=[make_literal(cell) for cell in row]) for row in context.tables[name]]
        columns = [exp.to_identifier(column) for column in SESSION_TABLES[name]]
        values = exp.Values(expressions=rows, alias=exp.TableAlias(this=exp.to_identifier("t"), columns=columns))
        node.replace(exp.Subquery(this=exp.select("*").from_(values), alias=alias))
        return
    home = INFORMATION_SCHEMA if schema == "information_schema" else PG_CATALOG
    if name not in home and (schema in _SCHEMAS or _is_catalog_name(name)):
        raise WireRefused(UNDEFINED_TABLE, f"There is no table {name[:60]} in the catalog.")
    place = "info" if schema == "information_schema" else "pg" if name in home else "main"
    node.set("db", exp.to_identifier(place))
    node.set("catalog", None)
    node.set("alias", alias)


def _rewrite_node(node: Expr, context: CatalogContext) -> Expr:
    from sqlglot import expressions as exp

    if isinstance(node, exp.Dot) and isinstance(node.this, exp.Identifier) and node.this.name.lower() in _SCHEMAS:
        unqualified: Expr = node.expression
        return unqualified
    if isinstance(node, exp.Operator):
        return _rewrite_operator(node)
    if isinstance(node, exp.Collate):
        compared: Expr = node.this
        return compared
    if isinstance(node, exp.Cast):
        return rewrite_cast(node.this, node.to.sql("postgres"))
    if isinstance(node, exp.Column):
        if node.name.lower() == "user" and not node.table and not node.this.quoted:
            return make_literal(context.functions["current_user"])
        node.set("db", None)
        node.set("catalog", None)
        return node
    if isinstance(node, exp.Func):
        return _rewrite_call(node, context)
    if isinstance(node, exp.EQ | exp.NEQ) and node.this.name in _BY_NUMBER and node.expression.is_int:
        node.set("expression", exp.Literal.string(node.expression.name))
    if isinstance(node, exp.Lock):
        raise WireRefused(FEATURE_NOT_SUPPORTED, "Nothing can be locked here.")
    return node


def _rewrite_call(node: Expr, context: CatalogContext) -> Expr:
    from sqlglot import expressions as exp

    name = str(node.name if isinstance(node, exp.Anonymous) else _SESSION_NODES.get(type(node).__name__, ""))
    if name.lower() == "current_setting":
        asked = node.expressions[0].name if node.expressions else ""
        settings = {str(row[0]).lower(): row[1] for row in context.tables["pg_settings"]}
        return make_literal(settings.get(asked.lower()))
    if name.lower() == "set_config" and all(each.is_string for each in node.expressions[:2]):
        context.change(node.expressions[0].name, node.expressions[1].name)
        return make_literal(node.expressions[1].name)
    if isinstance(node, exp.Anonymous) and name.lower() not in context.functions:
        known = _look_up(name, list(node.expressions))
        if known is not None:
            return known
    if name and name not in _OWN_MACROS:
        return rewrite_function(name, list(node.expressions), context.functions)
    return node


def _look_up(name: str, arguments: list[Expr]) -> Expr | None:
    """A function that is listed by the name of its node: the parser looks no name up behind ``pg_catalog.``."""
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    if name.lower() == "all" and len(arguments) == 1:
        return exp.All(this=exp.Paren(this=arguments[0]))
    try:
        found = exp.func(name, *arguments, dialect="postgres")
    except (SqlglotError, ValueError):
        return None
    return found if type(found).__name__ in NATIVE_NODES else None


def _rewrite_operator(node: Expr) -> Expr:
    """OPERATOR(pg_catalog.~) and the like."""
    from sqlglot import expressions as exp

    sign = str(node.args["operator"]).removeprefix("pg_catalog.").strip()
    left, right = node.this, node.expression
    right = right.this if isinstance(right, exp.Collate) else right
    match sign:
        case "~":
            return exp.RegexpLike(this=left, expression=right)
        case "!~":
            return exp.Not(this=exp.RegexpLike(this=left, expression=right))
        case "~*":
            return exp.RegexpILike(this=left, expression=right)
        case "=":
            return exp.EQ(this=left, expression=right)
        case _:
            raise WireRefused(UNDEFINED_FUNCTION, "This operator is not known here.")


def _check_node(node: Expr) -> None:
    """Only functions that are listed run."""
    from sqlglot import expressions as exp

    kind = type(node).__name__
    if isinstance(node, exp.Anonymous):
        if node.name.lower() not in _OWN_MACROS:
            raise WireRefused(UNDEFINED_FUNCTION, f"The function {node.name[:60]} is not known here.")
    elif isinstance(node, exp.Func) and kind not in NATIVE_NODES:
        raise WireRefused(UNDEFINED_FUNCTION, f"The function {node.sql_name().lower()[:60]} is not known here.")
    elif isinstance(node, exp.Into | exp.Command | exp.DML | exp.DDL) and not isinstance(node, exp.Query):
        raise WireRefused(FEATURE_NOT_SUPPORTED, "Only SELECT can be asked.")


# Functions that are used as tables: one word that clients do not know already, and a table that has no number.
_FUNCTION_TABLES = {
    "pg_get_keywords": ("'analyse' AS word", "'R' AS catcode"),
    "pg_partition_ancestors": ("0 AS relid", "0 AS ordinality"),
}
# Columns that PostgreSQL also compares with numbers, and that are names here.
_BY_NUMBER = ("typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze")
_SESSION_NODES = {
    "CurrentVersion": "version", "CurrentSchema": "current_schema", "CurrentDatabase": "current_database",
    "CurrentUser": "current_user", "SessionUser": "session_user", "CurrentSchemas": "current_schemas",
    "CurrentCatalog": "current_catalog", "CurrentRole": "current_role", "Version": "version",
    "ArraySize": "array_length", "JSONBObject": "json_build_object",
}  # fmt: skip
_OWN_MACROS = frozenset({
    "format_type", "find_table", "name_table", "find_type", "name_type", "find_schema", "name_schema",
    "describe_object", "describe_column", "write_constraint", "count_list", "list_position", "len",
    "generate_subscripts", "json_object", "unnest", "strpos",
})  # fmt: skip
