"""Reads the words of a file into entries, or lists everything that is wrong with their shape in our own words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from discreet import parameters
from discreet.codebook.entries import (
    BLANK,
    FOREIGN_KEY_FIX,
    TYPES,
    Bins,
    BudgetEntry,
    CodebookEntry,
    ColumnEntry,
    Document,
    EngineEntry,
    SourceEntry,
    TableEntry,
    did_you_mean,
)
from discreet.errors import Problem

# What to do about an entry that is missing or blank.
FIXES = {
    "name": 'Give the dataset a name: name = "hospital".',
    "unit": 'Say who is protected: unit = "patient_id" (a column), or unit = "row" where no one has two rows.',
    "ledger": 'Give a file, ledger = "hospital.ledger", or a database, ledger = "postgresql://host/database".',
    "shared_answers": "Write shared_answers = true, or remove it.",
    "answer_after": 'Give a duration: answer_after = "2s", "500ms" or "1min".',
    "ledger_id": "Leave it as `discreet init` wrote it: 8 to 64 letters, digits and hyphens; or leave it out.",
    "budget": "Say how much may be spent: [budget] with epsilon = 1, or epsilon = 1 and delta = 1e-9, or rho = 0.1.",
    "epsilon": "Say how much may be spent in all, for example epsilon = 1.",
    "delta": "Give a probability far below one over the number of people, for example delta = 1e-9.",
    "rho": "Give a number, for example rho = 0.1.",
    "per_query": "Give a number, for example per_query = 0.5.",
    "per_analyst": "Give a number for each, per_analyst = 1, or one by name, per_analyst = { ana = 2 }.",
    "per_project": "Give a number for each, per_project = 1, or one by name, per_project = { thesis = 2 }.",
    **{
        f"per_{period}": f"Give a number, for example per_{period} = 0.5."
        for period in ("day", "week", "month", "year")
    },
    "resolution": "Give the step of the values, for example resolution = 0.01.",
    "bounds": "Give the least and the largest value that count: bounds = [0, 110].",
    "keys": 'List the values: keys = ["A", "B"].',
    "edges": "List the starts of the bins: edges = [0, 18, 65].",
    "width": 'Give a step such as width = 10, or for dates width = "month".',
    "analysts": 'List names: analysts = ["ana", "ben"].',
    "projects": 'List names: projects = ["thesis"].',
    "foreign_keys": FOREIGN_KEY_FIX,
    "public": "Write public = true where rows belong to nobody, or remove it.",
    "unique": "Write unique = true, or remove it.",
    "max_frequency": "Give a whole number, for example max_frequency = 50.",
    "max_values": "Give a whole number, for example max_values = 1.",
    "max_joined_rows": "Give a whole number, for example max_joined_rows = 10000.",
    "max_length": "Give a whole number of characters, for example max_length = 200.",
    "tables": "Declare at least one table: [tables.visits].",
    "columns": 'List the columns that questions may use, such as age = { type = "integer" }.',
    "type": f"Say what the column holds: {', '.join(TYPES)}.",
    "max_rows": "Say how many rows of one unit may count, for example max_rows = 10.",
}


def read_entries(raw: Mapping[str, Any]) -> Document | tuple[Problem, ...]:
    """The document, or a list of everything that is wrong with its shape."""
    blanks = tuple(_find_blanks(raw))
    if blanks:
        return blanks
    try:
        return Document.model_validate(raw)
    except ValidationError as error:
        return tuple(_to_problem(detail) for detail in error.errors(include_url=False))


def _find_blanks(raw: object, path: str = "") -> Iterable[Problem]:
    """A problem for every entry that was left blank."""
    if isinstance(raw, Mapping):
        for word, value in raw.items():
            yield from _find_blanks(value, f"{path}.{word}" if path else str(word))
    elif raw == BLANK:
        yield Problem(path, "is still blank", FIXES.get(path.rpartition(".")[2], "Fill it in."))


def _to_problem(detail: ErrorDetails) -> Problem:
    """An error of pydantic in our own words: entry, rule and fix."""
    places = list(detail["loc"])
    # A foreign key has no name of its own, and its number means nothing to a reader.
    path = [str(p) for at, p in enumerate(places) if not (isinstance(p, int) and places[at - 1] == "foreign_keys")]
    entry, word = ".".join(path) or "The file", path[-1] if path else ""
    fix = next((FIXES[part] for part in reversed(path[-2:]) if part in FIXES), "")
    match detail["type"]:
        case "extra_forbidden":
            return Problem(entry, "is an unknown word", did_you_mean(word, _find_model(path[:-1]).model_fields))
        case "missing":
            return Problem(entry, "is missing", FIXES.get(word, "Add it."))
        case "literal_error":
            known = re.findall(r"'([^']+)'", detail.get("ctx", {}).get("expected", ""))
            return Problem(entry, "is not a known word", did_you_mean(str(detail["input"]), known))
        case "tuple_type" | "too_short" | "too_long":
            return Problem(entry, "must be a list" + " of two" * (word == "bounds"), fix)
        case "dict_type" if word == "foreign_keys":
            return Problem(entry, "must say which column refers to which", FIXES[word])
        case "dict_type" | "model_type":
            return Problem(entry, "must be a table of entries", f"Write [{entry}] and its entries below.")
        case "greater_than_equal" | "less_than_equal":
            return Problem(entry, f"must be between 1 and {parameters.MAX_SIZE:,}", "Give a whole number.")
        case _:
            words = detail["msg"][:1].lower() + detail["msg"][1:]
            words = words.replace("input should be", "must be").removeprefix("value error, ").replace(" valid ", " ")
            return Problem(entry, words, fix)


def _find_model(path: list[str]) -> type[CodebookEntry]:
    """The model that describes the entry at a path."""
    match path:
        case ["budget"]:
            return BudgetEntry
        case ["engine"]:
            return EngineEntry
        case ["source"] | ["tables", _, "source"]:
            return SourceEntry
        case ["tables", _]:
            return TableEntry
        case ["tables", _, "columns", _]:
            return ColumnEntry
        case ["tables", _, "columns", _, "bins"]:
            return Bins
        case _:
            return Document
