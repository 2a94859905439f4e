"""The files of a folder as parts of one table, in which folders such as ``year=2024`` are columns."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.csv_form import find_text_ending
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type

# What writers of such folders call the folder of rows whose value is missing.
_MISSING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class FolderPart:
    """One file of text, and what the names of its folders say about its rows."""

    file: Path
    values: Mapping[str, str | None]


def list_parts(folder: Path) -> list[FolderPart]:
    """The text files in a folder and in those below it, in the order of their names."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and find_text_ending(str(file)) is not None)
    parts = [FolderPart(file, read_values(file.relative_to(folder).parts[:-1])) for file in files]
    if len({tuple(part.values) for part in parts}) > 1:
        raise UsageError(
            f"The folders in {folder} have different names before the sign =, so its files are no parts of one table. "
            "Import each folder by itself. Nothing was charged."
        )
    return parts


def read_values(folders: Sequence[str]) -> dict[str, str | None]:
    """What the names of folders say: ``year=2024`` is a value of the column year.

    >>> read_values(["flights", "year=2024", "place=New%20York", "kind=__HIVE_DEFAULT_PARTITION__"])
    {'year': '2024', 'place': 'New York', 'kind': None}
    """
    pairs = [name.partition("=") for name in folders if "=" in name]
    return {unquote(column): None if value == _MISSING else unquote(value) for column, _, value in pairs}


def write_pattern(folder: Path, parts: Sequence[FolderPart]) -> str:
    """A pattern for all files of a folder, which must have one ending."""
    endings = sorted({"".join(part.file.suffixes[-2:]) for part in parts})
    if len(endings) > 1:
        raise UsageError(
            f"The files in {folder} end differently ({', '.join(endings)}), so no types can be proposed for all of "
            "them. Import without --types, and declare types by --type. Nothing was charged."
        )
    return f"{glob.escape(str(folder))}/**/*{endings[0]}"


def propose_folder_types(parts: Sequence[FolderPart]) -> dict[str, Type]:
    """The types of the columns that stand in the names of folders: whole numbers, or texts."""
    names = parts[0].values if parts else {}
    values = {name: [part.values[name] for part in parts] for name in names}
    return {name: Type.INTEGER if all(map(_is_whole, values[name])) else Type.TEXT for name in names}


def _is_whole(text: str | None) -> bool:
    """Whether a text is missing, or a whole number as Python writes it: 07 is none, and stays a text."""
    if text is None:
        return True
    digits = text.removeprefix("-")
    return (
        digits.isascii()
        and digits.isdigit()
        and len(digits) < 20
        and str(int(text)) == text
        and INTEGER_MIN <= int(text) <= INTEGER_MAX
    )
