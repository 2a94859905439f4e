"""Pages of docs/reference, made from the code. A test fails where a page and the code differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from website.reference.api import write_api
from website.reference.codebook_words import write_codebook_words
from website.reference.commands import write_commands
from website.reference.error_codes import write_error_codes
from website.reference.sql_forms import write_sql_forms

PAGES: Mapping[str, Callable[[], str]] = {
    "api": write_api,
    "codebook": write_codebook_words,
    "commands": write_commands,
    "errors": write_error_codes,
    "sql": write_sql_forms,
}
"""What writes each page."""
