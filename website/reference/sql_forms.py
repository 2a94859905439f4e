"""docs/reference/sql.md: every aggregate, function and option of a question, from the tables of the reader."""

from __future__ import annotations

from discreet.frontends.google import clause_options
from discreet.frontends.sql import function_tables
from website.reference.tables import MADE, quote


def write_sql_forms() -> str:
    """The page."""
    options = ", ".join(quote(name) for name in clause_options.NAMES)
    parts = (
        "# SQL", MADE,
        "What is refused, why, and what to write instead: [the SQL you can ask](../sql.md).",
        "## Aggregates", function_tables.write_aggregate_table(),
        "## Functions", function_tables.write_function_table(),
        "## Aggregates of GoogleSQL", "In queries `SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...)`.",
        function_tables.write_google_table(),
        "## Options of GoogleSQL", f"{options}.",
    )  # fmt: skip
    return "\n\n".join(part.strip() for part in parts) + "\n"
